#include "models/hbm/wide_slice.h"

#include <algorithm>

namespace kernbench {

namespace {

HbmConfig widened(HbmConfig config, unsigned slices) {
  const unsigned together = config.total_pseudo_channels() / slices;
  config.queue_bursts = std::max(1U, config.queue_places_of_pseudo_channel());
  config.row_bytes *= config.bank_groups * together;
  config.burst_bytes *= together;
  config.interleave_bytes = config.burst_bytes;
  config.channels = slices;
  config.pseudo_channels = 1;
  config.bank_groups = 1;
  config.grain = 1;
  return config;
}

/// Of a wide bank: its banks are opened and closed one after the other, by turns with those of the pseudo channels on
/// the same row bus, and read in the same order.
ChannelGaps widened_gaps(const HbmConfig& config) {
  ChannelGaps gaps(config);
  const Tick banks = config.bank_groups, sharers = config.pseudo_channels;
  const Tick between = std::max(gaps.rrd_s, gaps.act * sharers);  // from one ACT to the next
  gaps.ccd_s = std::max(gaps.ccd_s, (gaps.ccd_l + banks - 1) / banks);
  gaps.ccd_l = gaps.ccd_s;
  const Tick late = (banks - 1) * (between - std::min(between, gaps.ccd_s));  // first burst of the last bank
  gaps.act_rd += late;
  gaps.act_wr += late;
  gaps.act_pre += (banks - 1) * between;
  gaps.rrd_s = gaps.rrd_l = std::max(banks * between, banks * gaps.faw / 4);
  gaps.faw = 0;
  gaps.act *= banks * sharers;
  gaps.ppd *= banks;
  gaps.pre *= banks * sharers;
  const Tick before_last = (banks - 1) * gaps.ccd_s;
  gaps.wr_rd_s = gaps.wr_rd_l = std::max(gaps.wr_rd_s, gaps.wr_rd_l - std::min(gaps.wr_rd_l, before_last));
  return gaps;
}

}  // namespace

bool WideSlice::possible(const HbmConfig& config, unsigned pseudo_channels_per_slice) {
  const std::string& mapping = config.mapping;
  const bool walks_groups = mapping.size() == 10 && mapping.compare(6, 4, "CoBg") == 0;
  const bool in_step = pseudo_channels_per_slice % config.pseudo_channels == 0 &&
                       (pseudo_channels_per_slice & (pseudo_channels_per_slice - 1)) == 0;
  return walks_groups && in_step && config.refresh != RefreshPolicy::per_bank && config.queues_cover_units() &&
         config.interleave_bytes % (config.burst_bytes * config.bank_groups) == 0 &&
         config.row_bytes * config.bank_groups % config.interleave_bytes == 0;
}

WideSlice::WideSlice(const HbmConfig& config, unsigned slices)
    : config(widened(config, slices)), gaps(widened_gaps(config)), banks(config.bank_groups) {}

void WideSliceTracks::command(DramCommand command, const BurstPlace& place, Tick at, unsigned bursts) {
  for (ChannelTracks* channel : channels_) {
    for (unsigned i = 0; i < pseudo_channels_; ++i) {
      BurstPlace own = place;
      own.pseudo_channel = i;
      channel->command(command, own, at, bursts);
    }
  }
}

void WideSliceTracks::queued(unsigned bursts, Tick at) {
  for (ChannelTracks* channel : channels_) channel->queued(bursts * pseudo_channels_, at);
}

}  // namespace kernbench
