#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/noc/credit_ledger.h"
#include "models/noc/noc_config.h"
#include "models/noc/virtual_channel.h"
#include "tlm/machine/routing.h"

namespace kernbench {

/// When packets pass a router: virtual cut-through at packet grain, in cycles of the router's clock.
///
/// A packet whose head is in an input buffer at cycle a may win the switch at s >= a + routing + VC allocation, once
/// the packet before it in its virtual channel has left, its input and its output port have passed their previous
/// packet, and the next buffer has credit for all of it. It then holds both ports for one cycle per flit, from s to s +
/// flits; its last flit leaves at max(s + flits - 1, arrival of the tail): a packet that comes slower than one flit per
/// cycle leaves gaps that others use. The buffer is free again, flit by flit, `credit_delay` after each left. A packet
/// that nothing hinders is committed at its arrival, the others compete when the output becomes free: commands and
/// credits first, then round robin over the inputs, then over the channels of an input (weighted: a neighbour's port
/// may send two packets in a row while a local one waits). Packets keep their virtual channel within a network. Not
/// modelled: interleaving of packets that come at the full rate, switch matching conflicts, the idle cycle that one
/// virtual channel has between two packets.
class RouterTiming {
 public:
  /// What the router does; the module turns it into calls on its sockets.
  class Actions {
   public:
    /// The head of `packet` wins the switch at `start`, its tail at `last`.
    virtual void depart(unsigned output, Packet& packet, unsigned flits, Cycle start, Cycle last) = 0;
    /// Flits of input buffer `vc` are free from `when` on, one per cycle.
    virtual void free_buffer(unsigned input, unsigned vc, unsigned flits, Cycle when) = 0;
    /// arbitrate(output, at) is to be called at cycle `at`.
    virtual void wake(unsigned output, Cycle at) = 0;

   protected:
    ~Actions() = default;
  };

  RouterTiming(const NocConfig& config, const NetworkRoutes& routes, std::uint16_t index, unsigned ports,
               Actions& actions);
  ~RouterTiming();

  /// Capacity behind an output.
  void announce(unsigned output, unsigned vc, unsigned flits) { outputs_[output].credits.announce(vc, flits); }
  /// The head of `packet` is in the buffer of virtual channel packet.vc at cycle `now`.
  void arrive(unsigned input, Packet& packet, Cycle now);
  /// Flits of the buffer behind `output` may be sent again from `when` on, one per cycle.
  void credit(unsigned output, unsigned vc, unsigned flits, Cycle when, Cycle now);
  /// The call that Actions::wake asked for; one that has been superseded does nothing.
  void arbitrate(unsigned output, Cycle now);

 private:
  struct InputVc;
  struct Input {
    Cycle free = 0;        // first cycle in which it may pass another flit
    unsigned next_vc = 0;  // round robin
    std::array<std::unique_ptr<InputVc[]>, kVirtualNetworks> networks;
  };
  struct Output {
    explicit Output(unsigned vcs_per_set) : credits(vcs_per_set) {}
    Cycle free = 0;         // first cycle in which it may pass another flit
    Cycle wake = kNoCycle;  // the pending arbitration
    InputVc* waiting = nullptr;
    unsigned next_input = 0;  // round robin
    unsigned streak = 0;      // weighted: packets in a row of the input before next_input
    CreditLedger credits;
  };

  InputVc& input_vc(unsigned input, unsigned vc);
  void front(InputVc& in, Cycle earliest, Cycle now);
  Cycle ready(const InputVc& in, Output& out) const;
  std::uint64_t rank(const InputVc& in, const Output& out) const;
  void commit(InputVc& in, Cycle start, Cycle now);
  void wake(Output& out, Cycle at);
  void turn(Output& out, unsigned input) const;

  const NetworkRoutes& routes_;
  const std::uint16_t index_;
  Actions& actions_;
  const FlitCounter flits_;
  const VcSplit split_;
  const Clock clock_;
  const bool weighted_;
  const unsigned vcs_;
  const Cycle credit_delay_;
  const Cycle sw_alloc_delay_;
  const Cycle pipeline_;  // arrival to switch allocation
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
};

}  // namespace kernbench
