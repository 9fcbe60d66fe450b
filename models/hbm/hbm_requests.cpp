/// How requests are checked, change the contents, and enter the queues of their channels.
#include "models/hbm/hbm_impl.h"
#include "tlm/ext/packet.h"
#include "tlm/machine/address.h"

namespace kernbench {

std::unique_ptr<ChannelTiming> Hbm::Impl::make_timing() const {
  std::unique_ptr<ChannelTiming> timing =
      ChannelTiming::make(wide ? wide->config : config, queue_bursts, wide ? wide->gaps : gaps);
  if (wide) timing->take_whole_runs(wide->banks);
  return timing;
}

Hbm::Impl::Channel& Hbm::Impl::make_channel(unsigned index) {
  std::unique_ptr<Channel>& slot = channels[index];
  slot = std::make_unique<Channel>(make_timing());
  if (!usages.empty()) slot->usage = usages[index];
  if (!tracks.empty())
    slot->timing->set_listener(wide ? static_cast<CommandListener*>(wide_tracks[index].get()) : tracks[index].get());
  return *slot;
}

std::optional<std::uint64_t> Hbm::Impl::locate(unsigned port, tlm::tlm_generic_payload& payload) const {
  const std::uint64_t base = bases[port];
  std::uint64_t offset = payload.get_address() - base;
  constexpr std::uint64_t kForeign = ~std::uint64_t{0};
  if (payload.get_address() < base || offset > PhysicalAddress::kMaxOffset) offset = kForeign;
  return memory_access::check(payload, offset, slice_bytes);
}

void Hbm::Impl::apply(unsigned port, tlm::tlm_generic_payload& payload, std::uint64_t offset) {
  bytes += payload.get_data_length();
  if (!options.data) return;
  if (!contents[port]) contents[port] = std::make_unique<SparseMemory>(options.debug);
  if (!memory_access::apply(payload, offset, *contents[port]) && unwritten_reports++ < 10)
    memory_access::warn_unwritten(name, payload);
}

std::uint32_t Hbm::Impl::new_access() {
  if (free_accesses.empty()) {
    free_accesses.push_back(static_cast<std::uint32_t>(accesses.size()));
    accesses.emplace_back();
  }
  const std::uint32_t id = free_accesses.back();
  free_accesses.pop_back();
  return id;
}

/// What of an access, from `at` on, may enter a queue together: an interleave unit; of a wide slice what lies in a row.
Hbm::Impl::Piece Hbm::Impl::piece_at(unsigned port, std::uint64_t at, std::uint64_t end) const {
  Piece piece;
  piece.place = map.place(at);
  piece.first = at >> burst_shift;
  if (wide) {
    piece.channel = port;
    const std::uint64_t needed = ((end + burst_bytes - 1) >> burst_shift) - piece.first;
    piece.count = static_cast<unsigned>(std::min<std::uint64_t>(needed, map.columns() - piece.place.column));
  } else {
    const ChannelPlace of_stack = channel_places[port * pseudo_channels_per_slice + piece.place.pseudo_channel];
    piece.channel = of_stack.channel;
    piece.place.pseudo_channel = of_stack.pseudo_channel;
    const std::uint64_t unit_end = std::min(map.interleave_end(at), end);
    const std::uint64_t needed = ((unit_end + burst_bytes - 1) >> burst_shift) - piece.first;
    piece.count = static_cast<unsigned>(std::min(needed, std::uint64_t{queue_bursts}));
  }
  piece.end = std::min((piece.first + piece.count) * burst_bytes, end);
  return piece;
}

/// The bursts of an access, and how much later its last one comes than if all pseudo channels had a share of it.
void Hbm::Impl::measure(Access& access) const {
  const std::uint64_t burst = config.burst_bytes;
  if (!wide) {
    access.bursts =
        static_cast<std::uint32_t>(((access.end + burst - 1) >> burst_shift) - (access.offset >> burst_shift));
    return;
  }
  access.bursts = static_cast<std::uint32_t>((access.end + burst - 1) / burst - access.offset / burst);
  const std::uint64_t unit = config.interleave_bytes;
  const std::uint64_t units = (access.end + unit - 1) / unit - access.offset / unit;
  if (units > pseudo_channels_per_slice) return;
  const std::uint64_t in_one = std::min<std::uint64_t>(access.bursts, unit / burst);
  const std::uint64_t in_step = (access.end + burst_bytes - 1) / burst_bytes - access.offset / burst_bytes;
  access.apart = (in_one - std::min(in_one, in_step)) * gaps.ccd_s;
}

/// Accepts the bursts of a piece: those of one row, a column apart, as runs. Returns how many were queued.
unsigned Hbm::Impl::accept(Channel& target, unsigned port, const Piece& piece, bool write, std::uint32_t id, Tick now,
                           bool waited) {
  const std::uint64_t first = piece.first;
  const unsigned count = piece.count;
  if (wide) {
    target.timing->accept(now, piece.place, write, id, count, waited);
    return count;
  }
  const auto place_of = [&](std::uint64_t burst) {
    if (burst == first) return piece.place;
    BurstPlace place = map.place(burst * burst_bytes);
    place.pseudo_channel = channel_places[port * pseudo_channels_per_slice + place.pseudo_channel].pseudo_channel;
    return place;
  };
  unsigned queued = 0;
  if (config.grain == 1) {
    for (unsigned i = 0; i < count; ++i)
      queued += target.timing->accept(now, place_of(first + i), write, id, 1, waited) ? 1 : 0;
    return queued;
  }
  const auto stride = static_cast<unsigned>(std::min<std::uint64_t>(map.column_stride(), count));
  for (unsigned i = 0; i < stride; ++i) {
    const BurstPlace place = place_of(first + i);
    const unsigned run = (count - i + stride - 1) / stride;
    // What lies beyond the end of the row is in another one.
    const auto fits = static_cast<unsigned>(std::min<std::uint64_t>(run, map.columns() - place.column));
    target.timing->accept(now, place, write, id, fits, waited);
    if (fits < run)
      target.timing->accept(now, place_of(first + i + std::uint64_t{fits} * stride), write, id, run - fits, waited);
    queued += run;
  }
  return queued;
}

/// Accepts a piece of an access, and notes what of a read is to be decided.
void Hbm::Impl::accept_part(std::uint32_t id, Channel& target, const Piece& piece, bool write, Tick now, bool waited) {
  Access& access = accesses[id];
  const unsigned queued = accept(target, access.port, piece, write, write ? kNoAccess : id, now, waited);
  if (target.usage != nullptr)
    target.usage->level(std::uint64_t{target.timing->waiting(false) + target.timing->waiting(true)} * in_step,
                        queue.now());
  if (write) return;
  access.undecided += queued;
  target.open_reads += queued;
  if (queued < piece.count) access.last = std::max(access.last, now + gaps.m);  // from the write queue
}

/// Whether a request of the port may enter now; if not, it waits in line.
bool Hbm::Impl::has_turn(Channel& target, unsigned port, unsigned count, bool write) {
  const bool turn = target.blocked.empty() || target.blocked.front() == port;
  if (turn && target.timing->room(write) >= count) return true;
  if (std::find(target.blocked.begin(), target.blocked.end(), port) == target.blocked.end())
    target.blocked.push_back(port);
  if (target.blocked.front() == port) {
    target.missing = count - target.timing->room(write);
    target.wanted = count;
  }
  return false;
}

/// Queues what has room, a piece at a time. Returns whether the whole access is queued; if not, its port waits at the
/// channel that is full. Of a wide slice, a piece enters when a quarter of the queue has room: all of it where nothing
/// of the other direction has come for long, as its bursts would follow each other anyway.
bool Hbm::Impl::enqueue(std::uint32_t id, Tick now) {
  const bool write = accesses[id].payload->is_write();
  while (accesses[id].offset < accesses[id].end) {
    Access& access = accesses[id];
    Piece piece = access.next;
    Channel& target = channel(piece.channel);
    if (!target.timing->tick_open(now)) advance(target, now);
    unsigned needed = piece.count;
    if (wide) {
      needed = std::min(needed, std::max(1U, queue_bursts / 4));
      const bool alone = target.writes == write && target.streak >= 2 * queue_bursts;
      if (!alone) {
        piece.count = needed;
        piece.end = std::min((piece.first + needed) * burst_bytes, access.end);
      }
    }
    if (!has_turn(target, access.port, needed, write)) {
      arm(piece.channel);
      return false;
    }
    const bool waited = !target.blocked.empty();
    if (waited) target.blocked.erase(target.blocked.begin());
    accept_part(id, target, piece, write, now, waited);
    target.streak = target.writes == write ? target.streak + piece.count : piece.count;
    target.writes = write;
    access.offset = piece.end;
    if (access.offset < access.end) access.next = piece_at(access.port, access.offset, access.end);
    if (!write && access.offset == access.end && access.undecided == 0) finish(target, id);
    arm(piece.channel);
  }
  return true;
}

bool Hbm::Impl::take(unsigned port, tlm::tlm_generic_payload& payload, Ps arrival) {
  const std::optional<std::uint64_t> offset = locate(port, payload);
  if (!offset) {
    ports[port]->respond(payload, queue.now() + config.controller_latency);
    return true;
  }
  const std::uint32_t id = new_access();
  Access& access = accesses[id];
  access = Access();
  access.payload = &payload;
  access.port = port;
  access.arrived = arrival;
  access.offset = *offset;
  access.end = *offset + payload.get_data_length();
  access.next = piece_at(port, access.offset, access.end);
  measure(access);
  if (!enqueue(id, clock.at_or_after(queue.now()))) {
    waiting[port] = id;
    return false;
  }
  enqueued(id, queue.now());
  return true;
}

/// All of an access is queued. A write is posted: visible and acknowledged then.
void Hbm::Impl::enqueued(std::uint32_t id, Ps when) {
  const Access& access = accesses[id];
  const unsigned port = access.port;
  tlm::tlm_generic_payload& payload = *access.payload;
  apply(port, payload, payload.get_address() - bases[port]);
  if (payload.is_read()) return;
  if (Packet* packet = Packet::find(payload)) {
    packet->charge(Delay::memory, config.controller_latency);
    packet->charge(Delay::contention, when - access.arrived);
  }
  free_accesses.push_back(id);
  ports[port]->respond(payload, when + config.controller_latency);
}

}  // namespace kernbench
