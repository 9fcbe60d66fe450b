#include "models/pe/ipcq/ipcq.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/pe/cpu/kernel_context.h"
#include "models/pe/ipcq/ipcq_memory.h"

namespace kernbench::pe {

namespace {
constexpr std::uint16_t kNamedDirections = 8;  // N, S, E, W, global_N ...: those with a track

bool is_open(Ps since) { return since != kNever; }
}  // namespace

QueuePair::QueuePair(Ipcq& unit, const NeighbourEntry& entry)
    : unit(unit), entry(entry), credits(entry.slots), ring(entry.slots, entry.slot_bytes) {
  statistics.group = entry.group;
  statistics.direction = entry.direction;
  statistics.peer = entry.peer;
  statistics.source = entry.source;
  statistics.slots = entry.slots;
}

QueuePair::~QueuePair() = default;

Ipcq::Ipcq(Services& services, OpSink& sink) : services_(services), sink_(sink) {
  if (services.observer == nullptr) return;
  for (std::uint16_t code = 0; code < kNamedDirections; ++code) {
    levels_.emplace_back(services, "ipcq_" + Direction::from_code(code).str(), TrackKind::level);
  }
}

Ipcq::~Ipcq() = default;

std::string Ipcq::install(const NeighbourEntry& entry) {
  const auto problem = [&](const std::string& text) {
    return fmt::format("queue pair of group {} in direction {}: {}", entry.group, entry.direction.str(), text);
  };
  if (entry.slots == 0 || entry.slot_bytes == 0) return problem("a ring needs at least one slot of one byte");
  const std::uint64_t ring_bytes = std::uint64_t{entry.slots} * entry.slot_bytes;
  const PhysicalAddress& base = entry.ring_base;
  if (base.kind == MemoryKind::tcm) {
    const bool own = PeCoord{base.sip, base.cube, base.unit} == services_.coord;
    if (!own || !services_.tcm.holds(base.offset, ring_bytes)) {
      return problem(fmt::format("a ring of {} B at {} is not within this PE's TCM", ring_bytes, base.str()));
    }
  } else if (services_.map.resolve(base) == kNoNode) {
    return problem(fmt::format("there is no memory at {}", base.str()));
  }
  QueuePair* old = directions_.find(entry.group, entry.direction);
  if (old != nullptr && (old->sending != nullptr || old->receiving != nullptr || !old->leaving.empty()))
    return problem("the queue pair is in use");
  auto pair = std::make_unique<QueuePair>(*this, entry);
  if (old != nullptr && old->entry.peer == entry.peer && old->entry.source == entry.source) {
    pair->statistics = old->statistics;
    pair->statistics.high_water = std::max(old->statistics.high_water, old->ring.high_water());
    pair->statistics.slots = entry.slots;
  } else if (services_.usage_book != nullptr) {
    pair->statistics.usage = services_.usage_book->add();
  }
  if (!pair->ring_in_tcm()) {
    pair->writer = std::make_unique<RingWriter>(*pair);
    pair->reader = std::make_unique<RingReader>(*pair);
  }
  if (services_.races != nullptr) pair->users = std::make_unique<QueueUsers>();
  const auto put = [](std::vector<QueuePair*>& table, std::uint16_t number, QueuePair* value) {
    if (table.size() <= number) table.resize(number + 1u);
    table[number] = value;
  };
  put(by_ring_, entry.ring, pair.get());
  put(by_queue_, entry.queue, pair.get());
  directions_.set(entry.group, entry.direction, pair.get());
  for (auto& existing : pairs_) {
    if (existing.get() != old) continue;
    existing = std::move(pair);
    return "";
  }
  pairs_.push_back(std::move(pair));
  return "";
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> Ipcq::reserved() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const auto& pair : pairs_) {
    if (!pair->ring_in_tcm()) continue;
    const std::uint64_t begin = pair->entry.ring_base.offset;
    ranges.emplace_back(begin, begin + std::uint64_t{pair->entry.slots} * pair->entry.slot_bytes);
  }
  return ranges;
}

QueuePair& Ipcq::pair_of(const Op& op) const {
  QueuePair* pair = directions_.find(op.context->launch().group, op.direction);
  sc_assert(pair != nullptr);  // the recorder checked
  return *pair;
}

bool Ipcq::full(const Op& op) const {
  const QueuePair& pair = pair_of(op);
  return (op.kind == OpKind::send ? pair.sends : pair.receives).size >= services_.config.ipcq.queue_depth;
}

void Ipcq::enqueue(Op& op) {
  QueuePair& pair = pair_of(op);
  (op.kind == OpKind::send ? pair.sends : pair.receives).push(op);
  advance(op);
}

void Ipcq::advance(Op& op) {
  QueuePair& pair = pair_of(op);
  op.kind == OpKind::send ? advance_send(pair) : advance_receive(pair);
}

