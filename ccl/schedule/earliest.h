#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace kernbench::ccl {

/// An event that a number tells from the others.
struct Timed {
  double time = 0;
  std::int32_t what = 0;
  bool operator<(const Timed& other) const {
    return static_cast<int>(time < other.time) |
           (static_cast<int>(time == other.time) & static_cast<int>(what < other.what));
  }
};

/// Events, of which the first goes first; most of them are followed by another one. REQUIRES: no two are equal, so that
/// `<` alone says their order.
template <class Event>
class Earliest {
 public:
  bool empty() const { return events_.size() == (taken_ ? 1 : 0); }
  void push(const Event& event) {
    if (std::exchange(taken_, false)) return replace_first(event);
    events_.push_back(event);
    rise(events_.size() - 1, event);
  }
  /// Takes the first. REQUIRES: there is one.
  Event pop() {
    if (std::exchange(taken_, true)) {
      const Event last = events_.back();
      events_.pop_back();
      replace_first(last);
    }
    return events_.front();
  }

 private:
  /// All the way down, as what comes is late, and without a branch for which of two is earlier, as that is by chance.
  void replace_first(const Event& event) {
    const std::size_t count = events_.size();
    std::size_t at = 0;
    for (std::size_t next = 1; next < count; next = 2 * at + 1) {
      const std::size_t other = next + 1 < count ? next + 1 : next;
      next += static_cast<std::size_t>(events_[other] < events_[next]);
      events_[at] = events_[next];
      at = next;
    }
    rise(at, event);
  }
  void rise(std::size_t at, const Event& event) {
    for (; at > 0 && event < events_[(at - 1) / 2]; at = (at - 1) / 2) events_[at] = events_[(at - 1) / 2];
    events_[at] = event;
  }

  std::vector<Event> events_;  // a heap
  bool taken_ = false;         // the first has been taken, and nothing has come into its place
};

}  // namespace kernbench::ccl
