#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "models/noc/cycle_wheel.h"
#include "models/noc/hop_state.h"
#include "models/noc/mesh_engine.h"

namespace kernbench {

/// The fast grade: one decision per packet and hop, when the head arrives, never revised. Idle routers cost nothing.
///
/// The packet at the front of a virtual channel is handled when its head is there and the tail of the packet before it
/// has left. dep: cycle in which a flit wins the switch; B: buffer depth; n: number of a flit in the next buffer.
///   va = now, if a virtual channel of the output is free, else one cycle after the tail of the one that is free first;
///        while all wait for something themselves, the packet waits, first come first served
///   dep[0] >= va + 1, and >= dep of flit n - B out of the next buffer + credit delay + switch allocation; where that
///        is not decided, the packet keeps the virtual channel and waits for the decision
///   dep[i] = the lowest cycles from there on that are free at input and output port; cycles in between in which the
///        output is free and the input is not are lost to the output as well: a single-iteration allocator has picked
///        an input that sends elsewhere
///   dep[last] >= arrival of the tail, and >= the credit of the last flit; flit times in between are linear
/// With packet chaining a packet that is there when the tail before it goes follows it at once on the same channel, if
/// nobody waits for that.
///
/// Commands, credits and long trains go ahead: where nothing is in the way, the next hop is decided together with the
/// one before it, for the time at which the head will be there. (Short packets of other classes do not: in a loaded
/// mesh that costs 20 % of the mean latency.)
///
/// A packet longer than B stays until the next router has decided on it: its tail follows B flits behind.
///
/// Commands take cycles regardless of all others, credits of all but commands; the others lose later cycles instead.
///
/// A packet is also delayed by those that come after it and share its links. That does not change what is decided, but
/// kLateTenths of what a packet has waited for others is added where it leaves the network.
///
/// Not modelled: round robin between inputs (order of arrival instead), weighted arbitration, a hold that ends for want
/// of a credit. Source of the method: measured prototypes against reference tables of BookSim2 (docs/fidelity.md).
class HopCommitEngine final : public MeshEngine {
 public:
  HopCommitEngine(const NocConfig& config, const NetworkRoutes& routes, Actions& actions);
  ~HopCommitEngine() override;

  void add_router(unsigned ports) override;
  void connect(unsigned from, unsigned output, unsigned to, unsigned input) override;
  void announce(unsigned router, unsigned output, unsigned flits) override;
  void offer(unsigned router, unsigned input, Packet& packet, Cycle first, Cycle last, Cycle now) override;
  void arrive(unsigned router, unsigned input, Packet& packet, Cycle head) override;
  void credit(unsigned router, unsigned output, unsigned vc, unsigned flits, Cycle when, Cycle now) override;
  void step(Cycle now) override;

 private:
  static constexpr Cycle kFarthestAhead = 96;     // a longer way is taken in several events
  static constexpr unsigned kShortestAhead = 32;  // flits of an ordinary packet that goes ahead
  static constexpr unsigned kLateTenths = 3;      // share of its waits, in tenths
  static constexpr std::uint8_t kNoVc = hop::kNoVc;
  using Queue = hop::Queue;
  using Link = hop::Link;
  using Network = hop::Network;
  using Port = hop::Port;
  struct Entry {
    Queue* queue;
    Packet* packet;  // null: an evaluation
    Network* to;     // where the packet goes from there
  };
  /// The packet that was sent on last, and where its head will be when.
  struct Ahead {
    Queue* queue = nullptr;
    Packet* packet = nullptr;
    Cycle at = 0;
  };
  /// Of an input and a virtual network, once they are made: where packets wait for it, and what they go to.
  struct Source {
    Queue* lines = nullptr;
    Network* to = nullptr;
  };
  struct End {
    std::uint32_t router = ~0U, port = 0;
  };