void Ipcq::abandon(const KernelContext& context, std::vector<Op*>& removed) {
  for (const auto& pair : pairs_) {
    pair->sends.remove(context, removed);
    pair->receives.remove(context, removed);
    const bool leaves = pair->sending != nullptr && pair->sending->started != kNever && !pair->leaving.empty();
    if (pair->sending != nullptr && pair->sending->aborted && !pair->in_message && !leaves) {
      removed.push_back(pair->sending);
      pair->sending = nullptr;
      pair->no_credit_since = kNever;
      advance_send(*pair);
    }
    if (pair->receiving != nullptr && pair->receiving->aborted && !pair->copying) {
      removed.push_back(pair->receiving);
      pair->receiving = nullptr;
      pair->no_data_since = kNever;
      advance_receive(*pair);
    }
  }
}

void Ipcq::ended(const KernelContext& context) {
  for (const auto& pair : pairs_) {
    for (QueueUser* user : {&pair->users->sender, &pair->users->receiver}) {
      if (user->launch == &context.message) user->ended = services_.now();
    }
  }
}

/// Messages in a queue have no names: where kernels of two streams use one at a time, whose is whose depends on timing.
void Ipcq::check_user(const QueuePair& pair, QueueUser& last, const Op& op, const char* does) const {
  const KernelContext& context = *op.context;
  const Message& message = context.message;
  if (last.launch == &message && last.ended == kNever) return;  // else another one in its place
  const std::string& kernel = context.launch().kernel;
  if (last.launch != nullptr && last.stream != message.stream && last.ended > context.started) {
    const RaceDetector::Race race{services_.coord,
                                  services_.coord,
                                  text_of(op),
                                  fmt::format("kernel '{}' of another stream, in the same queue", last.kernel),
                                  {},
                                  0};
    if (services_.races->count(kernel, race)) {
      SC_REPORT_WARNING("kernbench/race",
                        fmt::format("kernel '{}' of stream {} on {}: {} {} {} in the queue of group {} that kernel "
                                    "'{}' of stream {} uses meanwhile: whose message is whose depends on timing. "
                                    "Launch them in one stream, or give them groups of their own",
                                    kernel, message.stream, names::pe(services_.coord), race.first_op, does,
                                    names::pe(&last == &pair.users->sender ? pair.entry.peer : pair.entry.source),
                                    pair.entry.group, last.kernel, last.stream)
                            .c_str());
    }
  }
  last = {&message, kernel, message.stream, kNever};
}

void Ipcq::publish_level(Direction direction) {
  if (levels_.empty() || direction.code() >= kNamedDirections || !levels_[direction.code()].wanted()) return;
  std::uint64_t full = 0;
  for (const auto& pair : pairs_) {
    if (pair->entry.direction == direction) full += pair->ring.full();
  }
  levels_[direction.code()].change(services_.now(), full);
}

std::vector<QueueStatistics> Ipcq::statistics() const {
  std::vector<QueueStatistics> list;
  for (const auto& pair : pairs_) {
    list.push_back(pair->statistics);
    list.back().high_water = std::max(list.back().high_water, pair->ring.high_water());
  }
  return list;
}

void Ipcq::explain(std::vector<Blocked>& blocked) const {
  const auto entry = [&](const QueuePair& pair, const Op& op, const char* what, PeCoord peer, std::uint16_t full,
                         Ps since) {
    Blocked b;
    b.pe = services_.coord;
    b.kernel = op.context->launch().kernel;
    b.op = text_of(op);
    b.waits_for = fmt::format("{} {} (direction {}), ring {} of {} slots full", what, names::pe(peer),
                              pair.entry.direction.str(), full, pair.entry.slots);
    b.has_peer = true;
    b.peer = peer;
    b.since = since;
    blocked.push_back(b);
  };
  for (const auto& pair : pairs_) {
    if (pair->sending != nullptr && is_open(pair->no_credit_since)) {
      const auto full = static_cast<std::uint16_t>(pair->entry.slots - pair->credits.available());
      entry(*pair, *pair->sending, "credit of", pair->entry.peer, full, pair->no_credit_since);
    }
    // A recv that waits for the tile of a send, which waits for the peer, which may wait for that recv.
    if (const Op* next = pair->receives.head; pair->receiving == nullptr && next != nullptr && next->pending > 0) {
      const auto* before = static_cast<const Op*>(next->context->scoreboard.before(*next));
      if (before != nullptr && before->kind == OpKind::send) {
        Blocked b;
        b.pe = services_.coord;
        b.kernel = next->context->launch().kernel;
        b.op = text_of(*next);
        b.waits_for = fmt::format(
            "TCM that {} still reads: there was no other place; receive before as much is sent, or send smaller parts",
            text_of(*before));
        b.since = next->issued;
        blocked.push_back(b);
      }
    }
    if (pair->receiving != nullptr && is_open(pair->no_data_since)) {
      entry(*pair, *pair->receiving, "data from", pair->entry.source, pair->ring.full(), pair->no_data_since);
    }
  }
}

}  // namespace kernbench::pe
