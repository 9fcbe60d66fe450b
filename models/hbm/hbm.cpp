#include "models/hbm/hbm.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "models/hbm/address_map.h"
#include "models/hbm/channel_timing.h"
#include "models/hbm/channel_tracks.h"
#include "models/memory/memory_port.h"
#include "tlm/ext/packet.h"
#include "tlm/ext/train.h"
#include "tlm/machine/address.h"

namespace kernbench {

namespace {

constexpr Tick kFar = ~Tick{0} / 2;  // later than any
constexpr std::uint32_t kNoAccess = ~std::uint32_t{0};
constexpr std::uint64_t kForeign = ~std::uint64_t{0};

/// The fast grade: a decision takes up to four bursts of a row (reference/hbm/method.md, section 6).
constexpr std::uint32_t kFastGrain = 4;

HbmConfig graded(HbmConfig config, const RunOptions& options) {
  if (options.fidelity.hbm == Grade::fast) {
    config.grain = std::max(config.grain, kFastGrain);
    config.forward_writes = false;  // runs have no single address
  }
  return config;
}

}  // namespace

struct Hbm::Impl final : MemoryBackend {
  /// One request from BEGIN_REQ to its response.
  struct Access {
    tlm::tlm_generic_payload* payload = nullptr;
    unsigned port = 0;
    std::uint64_t offset = 0;     ///< of the next byte to queue; of a train: of the stripe that is being queued
    unsigned part = 0;            ///< of a train: of that stripe
    std::uint64_t end = 0;        ///< in the slice
    std::uint32_t undecided = 0;  ///< bursts queued, column command unknown
    std::uint32_t bursts = 0;     ///< queued so far
    bool opened = false, closed_other = false;
    bool train = false;           ///< see enqueue_train
    Ps arrived = 0;               ///< BEGIN_REQ
    Tick first = kFar, last = 0;  ///< end of the data of its first burst, of all
  };
  /// Bursts of a train that follow each other in one pseudo channel.
  struct Part {
    unsigned pseudo_channel = 0;  ///< of the slice
    std::uint64_t first = 0;      ///< counted within the pseudo channel
    unsigned count = 0;
  };
  /// A read whose time is known.
  struct Ready {
    Ps at = 0;
    std::uint32_t access = 0;
  };
  struct Channel {
    Channel(const HbmConfig& config, unsigned queue) : timing(config, queue) {}
    ChannelTiming timing;
    std::uint32_t open_reads = 0;   ///< bursts queued and undecided
    std::vector<unsigned> blocked;  ///< ports whose request waits for room, in order
    unsigned missing = 0;           ///< bursts that the first of them lacked when it was offered last
    unsigned wanted = 0;            ///< bursts that it asked for
    std::vector<Ready> ready;       ///< in order of time, from `answered` on
    std::size_t answered = 0;
    Ps wake = kNever;
  };

  Impl(const std::string& name, const HbmConfig& config, CubeCoord cube, std::uint32_t slices,
       const RunOptions& options, EventQueue& queue, Observer* observer);

  bool take(unsigned port, tlm::tlm_generic_payload& payload) override;
  Ps serve(unsigned port, tlm::tlm_generic_payload& payload, Ps start) override;
  unsigned debug(unsigned port, tlm::tlm_generic_payload& payload) override;

  tlm::tlm_response_status locate(unsigned port, const tlm::tlm_generic_payload& payload, std::uint64_t& offset) const;
  void apply(unsigned port, tlm::tlm_generic_payload& payload, std::uint64_t offset);
  Channel& channel(unsigned index) { return channels[index] ? *channels[index] : make_channel(index); }
  Channel& make_channel(unsigned index);
  bool enqueue(std::uint32_t id);
  bool enqueue_train(std::uint32_t id);
  bool is_train(const Access& access) const {
    return whole_runs && access.end - access.offset > kMaxPacketBytes && unit_bursts <= queue_bursts;
  }
  Part part_of(const Access& access) const;
  void accept_part(Channel& target, const Access& access, const Part& part, std::uint32_t id, Tick now, bool waited);
  unsigned accept(Channel& target, unsigned port, std::uint64_t first, unsigned count, bool write, std::uint32_t id,
                  Tick now, bool waited);
  bool has_turn(Channel& target, unsigned port, unsigned count, bool write);
  void decide(Channel& channel);
  void finish(Channel& channel, std::uint32_t id);
  void wake(unsigned index);
  void arm(unsigned index);
  void wake_at(unsigned index, Ps time);
  void advance(Channel& channel, Tick now) {
    channel.timing.advance(now);
    decide(channel);
  }
  /// In which what is offered now enters a queue.
  Tick present() const { return std::max(clock.at_or_after(queue.now()), deciding); }
  bool decide_ahead(unsigned index);
  void retry_blocked(Channel& channel);
  std::uint32_t new_access();

