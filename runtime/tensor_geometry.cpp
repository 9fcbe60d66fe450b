#include "runtime/tensor_geometry.h"

#include <algorithm>

namespace kernbench {

std::vector<ShardSpec> TensorGeometry::shards() const {
  if (cubes == 0) return {};
  return resolve_dp_policy(DPPolicy().cube(cube).pe(pe), shape, static_cast<int>(size_of(dtype)), NumPes{pes_of_cube},
                           NumCubes{cubes}, SipNumber{0});
}

TensorGeometry geometry_of(const Tensor& tensor) {
  TensorGeometry geometry;
  if (!tensor) return geometry;
  geometry.shape = tensor.shape();
  geometry.dtype = tensor.dtype();
  geometry.cube = tensor.policy().cube();
  geometry.pe = tensor.policy().pe();
  const std::vector<ShardSpec>& shards = tensor.shards();
  const int first = shards.front().cube;
  geometry.pes_of_cube = static_cast<std::uint16_t>(
      std::count_if(shards.begin(), shards.end(), [&](const ShardSpec& shard) { return shard.cube == first; }));
  geometry.cubes = static_cast<std::uint16_t>(shards.size() / geometry.pes_of_cube);
  return geometry;
}

}  // namespace kernbench
