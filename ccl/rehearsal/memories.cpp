#include "ccl/rehearsal/memories.h"

#include <algorithm>
#include <cmath>

#include "ccl/level_cost.h"

namespace kernbench::ccl {
namespace {

/// Of accesses to HBM, those that have to open a row.   assumed: pieces of a tensor follow each other in a row
constexpr double kOpens = 1.0 / 3;
/// What meeting the other direction costs, of the time of an access' bytes.   source: memories.h, 0.96 / 0.73 and /
/// 0.66
constexpr double kTurn = 0.4;
/// What each other row of the bank costs, of the same, and how many count.   source: memories.h, 0.79 / 0.58 for two;
/// assumed: more than four rows give the queue no more to choose from
constexpr double kOtherRow = 0.2;
constexpr int kMostRows = 4;
/// Bytes of a row of one bank of each of four groups, at the rate of a pseudo channel.   assumed: HBM3-6400
constexpr double kRowBytes = 4096, kRowRate = 25.6e9;

}  // namespace

Slice::Slice(const PeRates& rates)
    : bytes_per_second_(static_cast<double>(rates.hbm_slice.bytes_per_second())),
      row_bytes_(static_cast<std::uint64_t>(kRowBytes * std::max(std::round(bytes_per_second_ / kRowRate), 1.0))) {}

double Slice::access(std::size_t direction, double time, std::uint64_t at, double bytes) {
  const double head = std::max(time, free_), plain = bytes / bytes_per_second_;
  double takes = plain + plain * kOtherRow * other_rows(time, at);
  if (ends_[1 - direction] > time) takes += kTurn * plain;
  free_ = ends_[direction] = head + takes;
  rows_[at / row_bytes_ % kBanks].back().end = free_;
  return head;
}

int Slice::other_rows(double time, std::uint64_t at) {
  std::vector<Row>& rows = rows_[at / row_bytes_ % kBanks];
  const std::uint64_t number = at / row_bytes_ / kBanks;
  rows.erase(
      std::remove_if(rows.begin(), rows.end(), [&](const Row& row) { return row.end <= time || row.number == number; }),
      rows.end());
  const auto others = static_cast<int>(rows.size());
  rows.push_back({number, 0});
  return std::min(others, kMostRows);
}

std::uint32_t Memories::add(PeCoord from, PeCoord owner) {
  const PeRates rates = map_.rates(owner);
  const auto [slice, fresh] = numbers_.try_emplace(owner, static_cast<std::uint32_t>(slices_.size()));
  if (fresh) slices_.emplace_back(rates);
  Reach reach{ways_.way(from, owner), ways_.way(owner, from),
              seconds(rates.engines.hbm_hit) + kOpens * seconds(rates.engines.hbm_open), slice->second};
  if (map_.packet_latency) {
    const NodeId self = map_.pe(from), port = map_.hbm_port(owner);
    reach.to.seconds = seconds(map_.packet_latency(self, port, 0));
    reach.from.seconds = seconds(map_.packet_latency(port, self, 64));
  }
  reaches_.push_back(std::move(reach));
  return static_cast<std::uint32_t>(reaches_.size()) - 1;
}

}  // namespace kernbench::ccl
