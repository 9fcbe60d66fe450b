#include "runtime/replay_kind.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace kernbench {

void ReplayKind::add(const std::vector<ReplayTimes>& times, const std::vector<double>& counts) {
  Ps last = 0;
  for (const ReplayTimes& message : times) last = std::max(last, message.completed);
  if (simulated_ == 0) long_ = static_cast<double>(last) >= kLong;
  if (++simulated_ == 2 && !is_long()) {
    sums_.clear();
    counts_.clear();
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
  counts_.resize(std::max(counts_.size(), counts.size()));
  for (std::size_t i = 0; i < counts.size(); ++i) counts_[i] += counts[i];
  const auto n = static_cast<double>(in_mean_), took = static_cast<double>(last), before = took - mean_;
  mean_ += before / n;
  squares_ += before * (took - mean_);
}

double ReplayKind::seen() const { return in_mean_ < 2 ? 0 : squares_ / static_cast<double>(in_mean_ - 1); }

double ReplayKind::variance() const {
  const double free = static_cast<double>(in_mean_) - 1 + kOccurrencesOfRefresh;
  return std::max(seen(), (squares_ + kOccurrencesOfRefresh * refresh_.variance(mean_)) / free);
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
/// What one occurrence in a thousand lies beyond, in deviations that were estimated from `count` others: of few, little
/// is known of the deviation.   source: Student's t, two-sided, 99.9 %
double beyond(std::uint64_t count) {
  constexpr double kOfFew[] = {636.6, 31.60, 12.92, 8.610, 6.869, 5.959, 5.408, 5.041, 4.781, 4.587};
  if (count < 2) return kOfFew[0];
  const std::uint64_t freedom = count - 1;
  return freedom <= std::size(kOfFew) ? kOfFew[freedom - 1] : 3.291 + 13 / static_cast<double>(freedom);
}
constexpr double kBeyondKnown = 3.291;
}  // namespace

void ReplayKind::check(double took) {
  ++samples_;
  sampled_ += took;
  expected_ += mean_;
  const auto n = static_cast<double>(in_mean_), checks = static_cast<double>(samples_);
  const double spread =
      std::max(beyond(in_mean_) * std::sqrt(seen()), kBeyondKnown * std::sqrt(refresh_.variance(mean_)));
  const double one = spread * std::sqrt(1 + 1 / n), all = spread * std::sqrt(1 / checks + 1 / n);
  const double tolerance = kTolerance * mean_;
  if (std::abs(took - mean_) > std::max(one, tolerance) ||
      std::abs(sampled_ - expected_) / checks > std::max(all, tolerance)) {
    refused_ = true;
  }
}

void ReplayKind::add_counts(std::vector<double>& into) const {
  if (into.size() < counts_.size()) into.resize(counts_.size());
  if (counted_ == 0 || in_mean_ == 0) return;
  const double times = static_cast<double>(counted_) / static_cast<double>(in_mean_);
  for (std::size_t i = 0; i < counts_.size(); ++i) into[i] += counts_[i] * times;
}

double ReplayKind::difference() const { return samples_ == 0 ? 0 : std::abs(sampled_ - expected_) / expected_; }

}  // namespace kernbench
