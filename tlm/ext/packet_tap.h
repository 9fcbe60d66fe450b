#pragma once
#include <functional>
#include <systemc>

#include "tlm/ext/packet_socket.h"

namespace kernbench {

/// Is told of every packet on a socket at which a PacketTap stands. `socket`: hierarchical name of the initiator
/// socket.
class PacketProbe {
 public:
  virtual ~PacketProbe() = default;
  /// It is offered to a router, whose network will say when it is injected: then it has crossed().
  virtual void offered(const char* /*socket*/, const Packet& /*packet*/, Ps /*first*/, Ps /*last*/) {}
  /// The head of `packet` crosses; its tail follows. Not said of injections.
  virtual void began(const char* /*socket*/, const Packet& /*packet*/, Ps /*head*/) {}
  /// All of it has, or will: both times are final.
  virtual void crossed(const char* socket, const Packet& packet, Ps head, Ps tail) = 0;
  /// An untimed access by the back door passes.
  virtual void debugged(const char* /*socket*/) {}
};

/// How two ends of the packet protocol are bound; empty: directly.
using PacketBinder = std::function<void(PacketInitiatorSocket& from, PacketTargetSocket& to)>;

/// Stands between two ends of the packet protocol: passes every call on, in the instant in which it comes, after it has
/// told a probe. The two ends do not see a difference.
class PacketTap final : public sc_core::sc_module, PacketForwardIf, PacketBackwardIf {
 public:
  PacketTap(const sc_core::sc_module_name& name, PacketInitiatorSocket& from, PacketTargetSocket& to,
            PacketProbe& probe)
      : sc_module(name), from_(from), probe_(probe) {
    in_.bind(static_cast<PacketForwardIf&>(*this));
    out_.bind(static_cast<PacketBackwardIf&>(*this));
    from.bind(in_);
    out_.bind(to);
  }

 private:
  void head(Packet& packet, Ps head) override {
    probe_.began(from_.name(), packet, head);
    out_->head(packet, head);
  }
  void tail(Packet& packet, Ps head, Ps tail) override {
    probe_.crossed(from_.name(), packet, head, tail);
    out_->tail(packet, head, tail);
  }
  void pass(Packet& packet, Ps head, Ps tail) override {
    probe_.began(from_.name(), packet, head);
    probe_.crossed(from_.name(), packet, head, tail);
    out_->pass(packet, head, tail);
  }
  void offer(Packet& packet, Ps first, Ps last) override {
    probe_.offered(from_.name(), packet, first, last);
    out_->offer(packet, first, last);
  }
  unsigned debug(BackDoor& access) override {
    probe_.debugged(from_.name());
    return out_->debug(access);
  }
  PacketForwardIf& receiver() override { return out_->receiver(); }

  void credit(unsigned vc, unsigned units, Ps when) override { in_->credit(vc, units, when); }
  void injected(Packet& packet, Ps head, Ps tail) override {
    probe_.crossed(from_.name(), packet, head, tail);
    in_->injected(packet, head, tail);
  }

  const PacketInitiatorSocket& from_;
  PacketProbe& probe_;
  PacketTargetSocket in_{"in"};
  PacketInitiatorSocket out_{"out"};
};

}  // namespace kernbench