  const std::string name;
  const HbmConfig config;
  const CubeCoord cube;
  const std::uint32_t slices, pseudo_channels_per_slice;
  const std::uint64_t slice_bytes;
  const HbmAddressMap map;
  const ChannelClock clock;
  const ChannelGaps gaps;
  const Ps read_time;  ///< least from a read command to its response
  const Ps ahead;      ///< trains: so long ahead reads are decided, that a train may leave as its data come
  const RunOptions options;
  EventQueue& queue;
  const unsigned queue_bursts;
  const bool whole_runs;                                ///< long trains: what one has of a row is one decision
  const std::uint64_t unit_bursts;                      ///< that lie in one pseudo channel one after the other
  const unsigned part_units;                            ///< interleave units of a train that enter a queue together
  std::vector<std::uint64_t> bases;                     // by slice: its first address
  std::vector<std::unique_ptr<ChannelTracks>> tracks;   // by channel; empty: nobody listens
  std::vector<std::unique_ptr<Channel>> channels;       // made on first use
  std::vector<std::unique_ptr<SparseMemory>> contents;  // by slice; made on first use
  std::vector<std::unique_ptr<MemoryPort>> ports;
  Tick deciding = 0;                   // tick that is being decided ahead of time; 0: none
  std::vector<std::uint32_t> waiting;  // by port: the access that is not queued whole
  std::vector<Access> accesses;
  std::vector<std::uint32_t> free_accesses;
  std::uint64_t bytes = 0;
  unsigned unwritten_reports = 0;
};

Hbm::Impl::Impl(const std::string& name, const HbmConfig& configured, CubeCoord cube, std::uint32_t slices,
                const RunOptions& options, EventQueue& queue, Observer* observer)
    : name(name),
      config(graded(configured, options)),
      cube(cube),
      slices(slices),
      pseudo_channels_per_slice(slices == 0 ? 0 : config.total_pseudo_channels() / slices),
      slice_bytes(slices == 0 ? 0 : config.bytes / slices),
      map(config, std::max(1u, pseudo_channels_per_slice)),
      clock(config),
      gaps(config),
      read_time(clock.span(gaps.read_data) + config.controller_latency),
      ahead(options.longest <= kMaxPacketBytes
                ? 0
                : config.pseudo_channel_peak().time_for(std::min(options.longest, kLongestAccessBytes) /
                                                        std::max(1u, pseudo_channels_per_slice))),
      options(options),
      queue(queue),
      queue_bursts(config.queue_bursts != 0 ? config.queue_bursts : config.queue_depth * config.pseudo_channels),
      whole_runs(options.longest > kMaxTrainBytes && config.grain > 1),
      unit_bursts(map.interleave() / config.burst_bytes),
      part_units(static_cast<unsigned>(std::max<std::uint64_t>(1, queue_bursts / 2 / unit_bursts))) {
  if (pseudo_channels_per_slice == 0 || config.total_pseudo_channels() % slices != 0) {
    throw std::invalid_argument("hbm: " + std::to_string(config.total_pseudo_channels()) +
                                " pseudo channels cannot be dealt evenly to " + std::to_string(slices) + " slices");
  }
  if (queue_bursts == 0) throw std::invalid_argument("hbm: queue_depth is 0");
  ChannelTiming(config, 1);  // throws on what it cannot model
  channels.resize(config.channels);
  contents.resize(slices);
  waiting.resize(slices, kNoAccess);
  for (std::uint32_t i = 0; i < slices; ++i)
    bases.push_back(PhysicalAddress::hbm({cube.sip, cube.cube, static_cast<std::uint16_t>(i)}, 0).encode());
  for (unsigned i = 0; observer != nullptr && i < config.channels; ++i)
    tracks.push_back(std::make_unique<ChannelTracks>(*observer, cube, i, config));
}

Hbm::Impl::Channel& Hbm::Impl::make_channel(unsigned index) {
  std::unique_ptr<Channel>& slot = channels[index];
  slot = std::make_unique<Channel>(config, queue_bursts);
  if (whole_runs) slot->timing.take_whole_runs();
  if (!tracks.empty()) slot->timing.set_listener(tracks[index].get());
  return *slot;
}

tlm::tlm_response_status Hbm::Impl::locate(unsigned port, const tlm::tlm_generic_payload& payload,
                                           std::uint64_t& offset) const {
  const std::uint64_t base = bases[port];
  offset = payload.get_address() - base;
  if (payload.get_address() < base || offset > PhysicalAddress::kMaxOffset) offset = kForeign;
  return memory_access::check(payload, offset, slice_bytes);
}

void Hbm::Impl::apply(unsigned port, tlm::tlm_generic_payload& payload, std::uint64_t offset) {
  bytes += payload.get_data_length();
  payload.set_response_status(tlm::TLM_OK_RESPONSE);
  if (!options.data) return;
  if (!contents[port]) contents[port] = std::make_unique<SparseMemory>(options.debug);
  if (!memory_access::apply(payload, offset, *contents[port]) && unwritten_reports++ < 10) {
    SC_REPORT_WARNING("kernbench/unwritten",
                      (name + ": a read of " + std::to_string(payload.get_data_length()) + " B at " +
                       PhysicalAddress::decode(payload.get_address()).str() + " returns bytes that nobody wrote")
                          .c_str());
  }
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
    if (fits < run) target.timing.accept(now, place_of(first + i + fits * stride), write, id, run - fits, waited);
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

/// Books the column commands that a channel has decided.
void Hbm::Impl::decide(Channel& target) {
  std::vector<ChannelTiming::Decided>& decided = target.timing.decided();
  for (const ChannelTiming::Decided& burst : decided) {
    if (burst.write) continue;
    target.open_reads -= burst.count;
    Access& access = accesses[burst.tag];
    access.first = std::min(access.first, whole_runs ? burst.command + gaps.read_data : burst.end);
    access.last = std::max(access.last, burst.end);
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
    const std::uint64_t units = (access.bursts * config.burst_bytes + map.interleave() - 1) / map.interleave();
    const auto side_by_side = static_cast<unsigned>(std::clamp<std::uint64_t>(units, 1, pseudo_channels_per_slice));
    Tick own = gaps.m + gaps.read_data + (access.bursts - 1) / side_by_side * gaps.ccd_s;
    if (access.opened) own += gaps.act_rd;
    if (access.closed_other) own += gaps.pre_act;
    const Ps total = end - access.arrived;
    const Ps service = std::min(total, clock.span(own) + config.controller_latency);
    packet->charge(Delay::memory, service);
    packet->charge(Delay::contention, total - service);
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

/// An event for the channel where one is needed: when a read is to be answered, or a queue may have room.
void Hbm::Impl::arm(unsigned index) {
  Channel& target = *channels[index];
  const auto first_answer = [&] {
    return target.answered < target.ready.size() ? target.ready[target.answered].at : kNever;
  };
  // No read can be answered before its command and its data: decisions until then need not be known yet.
  const auto least = [&] { return clock.time(target.timing.decided_until()) + read_time; };
  if (target.open_reads != 0 && least() <= queue.now()) advance(target, clock.at_or_after(queue.now()));
  Ps time = first_answer();
  if (target.open_reads != 0 && least() < std::min(time, target.wake))
    time = std::min(time, clock.time(target.timing.next_data()) + config.controller_latency);
  if (!target.blocked.empty()) {
    // A CK frees at most two places: one by a column command, one by an ACT.
    const unsigned missing = whole_runs ? 1 : target.missing;
    time = std::min(time, clock.time(target.timing.next_room() + gaps.m * (missing > 2 ? (missing + 1) / 2 - 1 : 0)));
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
  retry_blocked(target);
  if (taken)
    wake_at(index, queue.now());  // after the port has offered its next request
  else
    arm(index);
}

void Hbm::Impl::retry_blocked(Channel& target) {
  while (!target.blocked.empty()) {
    const unsigned port = target.blocked.front();
    ports[port]->retry();
    if (!target.blocked.empty() && target.blocked.front() == port) break;  // still no room
  }
}

/// Takes the decisions of the time in which a whole train comes from the memory, whatever may arrive meanwhile: the
/// train leaves with its first data, and says when its last will be there. The channels of a slice go in step, and
/// reads that wait for room get it in the tick in which it is there: their rows are opened beside the data of those
/// before. True: the next request of a port, if there is one, comes at this instant, and the rest is to be decided
/// after it.
bool Hbm::Impl::decide_ahead(unsigned index) {
  const Tick limit = clock.at_or_after(queue.now() + ahead);
  const unsigned together = std::max(1U, pseudo_channels_per_slice / config.pseudo_channels);
  const unsigned first = index / together * together, last = std::min(first + together, config.channels);
  bool taken = false;
  while (!taken) {
    Channel* target = nullptr;
    Tick next = limit + 1;
    for (unsigned i = first; i < last; ++i) {
      if (!channels[i]) continue;
      if (channels[i]->open_reads == 0 && (!whole_runs || channels[i]->blocked.empty())) continue;
      const Tick mine = channels[i]->timing.next();
      if (mine >= next) continue;
      target = channels[i].get();
      next = mine;
    }
    if (target == nullptr) break;
    advance(*target, next);
    if (target->blocked.empty()) continue;
    const bool write = accesses[waiting[target->blocked.front()]].payload->is_write();
    if ((write && !whole_runs) || target->timing.room(write) < target->wanted) continue;
    deciding = next;
    retry_blocked(*target);
    deciding = 0;
    taken = target->blocked.empty();
  }
  for (unsigned i = first; i < last; ++i) {
    if (i != index && channels[i]) arm(i);
  }
  return taken;
}

Ps Hbm::Impl::serve(unsigned port, tlm::tlm_generic_payload& payload, Ps start) {
  std::uint64_t offset = 0;
  const tlm::tlm_response_status status = locate(port, payload, offset);
  if (status != tlm::TLM_OK_RESPONSE) {
    payload.set_response_status(status);
    return start + config.controller_latency;
  }
  apply(port, payload, offset);
  const bool write = payload.is_write();
  const std::uint64_t end = offset + payload.get_data_length();
  const std::uint32_t id = new_access();
  accesses[id] = Access();
  // The commands are issued at once, whatever may arrive for earlier times.
  Tick now = clock.at_or_after(start), last = 0;
  for (std::uint64_t at = offset; at < end;) {
    const BurstPlace place = map.place(at);
    Channel& target = channel((port * pseudo_channels_per_slice + place.pseudo_channel) / config.pseudo_channels);
    const std::uint64_t unit_end = std::min((at / map.interleave() + 1) * map.interleave(), end);
    const std::uint64_t first = at / config.burst_bytes;
    auto count = static_cast<unsigned>((unit_end + config.burst_bytes - 1) / config.burst_bytes - first);
    count = std::min(count, queue_bursts);
    if (target.timing.decided_until() > now + 1) now = target.timing.decided_until() - 1;
    target.timing.advance(now);
    while (target.timing.room(write) < count) target.timing.advance(now = std::max(now, target.timing.next()));
    decide(target);
    const unsigned queued = accept(target, port, first, count, write, write ? kNoAccess : id, now, false);
    if (!write) {
      accesses[id].undecided += queued;
      target.open_reads += queued;
      if (queued < count) last = std::max(last, now + gaps.m);
    }
    at = std::min((first + count) * config.burst_bytes, unit_end);
  }
  for (std::uint64_t at = offset; !write && at < end && accesses[id].undecided != 0;
       at = (at / map.interleave() + 1) * map.interleave()) {
    const BurstPlace place = map.place(at);
    Channel& target = channel((port * pseudo_channels_per_slice + place.pseudo_channel) / config.pseudo_channels);
    while (target.open_reads != 0 && accesses[id].undecided != 0) advance(target, target.timing.next());
  }
  last = std::max(last, accesses[id].last);
  free_accesses.push_back(id);
  return std::max(start, write ? start : clock.time(last)) + config.controller_latency;
}

unsigned Hbm::Impl::debug(unsigned port, tlm::tlm_generic_payload& payload) {
  std::uint64_t offset = 0;
  const tlm::tlm_response_status status = locate(port, payload, offset);
  payload.set_response_status(status);
  if (status != tlm::TLM_OK_RESPONSE || !options.data) return 0;
  if (!contents[port]) contents[port] = std::make_unique<SparseMemory>(options.debug);
  memory_access::apply(payload, offset, *contents[port]);
  return payload.get_data_length();
}

Hbm::Hbm(const sc_core::sc_module_name& name, const HbmConfig& config, CubeCoord cube, std::uint32_t slices,
         const RunOptions& options, EventQueue& queue, Observer* observer)
    : sc_module(name), impl_(std::make_unique<Impl>(this->name(), config, cube, slices, options, queue, observer)) {
  for (std::uint32_t i = 0; i < slices; ++i) {
    port.push_back(std::make_unique<tlm::tlm_target_socket<>>(("pe" + std::to_string(i)).c_str()));
    impl_->ports.push_back(std::make_unique<MemoryPort>(*port.back(), i, *impl_, queue));
  }
}

Hbm::~Hbm() = default;

void Hbm::flush() {
  const Tick now = impl_->clock.at_or_after(impl_->queue.now());
  for (std::unique_ptr<Impl::Channel>& channel : impl_->channels) {
    if (channel) impl_->advance(*channel, now);
  }
}

Ps Hbm::drain() {
  Ps end = 0;
  for (std::unique_ptr<Impl::Channel>& channel : impl_->channels) {
    if (!channel) continue;
    while (!channel->timing.idle()) impl_->advance(*channel, channel->timing.next());
    if (const Tick last = channel->timing.last_data(); last != 0) end = std::max(end, impl_->clock.time(last));
  }
  return end;
}

Hbm::Stats Hbm::channel_stats(unsigned channel) {
  Stats stats;
  if (!impl_->channels.at(channel)) return stats;
  Impl::Channel& target = *impl_->channels[channel];
  impl_->advance(target, impl_->clock.at_or_after(impl_->queue.now()));
  const ChannelTiming::Stats& s = target.timing.stats();
  stats.row_hits = s.row_hits;
  stats.row_closed = s.row_closed;
  stats.row_conflicts = s.row_conflicts;
  stats.reads = s.reads;
  stats.writes = s.writes;
  stats.refreshes = s.refreshes;
  stats.bank_refreshes = s.bank_refreshes;
  stats.forwarded = s.forwarded;
  stats.merged = s.merged;
  stats.active_channels = 1;
  stats.bytes = (s.reads + s.writes) * impl_->config.burst_bytes;
  stats.busy = impl_->clock.span((s.reads + s.writes) * impl_->gaps.burst);
  return stats;
}

Hbm::Stats Hbm::stats() {
  Stats sum;
  std::uint64_t bursts = 0;
  for (unsigned i = 0; i < impl_->channels.size(); ++i) {
    const Stats one = channel_stats(i);
    sum.row_hits += one.row_hits;
    sum.row_closed += one.row_closed;
    sum.row_conflicts += one.row_conflicts;
    sum.reads += one.reads;
    sum.writes += one.writes;
    sum.refreshes += one.refreshes;
    sum.bank_refreshes += one.bank_refreshes;
    sum.forwarded += one.forwarded;
    sum.merged += one.merged;
    sum.active_channels += one.active_channels;
    bursts += one.reads + one.writes;
  }
  sum.bytes = impl_->bytes;
  sum.busy = impl_->clock.span(bursts * impl_->gaps.burst);
  return sum;
}

}  // namespace kernbench
