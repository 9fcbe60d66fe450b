#include "runtime/call_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/errors.h"

namespace kernbench {

namespace {
/// "ranks 1, 2 and 5 more"
std::string list_of(const std::vector<int>& ranks) {
  constexpr std::size_t kShown = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size() && i < kShown; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  return text + (ranks.size() > kShown ? fmt::format(" and {} more", ranks.size() - kShown) : "");
}
}  // namespace

CallOrder::CallOrder(std::string where, std::string noun, std::vector<int> ranks)
    : where_(std::move(where)),
      noun_(std::move(noun)),
      ranks_(std::move(ranks)),
      next_(ranks_.size(), 0),
      ended_(ranks_.size(), 0) {}

std::size_t CallOrder::index_of(int rank) const {
  return static_cast<std::size_t>(std::find(ranks_.begin(), ranks_.end(), rank) - ranks_.begin());
}

CallOrder::Place CallOrder::enter(int rank, const std::string& call, const std::string& placed) {
  const std::size_t self = index_of(rank);
  const std::size_t number = next_[self];
  if (number - completed_ == calls_.size()) calls_.push_back({call, placed, rank, 0, std::make_shared<Agreement>()});
  Call& entry = calls_[number - completed_];
  if (entry.text != call) {
    throw CollectiveMismatch(fmt::format(
        "{}: {} {} of rank {} is {}, but rank {} called {} there: ranks must issue the same {}s in the same order",
        where_, noun_, number, rank, call, entry.first, entry.text, noun_));
  }
  if (entry.placed != placed) {
    throw CollectiveMismatch(
        fmt::format("{}: {} {}, {}, has tensors of other shape or placement on rank {} ({}) than on rank {} ({}): they "
                    "must be alike on all ranks",
                    where_, noun_, number, call, rank, placed, entry.first, entry.placed));
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (ended_[i] == 0 || next_[i] > number) continue;
    throw CollectiveMismatch(fmt::format("{}: rank {} calls {} {}, {}, but rank {} has ended without calling it",
                                         where_, rank, noun_, number, call, ranks_[i]));
  }
  ++next_[self];
  ++entry.submitted;
  const Place place{number, entry.agreed};
  while (!calls_.empty() && calls_.front().submitted == size()) {
    calls_.pop_front();
    ++completed_;
  }
  return place;
}

void CallOrder::left(int rank) {
  const std::size_t self = index_of(rank);
  ended_[self] = 1;
  const std::size_t number = next_[self];
  if (number - completed_ >= calls_.size()) return;
  const Call& entry = calls_[number - completed_];
  throw CollectiveMismatch(fmt::format("{}: rank {} has ended without calling {} {}, {}, which rank {} called", where_,
                                       rank, noun_, number, entry.text, entry.first));
}

std::string CallOrder::name(std::size_t number) const { return fmt::format("{}, {} {}", where_, noun_, number); }

std::string CallOrder::missing(std::size_t number) const {
  if (complete(number)) return {};
  return fmt::format("{}: not called by {}", name(number), list_of(absent(number)));
}

std::vector<int> CallOrder::absent(std::size_t number) const {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (next_[i] <= number) ranks.push_back(ranks_[i]);
  }
  return ranks;
}

}  // namespace kernbench
