#include "tlm/observe/cause.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace kernbench {

CauseLog* CauseLog::active_ = nullptr;

const char* to_string(Spent spent) {
  static constexpr std::array<const char*, kSpents> kNames{
      "other",  "host",   "PCIe",        "command path", "command path busy", "common start", "dispatch",  "DMA setup",
      "GEMM",   "math",   "TCM",         "NoC",          "NoC busy",          "wire",         "wire busy", "no credit",
      "flight", "memory", "memory busy", "IPCQ slots"};
  return kNames[static_cast<std::size_t>(spent)];
}

CauseLog::CauseLog() : steps_(1), places_(1) { active_ = this; }

CauseLog::~CauseLog() { active_ = nullptr; }

Cause CauseLog::step(Spent spent, std::uint32_t place, Ps end, const Cause& cause) {
  std::uint32_t previous = cause.step_;
  while (steps_[previous].end > end) previous = steps_[previous].previous;
  if (steps_[previous].end == end) {
    if (previous != 0) ++steps_[previous].references;
    return Cause(previous);
  }
  if (previous != 0) ++steps_[previous].references;
  std::uint32_t step = free_;
  if (step == 0) {
    step = static_cast<std::uint32_t>(steps_.size());
    steps_.emplace_back();
  } else {
    free_ = steps_[step].previous;
  }
  steps_[step] = {end, previous, 1, place, spent};
  return Cause(step);
}

void CauseLog::release(std::uint32_t step) {
  while (step != 0 && --steps_[step].references == 0) {
    const std::uint32_t previous = steps_[step].previous;
    steps_[step].previous = free_;
    free_ = step;
    step = previous;
  }
}

std::uint32_t CauseLog::intern(const std::string& name) {
  const auto [known, is_new] = by_name_.emplace(name, static_cast<std::uint32_t>(places_.size()));
  if (is_new) places_.push_back(name);
  return known->second;
}

std::vector<CauseLog::Segment> CauseLog::sums(const std::vector<Segment>& chain) {
  std::map<std::pair<Spent, std::uint32_t>, Ps> by_part;
  for (const Segment& segment : chain) by_part[{segment.spent, segment.place}] += segment.end - segment.begin;
  std::vector<Segment> sums;
  for (const auto& [part, time] : by_part) sums.push_back({0, time, part.first, part.second});
  std::stable_sort(sums.begin(), sums.end(), [](const Segment& a, const Segment& b) { return a.end > b.end; });
  return sums;
}

void CauseLog::heard(const Cause& cause, const char* kernel, std::uint16_t sip, Ps submitted) {
  current = cause;
  if (end_of(cause) >= end_of(host)) host = cause;
  if (kernel == nullptr || launches_seen_++ >= kMostLaunches) return;
  Launch launch{kernel, sip, submitted, end_of(cause), sums(chain(cause, submitted))};
  if (launch.largest.size() > kMostParts) {
    Segment rest{0, 0, Spent::other, 0};
    for (std::size_t i = kMostParts - 1; i < launch.largest.size(); ++i) rest.end += launch.largest[i].end;
    launch.largest.resize(kMostParts - 1);
    launch.largest.push_back(rest);
  }
  launches_.push_back(std::move(launch));
}

std::vector<CauseLog::Segment> CauseLog::chain(const Cause& cause, Ps from) const {
  std::vector<Segment> segments;
  for (std::uint32_t at = cause.step_; at != 0 && steps_[at].end > from; at = steps_[at].previous) {
    const Step& step = steps_[at];
    segments.push_back({std::max(steps_[step.previous].end, from), step.end, step.spent, step.place});
  }
  std::reverse(segments.begin(), segments.end());
  return segments;
}

}  // namespace kernbench
