#include "runtime/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace kernbench {
namespace {
constexpr std::chrono::duration<double> kLongestPause{0.5};
}  // namespace

Watchdog::Watchdog(double seconds, const Dispatcher& dispatcher, const HostProgress& host,
                   std::function<void(const std::string&)> expired)
    : period_(seconds), dispatcher_(dispatcher), host_(host), expired_(std::move(expired)), thread_([this] {
        watch();
      }) {}

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
    std::uint64_t work, ended;
    bool operator==(const Seen& other) const { return work == other.work && ended == other.ended; }
  };
  struct Meanwhile {
    std::uint64_t turns, instants;
  };
  const auto look = [this] {
    return Seen{dispatcher_.activity().count(), host_.ended.load(std::memory_order_relaxed)};
  };
  const auto passed = [this] {
    return Meanwhile{host_.turns.load(std::memory_order_relaxed), dispatcher_.published_instants()};
  };
  Seen last = look();
  Meanwhile then = passed();
  std::unique_lock lock(mutex_);
  // It looks more often than once in its period, and so ends soon after it.
  const std::chrono::duration<double> pause = std::min(period_ / 4, kLongestPause);
  auto since = std::chrono::steady_clock::now();
  while (!wake_.wait_for(lock, pause, [this] { return stop_; })) {
    const Seen seen = look();
    const Meanwhile by_now = passed();
    const auto now = std::chrono::steady_clock::now();
    if (!(seen == last) || host_.tool_works.load(std::memory_order_relaxed)) {
      last = seen;
      then = by_now;
      since = now;
      continue;
    }
    if (now - since < period_) continue;
    const Ps time = dispatcher_.published_now();
    expired_(fmt::format("watchdog: no progress for {:g} s of wall clock at {}.{:03} ns of simulated time; running: {}",
                         period_.count(), time / kPsPerNs, time % kPsPerNs,
                         who(by_now.turns - then.turns, by_now.instants - then.instants)));
    return;
  }
}

std::string Watchdog::who(std::uint64_t turns, std::uint64_t instants) const {
  const int rank = host_.running_rank.load(std::memory_order_relaxed);
  if (rank < 0 && instants == 0) {
    if (std::string kernel = dispatcher_.activity().kernel(); !kernel.empty()) return "the code of " + kernel;
  }
  std::string text = fmt::format("the host code of rank {} (process rank{})", rank, rank);
  if (rank < 0) text = turns > 0 ? "the host code of the ranks" : "the machine's event queue";
  if (turns > 0) text += fmt::format(", after {} turns of ranks in which the machine got nothing to do", turns);
  if (turns == 0 && instants > 0) text += fmt::format(", {} instants in which no work came to its end", instants);
  return text;
}

void Watchdog::exit_with_report(const std::string& report) {
  std::fprintf(stderr, "kernbench: %s\n", report.c_str());
  std::fflush(nullptr);
  std::_Exit(4);
}

}  // namespace kernbench
