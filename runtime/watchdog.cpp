#include "runtime/watchdog.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace kernbench {

Watchdog::Watchdog(double seconds, const Dispatcher& dispatcher, const std::atomic<int>& running_rank,
                   std::function<void(const std::string&)> expired)
    : period_(seconds),
      dispatcher_(dispatcher),
      running_rank_(running_rank),
      expired_(std::move(expired)),
      thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Watchdog::watch() {
  struct Seen {
    Ps now;
    std::uint64_t instants;
    int rank;
    bool operator==(const Seen& other) const {
      return now == other.now && instants == other.instants && rank == other.rank;
    }
  };
  const auto look = [this] {
    return Seen{dispatcher_.published_now(), dispatcher_.published_instants(),
                running_rank_.load(std::memory_order_relaxed)};
  };
  Seen last = look();
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, period_, [this] { return stop_; })) {
    const Seen seen = look();
    if (!(seen == last)) {
      last = seen;
      continue;
    }
    const std::string who = seen.rank < 0
                                ? "the machine's event queue"
                                : fmt::format("the host code of rank {} (process rank{})", seen.rank, seen.rank);
    expired_(fmt::format("watchdog: no progress for {:g} s of wall clock at {}.{:03} ns of simulated time; running: {}",
                         period_.count(), seen.now / kPsPerNs, seen.now % kPsPerNs, who));
    return;
  }
}

void Watchdog::exit_with_report(const std::string& report) {
  std::fprintf(stderr, "kernbench: %s\n", report.c_str());
  std::fflush(nullptr);
  std::_Exit(4);
}

}  // namespace kernbench
