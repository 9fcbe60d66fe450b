#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "ccl/rehearsal/ways.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

/// A PE's slice of HBM. Accesses enter in the order in which they come. Reads pass one after the other; writes gather
/// in the queue of the controller until it is nearly full, then pass together, before what is read later. The data bus
/// turns round in between, and a row is opened when its first access has a place in a queue whose turn it is, after the
/// row that was open in the bank has been closed.
///
/// Not modelled: banks by group, pseudo channels (an access takes of all the same), refreshes.
class Slice {
 public:
  explicit Slice(const PeRates& rates);

  double bytes_per_second() const { return bytes_per_second_; }
  /// When the bytes of a read that comes at `time` begin to pass; `at`: where they lie.
  double read(double time, std::uint64_t at, double bytes);
  /// When a write whose bytes come from `time` on has entered.
  double write(double time, std::uint64_t at, double bytes);

 private:
  enum Direction : std::uint8_t { kRead, kWrite };
  static constexpr std::size_t kBanks = 8;  ///< of a bank group   assumed: HBM3's four, of two stack IDs
  struct Bank {
    std::uint64_t row = 0;
    bool open = false;
    double may_close = 0;
  };
  struct Write {
    double time = 0;
    std::uint64_t at = 0;
    double bytes = 0;
  };
  double pass(Direction direction, double entered, std::uint64_t at, double bytes);
  double pass_row(double entered, std::uint64_t at, std::uint64_t end);
  double open(Bank& bank, double from, std::uint64_t row);
  void write_out();
  void write_idle(double until);
  /// When the last access has left no more than a queue behind.
  double has_room() const { return free_ - queue_bytes_ / bytes_per_second_; }

  double bytes_per_second_ = 0, cycle_ = 0;
  std::uint64_t row_bytes_ = 0;  ///< of one bank of each group
  double queue_bytes_ = 0;       ///< of a queue, one for each direction
  double free_ = 0;              ///< the data bus
  double entry_ = 0;             ///< when the next access may enter
  double turned_ = 0;            ///< when the bus began to serve the present direction
  Direction direction_ = kRead;
  std::array<Bank, kBanks> banks_{};
  std::deque<Write> writes_;
  double waiting_ = 0;  ///< bytes of writes_
};

/// How a PE reaches a slice.
struct Reach {
  Way to, from;
  double seconds = 0;  ///< of a read there
  std::uint32_t slice = 0;
};

/// The slices of a machine, and the ways to them.
class Memories {
 public:
  Memories(const MachineMap& map, WayBook& ways) : map_(map), ways_(ways) {}

  /// The number of a new way. REQUIRES: of a PE's slices each is asked for once.
  std::uint32_t add(PeCoord from, PeCoord owner);
  Reach& operator[](std::uint32_t number) { return reaches_[number]; }
  Slice& slice_of(const Reach& reach) { return slices_[reach.slice]; }

 private:
  const MachineMap& map_;
  WayBook& ways_;
  std::vector<Reach> reaches_;
  std::vector<Slice> slices_;
  std::map<PeCoord, std::uint32_t> numbers_;
};

}  // namespace kernbench::ccl
