#pragma once
#include <numeric>
#include <vector>

#include "models/hbm/channel_gaps.h"
#include "tlm/base/time.h"
#include "tlm/machine/ids.h"
#include "tlm/observe/observer.h"

namespace kernbench {

/// A channel's ticks in time. The channel counts from 1, so that rising edges of CK (odd half ticks) start at time 0.
class ChannelClock {
 public:
  explicit ChannelClock(const HbmConfig& config) : clock_(config.ck_hz * (config.half_clock_commands ? 2 : 1)) {
    const std::uint64_t common = std::gcd(kPsPerSecond, clock_.hertz()), below = clock_.hertz() / common;
    if ((below & (below - 1)) != 0) return;
    ps_ = kPsPerSecond / common;
    reciprocal_ = static_cast<std::uint64_t>((static_cast<unsigned __int128>(1) << 64) / ps_);
    while (std::uint64_t{1} << halvings_ < below) ++halvings_;
    most_ = ~std::uint64_t{0} / ps_;
  }
  Tick at_or_after(Ps time) const {
    const std::uint64_t halves = time << halvings_;
    if (reciprocal_ == 0 || halves >> halvings_ != time) return clock_.tick_at_or_after(time) + 1;
    auto tick = static_cast<Tick>(static_cast<unsigned __int128>(halves) * reciprocal_ >> 64);
    while (tick * ps_ < halves) ++tick;  // the product is at most one short of the quotient
    return tick + 1;
  }
  Ps time(Tick tick) const { return span(tick - 1); }
  Ps span(Tick ticks) const { return ticks <= most_ ? ticks * ps_ >> halvings_ : clock_.at(ticks); }
  /// The same, if it is a whole number of picoseconds, so that it may be multiplied; else 0.
  Ps exact_span(Tick ticks) const { return ticks * kPsPerSecond % clock_.hertz() == 0 ? span(ticks) : 0; }

 private:
  Clock clock_;
  // A tick is ps_ / 2^halvings_ picoseconds of most clocks, which needs no division: of so many ticks.
  std::uint64_t ps_ = 0, most_ = 0, reciprocal_ = 0;  // 2^64 / ps_
  unsigned halvings_ = 0;
};

/// Publishes a channel's commands on the tracks of its pseudo channels.
class ChannelTracks final : public CommandListener {
 public:
  ChannelTracks(Observer& observer, CubeCoord cube, unsigned channel, const HbmConfig& config, const ChannelGaps& gaps);
  void command(DramCommand command, const BurstPlace& place, Tick at, unsigned bursts) override;
  void queued(unsigned bursts, Tick at) override;

 private:
  void data(const BurstPlace& place, Tick end, std::uint64_t label);
  void row(const BurstPlace& place, Tick at, Tick length, std::uint64_t label);

  Observer& observer_;
  const ChannelClock clock_;
  const ChannelGaps gaps_;
  std::vector<TrackId> buses_, rows_;
  TrackId queue_ = kNoTrack;
};

}  // namespace kernbench
