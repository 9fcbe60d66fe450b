#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "models/link/credit_ledger.h"
#include "models/noc/virtual_channel.h"

namespace kernbench {

/// Packets that wait for one port, each in the queue of its virtual channel, and whose turn it is.
///
/// The port takes one packet at a time. Commands and credits go first; otherwise round robin over the virtual networks,
/// then over the channels of a network. A packet goes when the port is free and there is credit for all of it; a
/// blocked channel does not block others. Time is in any unit that the owner chooses (cycles for injection, picoseconds
/// for a wire). Knows no SystemC. State of a virtual network is made on its first use.
class QueuedPort {
 public:
  struct Release {
    Cycle port, channel;
  };
  class Actions {
   public:
    /// Credit units that the packet needs.
    virtual unsigned units(const Packet& packet) const = 0;
    /// Sends the packet from `now` on. Returns from when on the port and the packet's virtual channel are free again.
    virtual Release serve(Packet& packet, Cycle now) = 0;
    /// arbitrate(at) is to be called at `at`.
    virtual void wake(Cycle at) = 0;

   protected:
    ~Actions() = default;
  };

  /// `step`: time between the credit units of one packet.
  QueuedPort(unsigned vcs_per_set, Actions& actions, Cycle step = 1)
      : split_(vcs_per_set), actions_(actions), credits_(vcs_per_set, step) {}

  void announce(unsigned vc, unsigned units) { credits_.announce(vc, units); }
  /// The packet wants to go on `vc`.
  void offer(Packet& packet, unsigned vc, Cycle now);
  /// Whether it would go at once.
  bool idle(const Packet& packet, unsigned vc, Cycle now) {
    return waiting_ == nullptr && std::max(free_, credits_.ready(vc, actions_.units(packet))) <= now;
  }
  void credit(unsigned vc, unsigned units, Cycle when, Cycle now);
  /// The call that Actions::wake asked for; one that has been superseded does nothing.
  void arbitrate(Cycle now);

 private:
  struct Queue {
    Packet* first = nullptr;
    Packet* last = nullptr;
    Queue* next = nullptr;  // in the list of queues that are not empty
    unsigned vc = 0;
  };
  Queue& queue(unsigned vc);
  Cycle ready(const Queue& queue);
  unsigned rank(const Queue& queue) const;
  void serve(Packet& packet, unsigned vc, Cycle now);
  void wake(Cycle at);

  VcSplit split_;
  Actions& actions_;
  Cycle free_ = 0;
  Cycle wake_ = kNoCycle;
  Queue* waiting_ = nullptr;
  unsigned next_network_ = 0;
  std::array<std::uint8_t, kVirtualNetworks> next_channel_{};
  CreditLedger credits_;
  std::array<std::unique_ptr<Queue[]>, kVirtualNetworks> queues_;
};

}  // namespace kernbench
