#include "runtime/tp/own_shard.h"

#include <set>
#include <vector>

namespace kernbench::tp {

OwnShard own_shard(Va base, const TensorGeometry& geometry, const Tl& tl) {
  const std::uint64_t offset = tl.shard(base).va - base;
  std::set<std::uint64_t> seen;
  for (const ShardSpec& shard : geometry.shards()) {
    if (shard.region.empty()) continue;
    seen.insert(shard.offset_bytes);
    if (shard.offset_bytes == offset) return {shard.region, static_cast<int>(seen.size()) - 1};
  }
  throw KernelError("the PE holds no part of the tensor that it is to write");
}

int distinct_shards(const TensorGeometry& geometry) {
  std::set<std::uint64_t> seen;
  for (const ShardSpec& shard : geometry.shards()) {
    if (!shard.region.empty()) seen.insert(shard.offset_bytes);
  }
  return static_cast<int>(seen.size());
}

LaunchOptions on_pes_of(const Tensor& tensor) {
  LaunchOptions options;
  options.alone = true;
  for (const ShardSpec& shard : tensor.shards()) {
    if (shard.region.empty()) continue;
    options.targets.push_back({static_cast<std::uint16_t>(shard.sip), static_cast<std::uint16_t>(shard.cube),
                               static_cast<std::uint16_t>(shard.pe)});
  }
  return options;
}

namespace {
/// Of the largest batch that every cube holds for itself. assumed: 8 rows a PE of the default machine.
constexpr std::int64_t kFewRows = 64;
}  // namespace

DPPolicy rows_for_gemm(std::int64_t rows) { return rows <= kFewRows ? DPPolicy().pe(PeSplit::row_wise) : dense_rows(); }

DPPolicy dense_rows() { return DPPolicy().cube(CubeSplit::row_wise).pe(PeSplit::row_wise); }

}  // namespace kernbench::tp
