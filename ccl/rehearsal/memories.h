#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "ccl/rehearsal/ways.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

/// A PE's slice of HBM: accesses pass one after the other. One that meets, in the queue, accesses of the other
/// direction takes longer, since the data bus turns round in between, and so does one that meets accesses of other rows
/// of its banks, since rows are closed and opened again.
///
/// Figures: `kernbench run stream --fidelity fast --set system.sips.count=1 --set cube.hbm.refresh=none --bytes N
/// --block B`, share of the peak. N = 288K, where arrays lie in different banks, B = 4K: read 0.96, copy 0.73, triad
/// 0.79; N = 256K, where they lie in the same, triad 0.58. B = 1K: copy 0.70 and 0.66.
class Slice {
 public:
  explicit Slice(const PeRates& rates);

  double bytes_per_second() const { return bytes_per_second_; }
  /// When bytes that are asked for, or come, at `time` begin to pass; `at`: where they lie.
  double read(double time, std::uint64_t at, double bytes) { return access(0, time, at, bytes); }
  double write(double time, std::uint64_t at, double bytes) { return access(1, time, at, bytes); }

 private:
  static constexpr std::size_t kBanks = 8;  ///< of a bank group   assumed: HBM3's four, of two stack IDs
  struct Row {
    std::uint64_t number = 0;
    double end = 0;  ///< of the last access
  };
  double access(std::size_t direction, double time, std::uint64_t at, double bytes);
  /// Other rows of the bank that are being accessed at `time`; from now on this one is.
  int other_rows(double time, std::uint64_t at);

  double bytes_per_second_ = 0;
  std::uint64_t row_bytes_ = 0;  ///< of one bank of each group
  double free_ = 0;
  std::array<double, 2> ends_{};  ///< of the last read, of the last write
  std::array<std::vector<Row>, kBanks> rows_;
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
