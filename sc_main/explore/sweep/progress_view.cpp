#include "sc_main/explore/sweep/progress_view.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

namespace kernbench::sweep {
namespace {
constexpr double kRedrawS = 0.2, kLineS = 10;
constexpr std::size_t kBarWidth = 30;

std::string counts(const Progress& p) {
  std::string text = fmt::format("{}/{} points", p.done, p.total);
  if (p.cached > 0) text += fmt::format(", {} from the store", p.cached);
  if (p.failed > 0) text += fmt::format(", {} failed", p.failed);
  if (p.lost > 0) text += fmt::format(", {} lost", p.lost);
  const std::size_t left = p.total - p.done;
  if (p.ran > 0 && left > 0)
    text +=
        fmt::format(", ETA {}", readable_seconds(p.elapsed_s / static_cast<double>(p.ran) * static_cast<double>(left)));
  return text;
}
}  // namespace

std::string readable_seconds(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  return whole < 3600 ? fmt::format("{}:{:02} min", whole / 60, whole % 60)
                      : fmt::format("{}:{:02}:{:02} h", whole / 3600, whole / 60 % 60, whole % 60);
}

void ProgressView::show(const Progress& progress) {
  if (!wanted_ || progress.elapsed_s - shown_s_ < (bar_ ? kRedrawS : kLineS)) return;
  shown_s_ = progress.elapsed_s;
  if (!bar_) {
    kernbench::say(fmt::format("kernbench: {}\n", counts(progress)));
    return;
  }
  const std::size_t filled = progress.total == 0 ? 0 : kBarWidth * progress.done / progress.total;
  std::fputs(
      fmt::format("\r\033[K[{}{}] {}", std::string(filled, '#'), std::string(kBarWidth - filled, '.'), counts(progress))
          .c_str(),
      stderr);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressView::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

void ProgressView::say(const std::string& text) {
  clear();
  kernbench::say(text + "\n");
}

}  // namespace kernbench::sweep
