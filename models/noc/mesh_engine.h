#pragma once
#include <algorithm>
#include <memory>

#include "models/noc/noc_config.h"
#include "models/noc/virtual_channel.h"
#include "tlm/ext/packet.h"
#include "tlm/machine/routing.h"

namespace kernbench {

/// When packets pass the routers of one network (a cube's mesh, a crossbar, the fabric switch), in cycles of its clock.
///
/// Plain class: knows no SystemC and no event queue; the modules (RouterNetwork, Router) turn its actions into calls on
/// their sockets and its wakes into events. A packet moves only by those calls: the engine says head() when the head
/// wins the switch, and learns of it at the next router when the call comes back through the bound sockets as arrive().
/// FlitEngine is the accurate grade, HopCommitEngine the fast one.
///
/// Injection is the engine's: what a network interface or link port offers waits in the source of that input (an
/// unbounded queue, one flit per cycle into the router) until it is said to be injected(). So are the virtual channel
/// of a packet (packet.vc; NocConfig::vc_choice), buffers and credits between the network's routers. Only outputs that
/// leave the network have credits that come from outside.
///
/// All calls and actions happen in the order of cycles; `now` is the cycle of the call, and no action names an earlier
/// one. A packet is in the engine from offer() to the tail() of its last output. It uses of Packet: bytes, source,
/// destination, class, vc_set, exit_router, exit_port (read); vc, next (its own).
class MeshEngine {
 public:
  class Actions {
   public:
    /// The head of `packet`, which came through `input`, has won output `output` of `router` on virtual channel
    /// packet.vc; it reaches what is bound there at cycle `head`.
    virtual void head(unsigned router, unsigned input, unsigned output, Packet& packet, Cycle head) = 0;
    /// Its last flit has, too, and gets there at `tail`: final. At an output that leaves the network the packet is no
    /// longer the engine's.
    virtual void tail(unsigned router, unsigned input, unsigned output, Packet& packet, Cycle head, Cycle tail) = 0;
    /// Both at once.
    virtual void pass(unsigned router, unsigned input, unsigned output, Packet& packet, Cycle head, Cycle tail) {
      this->head(router, input, output, packet, head);
      this->tail(router, input, output, packet, head, tail);
    }
    /// A packet will leave through this output within the next few calls, on `channel` or one of the next ones: a hint,
    /// to fetch what that needs.
    virtual void soon(unsigned /*router*/, unsigned /*output*/, unsigned /*channel*/) {}
    /// Until now `packet` could not go on for want of a place or channel that `by` gives back, or, null, what is behind
    /// that output.
    virtual void freed(unsigned /*router*/, unsigned /*output*/, Packet& /*packet*/, const Packet* /*by*/) {}
    /// All flits of an offered packet have left its source: they reach the router's buffer from `head` to `tail`.
    virtual void injected(unsigned router, unsigned input, Packet& packet, Cycle head, Cycle tail) = 0;
    /// step(at) is to be called at cycle `at`.
    virtual void wake(Cycle at) = 0;

   protected:
    ~Actions() = default;
  };

  virtual ~MeshEngine() = default;

  // Elaboration. Routers are numbered in order of add_router, as in the network's routes.
  virtual void add_router(unsigned ports) = 0;
  /// Output `output` of `from` leads to input `input` of `to`, in the same network. Inputs that nothing is connected to
  /// have sources; outputs that are not connected leave the network.
  virtual void connect(unsigned from, unsigned output, unsigned to, unsigned input) = 0;
  /// Buffer behind an output that leaves the network, in flits of each virtual channel; kUnlimited: no credits.
  virtual void announce(unsigned router, unsigned output, unsigned flits) = 0;
  static constexpr unsigned kUnlimited = ~0U;

  /// A network interface or link port wants to inject `packet` at `input`. Its flits can be injected from cycle `first`
  /// (the first of them) to `last` (the last), evenly spread; first >= now.
  virtual void offer(unsigned router, unsigned input, Packet& packet, Cycle first, Cycle last, Cycle now) = 0;
  /// The head reaches the buffer of virtual channel packet.vc of `input`, connected to another router, at `head`.
  virtual void arrive(unsigned router, unsigned input, Packet& packet, Cycle head) = 0;
  /// Of the buffer behind an output that leaves the network, `flits` are free again: the first from `when` on, the
  /// others one per cycle after it. REQUIRES of FlitEngine: when + flits <= now + 32, or when <= now.
  virtual void credit(unsigned router, unsigned output, unsigned vc, unsigned flits, Cycle when, Cycle now) = 0;
  /// The call that Actions::wake asked for; one that has been superseded does nothing.
  virtual void step(Cycle now) = 0;

 protected:
  MeshEngine(const NocConfig& config, const NetworkRoutes& routes, Actions& actions)
      : config_(config),
        routes_(routes),
        actions_(actions),
        flits_(config.flit_bytes),
        split_(config.vcs_per_set),
        any_(config.vc_choice == VcChoice::any),
        chaining_(config.packet_chaining),
        hop_(Cycle{config.sw_alloc_delay} + config.switch_delay + config.link_delay),
        injection_(Cycle{1} + config.link_delay),
        reuse_(Cycle{config.credit_delay} + config.sw_alloc_delay),
        source_reuse_(config.credit_delay),
        head_wait_(config.routing_delay + std::max<Cycle>(config.vc_alloc_delay, 1) - 1),
        allocated_(std::min<Cycle>(config.vc_alloc_delay, 1)) {}

  const NocConfig config_;
  const NetworkRoutes& routes_;
  Actions& actions_;
  const FlitCounter flits_;
  const VcSplit split_;
  const bool any_, chaining_;
  const Cycle hop_, injection_;       // from departure to the next buffer
  const Cycle reuse_, source_reuse_;  // from a flit's departure to the use of its place
  const Cycle head_wait_;             // from head ready to the allocation of a virtual channel
  const Cycle allocated_;             // from there to the first switch request
};

std::unique_ptr<MeshEngine> make_flit_engine(const NocConfig& config, const NetworkRoutes& routes,
                                             MeshEngine::Actions& actions);
std::unique_ptr<MeshEngine> make_hop_commit_engine(const NocConfig& config, const NetworkRoutes& routes,
                                                   MeshEngine::Actions& actions);

}  // namespace kernbench
