#include "tlm/observe/cause.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace kernbench {

const char* to_string(Spent spent) {
  static constexpr std::array<const char*, kSpents> kNames{
      "other",        "host",      "PCIe",      "command path", "command path busy",
      "common start", "dispatch",  "DMA setup", "GEMM",         "GEMM fill",
      "math",         "TCM",       "NoC",       "NoC busy",     "wire",
      "wire busy",    "no credit", "flight",    "detour",       "memory",
      "memory busy",  "IPCQ slots"};
  return kNames[static_cast<std::size_t>(spent)];
}

void Cause::forget() { step_->log->forget(step_); }

Cause CauseLog::step(Spent spent, std::uint32_t place, Ps end, const Cause& cause) {
  Step* previous = cause.step_;
  while (end_of(previous) > end && end_of(previous->previous) >= end) previous = previous->previous;
  if (end_of(previous) > end) {
    spent = static_cast<Spent>(previous->spent);
    place = previous->place;
    previous = previous->previous;
  }
  if (previous != nullptr) ++previous->references;
  if (end_of(previous) == end) return Cause(previous);
  Step* step = free_;
  if (step == nullptr) {
    step = &steps_.emplace_back();
  } else {
    free_ = step->previous;
  }
  *step = {this, previous, end, 1, place, static_cast<std::uint32_t>(spent)};
  return Cause(step);
}

Cause CauseLog::waited_for(const Cause& other, Spent spent, std::uint32_t place, Ps end, const Cause& cause) {
  std::vector<Segment> ways;
  const Ps from = end_of(cause);
  for (const Step* step = other.step_; end_of(step) > from; step = step->previous) {
    const auto of = static_cast<Spent>(step->spent);
    if (of != Spent::noc_wait && of != Spent::wire_wait && of != Spent::wire_credit) continue;
    const Ps begin = std::max(end_of(step->previous), from);
    if (begin < end) ways.push_back({begin, std::min(step->end, end), of, step->place});
  }
  Cause chain = cause;
  for (auto way = ways.rbegin(); way != ways.rend(); ++way) {
    chain = step(spent, place, way->begin, chain);
    chain = step(way->spent, way->place, way->end, chain);
  }
  return step(spent, place, end, chain);
}

void CauseLog::forget(Step* step) {
  do {
    Step* const previous = step->previous;
    step->previous = free_;
    free_ = step;
    step = previous;
  } while (step != nullptr && --step->references == 0);
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

std::vector<CauseLog::Segment> CauseLog::largest(const std::vector<Segment>& chain) {
  std::vector<Segment> parts = sums(chain), rest;
  if (parts.size() <= kMostParts) return parts;
  for (std::size_t i = kMostParts; i < parts.size(); ++i) rest.push_back({0, parts[i].end, parts[i].spent, 0});
  parts.resize(kMostParts);
  rest = sums(rest);
  parts.insert(parts.end(), rest.begin(), rest.end());
  std::stable_sort(parts.begin(), parts.end(), [](const Segment& a, const Segment& b) { return a.end > b.end; });
  return parts;
}

void CauseLog::heard(const Cause& cause, const char* kernel, std::uint16_t sip, Ps submitted, Ps started) {
  current = cause;
  if (end_of(cause) >= end_of(host)) host = cause;
  if (kernel == nullptr || launches_seen_++ >= kMostLaunches) return;
  const Ps end = end_of(cause), begin = std::clamp(started, submitted, end);
  launches_.push_back(
      {kernel, sip, submitted, begin, end, largest(chain(cause, submitted)), largest(chain(cause, begin))});
}

std::vector<CauseLog::Segment> CauseLog::chain(const Cause& cause, Ps from) const {
  std::vector<Segment> segments;
  for (const Step* step = cause.step_; end_of(step) > from; step = step->previous) {
    segments.push_back(
        {std::max(end_of(step->previous), from), step->end, static_cast<Spent>(step->spent), step->place});
  }
  std::reverse(segments.begin(), segments.end());
  return segments;
}

}  // namespace kernbench
