#include "ccl/contract/verbs.h"

/// Hierarchical all-reduce, left-right alternating broadcast.
///
/// Reduces along the cube rows from left and right to the middle column, then along that column to the middle cube,
/// then between the middle cubes of all SIPs in the same way (along the rows, then the middle column of a torus or
/// mesh; from both sides of a ring), and sends the result back the same way. These phases are one spanning tree,
/// through which messages flow in a pipeline, up and down at once; PE i of every cube works on slice i. Each link of
/// the tree carries S once each way: 2 * depth dependent steps, then S/B. With one cube per SIP only the phase between
/// SIPs is left.
namespace kernbench::ccl {
namespace {

void lrab_kernel(Va t_ptr, std::int64_t /*n_elem*/, int cube_w, int cube_h, int n_sips, int sip_rank, int sip_topo_kind,
                 int sip_topo_w, int sip_topo_h, Tl& tl) {
  TreePosition tree = tree_position(Grid::sips(sip_topo_kind, sip_topo_w, sip_topo_h, n_sips), sip_rank, true);
  const int cubes = cube_w * cube_h;
  if (cubes > 1) tree = join(tree, tree_position(Grid::mesh(cube_w, cubes), static_cast<int>(tl.program_id(1)), false));
  Verbs verbs(tl, std::int64_t{n_sips} * cubes);
  tree_all_reduce(verbs, tree, verbs.own(t_ptr));
}

}  // namespace

KERNBENCH_CCL_BUILT_IN(lrab_hierarchical_allreduce) {
  static const Algorithm algorithm = kernel_algorithm<&schedule_kernel_args, &lrab_kernel>(
      {"lrab_hierarchical_allreduce", bit(CollectiveOp::all_reduce), bit(Scope::sip) | bit(Scope::cube),
       topology_bit(kRing1d) | topology_bit(kTorus2d) | topology_bit(kMesh2d)},
      kCubeGrid | kGlobalGrid, kChunkBytes);
  return &algorithm;
}

}  // namespace kernbench::ccl
