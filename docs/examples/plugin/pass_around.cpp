// ccl.yaml: algorithms: { pass_around: { module: ./build/pass_around.so } }
#include <kernbench/kernbench.h>

#include <tuple>

using namespace kernbench;
using namespace kernbench::ccl;

namespace {

std::tuple<std::int64_t, std::int32_t> kernel_args(int world_size, std::int64_t n_elem, int, int) {
  return {n_elem, world_size};
}

/// The plainest all-reduce: each rank's tile travels once around the ring, and everybody adds it. It sends p - 1 times
/// the data where a good algorithm sends 2 (p - 1) / p, and ranks add in different orders.
void kernel(Va t_ptr, std::int64_t, std::int32_t ranks, std::int32_t, std::int32_t, std::int32_t, std::int32_t,
            Tl& tl) {
  if (tl.call().reduce_op != ReduceOp::sum) throw KernelError("pass_around: sums only");
  constexpr std::int64_t kChunk = 1024;
  const DType dtype = tl.call().dtype;
  const ShardView own = tl.shard(t_ptr);
  for (std::int64_t i = 0; i < own.count(); i += kChunk) {
    const std::int64_t n = std::min(kChunk, own.count() - i);
    const Va at = own.va + static_cast<Va>(i) * size_of(dtype);
    Tile travels = tl.load(at, {1, n}, dtype), sum = travels;
    for (std::int32_t step = 1; step < ranks; ++step) {
      tl.send(Direction::global_e(), travels);
      travels = tl.recv(Direction::global_w(), {1, n}, dtype);
      sum = sum + travels;
    }
    tl.store(at, sum);
  }
}

}  // namespace

KERNBENCH_CCL_MODULE() {
  static const Algorithm algorithm = kernel_algorithm<&kernel_args, &kernel>(
      {"pass_around", bit(CollectiveOp::all_reduce), bit(Scope::sip), topology_bit(kTopologyKinds.ring_1d)},
      kGlobalGrid);
  return &algorithm;
}
