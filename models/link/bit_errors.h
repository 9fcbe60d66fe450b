#pragma once
#include <cmath>
#include <cstdint>

#include "tlm/sim/random.h"

namespace kernbench {

/// Which flits of a wire arrive with a wrong CRC: independent bit errors of a given rate, drawn ahead as the number of
/// good flits until the next bad one, so that a good flit costs a subtraction. The same seed gives the same flits.
/// Errors that the CRC does not see are not modelled.
class BitErrors {
 public:
  static constexpr std::uint64_t kPerBits = 1'000'000'000'000'000'000;  ///< of LinkConfig::bit_errors
  /// A flit is sent at most 1 + kMaxReplays times. Source: PCIe's REPLAY_NUM, after which the link retrains (not
  /// modelled: the last copy arrives).
  static constexpr unsigned kMaxReplays = 3;

  BitErrors(std::uint64_t errors_per_1e18_bits, std::uint32_t flit_bytes, std::uint64_t seed)
      : log_good_(8.0 * flit_bytes * std::log1p(-static_cast<double>(errors_per_1e18_bits) / 1e18)), state_(seed) {
    draw();
  }

  /// Probability that a flit is bad.
  double flit_error_rate() const { return -std::expm1(log_good_); }
  /// Takes up to `flits` copies of flits that arrive well; fewer: a bad one is next.
  std::uint64_t take_good(std::uint64_t flits) {
    const std::uint64_t good = flits < until_bad_ ? flits : until_bad_;
    until_bad_ -= good;
    return good;
  }
  /// The bad copy that take_good() stopped at.
  void take_bad() { draw(); }

 private:
  void draw() {
    constexpr std::uint64_t kNone = ~std::uint64_t{0};
    if (log_good_ == 0) {
      until_bad_ = kNone;
      return;
    }
    const double uniform = (static_cast<double>(next_splitmix64(state_) >> 11) + 1) * 0x1p-53;  // (0, 1]
    const double gap = std::floor(std::log(uniform) / log_good_);
    until_bad_ = gap < 1e18 ? static_cast<std::uint64_t>(gap) : kNone;
  }

  double log_good_;  // ln of the probability that a flit is good
  std::uint64_t state_;
  std::uint64_t until_bad_ = 0;
};

}  // namespace kernbench
