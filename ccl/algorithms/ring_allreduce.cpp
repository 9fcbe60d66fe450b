#include "ccl/contract/verbs.h"

/// Ring all-reduce over SIPs: reduce-scatter, then all-gather, in both directions at once.
///
/// Every PE that holds a shard reduces it with the same PE of the other SIPs. On a torus or mesh the ring is embedded
/// over the ranks (ring_order in ccl/contract/grid.h). Cost for p ranks and a link of B bytes per second each way,
/// links full duplex: 2(p-1) a + (p-1)/p S/B on a ring, which is its bound; half of the bound on a square torus, 0.67
/// on a 4 x 4 mesh.
namespace kernbench::ccl {
namespace {

void ring_kernel(Va t_ptr, std::int64_t /*n_elem*/, int /*cube_w*/, int /*cube_h*/, int n_sips, int sip_rank,
                 int sip_topo_kind, int sip_topo_w, int sip_topo_h, Tl& tl) {
  Verbs verbs(tl, n_sips);
  ring_all_reduce(verbs, ring_position(sip_topo_kind, sip_topo_w, sip_topo_h, n_sips, sip_rank), verbs.own(t_ptr));
}

}  // namespace

KERNBENCH_CCL_BUILT_IN(ring_allreduce) {
  static const Algorithm algorithm = kernel_algorithm<&schedule_kernel_args, &ring_kernel>(
      {"ring_allreduce", bit(CollectiveOp::all_reduce), bit(Scope::sip), kAllTopologies}, kGlobalRing, kChunkBytes);
  return &algorithm;
}

}  // namespace kernbench::ccl
