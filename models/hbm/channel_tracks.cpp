#include "models/hbm/channel_tracks.h"

#include <string>

#include "tlm/machine/names.h"

namespace kernbench {

ChannelTracks::ChannelTracks(Observer& observer, CubeCoord cube, unsigned channel, const HbmConfig& config,
                             const ChannelGaps& gaps)
    : observer_(observer), clock_(config), gaps_(gaps) {
  for (unsigned pc = 0; pc < config.pseudo_channels; ++pc) {
    const std::string name = names::pseudo_channel(cube, static_cast<int>(channel), static_cast<int>(pc));
    buses_.push_back(observer.add_track(name + ".bus", TrackKind::state, {"idle", "read", "write"}));
    rows_.push_back(observer.add_track(name + ".row", TrackKind::state, {"idle", "activate", "precharge", "refresh"}));
  }
  queue_ = observer.add_track(names::parent(names::pseudo_channel(cube, static_cast<int>(channel), 0)) + ".queue",
                              TrackKind::level);
}

void ChannelTracks::command(DramCommand command, const BurstPlace& place, Tick at, unsigned bursts) {
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

void ChannelTracks::queued(unsigned bursts, Tick at) {
  if (queue_ != kNoTrack) observer_.change(queue_, clock_.time(at), bursts);
}

void ChannelTracks::data(const BurstPlace& place, Tick end, std::uint64_t label) {
  const TrackId track = buses_[place.pseudo_channel];
  if (track != kNoTrack) observer_.interval(track, clock_.time(end - gaps_.burst), clock_.time(end), label);
}

void ChannelTracks::row(const BurstPlace& place, Tick at, Tick length, std::uint64_t label) {
  const TrackId track = rows_[place.pseudo_channel];
  if (track != kNoTrack) observer_.interval(track, clock_.time(at), clock_.time(at + length), label);
}

}  // namespace kernbench
