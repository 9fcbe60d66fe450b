/// When channels decide, and how reads are answered.
#include "models/hbm/hbm_impl.h"
#include "tlm/ext/packet.h"

namespace kernbench {

/// Books in the channel's usage what it has decided. Where a burst takes no whole number of picoseconds, sums of times
/// are those of sums of bursts.
void Hbm::Impl::book(Channel& target, const ChannelTiming::Decided& burst) const {
  const Ps end = clock.time(burst.end), before = target.busy;
  Ps length = burst.count * burst_time;
  if (burst_time != 0) {
    target.busy += length * in_step;
  } else {
    length = clock.span(burst.count * gaps.burst);
    target.booked += burst.count;
    const std::uint32_t each = wide ? config.pseudo_channels : 1;
    target.busy = clock.span(target.booked * each * gaps.burst) * (in_step / each);
  }
  target.usage->busy(end - std::min(end, length), end, target.busy - before, burst.count * burst_bytes,
                     burst.count * in_step);
}

/// Books the column commands that a channel has decided.
void Hbm::Impl::book_decided(Channel& target) {
  std::vector<ChannelTiming::Decided>& decided = target.timing->decided();
  for (const ChannelTiming::Decided& burst : decided) {
    if (target.usage != nullptr) book(target, burst);
    if (burst.write) continue;
    target.open_reads -= burst.count;
    Access& access = accesses[burst.tag];
    access.first = std::min(access.first, wide ? burst.command + gaps.read_data : burst.end);
    access.last = std::max(access.last, burst.end + access.apart);
    access.opened = access.opened || burst.opened;
    access.closed_other = access.closed_other || burst.closed_other;
    access.undecided -= burst.count;
    if (access.undecided == 0 && access.offset == access.end && access.payload != nullptr) finish(target, burst.tag);
  }
  decided.clear();
}

/// The last burst of a read is decided: its time is split into the memory's own and waiting for others.
void Hbm::Impl::finish(Channel& target, std::uint32_t id) {
  const Access& access = accesses[id];
  Ps end = clock.time(access.last) + config.controller_latency;
  if (Packet* packet = Packet::find(*access.payload)) {
    const std::uint64_t interleave = wide ? config.interleave_bytes : map.interleave();
    const std::uint64_t units = (std::uint64_t{access.bursts} * config.burst_bytes + interleave - 1) / interleave;
    const auto side_by_side = static_cast<unsigned>(std::clamp<std::uint64_t>(units, 1, pseudo_channels_per_slice));
    Tick own = gaps.m + gaps.read_data + Tick{(access.bursts - 1) / side_by_side} * gaps.ccd_s;
    if (access.opened) own += gaps.act_rd;
    if (access.closed_other) own += gaps.pre_act;
    const Ps total = end - access.arrived;
    const Ps service = std::min(total, clock.span(own) + config.controller_latency);
    packet->charge(Delay::memory, service);
    packet->charge(Delay::contention, total - service);
    if (target.usage != nullptr && total > service)
      target.usage->wait(access.arrived, access.arrived + total - service);
    const Tick packet_there = access.first + (std::max(1U, kMaxPacketBytes / config.burst_bytes) - 1) * gaps.ccd_s;
    end = answer_time(packet, clock.time(std::min(packet_there, access.last)) + config.controller_latency, end,
                      queue.now());
  }
  if (target.answered == target.ready.size()) {
    target.ready.clear();
    target.answered = 0;
  } else if (target.answered > 64) {
    target.ready.erase(target.ready.begin(), target.ready.begin() + static_cast<std::ptrdiff_t>(target.answered));
    target.answered = 0;
  }
  auto later = target.ready.end();  // nearly always the last
  while (later - target.ready.begin() > static_cast<std::ptrdiff_t>(target.answered) && (later - 1)->at > end) --later;
  target.ready.insert(later, {end, id});
}

/// An event for the channel where one is needed: when a read is to be answered, or a queue may have room.
void Hbm::Impl::arm(unsigned index) {
  Channel& target = *channels[index];
  if (target.waking) return;
  const auto first_answer = [&] {
    return target.answered < target.ready.size() ? target.ready[target.answered].at : kNever;
  };
  // No read can be answered before its command and its data: decisions until then need not be known yet.
  const auto least = [&] { return clock.time(target.timing->decided_until()) + read_time; };
  if (target.open_reads != 0 && least() <= queue.now()) advance(target, clock.at_or_after(queue.now()));
  Ps time = first_answer();
  if (target.open_reads != 0 && least() < std::min(time, target.wake))
    time = std::min(time, clock.time(target.timing->next_data()) + config.controller_latency);
  if (!target.blocked.empty()) {
    // A CK frees at most two places: one by a column command, one by an ACT.
    const unsigned missing = wide ? 1 : target.missing;
    time = std::min(time, clock.time(target.timing->next_room() + gaps.m * (missing > 2 ? (missing + 1) / 2 - 1 : 0)));
  }
  if (time < target.wake) wake_at(index, std::max(time, queue.now()));
}

void Hbm::Impl::wake_at(unsigned index, Ps time) {
  channels[index]->wake = time;
  queue.at(time, [this, index, time] {
    if (channels[index]->wake == time) wake(index);  // else an earlier event has replaced this one
  });
}

void Hbm::Impl::wake(unsigned index) {
  Channel& target = *channels[index];
  target.wake = kNever;
  target.waking = ahead == 0;
  const auto due = [&] {
    return target.answered < target.ready.size() && target.ready[target.answered].at <= queue.now();
  };
  bool taken = false;
  if (!due() || !target.blocked.empty()) {
    advance(target, clock.at_or_after(queue.now()));
    taken = ahead != 0 && decide_ahead(index);
  }
  while (due()) {
    const std::uint32_t id = target.ready[target.answered++].access;
    tlm::tlm_generic_payload& payload = *accesses[id].payload;
    const unsigned port = accesses[id].port;
    free_accesses.push_back(id);
    ports[port]->respond_now(payload);
  }
  retry_blocked(target, clock.at_or_after(queue.now()), queue.now());
  target.waking = false;
  if (taken)
    wake_at(index, queue.now());  // after the port has offered its next request
  else
    arm(index);
}

/// Goes on with the accesses that wait for room, which there is from tick `now` on, at `when`.
void Hbm::Impl::retry_blocked(Channel& target, Tick now, Ps when) {
  while (!target.blocked.empty()) {
    const unsigned port = target.blocked.front();
    const std::uint32_t id = waiting[port];
    if (enqueue(id, now)) {
      waiting[port] = kNoAccess;
      enqueued(id, when);
      ports[port]->taken();
    } else if (!target.blocked.empty() && target.blocked.front() == port) {
      break;  // still no room; otherwise it waits for another channel
    }
  }
}

/// Takes the decisions of the time in which a whole train comes from the memory, whatever may arrive meanwhile: the
/// train leaves with its first data, and says when its last will be there. The channels of a slice go in step, and
/// reads that wait for room get it in the tick in which it is there: their rows are opened beside the data of those
/// before. True: the next request of a port, if there is one, comes at this instant, and the rest is to be decided
/// after it.
bool Hbm::Impl::decide_ahead(unsigned index) {
  const Tick limit = clock.at_or_after(queue.now() + ahead);
  const unsigned together = wide ? 1 : std::max(1U, pseudo_channels_per_slice / config.pseudo_channels);
  const unsigned first = index / together * together;
  const unsigned last = std::min(first + together, static_cast<unsigned>(channels.size()));
  bool taken = false;
  while (!taken) {
    Channel* target = nullptr;
    Tick next = limit + 1;
    for (unsigned i = first; i < last; ++i) {
      if (!channels[i]) continue;
      if (channels[i]->open_reads == 0 && (!wide || channels[i]->blocked.empty())) continue;
      const Tick mine = channels[i]->timing->next();
      if (mine >= next) continue;
      target = channels[i].get();
      next = mine;
    }
    if (target == nullptr) break;
    advance(*target, next);
    if (target->blocked.empty()) continue;
    const bool write = accesses[waiting[target->blocked.front()]].payload->is_write();
    if ((write && !wide) || target->timing->room(write) < target->wanted) continue;
    retry_blocked(*target, std::max(next, clock.at_or_after(queue.now())), clock.time(next));
    taken = target->blocked.empty();
  }
  for (unsigned i = first; i < last; ++i) {
    if (i != index && channels[i]) arm(i);
  }
  return taken;
}

}  // namespace kernbench
