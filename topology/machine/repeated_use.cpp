#include "topology/machine/repeated_use.h"

#include <algorithm>
#include <cmath>

namespace kernbench::topology {

namespace {
constexpr std::uint64_t kOne = std::uint64_t{1} << 20;  ///< an occurrence, in a usage
constexpr std::uint32_t kUnits = 1 << 12;               ///< more than any slice is booked for: nothing moves to another

/// Whole numbers that add up to the sum of what they stand for.
class Whole {
 public:
  std::uint64_t next(double value) {
    sum_ += value;
    const auto until = static_cast<std::uint64_t>(std::llround(sum_));
    const std::uint64_t part = until - told_;
    told_ = until;
    return part;
  }

 private:
  double sum_ = 0;
  std::uint64_t told_ = 0;
};
}  // namespace

void RepeatedUse::simulated(const Work& work, const std::vector<PlaceUse>& uses, bool afresh) {
  Known& known = known_[work];
  if (afresh) known = Known();
  ++known.occurrences;
  known.sums.resize(std::max(known.sums.size(), uses.size()));
  for (std::size_t i = 0; i < uses.size(); ++i) {
    Known::Sums& sums = known.sums[i];
    sums.busy += static_cast<double>(uses[i].busy);
    sums.bytes += static_cast<double>(uses[i].bytes);
    sums.messages += static_cast<double>(uses[i].messages);
    for (unsigned reason = 0; reason < Usage::kReasons; ++reason)
      sums.waited[reason] += static_cast<double>(uses[i].waited[reason]);
    sums.mark = std::max(sums.mark, uses[i].mark);
  }
}

void RepeatedUse::repeated(const Work& work, std::uint16_t sip, Ps begin, Ps end) {
  const auto [place, fresh] = repeats_.try_emplace({sip, work}, slices_, kUnits);
  place->second.busy(begin, std::max(end, begin + 1), kOne, 0, 0);
}

std::uint32_t RepeatedUse::prepare(std::uint32_t shift, Ps end) {
  used_shift_ = std::max(shift, slices_.shift());
  end_ = end;
  weights_.clear();
  for (const auto& [which, usage] : repeats_) {
    const auto& [sip, work] = which;
    const auto known = known_.find(work);
    if (known == known_.end()) continue;  // none of its occurrences was whole
    Weights weights{&known->second, 0, {}};
    const double one = static_cast<double>(kOne) * static_cast<double>(known->second.occurrences);
    for (const Usage::Slice& slice : usage.slices(used_shift_, end)) {
      if (slice.busy == 0 && weights.of.empty()) {
        ++weights.first;
      } else {
        weights.of.push_back(static_cast<double>(slice.busy) / one);
      }
    }
    while (!weights.of.empty() && weights.of.back() == 0) weights.of.pop_back();
    if (weights_.size() <= sip) weights_.resize(sip + std::size_t{1});
    weights_[sip].push_back(std::move(weights));
  }
  return used_shift_;
}

bool RepeatedUse::add(std::uint16_t sip, std::uint32_t place, std::uint32_t units, Sum& sum) const {
  if (sip >= weights_.size()) return false;
  struct Parts {
    double busy = 0, bytes = 0, messages = 0;
    std::array<double, Usage::kReasons> waited{};
  };
  std::vector<Parts> parts;
  for (const Weights& weights : weights_[sip]) {
    if (place >= weights.known->sums.size()) continue;
    const Known::Sums& done = weights.known->sums[place];
    double waiting = 0;
    for (const double one : done.waited) waiting += one;
    if (done.busy + done.bytes + done.messages + waiting + done.mark == 0) continue;
    parts.resize(sum.slices.size());
    sum.total.mark = std::max(sum.total.mark, done.mark);
    for (std::size_t i = 0; i < weights.of.size(); ++i) {
      const double of = weights.of[i];
      if (of == 0) continue;
      Parts& part = parts[weights.first + i];
      part.busy += done.busy * of;
      part.bytes += done.bytes * of;
      part.messages += done.messages * of;
      for (unsigned reason = 0; reason < Usage::kReasons; ++reason) part.waited[reason] += done.waited[reason] * of;
      sum.slices[weights.first + i].mark = std::max(sum.slices[weights.first + i].mark, done.mark);
    }
  }
  if (parts.empty()) return false;
  Whole busy, bytes, messages;
  std::array<Whole, Usage::kReasons> waited;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Usage::Slice& slice = sum.slices[i];
    const Ps begin = static_cast<Ps>(i) << used_shift_, length = std::min(Ps{1} << used_shift_, end_ - begin);
    const Ps room = length * units, taken = std::min(slice.busy, room);
    Usage::Slice what{std::min(busy.next(parts[i].busy), room - taken), 0, bytes.next(parts[i].bytes),
                      static_cast<std::uint32_t>(messages.next(parts[i].messages)), 0};
    for (unsigned reason = 0; reason < Usage::kReasons; ++reason) {
      const Ps part = waited[reason].next(parts[i].waited[reason]);
      what.waiting += part;
      sum.total.waited[reason] += part;
      if (!sum.reasons.empty()) sum.reasons[i][reason] += part;
    }
    slice += what;
    sum.total.busy += what.busy;
    sum.total.bytes += what.bytes;
    sum.total.messages += what.messages;
  }
  return true;
}

}  // namespace kernbench::topology
