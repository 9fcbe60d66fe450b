#include "models/hbm/hbm.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "models/hbm/hbm_impl.h"
#include "tlm/ext/train.h"
#include "tlm/machine/address.h"

namespace kernbench {

namespace {

/// The fast grade: a decision takes up to four bursts of a row (docs/hbm.md, The fast grade).
constexpr std::uint32_t kFastGrain = 4;

/// Runs of bursts hold where no command of theirs waits for others' and no row closes within them.
HbmConfig graded(HbmConfig config, const RunOptions& options) {
  if (options.fidelity.hbm != Grade::fast) return config;
  config.forward_writes = false;  // runs have no single address
  if (config.page_policy == PagePolicy::open && config.commands_never_bind())
    config.grain = std::max(config.grain, kFastGrain);
  return config;
}

std::optional<WideSlice> wide_slice(const HbmConfig& config, unsigned slices, std::uint32_t longest) {
  if (longest <= kMaxTrainBytes || config.grain == 1 || slices == 0 || config.total_pseudo_channels() % slices != 0 ||
      !WideSlice::possible(config, config.total_pseudo_channels() / slices))
    return std::nullopt;
  return WideSlice(config, slices);
}

}  // namespace

Hbm::Impl::Impl(const std::string& name, const HbmConfig& configured, CubeCoord cube, std::uint32_t slices,
                const RunOptions& options, EventQueue& queue, Observer* observer)
    : name(name),
      config(graded(configured, options)),
      cube(cube),
      slices(slices),
      pseudo_channels_per_slice(slices == 0 ? 0 : config.total_pseudo_channels() / slices),
      slice_bytes(slices == 0 ? 0 : config.bytes / slices),
      wide(wide_slice(config, slices, options.longest)),
      in_step(wide ? pseudo_channels_per_slice : 1),
      burst_bytes(wide ? wide->config.burst_bytes : config.burst_bytes),
      burst_shift(burst_bytes == 0 ? 0 : static_cast<unsigned>(__builtin_ctzll(burst_bytes))),
      map(wide ? wide->config : config, wide ? 1 : std::max(1u, pseudo_channels_per_slice)),
      clock(config),
      gaps(config),
      burst_time(clock.exact_span(gaps.burst)),
      read_time(clock.span(gaps.read_data) + config.controller_latency),
      ahead(options.longest <= kMaxPacketBytes
                ? 0
                : config.pseudo_channel_peak().time_for(longest_access(options.longest) /
                                                        std::max(1u, pseudo_channels_per_slice))),
      options(options),
      queue(queue),
      queue_bursts((wide ? wide->config : config).queue_places()) {
  if (pseudo_channels_per_slice == 0 || config.total_pseudo_channels() % slices != 0) {
    throw std::invalid_argument("hbm: " + std::to_string(config.total_pseudo_channels()) +
                                " pseudo channels cannot be dealt evenly to " + std::to_string(slices) + " slices");
  }
  if (queue_bursts == 0) throw std::invalid_argument("hbm: queue_depth is 0");
  [[maybe_unused]] const auto checked = ChannelTiming::make(config, 1);  // throws on what it cannot model
  channels.resize(wide ? slices : config.channels);
  contents.resize(slices);
  waiting.resize(slices, kNoAccess);
  for (std::uint32_t i = 0; i < slices; ++i)
    bases.push_back(PhysicalAddress::hbm({cube.sip, cube.cube, static_cast<std::uint16_t>(i)}, 0).encode());
  for (std::uint32_t i = 0; i < config.total_pseudo_channels(); ++i)
    channel_places.push_back({i / config.pseudo_channels, i % config.pseudo_channels});
  for (unsigned i = 0; observer != nullptr && i < config.channels; ++i)
    tracks.push_back(std::make_unique<ChannelTracks>(*observer, cube, i, config, wide ? wide->gaps : gaps));
  for (unsigned i = 0; wide && observer != nullptr && i < slices; ++i) {
    std::vector<ChannelTracks*> own;
    for (unsigned k = 0; k < config.channels / slices; ++k)
      own.push_back(tracks[i * (config.channels / slices) + k].get());
    wide_tracks.push_back(std::make_unique<WideSliceTracks>(own, config.pseudo_channels));
  }
}

Ps Hbm::Impl::serve(unsigned port, tlm::tlm_generic_payload& payload, Ps start) {
  const std::optional<std::uint64_t> located = locate(port, payload);
  if (!located) return start + config.controller_latency;
  const std::uint64_t offset = *located;
  apply(port, payload, offset);
  const bool write = payload.is_write();
  const std::uint64_t end = offset + payload.get_data_length();
  const std::uint32_t id = new_access();
  accesses[id] = Access();
  accesses[id].port = port;
  if (wide) {
    accesses[id].offset = offset;
    accesses[id].end = end;
    measure(accesses[id]);
  }
  // The commands are issued at once, whatever may arrive for earlier times.
  Tick now = clock.at_or_after(start);
  Channel* only = nullptr;  // that serves all of it
  for (std::uint64_t at = offset; at < end;) {
    const Piece piece = piece_at(port, at, end);
    Channel& target = channel(piece.channel);
    if (at == offset && piece.end == end) only = &target;
    const unsigned needed = std::min(piece.count, queue_bursts);
    if (target.timing->decided_until() > now + 1) now = target.timing->decided_until() - 1;
    target.timing->advance(now);
    while (target.timing->room(write) < needed) target.timing->advance(now = std::max(now, target.timing->next()));
    book_decided(target);
    accept_part(id, target, piece, write, now, false);
    at = piece.end;
  }
  for (std::uint64_t at = offset; !write && at < end && accesses[id].undecided != 0;) {
    const Piece piece = only != nullptr ? Piece{0, 0, 0, end, {}} : piece_at(port, at, end);
    Channel& target = only != nullptr ? *only : channel(piece.channel);
    while (target.open_reads != 0 && accesses[id].undecided != 0) advance(target, target.timing->next());
    at = piece.end;
  }
  const Tick last = accesses[id].last;
  free_accesses.push_back(id);
  return std::max(start, write ? start : clock.time(last)) + config.controller_latency;
}

unsigned Hbm::Impl::debug(unsigned port, tlm::tlm_generic_payload& payload) {
  const std::optional<std::uint64_t> offset = locate(port, payload);
  if (!offset || !options.data) return 0;
  if (!contents[port]) contents[port] = std::make_unique<SparseMemory>(options.debug);
  memory_access::apply(payload, *offset, *contents[port]);
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

unsigned Hbm::usages() const { return static_cast<unsigned>(impl_->channels.size()); }
bool Hbm::by_slice() const { return impl_->wide.has_value(); }
unsigned Hbm::pseudo_channels_of_usage() const {
  return impl_->wide ? impl_->pseudo_channels_per_slice : impl_->config.pseudo_channels;
}
void Hbm::observe_usage(unsigned unit, Usage* usage) {
  impl_->usages.resize(usages(), nullptr);
  impl_->usages[unit] = usage;
}

Ps Hbm::drain() {
  Ps end = 0;
  for (std::unique_ptr<Impl::Channel>& channel : impl_->channels) {
    if (!channel) continue;
    while (!channel->timing->idle()) impl_->advance(*channel, channel->timing->next());
    if (const Tick last = channel->timing->last_data(); last != 0) end = std::max(end, impl_->clock.time(last));
  }
  return end;
}

const ChannelTiming::Stats& Hbm::Impl::stats_of(unsigned index) {
  const Tick now = clock.at_or_after(queue.now());
  if (channels[index]) {
    advance(*channels[index], now);
    return channels[index]->timing->stats();
  }
  // Nobody has used it; it is refreshed all the same.
  if (!unused) unused = make_timing();
  unused->advance(now);
  return unused->stats();
}

Hbm::Stats Hbm::channel_stats(unsigned channel) {
  Stats stats;
  // A wide slice counts for all its pseudo channels.
  const std::uint64_t each = impl_->wide ? impl_->config.pseudo_channels : 1;
  const unsigned index = impl_->wide ? channel / (impl_->config.channels / impl_->slices) : channel;
  const ChannelTiming::Stats& s = impl_->stats_of(index);
  stats.row_hits = s.row_hits * each;
  stats.row_closed = s.row_closed * each;
  stats.row_conflicts = s.row_conflicts * each;
  stats.activates = s.activates * each;
  stats.reads = s.reads * each;
  stats.writes = s.writes * each;
  stats.refreshes = s.refreshes * each;
  stats.bank_refreshes = s.bank_refreshes * each * (impl_->wide ? impl_->wide->banks : 1);
  stats.forwarded = s.forwarded;
  stats.merged = s.merged;
  stats.active_channels = impl_->channels[index] ? 1 : 0;
  stats.bytes = (stats.reads + stats.writes) * impl_->config.burst_bytes;
  stats.busy = impl_->clock.span((stats.reads + stats.writes) * impl_->gaps.burst);
  return stats;
}

Hbm::Stats Hbm::stats() {
  Stats sum;
  std::uint64_t bursts = 0;
  for (unsigned i = 0; i < impl_->config.channels; ++i) {
    const Stats one = channel_stats(i);
    sum.row_hits += one.row_hits;
    sum.row_closed += one.row_closed;
    sum.row_conflicts += one.row_conflicts;
    sum.activates += one.activates;
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
