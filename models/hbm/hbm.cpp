#include "models/hbm/hbm.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "models/hbm/address_map.h"
#include "models/hbm/channel_timing.h"
#include "models/memory/memory_port.h"
#include "tlm/ext/packet.h"
#include "tlm/machine/address.h"
#include "tlm/machine/names.h"

namespace kernbench {

namespace {

constexpr std::uint32_t kNoAccess = ~std::uint32_t{0};

/// A channel's ticks in time. The channel counts from 1, so that rising edges of CK (odd half ticks) start at time 0.
class ChannelClock {
 public:
  ChannelClock(const HbmConfig& config) : clock_(config.ck_hz * (config.half_clock_commands ? 2 : 1)) {}
  Tick at_or_after(Ps time) const { return clock_.tick_at_or_after(time) + 1; }
  Ps time(Tick tick) const { return clock_.at(tick - 1); }
  Ps span(Tick ticks) const { return clock_.at(ticks); }

 private:
  Clock clock_;
};

/// Publishes a channel's commands on the tracks of its pseudo channels.
class ChannelTracks final : public CommandListener {
 public:
  ChannelTracks(Observer& observer, CubeCoord cube, unsigned channel, const HbmConfig& config)
      : observer_(observer), clock_(config), gaps_(config) {
    for (unsigned pc = 0; pc < config.pseudo_channels; ++pc) {
      const std::string name = names::pseudo_channel(cube, static_cast<int>(channel), static_cast<int>(pc));
      buses_.push_back(observer.add_track(name + ".bus", TrackKind::state, {"idle", "read", "write"}));
      rows_.push_back(
          observer.add_track(name + ".row", TrackKind::state, {"idle", "activate", "precharge", "refresh"}));
    }
    queue_ = observer.add_track(names::parent(names::pseudo_channel(cube, static_cast<int>(channel), 0)) + ".queue",
                                TrackKind::level);
  }

  void command(DramCommand command, const BurstPlace& place, Tick at, unsigned bursts) override {
    switch (command) {
      case DramCommand::read:
        for (unsigned i = 0; i < bursts; ++i) data(place, at + i * gaps_.ccd_l + gaps_.read_data, 1);
        return;
      case DramCommand::write:
        for (unsigned i = 0; i < bursts; ++i) data(place, at + i * gaps_.ccd_l + gaps_.write_data, 2);
        return;
      case DramCommand::activate:
        return row(place, at, gaps_.act, 1);
      case DramCommand::precharge:
      case DramCommand::precharge_all:
        return row(place, at, gaps_.pre, 2);
      case DramCommand::refresh_all:
        return row(place, at, gaps_.refab_ref, 3);
      case DramCommand::refresh_bank:
        return row(place, at, gaps_.pre, 3);
    }
  }
  void queued(unsigned bursts, Tick at) override {
    if (queue_ != kNoTrack) observer_.change(queue_, clock_.time(at), bursts);
  }

 private:
  void data(const BurstPlace& place, Tick end, std::uint64_t label) {
    const TrackId track = buses_[place.pseudo_channel];
    if (track != kNoTrack) observer_.interval(track, clock_.time(end - gaps_.burst), clock_.time(end), label);
  }
  void row(const BurstPlace& place, Tick at, Tick length, std::uint64_t label) {
    const TrackId track = rows_[place.pseudo_channel];
    if (track != kNoTrack) observer_.interval(track, clock_.time(at), clock_.time(at + length), label);
  }

  Observer& observer_;
  const ChannelClock clock_;
  const ChannelGaps gaps_;
  std::vector<TrackId> buses_, rows_;
  TrackId queue_ = kNoTrack;
};

}  // namespace

struct Hbm::Impl final : MemoryBackend {
  /// One request from BEGIN_REQ to its last burst.
  struct Access {
    tlm::tlm_generic_payload* payload = nullptr;
    unsigned port = 0;
    std::uint64_t offset = 0;     ///< of the next byte to queue
    std::uint64_t end = 0;        ///< in the slice
    std::uint32_t undecided = 0;  ///< bursts queued, column command unknown
    std::uint32_t bursts = 0;     ///< queued so far
    bool opened = false, closed_other = false;
    Ps arrived = 0;  ///< BEGIN_REQ
    Tick last = 0;   ///< end of data
  };
  struct Channel {
    Channel(const HbmConfig& config, unsigned queue) : timing(config, queue) {}
    ChannelTiming timing;
    std::uint32_t open_reads = 0;   ///< bursts queued and undecided
    std::vector<unsigned> blocked;  ///< ports whose request waits for room, in order
    unsigned missing = 0;           ///< bursts that the first of them lacked when it was offered last
    Ps wake = kNever;
  };

