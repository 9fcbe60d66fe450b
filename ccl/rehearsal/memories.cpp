#include "ccl/rehearsal/memories.h"

#include "ccl/level_cost.h"

namespace kernbench::ccl {
std::uint32_t Memories::add(PeCoord from, PeCoord owner) {
  const PeRates rates = map_.rates(owner);
  const auto [slice, fresh] = numbers_.try_emplace(owner, static_cast<std::uint32_t>(slices_.size()));
  if (fresh) slices_.emplace_back(rates);
  Reach reach{ways_.way(from, owner), ways_.way(owner, from), seconds(rates.engines.hbm_hit), slice->second};
  if (map_.packet_latency) {
    const NodeId self = map_.pe(from), port = map_.hbm_port(owner);
    reach.to.seconds = seconds(map_.packet_latency(self, port, 0));
    reach.from.seconds = seconds(map_.packet_latency(port, self, 64));
  }
  reaches_.push_back(std::move(reach));
  return static_cast<std::uint32_t>(reaches_.size()) - 1;
}

}  // namespace kernbench::ccl