  // State, made on first use (hop_state.cpp).
  Port& port(unsigned router, unsigned number);
  Link& out_link(unsigned router, unsigned output);
  Network& network(Link& link, unsigned number);
  Network& make_onward(const Queue& queue, unsigned output);
  Network** onward_of(unsigned router, unsigned number);
  void make_sources(unsigned router, unsigned input, unsigned number, Source& source);
  Queue& source_line(unsigned router, unsigned input, const Packet& packet);
  Network& beyond(unsigned router, unsigned output, unsigned number);

  void push(const Entry& entry, Cycle at);
  void arrive(Queue& queue, Packet& packet, Cycle at);
  void wake(Queue& queue, Cycle at);
  void arm();

  void go_on(Queue& queue, Packet& packet, Cycle at);
  void run_ahead();
  bool pass_idle(Queue& queue, Packet& packet, Cycle head);

  void append(Queue& queue, Packet& packet, Network& to);
  Network& route(const Queue& queue, const Packet& packet);
  void evaluate(Queue& queue);
  void inject(Queue& line);
  void forward(Queue& queue, Network& to);
  bool pass_freely(Queue& queue, Network& network, unsigned vc);
  static void fetch(const Entry& entry);
  void fetch_next(const Entry& entry) const;
  bool may_chain(const Queue& queue, unsigned output, const Network& network) const;
  unsigned own_channel(const Queue& queue) const { return split_.channel(queue.number); }
  /// Places that a packet takes behind a link. Outside the network those of its first flits serve its last ones, too.
  static unsigned places(unsigned flits, const Link& link) {
    return link.port == nullptr && flits > link.depth ? link.depth : flits;
  }
  static unsigned in_flight(unsigned flits, std::uint32_t depth) { return flits < depth ? flits : depth; }
  void wake_sender(Queue& buffer);
  static void await(Queue& buffer, Queue& sender);
  static bool decided(const Queue& buffer, unsigned flits, std::uint32_t depth);
  Cycle usable(const Queue& buffer, unsigned flit, std::uint32_t depth) const;
  static void record(Queue& buffer, unsigned flits, Cycle first, Cycle last);
  unsigned free_channel(const Queue& queue, const Network& network) const;
  void commit(Queue& queue, Network& network, unsigned vc, Cycle earliest);
  Passage reserve_slots(Queue& queue, Link& link, Cycle earliest, unsigned flits);
  static Cycle free_from(const Queue& queue, const Link& link, Cycle earliest);
  void push_aside(hop::Maps& output, hop::Maps& input, unsigned level, Cycle first, unsigned flits);
  void follow(Queue& buffer, Packet& packet, Cycle first, unsigned flits);
  void finish(Queue& queue, Packet& packet, unsigned flits, Network& network, const Passage& passage);
  void settle(Queue& queue, unsigned flits, Network& network, const Passage& passage);
  void leave(Queue& queue, Packet& packet, Network& network, unsigned vc, const Passage& passage);
  Cycle delivery(const Packet& packet, Queue& behind, Cycle tail) const;
  void serve_waiting(Network& network);

  const bool picks_, late_;

  std::vector<std::uint32_t> first_port_;  // by router; one more at the end
  std::vector<End> to_;                    // by output
  std::vector<bool> fed_;                  // by input: something is connected
  std::vector<std::uint32_t> announced_;   // by output
  std::vector<std::unique_ptr<Port>> ports_;
  std::vector<Source> sources_;   // hop::Queue::onward points into it: all routers are there before the first offer
  std::vector<Network*> beyond_;  // by output and virtual network: behind it, once made
  /// By router: what its outputs lead to, by (virtual network, output).
  std::vector<std::unique_ptr<Network*[]>> onward_;
  std::vector<std::unique_ptr<Network>> networks_;

  Cycle now_ = 0;
  Cycle armed_ = kNoCycle;
  bool busy_ = false;              // in a call that arms at its end
  Queue* sent_to_ = nullptr;       // where the packet goes that head() is being said of
  const Link* sent_by_ = nullptr;  // and the way there
  Ahead ahead_;
  CycleWheel<Entry> wheel_;
};

}  // namespace kernbench
