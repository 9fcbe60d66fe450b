#pragma once
#include "ccl/contract/grid.h"
#include "ccl/contract/schedule.h"
#include "ccl/schedule/lattice.h"

namespace kernbench::ccl::test {

/// w x h SIPs of cube_w x cube_h contributors; the links between cubes are four times as fast as those between SIPs.
inline PlanRequest machine(CollectiveOp op, std::int32_t kind, int w, int h, int cube_w = 1, int cube_h = 1) {
  PlanRequest request;
  request.op = op;
  request.kind = kind;
  request.sip_w = w;
  request.sip_h = h;
  request.ranks = w * h;
  request.cube_w = cube_w;
  request.cube_h = cube_h;
  request.root = request.nodes() - 1;
  request.cube.bytes_per_second = 4 * request.sip.bytes_per_second;
  return request;
}

/// Links of the node that has the fewest.
inline int least_links(const Lattice& grid) {
  std::size_t least = 4;
  for (int v = 0; v < grid.nodes(); ++v) least = std::min(least, grid.neighbours(v).size());
  return static_cast<int>(least);
}

inline int edges(const Lattice& grid) { return static_cast<int>(Graph::of(grid).edges.size()); }

}  // namespace kernbench::ccl::test
