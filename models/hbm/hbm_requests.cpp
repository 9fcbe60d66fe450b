/// How requests enter the queues of their channels.
#include "models/hbm/hbm_impl.h"
#include "tlm/ext/packet.h"

namespace kernbench {

std::uint32_t Hbm::Impl::new_access() {
  if (free_accesses.empty()) {
    free_accesses.push_back(static_cast<std::uint32_t>(accesses.size()));
    accesses.emplace_back();
  }
  const std::uint32_t id = free_accesses.back();
  free_accesses.pop_back();
  return id;
}

/// Accepts `count` bursts from burst `first` of a slice on: bursts of one row, a column apart, as runs. Returns how
/// many were queued.
unsigned Hbm::Impl::accept(Channel& target, unsigned port, std::uint64_t first, unsigned count, bool write,
                           std::uint32_t id, Tick now, bool waited) {
  const auto place_of = [&](std::uint64_t burst) {
    BurstPlace place = map.place(burst * config.burst_bytes);
    place.pseudo_channel = (port * pseudo_channels_per_slice + place.pseudo_channel) % config.pseudo_channels;
    return place;
  };
  unsigned queued = 0;
  if (config.grain == 1) {
    for (unsigned i = 0; i < count; ++i)
      queued += target.timing.accept(now, place_of(first + i), write, id, 1, waited) ? 1 : 0;
    return queued;
  }
  const auto stride = static_cast<unsigned>(std::min<std::uint64_t>(map.column_stride(), count));
  for (unsigned i = 0; i < stride; ++i) {
    const BurstPlace place = place_of(first + i);
    const unsigned run = (count - i + stride - 1) / stride;
    // What lies beyond the end of the row is in another one.
    const auto fits = static_cast<unsigned>(std::min<std::uint64_t>(run, map.columns() - place.column));
    target.timing.accept(now, place, write, id, fits, waited);
    if (fits < run)
      target.timing.accept(now, place_of(first + i + std::uint64_t{fits} * stride), write, id, run - fits, waited);
    queued += run;
  }
  return queued;
}

/// Whether a request of the port may enter now; if not, it waits in line.
bool Hbm::Impl::has_turn(Channel& target, unsigned port, unsigned count, bool write) {
  const bool turn = target.blocked.empty() || target.blocked.front() == port;
  if (turn && target.timing.room(write) >= count) return true;
  if (std::find(target.blocked.begin(), target.blocked.end(), port) == target.blocked.end())
    target.blocked.push_back(port);
  if (target.blocked.front() == port) {
    target.missing = count - target.timing.room(write);
    target.wanted = count;
  }
  return false;
}

/// Queues what has room, an interleave unit at a time. Returns whether the whole access is queued; if not, its port
/// waits at the channel that is full.
bool Hbm::Impl::enqueue(std::uint32_t id) {
  Access& access = accesses[id];
  const bool write = access.payload->is_write();
  while (access.offset < access.end) {
    const BurstPlace place = map.place(access.offset);
    const unsigned index = (access.port * pseudo_channels_per_slice + place.pseudo_channel) / config.pseudo_channels;
    Channel& target = channel(index);
    const Tick now = present();
    if (!target.timing.tick_open(now)) advance(target, now);
    const std::uint64_t unit_end = std::min((access.offset / map.interleave() + 1) * map.interleave(), access.end);
    const std::uint64_t first = access.offset / config.burst_bytes;
    auto count = static_cast<unsigned>((unit_end + config.burst_bytes - 1) / config.burst_bytes - first);
    count = std::min(count, queue_bursts);
    if (!has_turn(target, access.port, count, write)) {
      arm(index);
      return false;
    }
    const bool waited = !target.blocked.empty();
    if (waited) target.blocked.erase(target.blocked.begin());
    const unsigned queued = accept(target, access.port, first, count, write, write ? kNoAccess : id, now, waited);
    access.bursts += count;
    if (!write) {
      access.undecided += queued;
      target.open_reads += queued;
      if (queued < count) access.last = std::max(access.last, now + gaps.m);  // from the write queue
    }
    access.offset = std::min((first + count) * config.burst_bytes, unit_end);
    if (!write && access.offset == access.end && access.undecided == 0) finish(target, id);
    arm(index);
  }
  return true;
}

/// What a stripe has of `access` in pseudo channel access.part. A stripe is `part_units` units of each.
Hbm::Impl::Part Hbm::Impl::part_of(const Access& access) const {
  const std::uint64_t unit = map.interleave(), stripe = unit * part_units * pseudo_channels_per_slice;
  const std::uint64_t base = access.offset / stripe * stripe;
  Part part;
  part.pseudo_channel = access.part;
  for (unsigned i = 0; i < part_units; ++i) {
    const std::uint64_t at = base + (std::uint64_t{i} * pseudo_channels_per_slice + access.part) * unit;
    const std::uint64_t begin = std::max(at, access.offset), end = std::min(at + unit, access.end);
    if (begin >= end) continue;
    const std::uint64_t first = begin / config.burst_bytes;
    if (part.count == 0) {
      const std::uint64_t number = at / unit / pseudo_channels_per_slice;  // of the unit, within the pseudo channel
      part.first = number * unit_bursts + (first - at / config.burst_bytes);
    }
    part.count += static_cast<unsigned>((end + config.burst_bytes - 1) / config.burst_bytes - first);
  }
  return part;
}

void Hbm::Impl::accept_part(Channel& target, const Access& access, const Part& part, std::uint32_t id, Tick now,
                            bool waited) {
  const auto place_of = [&](std::uint64_t number) {
    const std::uint64_t unit = number / unit_bursts * pseudo_channels_per_slice + part.pseudo_channel;
    BurstPlace place = map.place((unit * unit_bursts + number % unit_bursts) * config.burst_bytes);
    place.pseudo_channel = (access.port * pseudo_channels_per_slice + part.pseudo_channel) % config.pseudo_channels;
    return place;
  };
  const bool write = access.payload->is_write();
  const auto stride = static_cast<unsigned>(std::min<std::uint64_t>(map.column_stride(), part.count));
  for (unsigned i = 0; i < stride; ++i) {
    const unsigned run = (part.count - i + stride - 1) / stride;
    for (unsigned done = 0; done < run;) {
      const BurstPlace place = place_of(part.first + i + std::uint64_t{done} * stride);
      const auto fits = static_cast<unsigned>(std::min<std::uint64_t>(run - done, map.columns() - place.column));
      target.timing.accept(now, place, write, write ? kNoAccess : id, fits, waited);
      done += fits;
    }
  }
}

/// The same of a train: a pseudo channel gets what lies in it at a time, as runs of whole rows.
bool Hbm::Impl::enqueue_train(std::uint32_t id) {
  const bool write = accesses[id].payload->is_write();
  const Tick now = present();
  const std::uint64_t stripe = map.interleave() * part_units * pseudo_channels_per_slice;
  for (;;) {
    Access& access = accesses[id];
    const Part part = part_of(access);
    const bool last =
        access.part + 1 == pseudo_channels_per_slice && (access.offset / stripe + 1) * stripe >= access.end;
    const unsigned index = (access.port * pseudo_channels_per_slice + part.pseudo_channel) / config.pseudo_channels;
    Channel& target = channel(index);
    if (part.count != 0) {
      if (!target.timing.tick_open(now)) advance(target, now);
      if (!has_turn(target, access.port, part.count, write)) {
        arm(index);
        return false;
      }
      const bool waited = !target.blocked.empty();
      if (waited) target.blocked.erase(target.blocked.begin());
      accept_part(target, access, part, id, now, waited);
      access.bursts += part.count;
      if (!write) {
        access.undecided += part.count;
        target.open_reads += part.count;
      }
    }
    if (last) {
      access.offset = access.end;
    } else if (++access.part == pseudo_channels_per_slice) {
      access.part = 0;
      access.offset = (access.offset / stripe + 1) * stripe;
    }
    if (!write && last && access.undecided == 0) finish(target, id);
    if (part.count != 0 || last) arm(index);
    if (last) return true;
  }
}

bool Hbm::Impl::take(unsigned port, tlm::tlm_generic_payload& payload) {
  std::uint32_t id = waiting[port];
  std::uint64_t offset = 0;
  const tlm::tlm_response_status status = locate(port, payload, offset);
  if (id == kNoAccess) {
    if (status != tlm::TLM_OK_RESPONSE) {
      payload.set_response_status(status);
      ports[port]->respond(payload, queue.now() + config.controller_latency);
      return true;
    }
    id = new_access();
    Access& access = accesses[id];
    access = Access();
    access.payload = &payload;
    access.port = port;
    access.arrived = ports[port]->arrival();
    access.offset = offset;
    access.end = offset + payload.get_data_length();
    access.train = is_train(access);
  }
  if (!(accesses[id].train ? enqueue_train(id) : enqueue(id))) {
    waiting[port] = id;
    return false;
  }
  waiting[port] = kNoAccess;
  apply(port, payload, offset);
  if (payload.is_write()) {
    // Posted: visible and acknowledged once queued.
    const Ps queued = deciding == 0 ? queue.now() : clock.time(deciding);
    if (Packet* packet = Packet::find(payload)) {
      packet->charge(Delay::memory, config.controller_latency);
      packet->charge(Delay::contention, queued - accesses[id].arrived);
    }
    free_accesses.push_back(id);
    ports[port]->respond(payload, queued + config.controller_latency);
  }
  return true;
}

}  // namespace kernbench
