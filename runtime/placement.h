#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tlm/kernel/tile.h"

namespace kernbench {

/// How a tensor spreads over the cubes of a SIP: every cube holds it all, or columns or rows are split.
enum class CubeSplit : std::uint8_t { replicate, column_wise, row_wise };
/// How a cube's part spreads over its PEs; tiled: a grid of tiles, dealt to the PEs along columns or along rows.
enum class PeSplit : std::uint8_t { replicate, column_wise, row_wise, tiled_column_major, tiled_row_major };
const char* to_string(CubeSplit split);  ///< "column_wise"
const char* to_string(PeSplit split);    ///< "tiled_row_major"

/// The two-dimensional shape of a tensor of any rank: n is 1 x n; leading dimensions fold into rows, so that the last
/// one is the columns. Throws std::invalid_argument without dimensions, on one below 1, and if the product overflows.
Shape fold_shape(const std::vector<std::int64_t>& dimensions);

/// How a tensor spreads over the cubes and PEs of one SIP. It has no SIP axis in any form: which rank owns which slice
/// of a weight is tensor parallelism, decided by the rank and set_device(rank).
///
/// A value: every setter gives a new one, as in `DPPolicy().cube(CubeSplit::row_wise).pe(PeSplit::column_wise).pes(4)`.
class DPPolicy {
 public:
  DPPolicy() = default;  ///< a copy on every PE

  [[nodiscard]] DPPolicy cube(CubeSplit split) const;  ///< with another outer level
  [[nodiscard]] DPPolicy pe(PeSplit split) const;      ///< with another inner level, inside each cube's part
  [[nodiscard]] DPPolicy pes(
      std::optional<int> first) const;  ///< on the first so many PEs of each cube only; nothing: all
  [[nodiscard]] DPPolicy cubes(std::optional<int> first) const;  ///< on the first so many cubes only; nothing: all

  CubeSplit cube() const { return cube_; }                     ///< the outer level
  PeSplit pe() const { return pe_; }                           ///< the inner level
  std::optional<int> num_pes() const { return num_pes_; }      ///< nothing: all
  std::optional<int> num_cubes() const { return num_cubes_; }  ///< nothing: all

 private:
  CubeSplit cube_ = CubeSplit::replicate;
  PeSplit pe_ = PeSplit::replicate;
  std::optional<int> num_pes_, num_cubes_;
};

/// "cube=column_wise,pe=replicate", then ",cubes=4" and ",pes=2" if given.
std::string to_string(const DPPolicy& policy);

/// Logical rows x columns of the tensor that a shard holds.
struct Region {
  std::int64_t row = 0;                                  ///< of the first element
  std::int64_t col = 0;                                  ///< of the first element
  std::int64_t rows = 0;                                 ///< 0 or more
  std::int64_t cols = 0;                                 ///< 0 or more
  bool empty() const { return rows == 0 || cols == 0; }  ///< holds nothing
};

/// One PE's part of a tensor. Identity is structural: cube within SIP, PE within cube; there is no flat index.
struct ShardSpec {
  int sip = 0;                     ///< SIP of the machine
  int cube = 0;                    ///< cube within SIP
  int pe = 0;                      ///< PE within cube
  std::uint64_t offset_bytes = 0;  ///< in the tensor's shard-packed virtual range
  std::uint64_t nbytes = 0;        ///< 0: an empty shard
  Region region;                   ///< of the tensor
};

/// One PE's part of a cube's part: what the inner of the two levels gives, before it has a cube and a SIP.
struct LocalShard {
  int local_pe = 0;                ///< PE within cube
  std::uint64_t offset_bytes = 0;  ///< in the cube's part
  std::uint64_t nbytes = 0;        ///< 0: an empty shard
  Region region;                   ///< of the whole tensor
};

/// Consecutive cubes of a SIP.
struct CubeRange {
  int first = 0;  ///< cube within the SIP
  int count = 0;  ///< cubes
};
/// Consecutive PEs of a cube.
struct PeRange {
  int first = 0;  ///< PE within the cube
  int count = 0;  ///< PEs
};

/// What a tensor is placed on; types of their own, so that one is not taken for another.
enum class NumPes : int {};     ///< of each cube
enum class NumCubes : int {};   ///< of the SIP
enum class SipNumber : int {};  ///< of the machine

/// Splits one cube's part over `num_pe` PEs, in PE order. Tiled: a grid of tiles as square as `num_pe` allows (its
/// number of rows is the largest divisor not above the root), dealt to PEs along columns or along rows.
std::vector<LocalShard> resolve_pe_split(PeSplit split, const Region& part, int itemsize, NumPes num_pe);

/// Two levels: the cube split first, then the PE split inside each cube's part; cube-major order. `offset_bytes` is the
/// cube part's offset plus the local one. Replicas have equal offsets. Where a shape does not divide, the first units
/// get one more row or column; a unit may get an empty shard.
///
/// shape       rows x columns, elements
/// target_sip  the SIP that holds it; same inputs with another one give the same list with only `sip` changed
/// Throws      std::invalid_argument naming argument, value and allowed range.
std::vector<ShardSpec> resolve_dp_policy(const DPPolicy& policy, Shape shape, int itemsize, NumPes num_pe,
                                         NumCubes num_cubes, SipNumber target_sip);

}  // namespace kernbench
