#pragma once
#include <cstdint>

namespace kernbench {

/// Simulated time, in picoseconds since the start of the run.
using Ps = std::uint64_t;
inline constexpr Ps kNever = ~Ps{0};
inline constexpr Ps kPsPerNs = 1000;
inline constexpr std::uint64_t kPsPerSecond = 1'000'000'000'000;

/// A clock domain. Tick n is at floor(n * 10^12 / hertz) ps: computed from n each time, never accumulated.
class Clock {
 public:
  explicit constexpr Clock(std::uint64_t hertz)
      : hertz_(hertz), period_(kPsPerSecond % hertz == 0 ? kPsPerSecond / hertz : 0) {}
  constexpr std::uint64_t hertz() const { return hertz_; }
  /// Time of tick `n`.
  constexpr Ps at(std::uint64_t n) const {
    if (period_ != 0) return n * period_;
    return static_cast<Ps>(static_cast<unsigned __int128>(n) * kPsPerSecond / hertz_);
  }
  /// First tick at or after `t`: an arrival is seen at the next edge.
  constexpr std::uint64_t tick_at_or_after(Ps t) const {
    if (period_ != 0) return t / period_ + (t % period_ != 0 ? 1 : 0);
    std::uint64_t n = static_cast<std::uint64_t>(static_cast<unsigned __int128>(t) * hertz_ / kPsPerSecond);
    while (at(n) < t) ++n;
    return n;
  }
  /// Time of the first edge at or after `t`.
  constexpr Ps edge(Ps t) const { return at(tick_at_or_after(t)); }
  /// `n` cycles after the edge at or after `t`.
  constexpr Ps after(Ps t, std::uint64_t n) const { return at(tick_at_or_after(t) + n); }

 private:
  std::uint64_t hertz_;
  Ps period_;  // 0: not a whole number of picoseconds
};

/// A bandwidth, as an exact rational: bytes per second.
class Rate {
 public:
  explicit constexpr Rate(std::uint64_t bytes_per_second) : bytes_per_second_(bytes_per_second) {}
  constexpr std::uint64_t bytes_per_second() const { return bytes_per_second_; }
  /// Time that `bytes` occupy the resource, rounded up to the picosecond.
  constexpr Ps time_for(std::uint64_t bytes) const {
    constexpr std::uint64_t kShort = ~std::uint64_t{0} / kPsPerSecond;  // 18 MB: a division of 64 bits will do
    if (bytes <= kShort) return rounded_up(bytes * kPsPerSecond);
    return static_cast<Ps>(rounded_up(static_cast<unsigned __int128>(bytes) * kPsPerSecond));
  }

 private:
  template <class T>
  constexpr T rounded_up(T product) const {
    return product / bytes_per_second_ + (product % bytes_per_second_ != 0 ? 1 : 0);
  }
  std::uint64_t bytes_per_second_;
};

}  // namespace kernbench
