#pragma once
#include <tlm>

#include "tlm/ext/packet.h"

namespace kernbench {

struct PacketProtocol {};  // names the protocol to SystemC's binding check

/// The lean protocol between routers, network interfaces, UCIe ports and link ports: packets forward, credits back.
class PacketForwardIf : public virtual sc_core::sc_interface {
 public:
  using protocol_types = PacketProtocol;
  /// The head of `packet` reaches this input at `head`, its tail at `tail`; both may lie in the future and are final.
  /// REQUIRES: the sender holds credit for the whole packet on virtual channel packet.vc; now <= head <= tail.
  virtual void receive(Packet& packet, Ps head, Ps tail) = 0;
};

class PacketBackwardIf : public virtual sc_core::sc_interface {
 public:
  using protocol_types = PacketProtocol;
  /// `units` of buffer of virtual channel `vc` are free again: the first from `when` on, the others one per cycle after
  /// it, as the flits of a packet leave. The unit is the receiver's: flits for a router, packets on a wire. Each
  /// receiver announces its whole capacity this way at end_of_elaboration, with when = 0, so that a sender needs no
  /// knowledge of its neighbour.
  virtual void credit(unsigned vc, unsigned units, Ps when) = 0;
};

/// Sees every packet that crosses a bound socket; for tests and `--debug`.
class PacketProbe {
 public:
  virtual ~PacketProbe() = default;
  /// `socket` is the hierarchical name of the initiator socket.
  virtual void crossed(const char* socket, const Packet& packet, Ps head, Ps tail) = 0;
};

class PacketInitiatorSocket : public tlm::tlm_base_initiator_socket<32, PacketForwardIf, PacketBackwardIf> {
 public:
  using Base = tlm::tlm_base_initiator_socket<32, PacketForwardIf, PacketBackwardIf>;
  explicit PacketInitiatorSocket(const char* name) : Base(name) {}
  const char* kind() const override { return "kernbench::PacketInitiatorSocket"; }

  /// One hop: hands the packet to whatever is bound. Costs a virtual call and a test.
  void send(Packet& packet, Ps head, Ps tail) {
    packet.head = head;
    packet.tail = tail;
    if (probe_ != nullptr) probe_->crossed(this->name(), packet, head, tail);
    (*this)->receive(packet, head, tail);
  }
  void set_probe(PacketProbe* probe) { probe_ = probe; }

 private:
  PacketProbe* probe_ = nullptr;
};

class PacketTargetSocket : public tlm::tlm_base_target_socket<32, PacketForwardIf, PacketBackwardIf> {
 public:
  using Base = tlm::tlm_base_target_socket<32, PacketForwardIf, PacketBackwardIf>;
  explicit PacketTargetSocket(const char* name) : Base(name) {}
  const char* kind() const override { return "kernbench::PacketTargetSocket"; }

  /// Returns buffer to the sender.
  void give_credit(unsigned vc, unsigned units, Ps when) { (*this)->credit(vc, units, when); }
};

}  // namespace kernbench
