// The sending half of the IPCQ unit.
#include <fmt/format.h>

#include <algorithm>

#include "models/pe/cpu/kernel_context.h"
#include "models/pe/ipcq/ipcq.h"
#include "models/pe/op_log.h"
#include "tlm/machine/names.h"

namespace kernbench::pe {

const QueueSender kCollectives{{}, {}, true};

/// Looked up once for a kernel and a queue.
const QueueSender& Ipcq::sender_of(const Op& op) {
  const LaunchMessage& launch = op.context->launch();
  if (launch.call) return kCollectives;
  const QueueSender*& sender = op.context->queue(op.direction).sender;
  if (sender == nullptr) sender = &*senders_.insert({launch.kernel, op.direction}).first;
  return *sender;
}

void Ipcq::advance_send(QueuePair& pair) {
  if (pair.reading) return;
  if (pair.sending == nullptr) {
    if (pair.sends.head == nullptr || pair.sends.head->pending > 0) return;
    pair.sending = &pair.sends.pop();
    pair.sent = 0;
    pair.sending->started = kNever;
    sink_.room();
  }
  if (!pair.in_message && (pair.sending->aborted || !begin_message(pair))) return;
  const std::uint64_t at = slot_offset(pair, pair.slot) + pair.message_sent;
  const PhysicalAddress& ring = pair.entry.peer_ring_base;
  const bool in_tcm = ring.kind == MemoryKind::tcm;
  const std::uint64_t longest = in_tcm ? services_.longest() : std::min(services_.longest(), kMaxTrainBytes);
  const std::uint64_t origin = in_tcm && ring.offset % kMaxPacketBytes == 0 ? 0 : ring.offset;
  const std::uint64_t to_boundary = longest - (origin + at) % longest;
  const auto bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(pair.message_bytes - pair.message_sent, to_boundary));
  pair.reading = true;
  pair.send_cause = services_.cause();
  const Ps read =
      services_.tcm.reserve_read(services_.now(), pair.sending->in[0].tcm + pair.sent, bytes, packets_of(bytes));
  // A train leaves with its first packet.
  const Ps ready = std::max(services_.now(), read - std::min(read, services_.streamed(bytes)));
  services_.queue.at(ready - services_.config.tcm.latency,
                     [this, &pair, bytes, read] { passed_port(pair, bytes, read); });
}

/// What leaves next has passed TCM's port, which is free for what follows; it is here `latency` later.
void Ipcq::passed_port(QueuePair& pair, std::uint32_t bytes, Ps read) {
  services_.follow(pair.send_cause);
  services_.spend(Spent::tcm, Services::Part::tcm);
  pair.reading = false;
  QueuePair::Leaving next{
      pair.sending, pair.sent, pair.message_sent, bytes, pair.message_bytes, pair.slot, false, false, read, {}};
  pair.sent += bytes;
  pair.message_sent += bytes;
  next.last = pair.message_sent == pair.message_bytes;
  next.ends = next.last && pair.sent == pair.sending->in[0].bytes();
  if (next.last) pair.in_message = false;
  if (next.ends) pair.sending = nullptr;
  if (const Ps latency = services_.config.tcm.latency; latency == 0) {
    hand_over(pair, next);
  } else {
    next.cause = services_.cause();
    pair.leaving.push_back(next);
    services_.queue.at(services_.now() + latency, [this, &pair] {
      const QueuePair::Leaving here = pair.leaving.front();
      pair.leaving.erase(pair.leaving.begin());
      services_.follow(here.cause);
      services_.spend(Spent::tcm, Services::Part::tcm);
      hand_over(pair, here);
      advance_send(pair);
    });
  }
  advance_send(pair);
}

/// Takes the next slot of the peer's ring; false if there is none.
bool Ipcq::begin_message(QueuePair& pair) {
  if (pair.credits.available() == 0) {
    if (pair.no_credit_since == kNever) {
      pair.no_credit_since = services_.now();
      pair.send_cause = services_.cause();
    }
    return false;
  }
  if (pair.no_credit_since != kNever) {
    pair.statistics.blocked_for_credit += services_.now() - pair.no_credit_since;
    if (Usage* usage = pair.statistics.usage)
      usage->wait(pair.no_credit_since, services_.now(), static_cast<unsigned>(QueueWait::credit));
    pair.no_credit_since = kNever;
    if (CauseLog* log = services_.queue.causes()) {
      // More slots would have spared the wait, whatever the peer did meanwhile, but where messages queue on their way.
      const std::uint32_t place = log->place(pair.place, [&] {
        return names::pe_part(services_.coord, fmt::format("ipcq.{}.{}", pair.entry.group, pair.entry.direction.str()));
      });
      log->current = log->waited_for(log->current, Spent::slots, place, services_.now(), pair.send_cause);
    }
  }
  if (pair.sending->started == kNever) pair.sending->started = services_.now();
  pair.slot = pair.credits.take();
  pair.message_bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(pair.entry.slot_bytes, pair.sending->in[0].bytes() - pair.sent));
  pair.message_sent = 0;
  pair.in_message = true;
  if (services_.races != nullptr) {
    services_.races->sent(pair.sending->context->message, services_.coord, pair.entry.peer, pair.entry.peer_ring);
    check_user(pair, pair.users->sender, *pair.sending, "sends to");
  }
  return true;
}

void Ipcq::hand_over(QueuePair& pair, const QueuePair::Leaving& next) {
  Op& op = *next.op;
  const PhysicalAddress to = pair.entry.peer_ring_base + (slot_offset(pair, next.slot) + next.of_message);
  tlm::tlm_generic_payload& payload =
      services_.payload(PacketKind::ipcq_data, services_.map.pe(pair.entry.peer), to.encode(), next.bytes);
  if (services_.options.data && next.bytes > 0) {
    services_.tcm.read(op.in[0].tcm + next.of_send, payload.get_data_ptr(), next.bytes);
  }
  Packet& packet = Packet::of(payload);
  packet.op = op.id;
  if (next.bytes > kMaxPacketBytes) packet.complete = next.read;
  packet.ring = pair.entry.peer_ring;
  packet.slot = next.slot;
  packet.message_bytes = next.message_bytes;
  packet.send_bytes = static_cast<std::uint32_t>(op.in[0].bytes());
  packet.last = next.last;
  if (next.last) packet.sender = &sender_of(op);
  services_.inject(payload);
  if (!next.last) return;
  ++pair.statistics.messages_sent;
  pair.statistics.bytes_sent += next.message_bytes;
  ++op.context->queue(op.direction).sent;
  if (Usage* usage = pair.statistics.usage) usage->busy(services_.now(), services_.now(), next.message_bytes, 1);
  // Of a failed kernel: the message that was under way has come to its end.
  const bool cut = op.aborted && pair.sending == &op && !pair.in_message && pair.leaving.empty();
  if (cut) pair.sending = nullptr;
  if (next.ends || cut) end_send(pair, op);
}

void Ipcq::end_send(QueuePair& pair, Op& op) {
  log_op(services_, op, "ipcq_send",
         {std::nullopt, pair.entry.peer, nullptr, 0, ring_id(services_.map.pe(pair.entry.peer), pair.entry.peer_ring),
          pair.statistics.messages_sent});
  sink_.completed(op);
}

void Ipcq::credit_arrived(const Packet& packet) {
  QueuePair* pair = packet.ring < by_queue_.size() ? by_queue_[packet.ring] : nullptr;
  sc_assert(pair != nullptr);
  const bool within = pair->credits.give_back();
  sc_assert(within);
  (void)within;
  advance_send(*pair);
}

}  // namespace kernbench::pe
