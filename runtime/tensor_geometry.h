#pragma once
#include <cstdint>
#include <vector>

#include "runtime/placement.h"
#include "runtime/tensor.h"

namespace kernbench {

/// How a tensor lies on its SIP, as an argument of kernels that reach parts of it on other PEs: what its shards are
/// worked out from, on the PE as on the host.
struct TensorGeometry {
  Shape shape{0, 0};                      ///< in elements
  DType dtype = DType::f16;               ///< of the elements
  CubeSplit cube = CubeSplit::replicate;  ///< the outer level of its placement
  PeSplit pe = PeSplit::replicate;        ///< the inner level
  std::uint16_t cubes = 0;                ///< that it spreads over
  std::uint16_t pes_of_cube = 0;          ///< that it spreads over, of each

  /// The shards in the order of Tensor::shards(), by place and not by number of cube and PE, which is 0 to n-1.
  std::vector<ShardSpec> shards() const;
};

/// Of a tensor; of an empty handle without shards.
TensorGeometry geometry_of(const Tensor& tensor);

}  // namespace kernbench
