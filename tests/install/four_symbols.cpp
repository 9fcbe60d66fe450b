// An algorithm module of the four symbols and nothing else; variants of it declare what they must not.
#include <algorithm>
#include <tuple>

#include "ccl/contract/contract.h"

namespace kernbench::ccl {
namespace {

std::tuple<std::int64_t, int, int, int> kernel_args(int world_size, std::int64_t n_elem, int cube_w, int cube_h) {
  return {n_elem, cube_w, cube_h, world_size};
}

/// Every rank's tile goes once around the ring.
void kernel(Va t_ptr, std::int64_t, int, int, int n_sips, int, int sip_topo_kind, int, int, Tl& tl) {
  if (sip_topo_kind != kTopologyKinds.ring_1d)
    throw KernelError("unsupported topology kind " + std::to_string(sip_topo_kind));
  constexpr std::int64_t kChunk = 1024;
  const DType dtype = tl.call().dtype;
  const ShardView own = tl.shard(t_ptr);
  for (std::int64_t i = 0; i < own.count(); i += kChunk) {
    const std::int64_t n = std::min(kChunk, own.count() - i);
    const Va at = own.va + static_cast<Va>(i) * size_of(dtype);
    Tile travels = tl.load(at, {1, n}, dtype), sum = travels;
    for (int step = 1; step < n_sips; ++step) {
      tl.send(Direction::global_e(), travels);
      travels = tl.recv(Direction::global_w(), {1, n}, dtype);
      sum = sum + travels;
    }
    tl.store(at, sum);
  }
}

#ifdef KERNBENCH_PARAMETERS
constexpr Parameter kParameters[] = {KERNBENCH_PARAMETERS};
#endif

}  // namespace
}  // namespace kernbench::ccl

KERNBENCH_CCL_MODULE() {
  using namespace kernbench;
  using namespace kernbench::ccl;
  static const Algorithm algorithm = [] {
    Algorithm a;
    a.name = "four_symbols";
    a.topology_kinds = &kTopologyKinds;
    a.kernel_args = make_kernel_args<&kernel_args>();
    a.kernel = make_kernel<&kernel>();
#ifdef KERNBENCH_SCOPES
    a.scopes = KERNBENCH_SCOPES;
#endif
#ifdef KERNBENCH_PARAMETERS
    a.parameters = kParameters;
    a.parameter_count = sizeof kParameters / sizeof kParameters[0];
#endif
    return a;
  }();
  return &algorithm;
}
