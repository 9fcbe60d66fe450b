#include "ccl/crowding.h"

#include <algorithm>
#include <set>

#include "ccl/grid.h"

namespace kernbench::ccl {
namespace {

/// What leaves a SIP passes its columns in so many times a message's way at most.   assumed, by sizes in factors of two
/// (fc8, 16 PEs each; decision 0500):
/// - data for one rank lie in few rows of cubes, and upper rows keep the columns busy while links that lower rows use
///   are idle. reduce_scatter is 16 to 23 % slower than rehearsed at 0.8 and above, scatter 18 %
constexpr double kBusyOfParts = 0.3;
/// - elsewhere all rows feed all links: 7 % slower at 6
constexpr double kBusy = 4;

/// Where on a SIP the elements of a tensor lie.
struct Cubes {
  std::set<int> rows, columns;
};

Cubes cubes_of(const LaunchMessage::TensorArg& tensor, const MachineMap& map) {
  Cubes cubes;
  for (const TensorShard& shard : tensor.shards) {
    if (shard.nbytes == 0) continue;
    cubes.rows.insert(shard.owner.cube / map.cube_w);
    cubes.columns.insert(shard.owner.cube % map.cube_w);
  }
  return cubes;
}

/// Columns of cubes that several rows share; 0: each row of cubes has its columns to itself.
int shared_columns(const CallTensors* tensors, const MachineMap& map) {
  if (tensors == nullptr) return map.cube_h > 1 ? map.cube_w : 0;
  int columns = 0;
  for (const LaunchMessage::TensorArg* tensor : {&tensors->in, &tensors->out}) {
    const Cubes cubes = cubes_of(*tensor, map);
    if (cubes.rows.size() < 2) continue;
    const int its = static_cast<int>(cubes.columns.size());
    columns = columns == 0 ? its : std::min(columns, its);
  }
  return columns;
}

/// Share of a call's bytes that leaves the SIP from which the most do.
double share_that_leaves(CollectiveOp op, int ranks) {
  const double others = ranks - 1;
  return (op == CollectiveOp::gather ? 1.0 : others) / ranks;
}

}  // namespace

bool crowds_columns(const MachineMap& map, const PlanRequest& request, CollectiveOp op, double bytes,
                    const CallTensors* tensors) {
  if (request.kind != kFullyConnected) return false;
  const double rate = request.column_bytes_per_second * shared_columns(tensors, map);
  if (rate <= 0) return false;
  const bool parts = op == CollectiveOp::reduce_scatter || op == CollectiveOp::scatter;
  return bytes * share_that_leaves(op, request.ranks) > (parts ? kBusyOfParts : kBusy) * request.sip.hop_seconds * rate;
}

}  // namespace kernbench::ccl
