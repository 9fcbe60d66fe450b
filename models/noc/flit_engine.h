#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/noc/flit_state.h"
#include "models/noc/mesh_engine.h"

namespace kernbench {

/// The accurate grade: flit by flit, cycle by cycle, where there is work; idle routers cost nothing.
///
/// The router is input-queued with virtual channels, wormhole flow control and credits. With dep = cycle in which a
/// flit wins the switch, B = buffer depth, n = number of a flit in the buffer it goes to:
///   arrival at the next buffer = dep + hop, hop = switch allocation + switch + link; from a source 1 + link
///   head ready = max(arrival of the head, dep(tail of the packet before it in the buffer) + 1) + routing delay
///   virtual channel allocated in v >= head ready + allocation delay - 1; one whose owner's tail had dep < v is free
///   dep[i] >= max(v + 1, dep[i - 1] + 1, arrival[i]); dep[n] >= dep of flit n - B out of the next buffer + credit
///   delay + switch allocation; from a source: + credit delay
/// One flit per cycle and input port, one per cycle and output port. Both allocators are one iteration of iSLIP: each
/// output picks among the inputs that ask, round robin, each input accepts among the outputs that picked it, and an
/// output whose pick was not accepted stays idle in that cycle. Commands go before credits, and these before all
/// others, even those that hold the switch. Weighted round robin: an input from a neighbour may win twice in a row.
/// With packet chaining (Michelogiannakis et al., MICRO 2011) a head that is in the buffer when the tail before it goes
/// keeps that packet's output channel, if it needs the same and no other head waits for it: one virtual channel then
/// fills a link; without, it carries flits / (flits + 1).
/// A source sends one flit per cycle; it picks among its virtual channels as the switch does, and stays with a packet
/// while that can go on, but for commands and credits.
/// Source of the rules: reference tables of BookSim2 (docs/noc.md).
class FlitEngine final : public MeshEngine {
 public:
  FlitEngine(const NocConfig& config, const NetworkRoutes& routes, Actions& actions);
  ~FlitEngine() override;

  void add_router(unsigned ports) override;
  void connect(unsigned from, unsigned output, unsigned to, unsigned input) override;
  void announce(unsigned router, unsigned output, unsigned flits) override;
  void offer(unsigned router, unsigned input, Packet& packet, Cycle first, Cycle last, Cycle now) override;
  void arrive(unsigned router, unsigned input, Packet& packet, Cycle head) override;
  void credit(unsigned router, unsigned output, unsigned vc, unsigned flits, Cycle when, Cycle now) override;
  void step(Cycle now) override;

 private:
  using Buffer = flit::Buffer;
  using Router = flit::Router;
  using Source = flit::Source;
  using Lane = flit::Lane;
  static constexpr unsigned kSlots = 64;  // of the wheel of coming cycles
  static constexpr unsigned kRun = 16;    // flits that a source sends without looking around

  // State, made on first use (flit_engine.cpp).
  flit::Port& port(unsigned router, unsigned number) { return ports_[first_port_[router] + number]; }
  Router& router(unsigned index);
  Buffer& buffer(Router& router, unsigned input, unsigned vc);
  flit::OutputNetwork& output_network(Router& router, unsigned output, unsigned network);
  Buffer& behind(Router& router, unsigned output, unsigned network, unsigned channel);

  // Time.
  void schedule(Buffer& buffer, Cycle at);
  void schedule(Source& source, Cycle at);
  Cycle next_work() const;
  void arm();
  void list(Router& router);

  // A packet in a buffer (the last five: flit_router.cpp).
  void enqueue(Buffer& buffer, Packet& packet, Cycle head);
  void make_current(Buffer& buffer, Packet& packet, Cycle ready);
  std::uint8_t next_port(const Buffer& buffer, const Packet& packet) const;
  bool can_send(Buffer& buffer, Cycle at);
  void evaluate(Buffer& buffer, Cycle at);
  void send(Buffer& buffer, Cycle now);
  void finish(Buffer& buffer, Cycle now);
  bool chain(Buffer& buffer, const flit::OutputNetwork& network, Cycle now);

  // A router's cycle (flit_router.cpp).
  struct VcRequest {
    Buffer* buffer;
    flit::OutputNetwork* network;
    std::uint32_t channel, rank;  // of the best pick so far
    bool seen;
  };
  enum class Pass : std::uint8_t { all, priority, ordinary };
  void run(Router& router, Cycle now);
  void allocate_vcs(Router& router);
  void allocate_vc(Router& router, Buffer& buffer);
  void match_vcs(Router& router);
  void grant_vc(Router& router, Buffer& buffer, flit::OutputNetwork& network, unsigned channel);
  std::uint32_t wanted(const Buffer& buffer, const flit::OutputNetwork& network) const;
  std::uint32_t index_of(unsigned port, unsigned network, unsigned channel) const;
  void allocate_switch(Router& router, Cycle now);
  void match_switch(Router& router, Cycle now, Pass pass);
  void serve_holds(Router& router, Cycle now);
  bool all_win(Router& router, Cycle now);
  void win(Router& router, Buffer& buffer, Cycle now);
  void hold(Router& router, Buffer& buffer, Cycle now);
  template <class Next>
  void turn(Next& next, std::uint8_t& streak, unsigned winner, unsigned all, unsigned input) const;

  // Injection (flit_source.cpp).
  Source& source(Router& router, unsigned input);
  Lane& lane(Source& source, const Packet& packet);
  void pump(Source& source, Cycle now);
  Cycle can_inject(Source& source, Lane& lane, Cycle at);
  Cycle pick_vc(Source& source, Lane& lane, Cycle at);
  void inject(Source& source, Lane& lane, Cycle now);
  unsigned rank(const Source& source, const Lane& lane) const;
  void freed_source(const Buffer& buffer, const Packet& by);

  const unsigned vcs_;
  const bool hold_, weighted_;

  std::vector<std::uint32_t> first_port_;  // by router
  std::vector<flit::Port> ports_;
  std::vector<std::unique_ptr<Router>> routers_;
  std::vector<std::unique_ptr<Buffer>> borders_;

  Cycle now_ = 0;
  Cycle stepped_ = kNoCycle;  // last cycle that has been run
  Cycle armed_ = kNoCycle;
  bool stepping_ = false;
  std::uint64_t pending_ = 0;  // bit s: slot s of a wheel has entries
  std::array<std::vector<Buffer*>, kSlots> wheel_;
  std::array<std::vector<Source*>, kSlots> source_wheel_;
  std::vector<Buffer*> due_;
  std::vector<Source*> due_sources_;
  std::vector<Router*> work_, coming_;
  // Scratch of a router's cycle.
  std::vector<Buffer*> granted_;
  std::vector<VcRequest> requests_;
  std::vector<flit::Output*> picked_;
  std::vector<flit::Input*> accepted_;
  std::vector<Buffer*> granted_holds_;
};

}  // namespace kernbench
