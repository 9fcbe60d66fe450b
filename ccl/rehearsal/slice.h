#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <queue>
#include <vector>

#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

/// A PE's slice of HBM. Accesses come in pieces, which enter the queues of the controller, one for each direction, in
/// the order in which they come. The data bus passes reads until writes nearly fill their queue or nothing is read,
/// then writes until few are left and something is read: a read waits as long as writes follow each other. The bus
/// turns round in between, and a row is opened when its first piece has a place in a queue whose turn it is, after the
/// row that was open in the bank has been closed.
///
/// Nothing happens between calls: advance(t) takes all decisions up to t.
/// Not modelled: banks by group, pseudo channels (an access takes of all the same), refreshes.
class HbmSlice {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  /// What an access has got to.
  struct Progress {
    std::int32_t id = 0;
    bool first = false, last = false;  ///< of its pieces; a write: first train, last piece
    double begin = 0, end = 0;         ///< on the bus; a write: when it has entered
  };

  explicit HbmSlice(const PeRates& rates);

  double bytes_per_second() const { return bytes_per_second_; }
  /// From when a write has entered its queue until that is answered.
  double answer_seconds() const { return answer_; }
  /// An access to `bytes` from `at` on; its first piece comes at `time`, each byte after it `apart` later than the one
  /// before. REQUIRES: `time` is not before a time that advance() has seen.
  void read(double time, std::uint64_t at, double bytes, double apart, std::int32_t id) {
    come({time, at, bytes, id, kRead}, apart);
  }
  /// A write comes in trains, which end at multiples of 4 KiB, each whole when its last byte is there.
  void write(double time, std::uint64_t at, double bytes, double apart, std::int32_t id) {
    come({time, at, bytes, id, kWrite}, apart);
  }
  void advance(double now, std::vector<Progress>& progress);
  /// When it has to be advanced again; kNever: nothing waits.
  double next() const;

 private:
  enum Direction : std::uint8_t { kRead, kWrite };
  static constexpr std::size_t kBanks = 8;  ///< of a bank group   assumed: HBM3's four, of two stack IDs
  struct Bank {
    std::uint64_t row = 0;
    bool open = false;
    double may_close = 0;
  };
  struct Piece {
    double time = 0;  ///< when it comes; in its queue: when it entered
    std::uint64_t at = 0;
    double bytes = 0;
    std::int32_t id = 0;
    Direction direction = kRead;
    bool first = false, last = false;
    std::uint64_t number = 0;
    bool operator>(const Piece& other) const { return time != other.time ? time > other.time : number > other.number; }
  };
  struct Queue {
    std::deque<Piece> pieces;
    double bytes = 0;
  };
  void come(Piece access, double apart);
  bool has_room(const Piece& piece) const { return queues_[piece.direction].bytes + piece.bytes <= queue_bytes_; }
  void enter(double now, std::vector<Progress>& progress);
  Direction choose() const;
  double pass(const Piece& piece);
  double pass_row(double entered, std::uint64_t at, std::uint64_t end);
  double open(Bank& bank, double from, std::uint64_t row);

  double bytes_per_second_ = 0, cycle_ = 0, answer_ = 0;
  std::uint64_t row_bytes_ = 0;  ///< of one bank of each group
  double queue_bytes_ = 0;       ///< of a queue, one for each direction
  double piece_bytes_ = 0;
  double free_ = 0;    ///< the data bus
  double turned_ = 0;  ///< when the bus began to serve the present direction
  Direction direction_ = kRead;
  std::array<Bank, kBanks> banks_{};
  std::priority_queue<Piece, std::vector<Piece>, std::greater<>> coming_;
  std::array<Queue, 2> queues_;
  std::uint64_t number_ = 0;
};

}  // namespace kernbench::ccl
