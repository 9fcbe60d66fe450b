#pragma once
#include <vector>

#include "models/hbm/channel_tracks.h"

namespace kernbench {

/// A slice of HBM whose pseudo channels go in step, as one pseudo channel: for long accesses of the fast grade.
///
/// Where a mapping ends with CoBg, consecutive bursts of a pseudo channel walk its bank groups, and an interleave unit
/// later the next pseudo channel has its turn: an access of a stripe and more takes of all of them the same, at the
/// same time. So a wide burst is one burst of each pseudo channel, and a wide bank the banks of one number of all bank
/// groups and pseudo channels, opened one after the other: its row is as long as all theirs.
///
/// Not modelled: accesses shorter than a stripe take a share of every pseudo channel, and open the rows of all.
struct WideSlice {
  /// Whether the pseudo channels of a slice, so many, can go in step.
  static bool possible(const HbmConfig& config, unsigned pseudo_channels_per_slice);
  /// REQUIRES: possible().
  WideSlice(const HbmConfig& config, unsigned slices);

  HbmConfig config;  ///< one pseudo channel per slice
  ChannelGaps gaps;
  unsigned banks;  ///< bank groups that a wide bank is made of
};

/// Publishes the commands of a wide slice on the tracks of all its pseudo channels.
class WideSliceTracks final : public CommandListener {
 public:
  WideSliceTracks(const std::vector<ChannelTracks*>& channels, unsigned pseudo_channels)
      : channels_(channels), pseudo_channels_(pseudo_channels) {}
  void command(DramCommand command, const BurstPlace& place, Tick at, unsigned bursts) override;
  void queued(unsigned bursts, Tick at) override;

 private:
  const std::vector<ChannelTracks*> channels_;
  const unsigned pseudo_channels_;  // of a channel
};

}  // namespace kernbench
