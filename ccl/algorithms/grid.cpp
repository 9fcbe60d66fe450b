#include "ccl/schedule/plan.h"

/// The grid of SIPs in its three forms: one construction (plan_grid), which reaches the bound of each.
namespace kernbench::ccl {
namespace {

constexpr const char* kRing = "ring";
constexpr const char* kTorus = "torus_2d";
constexpr const char* kMesh = "mesh_2d";

/// `Name`: also of the schedules.
template <const char* const& Name>
const Algorithm* grid_algorithm(std::int32_t topology) {
  static const Algorithm algorithm = schedule_algorithm(
      {Name, kAllOperations, kAllScopes, topology_bit(topology)},
      [](const PlanRequest& request) { return plan_grid(Name, request); }, &machine_links);
  return &algorithm;
}

}  // namespace

/// All operations on a ring, both directions at once.
///
/// all_gather and reduce_scatter: each rank's part goes both ways round at once, on a tree of shortest paths; the
/// message with the longest way left first. all_reduce is both: 2 floor(p/2) dependent steps, (p-1)/p S/B, its bound.
/// all_to_all: p/8 S/B for even p. broadcast and reduce: half of the data each way round, S/2B. With cubes that
/// contribute on their own: as `hierarchical`.
KERNBENCH_CCL_BUILT_IN(ring) { return grid_algorithm<kRing>(kTopologyKinds.ring_1d); }

/// All operations on a torus, both dimensions and both directions at once.
///
/// Every rank's part travels half (or the share that loads all links alike) on a tree that goes along the rows first,
/// the rest on one that goes along the columns first. all_reduce: (p-1)/(2p) S/B on a torus with sides of at least 3,
/// its bound; D dependent hops in each half. all_to_all: max(w, h)/8 S/B for even sides. With cubes that contribute on
/// their own: as `hierarchical`.
KERNBENCH_CCL_BUILT_IN(torus_2d) { return grid_algorithm<kTorus>(kTopologyKinds.torus_2d); }

/// All operations on a mesh without wrap-around.
///
/// Large all_reduce on a packing of comb trees, up and down at once and pipelined: (p-1)/E S/B, its bound, where a
/// reduce-scatter and an all-gather pay the corners twice; below some size these two are shorter, and are taken.
/// all_gather and reduce_scatter: (p-1)/(2p) S/B, the bound of a corner. all_to_all: max(w, h)/4 S/B for even sides.
/// With cubes that contribute on their own: as `hierarchical`.
KERNBENCH_CCL_BUILT_IN(mesh_2d) { return grid_algorithm<kMesh>(kTopologyKinds.mesh_2d_no_wrap); }

}  // namespace kernbench::ccl
