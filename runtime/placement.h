#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "tlm/kernel/tile.h"

namespace kernbench {

enum class CubeSplit : std::uint8_t { replicate, column_wise, row_wise };
enum class PeSplit : std::uint8_t { replicate, column_wise, row_wise, tiled_column_major, tiled_row_major };
const char* to_string(CubeSplit split);
const char* to_string(PeSplit split);

/// How a tensor spreads over the cubes and PEs of one SIP. It has no SIP axis in any form: which rank owns which slice
/// of a weight is tensor parallelism, decided by the rank and set_device(rank).
struct DPPolicy {
  CubeSplit cube = CubeSplit::replicate;
  PeSplit pe = PeSplit::replicate;
  std::optional<int> num_pes, num_cubes;  ///< use only the first n
};

/// Logical rows x columns of the tensor that a shard holds.
struct Region {
  std::int64_t row = 0, col = 0, rows = 0, cols = 0;
  bool empty() const { return rows == 0 || cols == 0; }
};

/// One PE's part of a tensor. Identity is structural: cube within SIP, PE within cube; there is no flat index.
struct ShardSpec {
  int sip = 0, cube = 0, pe = 0;
  std::uint64_t offset_bytes = 0, nbytes = 0;  ///< in the tensor's shard-packed virtual range
  Region region;
};

/// Two levels: the cube split first, then the PE split inside each cube's part; cube-major order. `offset_bytes` is the
/// cube part's offset plus the local one. Replicas have equal offsets. Where a shape does not divide, the first units get
/// one more row or column; a unit may get an empty shard.
///
/// shape       rows x columns, elements
/// target_sip  the SIP that holds it; same inputs with another one give the same list with only `sip` changed
/// Throws      std::invalid_argument naming argument, value and allowed range.
std::vector<ShardSpec> resolve_dp_policy(const DPPolicy& policy, Shape shape, int itemsize, int num_pe, int num_cubes, int target_sip);

}  // namespace kernbench
