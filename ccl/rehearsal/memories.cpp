#include "ccl/rehearsal/memories.h"

#include <algorithm>
#include <cmath>

#include "ccl/level_cost.h"

namespace kernbench::ccl {
namespace {

/// Gaps between commands in cycles, of the device of the presets; others take the same share of what a row takes to
/// open.   source: topology/presets/hbm_generations.yaml, HBM3-6400: tRCDRD, tRCDWR, tRP, tRAS, tRTP; tCWL + BL + tWR;
/// tRTW; tCWL + BL + tWTR_L. Those after a burst count from its end: less BL, of two cycles
constexpr double kOpenToRead = 31, kOpenToWrite = 15, kClose = 26, kStaysOpen = 45, kReadToClose = 9 - 2,
                 kWriteToClose = 45 - 2, kReadToWrite = 20 - 2, kWriteToRead = 22 - 2;
/// Bytes of a row of one bank of each of four groups, and of a queue of 32 bursts, at the rate of a pseudo channel.
/// assumed: HBM3-6400
constexpr double kRowBytes = 4096, kQueueBytes = 1024, kRowRate = 25.6e9;
/// Of the queue of writes, what there is when they begin to pass.   source: topology/presets, write_high
constexpr double kWriteHigh = 0.8;

}  // namespace

Slice::Slice(const PeRates& rates)
    : bytes_per_second_(static_cast<double>(rates.hbm_slice.bytes_per_second())),
      cycle_(seconds(rates.engines.hbm_open) / kOpenToRead) {
  const double pseudo_channels = std::max(std::round(bytes_per_second_ / kRowRate), 1.0);
  row_bytes_ = static_cast<std::uint64_t>(kRowBytes * pseudo_channels);
  queue_bytes_ = kQueueBytes * pseudo_channels;
}

double Slice::read(double time, std::uint64_t at, double bytes) {
  const double entered = std::max(time, entry_);
  write_idle(entered);
  if (waiting_ > kWriteHigh * queue_bytes_) write_out();
  const double head = pass(kRead, entered, at, bytes);
  entry_ = std::max(entered, has_room());
  return head;
}

double Slice::write(double time, std::uint64_t at, double bytes) {
  write_idle(std::max(time, entry_));
  if (waiting_ + bytes > queue_bytes_) write_out();
  const double entered = entry_ = std::max(time, entry_);
  writes_.push_back({entered, at, bytes});
  waiting_ += bytes;
  if (waiting_ > kWriteHigh * queue_bytes_) write_out();
  return entered;
}

void Slice::write_out() {
  for (const Write& write : writes_) pass(kWrite, write.time, write.at, write.bytes);
  writes_.clear();
  waiting_ = 0;
  entry_ = std::max(entry_, has_room());
}

/// Writes pass while nothing is read.
void Slice::write_idle(double until) {
  while (!writes_.empty() && std::max(free_, writes_.front().time) < until) {
    const Write write = writes_.front();
    writes_.pop_front();
    waiting_ -= write.bytes;
    pass(kWrite, write.time, write.at, write.bytes);
  }
}

/// Takes the bus for an access that entered its queue at `entered`; returns when it begins.
double Slice::pass(Direction direction, double entered, std::uint64_t at, double bytes) {
  if (direction != direction_) {
    turned_ = free_;
    direction_ = direction;
    free_ += cycle_ * (direction == kWrite ? kReadToWrite : kWriteToRead);
  }
  const std::uint64_t end = at + static_cast<std::uint64_t>(bytes);
  const auto end_of_row = [&] { return std::min(end, (at / row_bytes_ + 1) * row_bytes_); };
  const double head = pass_row(entered, at, end_of_row());
  while ((at = end_of_row()) < end) pass_row(entered, at, end_of_row());
  return head;
}

/// The part of an access that lies in one row.
double Slice::pass_row(double entered, std::uint64_t at, std::uint64_t end) {
  Bank& bank = banks_[at / row_bytes_ % kBanks];
  const std::uint64_t row = at / row_bytes_ / kBanks;
  double start = std::max(free_, entered);
  if (!bank.open || bank.row != row) start = std::max(start, open(bank, std::max(entered, turned_), row));
  free_ = start + static_cast<double>(end - at) / bytes_per_second_;
  const double closes = free_ + cycle_ * (direction_ == kRead ? kReadToClose : kWriteToClose);
  bank.may_close = std::max(bank.may_close, closes);
  return start;
}

/// When an access that waits for the row from `from` on may pass.
double Slice::open(Bank& bank, double from, std::uint64_t row) {
  const double opens = bank.open ? std::max(from, bank.may_close) + cycle_ * kClose : from;
  bank = {row, true, opens + cycle_ * kStaysOpen};
  return opens + cycle_ * (direction_ == kRead ? kOpenToRead : kOpenToWrite);
}

std::uint32_t Memories::add(PeCoord from, PeCoord owner) {
  const PeRates rates = map_.rates(owner);
  const auto [slice, fresh] = numbers_.try_emplace(owner, static_cast<std::uint32_t>(slices_.size()));
  if (fresh) slices_.emplace_back(rates);
  Reach reach{ways_.way(from, owner), ways_.way(owner, from), seconds(rates.engines.hbm_hit), slice->second};
  if (map_.packet_latency) {
    const NodeId self = map_.pe(from), port = map_.hbm_port(owner);
    reach.to.seconds = seconds(map_.packet_latency(self, port, 0));
    reach.from.seconds = seconds(map_.packet_latency(port, self, 64));
  }
  reaches_.push_back(std::move(reach));
  return static_cast<std::uint32_t>(reaches_.size()) - 1;
}

}  // namespace kernbench::ccl
