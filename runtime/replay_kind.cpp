#include "runtime/replay_kind.h"

#include <cmath>
#include <iterator>

namespace kernbench {

bool ReplayKind::add(const std::vector<ReplayTimes>& times, Ps waited, std::size_t launches) {
  Ps last = 0;
  for (const ReplayTimes& message : times) last = std::max(last, message.completed);
  if (simulated_ == 0) {
    long_ = static_cast<double>(last) >= static_cast<double>(waited) + long_work_.from * static_cast<double>(launches);
  }
  const bool afresh = ++simulated_ == 2 && !is_long();
  if (afresh) {
    sums_.clear();
    in_mean_ = 0;
    mean_ = squares_ = 0;
  }
  ++in_mean_;
  sums_.resize(times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    sums_[i].start += static_cast<double>(times[i].start);
    sums_[i].end += static_cast<double>(times[i].end);
    sums_[i].completed += static_cast<double>(times[i].completed);
  }
  const auto n = static_cast<double>(in_mean_), took = static_cast<double>(last), before = took - mean_;
  mean_ += before / n;
  squares_ += before * (took - mean_);
  return afresh;
}

double ReplayKind::seen() const { return in_mean_ < 2 ? 0 : squares_ / static_cast<double>(in_mean_ - 1); }

double ReplayKind::variance() const {
  const double free = static_cast<double>(in_mean_) - 1 + kOccurrencesOfRefresh;
  return std::max(seen(), (squares_ + kOccurrencesOfRefresh * refresh_.variance(mean_)) / free);
}

ReplayScatter ReplayKind::scatter() const {
  if (in_mean_ < 2) return {};
  const double free = static_cast<double>(in_mean_) - 1;
  return {squares_ - free * refresh_.variance(mean_), free * mean_ * mean_};
}

double ReplayScatter::share() const { return squares <= 0 || weight <= 0 ? 0 : std::sqrt(squares / weight); }

double last_of(std::uint64_t count) {
  // Of 1, 2, 4, ... normal deviates; between them by the logarithm, within 1.5 %.
  // source: the integral of n x phi(x) Phi(x)^(n-1)
  constexpr double kLast[] = {0,      0.5642, 1.0294, 1.4236, 1.7660, 2.0697, 2.3437,
                              2.5946, 2.8269, 3.0439, 3.2482, 3.4418, 3.6261};
  const double place = std::log2(static_cast<double>(count));
  const auto below = std::min(static_cast<std::size_t>(place), std::size(kLast) - 2);
  return kLast[below] + (kLast[below + 1] - kLast[below]) * (place - static_cast<double>(below));
}

double ReplayKind::error() const {
  if (in_mean_ == 0) return 0;
  return static_cast<double>(of_mean_) * std::sqrt(variance() / static_cast<double>(in_mean_));
}

std::vector<ReplayTimes> ReplayKind::mean() const {
  std::vector<ReplayTimes> times;
  const auto of = [this](double sum) { return static_cast<Ps>(std::llround(sum / static_cast<double>(in_mean_))); };
  for (const Sums& sums : sums_) times.push_back({of(sums.start), of(sums.end), of(sums.completed)});
  return times;
}

namespace {
constexpr double kBeyondKnown = 4.417;  ///< if the deviation is known
/// What one occurrence in 100,000 lies beyond, in deviations that were estimated from `count` others: of few, little is
/// known of the deviation. A run checks hundreds, and a kind that is refused by chance may cost more than all the
/// others. source: Student's t, two-sided, 99.999 %; above ten degrees of freedom within 2 % of it
double beyond(std::uint64_t count) {
  constexpr double kOfFew[] = {63662, 316.2, 60.40, 27.77, 17.90, 13.56, 11.22, 9.783, 8.827, 8.150};
  if (count < 2) return kOfFew[0];
  const std::uint64_t freedom = count - 1;
  if (freedom <= std::size(kOfFew)) return kOfFew[freedom - 1];
  const auto d = static_cast<double>(freedom);
  return kBeyondKnown + (24 + 120 / d) / d;
}
}  // namespace

void ReplayKind::check(double took) {
  ++samples_;
  ++family_->samples;
  sampled_ += took;
  expected_ += mean_;
  const auto n = static_cast<double>(in_mean_), checks = static_cast<double>(samples_);
  const double spread =
      std::max(beyond(in_mean_) * std::sqrt(seen()), kBeyondKnown * std::sqrt(refresh_.variance(mean_)));
  // One of them may meet a refresh more, or less, than lengths say: several memories that work in turn have several.
  const double one = spread * std::sqrt(1 + 1 / n) + refresh_.takes,
               all = spread * std::sqrt(1 / checks + 1 / n) + refresh_.takes / checks;
  const double tolerance = kTolerance * mean_;
  if (std::abs(took - mean_) > std::max(one, tolerance) ||
      std::abs(sampled_ - expected_) / checks > std::max(all, tolerance)) {
    refused_ = true;
  }
}

double ReplayKind::difference() const { return samples_ == 0 ? 0 : std::abs(sampled_ - expected_) / expected_; }

}  // namespace kernbench
