#include "ccl/rehearsal/slice.h"

#include <algorithm>
#include <cmath>

#include "ccl/level_cost.h"
#include "tlm/ext/packet.h"

namespace kernbench::ccl {
namespace {

/// Gaps between commands in cycles, of the device of the presets; others take the same share of what a row takes to
/// open.   source: topology/presets/hbm_generations.yaml, HBM3-6400: tRCDRD, tRCDWR, tRP, tRAS, tRTP; tCWL + BL + tWR;
/// tRTW; tCWL + BL + tWTR_L. Those after a burst count from its end: less BL, of two cycles
constexpr double kOpenToRead = 31, kOpenToWrite = 15, kClose = 26, kStaysOpen = 45, kReadToClose = 9 - 2,
                 kWriteToClose = 45 - 2, kReadToWrite = 20 - 2, kWriteToRead = 22 - 2;
/// From a read command to the end of its data: tCL and BL. What a read of an open row takes beside is the controller's.
/// source: the same
constexpr double kReadData = 20 + 2;
constexpr std::uint64_t kTrainBytes = kMaxTrainBytes;
/// Bytes of a row of one bank of each of four groups, and of a queue of 32 bursts, at the rate of a pseudo channel.
/// assumed: HBM3-6400
constexpr double kRowBytes = 4096, kQueueBytes = 1024, kRowRate = 25.6e9;
/// Of the queue of writes, what there is when they begin to pass, and when they stop.   source: topology/presets,
/// write_high and write_low
constexpr double kWriteHigh = 0.8, kWriteLow = 0.2;
/// Pieces that a queue holds.   assumed: two packets of a PE's DMA engine to a piece
constexpr double kPieces = 8;

}  // namespace

HbmSlice::HbmSlice(const PeRates& rates)
    : bytes_per_second_(static_cast<double>(rates.hbm_slice.bytes_per_second())),
      cycle_(seconds(rates.engines.hbm_open) / kOpenToRead),
      answer_(std::max(seconds(rates.engines.hbm_hit) - kReadData * cycle_, 0.0)) {
  const double pseudo_channels = std::max(std::round(bytes_per_second_ / kRowRate), 1.0);
  row_bytes_ = static_cast<std::uint64_t>(kRowBytes * pseudo_channels);
  queue_bytes_ = kQueueBytes * pseudo_channels;
  piece_bytes_ = queue_bytes_ / kPieces;
}

/// Cuts an access into pieces, none of which lies in two trains of a write.
void HbmSlice::come(Piece access, double apart) {
  const double begin = access.time, all = access.bytes;
  const std::uint64_t from = access.at;
  const bool write = access.direction == kWrite;
  const auto end_of_train = [&](std::uint64_t at) {
    return std::min(all, static_cast<double>((at / kTrainBytes + 1) * kTrainBytes - from));
  };
  const double first_end = end_of_train(from);
  double done = 0;
  do {
    access.at = from + static_cast<std::uint64_t>(done);
    const double end = write ? end_of_train(access.at) : all;
    access.bytes = std::min(piece_bytes_, end - done);
    access.time = begin + (write ? end : done) * apart;
    access.first = write ? done + access.bytes == first_end : done == 0;
    done += access.bytes;
    access.last = done >= all;
    access.number = number_++;
    coming_.push(access);
  } while (done < all);
}

void HbmSlice::advance(double now, std::vector<Progress>& progress) {
  enter(now, progress);
  while (free_ <= now && !(queues_[kRead].pieces.empty() && queues_[kWrite].pieces.empty())) {
    Queue& queue = queues_[choose()];
    const Piece piece = queue.pieces.front();
    queue.pieces.pop_front();
    queue.bytes -= piece.bytes;
    const double begin = pass(piece);
    if (piece.direction == kRead && (piece.first || piece.last))
      progress.push_back({piece.id, piece.first, piece.last, begin, free_});
    enter(now, progress);
  }
}

/// The first in line holds up those behind it, of either direction.
void HbmSlice::enter(double now, std::vector<Progress>& progress) {
  while (!coming_.empty() && coming_.top().time <= now && has_room(coming_.top())) {
    Piece piece = coming_.top();
    coming_.pop();
    piece.time = now;
    Queue& queue = queues_[piece.direction];
    queue.pieces.push_back(piece);
    queue.bytes += piece.bytes;
    if (piece.direction == kWrite && (piece.first || piece.last))
      progress.push_back({piece.id, piece.first, piece.last, now, now});
  }
}

double HbmSlice::next() const {
  double time = kNever;
  if (!queues_[kRead].pieces.empty() || !queues_[kWrite].pieces.empty()) time = free_;
  if (!coming_.empty() && has_room(coming_.top())) time = std::min(time, coming_.top().time);
  return time;
}

/// The direction that is served next. REQUIRES: something waits.
HbmSlice::Direction HbmSlice::choose() const {
  const Queue &reads = queues_[kRead], &writes = queues_[kWrite];
  if (reads.pieces.empty()) return kWrite;
  if (direction_ == kRead) return writes.bytes > kWriteHigh * queue_bytes_ ? kWrite : kRead;
  return writes.bytes < kWriteLow * queue_bytes_ ? kRead : kWrite;
}

/// Takes the bus for a piece; returns when it begins.
double HbmSlice::pass(const Piece& piece) {
  if (piece.direction != direction_) {
    turned_ = free_;
    direction_ = piece.direction;
    free_ += cycle_ * (direction_ == kWrite ? kReadToWrite : kWriteToRead);
  }
  std::uint64_t at = piece.at;
  const std::uint64_t end = at + static_cast<std::uint64_t>(piece.bytes);
  const auto end_of_row = [&] { return std::min(end, (at / row_bytes_ + 1) * row_bytes_); };
  const double head = pass_row(piece.time, at, end_of_row());
  while ((at = end_of_row()) < end) pass_row(piece.time, at, end_of_row());
  return head;
}

/// What of a piece lies in one row.
double HbmSlice::pass_row(double entered, std::uint64_t at, std::uint64_t end) {
  Bank& bank = banks_[at / row_bytes_ % kBanks];
  const std::uint64_t row = at / row_bytes_ / kBanks;
  double start = std::max(free_, entered);
  if (!bank.open || bank.row != row) start = std::max(start, open(bank, std::max(entered, turned_), row));
  free_ = start + static_cast<double>(end - at) / bytes_per_second_;
  const double closes = free_ + cycle_ * (direction_ == kRead ? kReadToClose : kWriteToClose);
  bank.may_close = std::max(bank.may_close, closes);
  return start;
}

/// When a piece that waits for the row from `from` on may pass.
double HbmSlice::open(Bank& bank, double from, std::uint64_t row) {
  const double opens = bank.open ? std::max(from, bank.may_close) + cycle_ * kClose : from;
  bank = {row, true, opens + cycle_ * kStaysOpen};
  return opens + cycle_ * (direction_ == kRead ? kOpenToRead : kOpenToWrite);
}

}  // namespace kernbench::ccl
