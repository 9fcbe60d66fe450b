#pragma once
#include <tlm>

#include "tlm/ext/packet.h"
#include "tlm/machine/routing.h"

namespace kernbench {

struct PacketProtocol {};  // names the protocol to SystemC's binding check

/// An untimed access (transport_dbg) on its way through the network.
struct BackDoor {
  tlm::tlm_generic_payload& payload;
  NodeId destination;         ///< whose memory it is for
  Exit exit{};                ///< out of the network that it is in
  std::uint8_t dateline = 0;  ///< as of a packet
};

/// The lean protocol between routers, network interfaces, UCIe ports and link ports: packets forward, credits back.
///
/// A hop is two calls: head() when the first flit has been decided, tail() when the last one has; a sender that knows
/// both makes one, pass(). Injection into a router's network is another: offer(), answered by injected(). Packets move
/// by these calls alone, on what is bound to the sender's socket; a sender may look that up once, at the end of
/// elaboration.
class PacketForwardIf : public virtual sc_core::sc_interface {
 public:
  using protocol_types = PacketProtocol;
  /// The head of `packet` reaches this input at `head` >= now on virtual channel packet.vc; its flits follow.
  /// REQUIRES: the sender holds credit for every flit it has sent.
  virtual void head(Packet& packet, Ps head) = 0;
  /// Its last flit reaches this input at `tail` >= now, and its head has or will at `head`: final.
  virtual void tail(Packet& packet, Ps head, Ps tail) = 0;
  /// Both in one call.
  virtual void pass(Packet& packet, Ps head, Ps tail) {
    this->head(packet, head);
    this->tail(packet, head, tail);
  }
  /// Inputs of routers: the packet waits outside to be injected; its flits can be from `first` >= now (the first) to
  /// `last` (the last), evenly spread. The router picks the time and, within packet.virtual_network(), the channel.
  virtual void offer(Packet& packet, Ps first, Ps last);
  /// Passes an access on, the way that a packet would go, in no time. Returns the bytes that it moved.
  virtual unsigned debug(BackDoor& access);
  /// Whom packets reach through here: a module that stands between two others and passes all calls on names the one
  /// behind it. Routers find their neighbours by it.
  virtual PacketForwardIf& receiver() { return *this; }
};

class PacketBackwardIf : public virtual sc_core::sc_interface {
 public:
  using protocol_types = PacketProtocol;
  /// `units` of buffer of virtual channel `vc` are free again: the first from `when` on, the others one per cycle after
  /// it, as the flits of a packet leave. The unit is the receiver's: flits at an output of a router, packets on a wire.
  /// Receivers announce their whole capacity this way at end_of_elaboration, with when = 0, so that a sender needs no
  /// knowledge of its neighbour: the same for every channel at a router's output, kNoCredits if they never throttle.
  virtual void credit(unsigned vc, unsigned units, Ps when) = 0;
  /// Every flit of a packet that was offered has left; they reach the router's buffer from `head` to `tail`: final.
  virtual void injected(Packet& packet, Ps head, Ps tail);

  static constexpr unsigned kNoCredits = ~0U;
};

inline void PacketForwardIf::offer(Packet&, Ps, Ps) { sc_assert(!"only routers inject"); }
inline unsigned PacketForwardIf::debug(BackDoor&) {
  sc_assert(!"there is no memory behind it");
  return 0;
}
inline void PacketBackwardIf::injected(Packet&, Ps, Ps) { sc_assert(!"nothing was offered"); }

class PacketInitiatorSocket : public tlm::tlm_base_initiator_socket<32, PacketForwardIf, PacketBackwardIf> {
 public:
  using Base = tlm::tlm_base_initiator_socket<32, PacketForwardIf, PacketBackwardIf>;
  explicit PacketInitiatorSocket(const char* name) : Base(name) {}
  const char* kind() const override { return "kernbench::PacketInitiatorSocket"; }

  /// A whole hop.
  void send(Packet& packet, Ps head, Ps tail) {
    packet.head = head;
    packet.tail = tail;
    (*this)->pass(packet, head, tail);
  }
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
