// The receiving half of the IPCQ unit.
#include <fmt/format.h>

#include <algorithm>

#include "models/pe/cpu/kernel_context.h"
#include "models/pe/ipcq/ipcq_memory.h"
#include "models/pe/op_log.h"

namespace kernbench::pe {

// ---- From the network into the ring ----

void Ipcq::data_arrived(tlm::tlm_generic_payload& payload, const Packet& packet) {
  QueuePair* pair = packet.ring < by_ring_.size() ? by_ring_[packet.ring] : nullptr;
  sc_assert(pair != nullptr);
  const std::uint32_t bytes = packet.bytes, message_bytes = packet.message_bytes, send_bytes = packet.send_bytes;
  const std::uint16_t slot = packet.slot;
  if (packet.last) pair->ring.set_sender(slot, packet.sender);
  if (bytes == 0) {
    arrived(*pair, slot, 0, message_bytes, send_bytes);
  } else if (pair->ring_in_tcm()) {
    const std::uint64_t offset = PhysicalAddress::decode(payload.get_address()).offset;
    sc_assert(services_.tcm.holds(offset, bytes));
    const Ps written =
        services_.tcm.reserve_write(services_.streaming_since(packet, bytes), offset, bytes, packets_of(bytes));
    if (services_.options.data) services_.tcm.write(offset, payload.get_data_ptr(), bytes);
    if (services_.queue.causes() != nullptr) {
      pair->slot_causes.resize(pair->entry.slots);
      if (slot < pair->entry.slots) pair->slot_causes[slot] = services_.cause();
    }
    services_.queue.at(written, [pair, slot, bytes, message_bytes, send_bytes] {
      if (slot < pair->slot_causes.size()) pair->unit.services_.follow(pair->slot_causes[slot]);
      pair->unit.services_.spend(Spent::tcm, Services::Part::tcm);
      pair->unit.arrived(*pair, slot, bytes, message_bytes, send_bytes);
    });
  } else {
    write_to_memory(*pair, payload, packet);
  }
}

void Ipcq::arrived(QueuePair& pair, std::uint16_t slot, std::uint32_t bytes, std::uint32_t message_bytes,
                   std::uint32_t send_bytes) {
  if (!pair.ring.arrive(slot, bytes, message_bytes, send_bytes) && pair.error.empty()) {
    pair.error =
        fmt::format("{} sent a message of {} B to slot {}, which does not fit a ring of {} slots of {} B",
                    names::pe(pair.entry.source), message_bytes, slot, pair.entry.slots, pair.entry.slot_bytes);
  }
  if (Usage* usage = pair.statistics.usage) usage->level(pair.ring.full(), services_.now());
  services_.queue.completed();
  publish_level(pair.entry.direction);
  advance_receive(pair);
}

void Ipcq::write_to_memory(QueuePair& pair, tlm::tlm_generic_payload& payload, const Packet& packet) {
  const NodeId node = services_.map.resolve(PhysicalAddress::decode(payload.get_address()));
  sc_assert(node != kNoNode);  // install() checked the ring's base
  tlm::tlm_generic_payload& write = services_.payload(PacketKind::write, node, payload.get_address(), packet.bytes);
  if (services_.options.data) std::copy_n(payload.get_data_ptr(), packet.bytes, write.get_data_ptr());
  Packet& request = Packet::of(write);
  request.op = packet.op;
  request.slot = packet.slot;
  request.message_bytes = packet.message_bytes;
  request.send_bytes = packet.send_bytes;
  request.user = static_cast<ResponseHandler*>(pair.writer.get());
  services_.inject(write);
}

void RingWriter::on_response(tlm::tlm_generic_payload& payload, Packet& packet) {
  if (payload.get_response_status() != tlm::TLM_OK_RESPONSE && pair.error.empty()) {
    pair.error = fmt::format("writing a slot at {} answered {}", PhysicalAddress::decode(payload.get_address()).str(),
                             payload.get_response_string());
  }
  pair.unit.arrived(pair, packet.slot, payload.get_data_length(), packet.message_bytes, packet.send_bytes);
}

// ---- From the ring into a tile ----

/// A collective takes messages of collectives only, another kernel takes none of them. Whatever a PE did not send is
/// let pass.
bool Ipcq::strange(const QueuePair& pair, const Op& op) {
  const QueueSender* sender = pair.ring.head_sender();
  return sender != nullptr && (sender == &kCollectives) != op.context->launch().call.has_value();
}

void Ipcq::refuse_stranger(const QueuePair& pair, Op& op) {
  const QueueSender& sender = *pair.ring.head_sender();
  const std::string from = names::pe(pair.entry.source);
  sink_.fault(op, Fault::Kind::ipcq, "ipcq_recv",
              sender.collective
                  ? fmt::format("the next message from {} is a collective's: no other kernel may take it", from)
                  : fmt::format("the next message is not the collective's, it was left in the queue: {}: kernel '{}', "
                                "send({}): each send needs its recv",
                                from, sender.kernel, sender.direction.str()));
}

void Ipcq::advance_receive(QueuePair& pair) {
  if (pair.copying) return;
  if (pair.receiving == nullptr) {
    if (pair.receives.head == nullptr || pair.receives.head->pending > 0) return;
    pair.receiving = &pair.receives.pop();
    pair.receiving->started = kNever;
    pair.received = 0;
    sink_.room();
  }
  Op& op = *pair.receiving;
  if (op.aborted) return;  // about to be taken out
  if (!pair.error.empty()) {
    sink_.fault(op, Fault::Kind::ipcq, "ipcq_recv", pair.error);
    return;
  }
  if (pair.ring.visible() == 0) {
    if (pair.no_data_since == kNever) pair.no_data_since = services_.now();
    return;
  }
  if (pair.no_data_since != kNever) {
    pair.statistics.blocked_for_data += services_.now() - pair.no_data_since;
    if (Usage* usage = pair.statistics.usage)
      usage->wait(pair.no_data_since, services_.now(), static_cast<unsigned>(QueueWait::data));
    pair.no_data_since = kNever;
  }
  if (strange(pair, op)) {
    refuse_stranger(pair, op);
    return;
  }
  const std::uint64_t expected = std::min<std::uint64_t>(pair.entry.slot_bytes, op.out.bytes() - pair.received);
  const bool whole = pair.ring.head_send_bytes() == op.out.bytes();
  if (!whole || pair.ring.head_bytes() != expected) {  // the latter: a sender that cuts into other slots
    sink_.fault(op, Fault::Kind::ipcq, "ipcq_recv",
                fmt::format("the next message from {} has {} B, this recv takes {} B; send and recv must agree in size",
                            names::pe(pair.entry.source), whole ? pair.ring.head_bytes() : pair.ring.head_send_bytes(),
                            whole ? expected : op.out.bytes()));
    return;
  }
  if (op.started == kNever) op.started = services_.now();
  pair.copying = true;
  if (expected == 0) {
    slot_read(pair, services_.now(), 0);
  } else if (pair.ring_in_tcm()) {
    copy_from_tcm(pair);
  } else {
    pair.reader->start();
  }
}

void Ipcq::copy_from_tcm(QueuePair& pair) {
  const std::uint32_t bytes = pair.ring.head_bytes();
  const std::uint64_t from = pair.entry.ring_base.offset + slot_offset(pair, pair.ring.head());
  const std::uint64_t to = pair.receiving->out.tcm + pair.received;
  // Both ports at once; banks that both ends need serve the read first.
  const Ps read = services_.tcm.reserve_read(services_.now(), from, bytes);
  const Ps written = std::max(read, services_.tcm.reserve_write(services_.now(), to, bytes));
  if (services_.options.data) {
    std::vector<unsigned char> data(bytes);
    services_.tcm.read(from, data.data(), bytes);
    services_.tcm.write(to, data.data(), bytes);
  }
  pair.receive_cause = services_.cause();
  const Ps latency = services_.config.tcm.latency;
  services_.queue.at(read - latency, [this, &pair, written, latency] {
    services_.follow(pair.receive_cause);
    services_.spend(Spent::tcm, Services::Part::tcm);
    slot_read(pair, written, latency);
  });
}

/// The ports are free for the next slot. This one may be used again `later`; its data are in the tile at `written`.
void Ipcq::slot_read(QueuePair& pair, Ps written, Ps later) {
  const std::uint16_t slot = pair.ring.head();
  const std::uint32_t bytes = pair.ring.head_bytes();
  if (services_.races != nullptr) {
    services_.races->received(pair.receiving->context->message, services_.coord, pair.entry.source, pair.entry.ring);
    check_user(pair, pair.users->receiver, *pair.receiving, "receives from");
  }
  pair.ring.pop();
  publish_level(pair.entry.direction);
  const auto credit = [this, &pair, slot, later] {
    if (later != 0 && slot < pair.slot_causes.size()) {
      services_.follow(pair.slot_causes[slot]);
      services_.spend(Spent::tcm, Services::Part::tcm);
    }
    return_credit(pair, slot);
  };
  if (later == 0) {
    credit();
  } else {
    if (slot < pair.slot_causes.size()) pair.slot_causes[slot] = services_.cause();
    services_.queue.at(services_.now() + later, credit);
  }
  pair.copying = false;
  pair.received += bytes;
  ++pair.statistics.messages_received;
  pair.statistics.bytes_received += bytes;
  ++pair.receiving->context->queue(pair.receiving->direction).received;
  if (pair.received == pair.receiving->out.bytes() || pair.receiving->aborted) end_receive(pair, written);
  advance_receive(pair);
}

void Ipcq::end_receive(QueuePair& pair, Ps written) {
  Op* op = pair.receiving;
  pair.receiving = nullptr;
  op->cause = services_.cause();
  op->target = pair.statistics.messages_received;
  services_.queue.at(std::max(written, services_.now()), [this, &pair, op] {
    services_.follow(op->cause);
    services_.spend(Spent::tcm, Services::Part::tcm);
    log_op(services_, *op, "ipcq_recv",
           {std::nullopt, pair.entry.source, nullptr, 0, ring_id(services_.self, pair.entry.ring), op->target});
    sink_.completed(*op);
  });
}

void Ipcq::return_credit(QueuePair& pair, std::uint16_t slot) {
  tlm::tlm_generic_payload& payload = services_.payload(PacketKind::ipcq_credit, services_.map.pe(pair.entry.source), 0,
                                                        std::min(services_.config.ipcq.credit_bytes, kMaxPacketBytes));
  Packet& packet = Packet::of(payload);
  packet.ring = pair.entry.source_queue;
  packet.slot = slot;
  services_.inject(payload);
}

void RingReader::start() {
  bytes_ = pair.ring.head_bytes();
  issued_ = 0;
  written_ = 0;
  issue();
}

void RingReader::issue() {
  Services& services = pair.unit.services_;
  while (issued_ < bytes_ && in_flight_ < services.config.dma.outstanding) {
    PhysicalAddress from = pair.entry.ring_base;
    from.offset += Ipcq::slot_offset(pair, pair.ring.head()) + issued_;
    const std::uint64_t longest = std::min(services.longest(), kMaxTrainBytes);
    const std::uint64_t to_boundary = longest - from.offset % longest;
    const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes_ - issued_, to_boundary));
    tlm::tlm_generic_payload& read =
        services.payload(PacketKind::read, services.map.resolve(from), from.encode(), bytes);
    Packet& packet = Packet::of(read);
    packet.op = pair.receiving->id;
    packet.user = static_cast<ResponseHandler*>(this);
    packet.tag = static_cast<std::uint32_t>(pair.receiving->out.tcm + pair.received + issued_);
    issued_ += bytes;
    ++pending_;
    in_flight_ += packets_of(bytes);
    services.inject(read);
  }
}

void RingReader::on_first_packet(tlm::tlm_generic_payload& payload) {
  in_flight_ -= packets_of(payload.get_data_length());
  issue();
}

void RingReader::on_response(tlm::tlm_generic_payload& payload, Packet& packet) {
  Services& services = pair.unit.services_;
  --pending_;
  if (packet.complete == 0) in_flight_ -= packets_of(payload.get_data_length());
  if (payload.get_response_status() != tlm::TLM_OK_RESPONSE) {
    pair.unit.sink_.fault(
        *pair.receiving, Fault::Kind::bus, "ipcq_recv",
        fmt::format("reading a slot at {} answered {}", PhysicalAddress::decode(payload.get_address()).str(),
                    payload.get_response_string()));
  } else {
    const std::uint32_t bytes = payload.get_data_length();
    written_ =
        services.tcm.reserve_write(services.streaming_since(packet, bytes), packet.tag, bytes, packets_of(bytes));
    if (services.options.data) services.tcm.write(packet.tag, payload.get_data_ptr(), bytes);
  }
  issue();
  if (pending_ == 0 && issued_ == bytes_) pair.unit.slot_read(pair, written_, 0);
}

}  // namespace kernbench::pe
