#include "sc_main/run/progress.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

namespace kernbench {
namespace {
using std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPoll{50};
constexpr int kPollsPerLine = 4;
constexpr int kQuietPolls = 20;  // a run of less than a second shows nothing
}  // namespace

std::string readable(Ps time) {
  static constexpr const char* kUnits[] = {"ps", "ns", "us", "ms", "s"};
  auto value = static_cast<double>(time);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
  return unit == 0 ? fmt::format("{} ps", time) : fmt::format("{:.3f} {}", value, kUnits[unit]);
}

Progress::Progress(const Terminal& terminal, const Dispatcher& dispatcher, bool wanted, Ps limit)
    : dispatcher_(dispatcher), limit_(limit) {
  if (wanted && terminal.interactive()) thread_ = std::thread([this] { draw(); });
}

Progress::~Progress() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void Progress::draw() {
  const auto start = steady_clock::now();
  bool drawn = false;
  for (int poll = 0; !stop_; ++poll) {
    std::this_thread::sleep_for(kPoll);
    if (poll < kQuietPolls || poll % kPollsPerLine != 0) continue;
    const double wall = std::chrono::duration<double>(steady_clock::now() - start).count();
    const Ps now = dispatcher_.published_now();
    std::string line = fmt::format("\r\033[Ksimulated {}   wall {:.1f} s   {:.3g} us/s   {:.2f} M instants/s",
                                   readable(now), wall, static_cast<double>(now) / 1e6 / wall,
                                   static_cast<double>(dispatcher_.published_instants()) / 1e6 / wall);
    if (limit_ != kNever && now > 0) {
      line += fmt::format("   at most {:.0f} s left",
                          wall * (static_cast<double>(limit_) / static_cast<double>(now) - 1.0));
    }
    std::fputs(line.c_str(), stderr);
    drawn = true;
  }
  if (drawn) std::fputs("\r\033[K", stderr);
}

}  // namespace kernbench
