#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/noc/mesh_engine.h"
#include "models/noc/slot_map.h"

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
  void arrive(unsigned router, unsigned input, Packet& packet, Cycle head, Cycle now) override;
  void credit(unsigned router, unsigned output, unsigned vc, unsigned flits, Cycle when, Cycle now) override;
  void step(Cycle now) override;

 private:
  static constexpr unsigned kSlots = 256;     // of the wheel of coming cycles
  static constexpr unsigned kLateTenths = 3;  // share of its waits, in tenths
  static constexpr unsigned kMaxVcs = 25;     // of one network: vcs() <= 255
  static constexpr std::uint8_t kNoVc = 0xFF;

  struct Port;
  struct Network;
  /// By priority_level: what packets of that level and of those before it have taken.
  using Maps = std::array<SlotMap, kOrdinary + 1>;
  /// Flits that left a buffer together: flit from + i at first + i, with the gaps spread evenly.
  struct Run {
    std::uint32_t from = 0, flits = 0;
    Cycle first = 0, last = 0;
  };
  /// Packets in one virtual channel of an input buffer, or those that wait in a source to enter one.
  struct alignas(64) Queue {
    Packet* first = nullptr;
    Packet* last = nullptr;
    Cycle gone = 0;         // after the tail of the packet that left last
    Cycle wake = kNoCycle;  // the pending evaluation
    Port* port = nullptr;
    Network** onward = nullptr;                // what its packets go to, by output
    std::uint32_t assigned = 0, departed = 0;  // as buffer: running numbers of flits
    std::uint8_t number = 0;                   // virtual channel; its first one for a source with one line for all
    std::uint8_t owned = kNoVc;                // channel of the next buffer that it holds while it waits or trails
    std::uint8_t output = 0;                   // of the packet that is going
    std::uint8_t channel = 0;                  // of the packet that left last
    bool source = false;
    std::uint8_t newest = 0;  // of runs
    // As buffer: when its places may be used again, and who waits to know.
    std::array<Run, 4> runs;    // older ones are long past: a packet is handled when the one before it has left
    Queue* sender = nullptr;    // waits for a decision here to have credit
    Queue* trailing = nullptr;  // its packet is longer than this buffer, its tail follows this one's head
    // As sender.
    Queue* next_waiting = nullptr;
    Cycle va = 0;                       // of the channel that it owns
    Packet* trailing_packet = nullptr;  // has left but for its tail
    Passage passage;                    // of the trailing packet
    Cycle delivered = 0;                // outside the network: after the tail that arrived last
  };
  /// From an output, or a source, to the buffers behind it; one flit per cycle.
  struct Link {
    Maps slots;
    std::uint32_t depth = 0;
    Port* port = nullptr;  // null: outside the network
    std::array<std::unique_ptr<Network>, kVirtualNetworks> networks;
  };
  /// The virtual channels of one virtual network behind a link.
  struct Network {
    Link* link = nullptr;
    std::unique_ptr<Queue[]> vcs;
    Queue* waiting = nullptr;  // queues that wait for a channel, first come first served
    Queue* last_waiting = nullptr;
    std::uint8_t next = 0;              // round robin
    std::array<Cycle, kMaxVcs> free{};  // from when on a packet may be given the channel; kNoCycle: not decided
  };
  struct Port {
    Maps slots;
    std::uint32_t router = 0, number = 0;
    Link in;                                                         // to its buffers
    std::unique_ptr<Link> border;                                    // its output, if that leaves the network
    std::array<std::unique_ptr<Queue[]>, kVirtualNetworks> sources;  // of an input that nothing is connected to
  };
  struct Entry {
    Queue* queue;
    Packet* packet;  // null: an evaluation
    Cycle at;
  };
  struct End {
    std::uint32_t router = ~0U, port = 0;
  };

  Port& port(unsigned router, unsigned number);
  Link& out_link(unsigned router, unsigned output);
  Network& network(Link& link, unsigned number);
  Network& onward(const Queue& queue, unsigned output);
  Network** onward_of(unsigned router, unsigned number);
  Queue& source_line(Port& port, const Packet& packet);

  void push(Queue& queue, Packet* packet, Cycle at);
  void wake(Queue& queue, Cycle at);
  Cycle next_work() const;
  void arm();

  void append(Queue& queue, Packet& packet);
  void evaluate(Queue& queue);
  void inject(Queue& line);
  void forward(Queue& queue);
  bool may_chain(const Queue& queue, unsigned output, const Network& network) const;
  unsigned own_channel(const Queue& queue) const { return split_.channel(queue.number); }
  static unsigned in_flight(unsigned flits, std::uint32_t depth) { return flits < depth ? flits : depth; }
  static bool decided(const Queue& buffer, unsigned flits, std::uint32_t depth);
  Cycle usable(const Queue& buffer, unsigned flit, std::uint32_t depth) const;
  static void record(Queue& buffer, unsigned flits, Cycle first, Cycle last);
  unsigned free_channel(const Queue& queue, const Network& network) const;
  void commit(Queue& queue, Network& network, unsigned vc, Cycle earliest);
  Passage reserve_slots(Queue& queue, Link& link, Cycle earliest, unsigned flits);
  void push_aside(Maps& output, Maps& input, unsigned level, Cycle first, unsigned flits);
  void follow(Queue& buffer, Packet& packet, Cycle first, unsigned flits);
  void finish(Queue& queue, Packet& packet, unsigned flits, Network& network, const Passage& passage);
  void leave(Queue& queue, Packet& packet, Network& network, unsigned vc, const Passage& passage);
  void serve_waiting(Network& network);

  const NocConfig config_;
  const NetworkRoutes& routes_;
  Actions& actions_;
  const FlitCounter flits_;
  const VcSplit split_;
  const bool any_, picks_, late_, chaining_;
  const Cycle hop_, injection_;       // from departure to the next buffer
  const Cycle reuse_, source_reuse_;  // from a flit's departure to the use of its place
  const Cycle head_wait_;             // from head ready to the allocation of a virtual channel
  const Cycle allocated_;             // from there to the first switch request

  std::vector<std::uint32_t> first_port_;  // by router; one more at the end
  std::vector<End> to_;                    // by output
  std::vector<bool> fed_;                  // by input: something is connected
  std::vector<std::uint32_t> announced_;   // by output
  std::vector<std::unique_ptr<Port>> ports_;
  /// By router: what its outputs lead to, by (virtual network, output).
  std::vector<std::unique_ptr<Network*[]>> onward_;

  Cycle now_ = 0;
  Cycle armed_ = kNoCycle;
  bool busy_ = false;         // in a call that arms at its end
  Queue* sent_to_ = nullptr;  // where the packet goes that head() is being said of
  std::array<std::uint64_t, kSlots / 64> pending_{};
  std::array<std::vector<Entry>, kSlots> wheel_;
};

}  // namespace kernbench
