// A kernel with queues of its own: every rank sends to the rank that the parameter `hub` names.
#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "ccl/contract/contract.h"

namespace kernbench::ccl {
namespace {

constexpr Parameter kParameters[] = {{"hub", Parameter::Unit::none, 0, 0, 1023, "rank that sums"}};

std::vector<std::pair<std::int32_t, std::int32_t>> links(const PlanRequest& request) {
  const auto hub = static_cast<std::int32_t>(request.parameters.at("hub"));
  if (hub >= request.nodes()) throw std::invalid_argument("hub " + std::to_string(hub) + " is no rank");
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  for (std::int32_t r = 0; r < request.nodes(); ++r) {
    if (r != hub) pairs.emplace_back(std::min(r, hub), std::max(r, hub));
  }
  return pairs;
}

std::tuple<int> kernel_args(int world_size, std::int64_t, int, int) { return {world_size}; }

void kernel(Va t_ptr, int n_sips, int sip_rank, int, int, int, Tl& tl) {
  constexpr std::int64_t kChunk = 1024;
  const int hub = static_cast<int>(tl.call().parameters.at("hub"));
  const DType dtype = tl.call().dtype;
  const ShardView own = tl.shard(t_ptr);
  for (std::int64_t i = 0; i < own.count(); i += kChunk) {
    const std::int64_t n = std::min(kChunk, own.count() - i);
    const Va at = own.va + static_cast<Va>(i) * size_of(dtype);
    Tile sum = tl.load(at, {1, n}, dtype);
    if (sip_rank == hub) {
      for (int r = 0; r < n_sips; ++r) {
        if (r != hub) sum = sum + tl.recv(Direction::global(r), {1, n}, dtype);
      }
      for (int r = 0; r < n_sips; ++r) {
        if (r != hub) tl.send(Direction::global(r), sum);
      }
    } else {
      tl.send(Direction::global(hub), sum);
      sum = tl.recv(Direction::global(hub), {1, n}, dtype);
    }
    tl.store(at, sum);
  }
}

}  // namespace
}  // namespace kernbench::ccl

KERNBENCH_CCL_MODULE() {
  using namespace kernbench;
  using namespace kernbench::ccl;
  static const Algorithm algorithm = [] {
    Algorithm a = kernel_algorithm<&kernel_args, &kernel>({"star"}, kCubeGrid | kGlobalGrid, kParameters);
    a.links = links;
    return a;
  }();
  return &algorithm;
}
