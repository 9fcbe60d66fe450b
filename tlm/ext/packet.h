#pragma once
#include <array>
#include <cstdint>
#include <tlm>

#include "tlm/base/time.h"
#include "tlm/machine/ids.h"
#include "tlm/observe/cause.h"

namespace kernbench {

struct Command;
struct QueueSender;

/// Message classes, in the order in which one may create another; each has virtual channels of its own.
/// command, response and credit are always sunk by their receiver.
enum class MessageClass : std::uint8_t { command, ipcq_data, request, response, credit };
inline constexpr int kMessageClasses = 5;
/// Virtual channel sets per class; which one a packet uses is a matter of routing (docs/routing.md).
inline constexpr int kVcSets = 2;
/// Virtual networks: (class, set) pairs.
inline constexpr int kVirtualNetworks = kMessageClasses * kVcSets;

enum class PacketKind : std::uint8_t { read, write, read_data, write_ack, ipcq_data, ipcq_credit, command };
/// Of a packet that an endpoint injects: nothing answers it, and the network keeps it until it is delivered.
constexpr bool is_one_way(PacketKind kind) { return kind >= PacketKind::ipcq_data; }

/// Largest payload of one packet, in bytes: one DMA burst. Source: spec, Packets.
inline constexpr std::uint32_t kMaxPacketBytes = 256;
/// A train of the fast grade travels as one Packet that takes what its packets of kMaxPacketBytes would: so many bytes,
/// cut at multiples of it, or more where queues have longer slots (train.h). Source: spec, fidelity.
inline constexpr std::uint32_t kMaxTrainBytes = 4096;
/// Packets of kMaxPacketBytes that `bytes` are.
constexpr std::uint32_t packets_of(std::uint32_t bytes) {
  return bytes <= kMaxPacketBytes ? 1 : (bytes + kMaxPacketBytes - 1) / kMaxPacketBytes;
}

/// Where the time of a transaction went; the parts add up to its latency.
enum class Delay : std::uint8_t { setup, mesh, ucie, fabric, wire, memory, contention };
inline constexpr int kDelays = 7;
/// setup: issue, MMU, injection; mesh: router pipelines; ucie: PHY and adapter; fabric: IO chiplets and inter-SIP
/// links' fixed latency; wire: serialisation of the payload on the narrowest hop; memory: the memory's own; contention:
/// waiting.

/// What every transaction of ours carries besides the generic payload: who, where to, how far, and the state that the
/// network keeps for it while it travels. A payload of the pool owns one for its whole life; the response reuses the
/// packet of its request with source and destination exchanged.
///
/// In order of use: what every hop reads and writes is one cache line, the account of its time the next.
struct alignas(64) Packet final : tlm::tlm_extension<Packet> {
  // Owned by the network, but for `bytes`, `message_class` and `kind`.
  Packet* next = nullptr;         ///< intrusive queue of the hop it waits in
  Ps head = 0, tail = 0;          ///< arrival of its first and last flit at the hop it is in
  std::uint64_t first_cycle = 0;  ///< fast grade: of the network's clock, in which it may leave its source
  std::uint64_t last_cycle = 0;   ///< fast grade: in which its last flit is in the buffer that it is in
  std::uint32_t waited = 0;       ///< fast grade: cycles behind flits of others, in this network
  std::uint32_t bytes = 0;        ///< data bytes that travel in this direction; headers travel beside the data
  std::uint16_t exit_router = 0;  ///< where it leaves the network (mesh or crossbar) it is in
  std::uint8_t exit_port = 0;     ///< and through which port of that router
  std::uint8_t vc_set = 0;
  std::uint8_t vc = 0;        ///< virtual channel on the hop it is making
  std::uint8_t dateline = 0;  ///< bit d: crossed the wrap link of SIP dimension d
  MessageClass message_class = MessageClass::request;
  PacketKind kind = PacketKind::read;

  std::array<Ps, kDelays> spent{};  ///< by Delay
  std::uint64_t op = 0;             ///< id of the op it works for; 0: none

  // Set by the endpoint that injects it, but where another is named.
  tlm::tlm_generic_payload* payload = nullptr;  ///< the transaction it belongs to
  NodeId source = kNoNode;                      ///< set by the interface
  NodeId destination = kNoNode;
  void* user = nullptr;   ///< the injecting endpoint's own record; comes back with the response
  std::uint32_t tag = 0;  ///< the injecting endpoint's own number; comes back with the response
  /// Trains whose data go the other way, reads and what answers writes: the packets that they stand for; set by the
  /// interface.
  std::uint16_t headers = 1;
  bool one_by_one = false;  ///< read trains: those had to wait for places, which come back one by one
  Ps complete = 0;          ///< trains: when the last byte is where it is injected; 0: it is there
  Ps lead = 0;              ///< read trains: so long before its last byte the response may begin; set by the interface
  Ps injected = 0;          ///< head entered the network
  std::uint16_t input = 0;  ///< links: the wire's virtual network it came on

  // IPCQ (kinds ipcq_data and ipcq_credit).
  std::uint16_t ring = 0;               ///< ring at the destination PE (data), send queue there (credit)
  std::uint16_t slot = 0;               ///< slot within the ring
  std::uint32_t message_bytes = 0;      ///< bytes of the whole slot message
  bool last = false;                    ///< its last packet: data and pointer become visible together
  std::uint32_t send_bytes = 0;         ///< bytes of the whole send that the slot message is part of
  const QueueSender* sender = nullptr;  ///< with `last`: who sent the message; null: somebody else than a PE

  Command* command = nullptr;  ///< kind command

  // While there is a CauseLog: why it is where it is, and its contention that is in that.
  Cause cause;
  Ps contended = 0;
  bool held = false;  ///< `cause` is that of what kept the packets before it from going on

  void charge(Delay delay, Ps time) { spent[static_cast<std::size_t>(delay)] += time; }
  /// Packets of kMaxPacketBytes that it stands for.
  std::uint32_t packets() const { return bytes != 0 ? packets_of(bytes) : headers; }
  int virtual_network() const { return static_cast<int>(message_class) * kVcSets + vc_set; }
  std::uint32_t flits(std::uint32_t flit_bytes) const {
    return bytes <= flit_bytes ? 1 : (bytes + flit_bytes - 1) / flit_bytes;
  }

  /// REQUIRES: `payload` came from a PayloadPool.
  static Packet& of(tlm::tlm_generic_payload& payload) {
    Packet* packet = payload.get_extension<Packet>();
    sc_assert(packet != nullptr);
    return *packet;
  }
  /// Null for a payload of a foreign initiator.
  static Packet* find(tlm::tlm_generic_payload& payload) { return payload.get_extension<Packet>(); }

  tlm_extension_base* clone() const override { return new Packet(*this); }
  void copy_from(const tlm_extension_base& other) override { *this = static_cast<const Packet&>(other); }
};

/// Turns a delivered request into its response: source and destination exchanged, on class `response`.
inline void make_response(Packet& packet, PacketKind kind, std::uint32_t bytes) {
  const NodeId source = packet.source;
  packet.source = packet.destination;
  packet.destination = source;
  packet.message_class = MessageClass::response;
  packet.kind = kind;
  packet.bytes = bytes;
}

}  // namespace kernbench