  Impl(const std::string& name, const HbmConfig& config, CubeCoord cube, std::uint32_t slices,
       const RunOptions& options, EventQueue& queue, Observer* observer);

  bool take(unsigned port, tlm::tlm_generic_payload& payload) override;
  Ps serve(unsigned port, tlm::tlm_generic_payload& payload, Ps start) override;
  unsigned debug(unsigned port, tlm::tlm_generic_payload& payload) override;

  tlm::tlm_response_status locate(unsigned port, const tlm::tlm_generic_payload& payload, std::uint64_t& offset) const;
  void apply(unsigned port, tlm::tlm_generic_payload& payload, std::uint64_t offset);
  unsigned channel_of(unsigned port, std::uint64_t offset, std::uint32_t& pseudo_channel) const;
  Channel& channel(unsigned index);
  bool enqueue(Access& access, std::uint32_t id, Tick now);
  void decide(Channel& channel);
  void finish(std::uint32_t id);
  void wake(unsigned index);
  void arm(unsigned index);
  void advance(Channel& channel) {
    channel.timing.advance(clock.at_or_after(queue.now()));
    decide(channel);
  }
  std::uint32_t new_access();

  const std::string name;
  const HbmConfig config;
  const CubeCoord cube;
  const std::uint32_t slices, pseudo_channels_per_slice;
  const std::uint64_t slice_bytes;
  const HbmAddressMap map;
  const ChannelClock clock;
  const ChannelGaps gaps;
  const RunOptions options;
  EventQueue& queue;
  unsigned queue_bursts;
  std::vector<std::unique_ptr<ChannelTracks>> tracks;   // by channel; empty: nobody listens
  std::vector<std::unique_ptr<Channel>> channels;       // made on first use
  std::vector<std::unique_ptr<SparseMemory>> contents;  // by slice; made on first use
  std::vector<std::unique_ptr<MemoryPort>> ports;
  std::vector<std::uint32_t> waiting;  // by port: the access that is not queued whole
  std::vector<Access> accesses;
  std::vector<std::uint32_t> free_accesses;
  std::uint64_t bytes = 0;
  unsigned unwritten_reports = 0;
};

Hbm::Impl::Impl(const std::string& name, const HbmConfig& config, CubeCoord cube, std::uint32_t slices,
                const RunOptions& options, EventQueue& queue, Observer* observer)
    : name(name),
      config(config),
      cube(cube),
      slices(slices),
      pseudo_channels_per_slice(slices == 0 ? 0 : config.total_pseudo_channels() / slices),
      slice_bytes(slices == 0 ? 0 : config.bytes / slices),
      map(config, std::max(1u, pseudo_channels_per_slice)),
      clock(config),
      gaps(config),
      options(options),
      queue(queue),
      queue_bursts(config.queue_depth * config.pseudo_channels) {
  if (pseudo_channels_per_slice == 0 || config.total_pseudo_channels() % slices != 0) {
    throw std::invalid_argument("hbm: " + std::to_string(config.total_pseudo_channels()) +
                                " pseudo channels cannot be dealt evenly to " + std::to_string(slices) + " slices");
  }
  if (queue_bursts == 0) throw std::invalid_argument("hbm: queue_depth is 0");
  ChannelTiming(config, 1);  // throws on what it cannot model
  channels.resize(config.channels);
  contents.resize(slices);
  waiting.resize(slices, kNoAccess);
  for (unsigned i = 0; observer != nullptr && i < config.channels; ++i) {
    tracks.push_back(std::make_unique<ChannelTracks>(*observer, cube, i, config));
  }
}

Hbm::Impl::Channel& Hbm::Impl::channel(unsigned index) {
  std::unique_ptr<Channel>& slot = channels[index];
  if (!slot) {
    slot = std::make_unique<Channel>(config, queue_bursts);
    if (!tracks.empty()) slot->timing.set_listener(tracks[index].get());
  }
  return *slot;
}

unsigned Hbm::Impl::channel_of(unsigned port, std::uint64_t offset, std::uint32_t& pseudo_channel) const {
  const unsigned unit = port * pseudo_channels_per_slice + map.pseudo_channel(offset);
  pseudo_channel = unit % config.pseudo_channels;
  return unit / config.pseudo_channels;
}

tlm::tlm_response_status Hbm::Impl::locate(unsigned port, const tlm::tlm_generic_payload& payload,
                                           std::uint64_t& offset) const {
  constexpr std::uint64_t kForeign = ~std::uint64_t{0};
  offset = kForeign;
  const std::uint64_t base = PhysicalAddress::hbm({cube.sip, cube.cube, static_cast<std::uint16_t>(port)}, 0).encode();
  if (payload.get_address() >= base && payload.get_address() - base <= PhysicalAddress::kMaxOffset)
    offset = payload.get_address() - base;
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
  accesses[id] = Access();
  return id;
}

/// Queues what has room, an interleave unit at a time. Returns whether the whole access is queued; if not, its port
/// waits at the channel that is full.
bool Hbm::Impl::enqueue(Access& access, std::uint32_t id, Tick now) {
  const bool write = access.payload->is_write();
  while (access.offset < access.end) {
    std::uint32_t pseudo_channel = 0;
    const unsigned index = channel_of(access.port, access.offset, pseudo_channel);
    Channel& target = channel(index);
    target.timing.advance(now);
    decide(target);
    const std::uint64_t unit_end = std::min((access.offset / map.interleave() + 1) * map.interleave(), access.end);
    const std::uint64_t first = access.offset / config.burst_bytes;
    auto count = static_cast<unsigned>((unit_end + config.burst_bytes - 1) / config.burst_bytes - first);
    count = std::min(count, queue_bursts);
    const bool turn = target.blocked.empty() || target.blocked.front() == access.port;
    if (!turn || target.timing.room(write) < count) {
      if (std::find(target.blocked.begin(), target.blocked.end(), access.port) == target.blocked.end())
        target.blocked.push_back(access.port);
      if (target.blocked.front() == access.port) target.missing = count - target.timing.room(write);
      arm(index);
      return false;
    }
    if (!target.blocked.empty()) target.blocked.erase(target.blocked.begin());
    for (unsigned i = 0; i < count; ++i) {
      BurstPlace place = map.place((first + i) * config.burst_bytes);
      place.pseudo_channel = pseudo_channel;
      target.timing.accept(now, place, write, write ? kNoAccess : id);
    }
    access.bursts += count;
    if (!write) {
      access.undecided += count;
      target.open_reads += count;
    }
    access.offset = std::min((first + count) * config.burst_bytes, unit_end);
    arm(index);
  }
  return true;
}

/// Books the column commands that a channel has decided.
void Hbm::Impl::decide(Channel& target) {
  std::vector<ChannelTiming::Decided>& decided = target.timing.decided();
  if (decided.empty()) return;
  for (const ChannelTiming::Decided& burst : decided) {
    if (burst.write) continue;
    target.open_reads -= burst.count;
    Access& access = accesses[burst.tag];
    access.last = std::max(access.last, burst.end);
    access.opened = access.opened || burst.opened;
    access.closed_other = access.closed_other || burst.closed_other;
    if ((access.undecided -= burst.count) == 0 && access.offset == access.end && access.payload != nullptr)
      finish(burst.tag);
  }
  decided.clear();
}

/// Answers a read whose last burst is decided: its time is split into the memory's own and waiting for others.
void Hbm::Impl::finish(std::uint32_t id) {
  const Access access = accesses[id];
  free_accesses.push_back(id);
  const Ps end = clock.time(access.last) + config.controller_latency;
  if (Packet* packet = Packet::find(*access.payload)) {
    Tick own = gaps.m + gaps.read_data + (access.bursts - 1) * gaps.ccd_s;
    if (access.opened) own += gaps.act_rd;
    if (access.closed_other) own += gaps.pre_act;
    const Ps total = end - access.arrived;
    const Ps service = std::min(total, clock.span(own) + config.controller_latency);
    packet->charge(Delay::memory, service);
    packet->charge(Delay::contention, total - service);
  }
  ports[access.port]->respond(*access.payload, end);
}

bool Hbm::Impl::take(unsigned port, tlm::tlm_generic_payload& payload) {
  std::uint32_t id = waiting[port];
  if (id == kNoAccess) {
    std::uint64_t offset = 0;
    const tlm::tlm_response_status status = locate(port, payload, offset);
    if (status != tlm::TLM_OK_RESPONSE) {
      payload.set_response_status(status);
      ports[port]->respond(payload, queue.now() + config.controller_latency);
      return true;
    }
    id = new_access();
    Access& access = accesses[id];
    access.payload = &payload;
    access.port = port;
    access.arrived = ports[port]->arrival();
    access.offset = offset;
    access.end = offset + payload.get_data_length();
  }
  const Tick now = clock.at_or_after(queue.now());
  if (!enqueue(accesses[id], id, now)) {
    waiting[port] = id;
    return false;
  }
  waiting[port] = kNoAccess;
  std::uint64_t offset = 0;
  locate(port, payload, offset);
  apply(port, payload, offset);
  if (payload.is_write()) {
    // Posted: visible and acknowledged once queued.
    if (Packet* packet = Packet::find(payload)) {
      packet->charge(Delay::memory, config.controller_latency);
      packet->charge(Delay::contention, queue.now() - accesses[id].arrived);
    }
    free_accesses.push_back(id);
    ports[port]->respond(payload, queue.now() + config.controller_latency);
  }
  return true;
}

/// An event for the channel where one is needed: when a read's data may have arrived, or a queue may have room.
void Hbm::Impl::arm(unsigned index) {
  Channel& target = channel(index);
  if (target.open_reads == 0 && target.blocked.empty()) return;
  const Tick next = target.timing.next();
  Tick at = kNoTick;
  // No read can be answered before the next command and its data: decisions until then need not be known yet.
  if (target.open_reads != 0) at = next + target.timing.gaps().read_data;
  if (!target.blocked.empty()) {
    // A CK frees at most two places: one by a column command, one by an ACT.
    const unsigned missing = target.missing;
    at = std::min(at, next + gaps.m * (missing > 2 ? (missing + 1) / 2 - 1 : 0));
  }
  const Ps time = std::max(clock.time(at), queue.now());
  if (time >= target.wake) return;
  target.wake = time;
  queue.at(time, [this, index, time] {
    if (channels[index]->wake == time) wake(index);  // else an earlier event has replaced this one
  });
}

void Hbm::Impl::wake(unsigned index) {
  Channel& target = *channels[index];
  target.wake = kNever;
  advance(target);
  while (!target.blocked.empty()) {
    const unsigned port = target.blocked.front();
    ports[port]->retry();
    if (!target.blocked.empty() && target.blocked.front() == port) break;  // still no room
  }
  arm(index);
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
  // The commands are issued at once, whatever may arrive for earlier times.
  Tick now = clock.at_or_after(start);
  for (std::uint64_t at = offset / config.burst_bytes * config.burst_bytes; at < end; at += config.burst_bytes) {
    BurstPlace place = map.place(at);
    Channel& target = channel(channel_of(port, at, place.pseudo_channel));
    if (target.timing.decided_until() > now + 1) now = target.timing.decided_until() - 1;
    target.timing.advance(now);
    while (target.timing.room(write) == 0) target.timing.advance(now = target.timing.next());
    decide(target);
    target.timing.accept(now, place, write, write ? kNoAccess : id);
    if (write) continue;
    ++accesses[id].undecided;
    ++target.open_reads;
  }
  for (std::uint64_t at = offset; at < end; at = (at / map.interleave() + 1) * map.interleave()) {
    std::uint32_t pseudo_channel = 0;
    Channel& target = channel(channel_of(port, at, pseudo_channel));
    while (target.open_reads != 0 && accesses[id].undecided != 0) {
      target.timing.advance(target.timing.next());
      decide(target);
    }
  }
  const Tick last = accesses[id].last;
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
  for (std::unique_ptr<Impl::Channel>& channel : impl_->channels) {
    if (channel) impl_->advance(*channel);
  }
}

Hbm::Stats Hbm::stats() {
  flush();
  Stats stats;
  stats.bytes = impl_->bytes;
  Tick busy = 0;
  for (const std::unique_ptr<Impl::Channel>& channel : impl_->channels) {
    if (!channel) continue;
    const ChannelTiming::Stats& s = channel->timing.stats();
    stats.row_hits += s.row_hits;
    stats.row_closed += s.row_closed;
    stats.row_conflicts += s.row_conflicts;
    stats.reads += s.reads;
    stats.writes += s.writes;
    busy += (s.reads + s.writes) * channel->timing.gaps().burst;
  }
  stats.busy = impl_->clock.span(busy);
  return stats;
}

}  // namespace kernbench
