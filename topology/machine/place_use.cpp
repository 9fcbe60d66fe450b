/// What a SIP has done, place by place: what replay repeats.
#include "topology/machine/machine.h"
#include "topology/machine/place_key.h"
#include "topology/machine/statistics.h"
#include "topology/plan/plan.h"

namespace kernbench::topology {

std::uint32_t MachineUsage::number_of(std::uint64_t key) {
  return numbers_.emplace(key, static_cast<std::uint32_t>(numbers_.size())).first->second;
}

std::vector<PlaceUse> MachineUsage::done(std::uint16_t sip, Ps since, bool links) {
  for (std::uint16_t cube = 0; !links && cube < plan_.map.cubes_per_sip(); ++cube) machine_.hbm({sip, cube}).flush();
  std::vector<PlaceUse> uses(numbers_.size());
  const auto use_of = [&](std::uint32_t number) -> PlaceUse& {
    if (number >= uses.size()) uses.resize(number + std::size_t{1});
    return uses[number];
  };
  const auto put = [&](std::uint32_t number, const Usage& usage) {
    if (!usage.used()) return;
    const Usage::Sum sum = usage.sum();
    use_of(number) = {
        sum.busy, sum.bytes, sum.messages, {usage.waited(0), usage.waited(1), usage.waited(2)}, usage.mark(since)};
  };
  for (const Place& place : by_sip_[sip]) {
    if (place.between_sips != links) continue;
    if (place.router == nullptr) {
      put(place.number, *place.usage);
      continue;
    }
    const std::vector<VcUse> channels = place.router->virtual_channels(place.port);
    for (std::size_t vc = 0; vc < channels.size(); ++vc) {
      const VcUse& one = channels[vc];
      if (one.packets == 0) continue;
      use_of(number_of(place.channels + vc)) = {one.busy, one.bytes, one.packets, {one.waiting, 0, 0}, 0};
    }
  }
  if (links) return uses;
  for (const PeCoord at : plan_.map.pes(sip)) {
    std::uint32_t ordinal = 0;
    for (const QueueStatistics& queue : machine_.pe(at).ipcq_statistics())
      put(number_of(key_of(Where::ipcq, at.cube, at.pe, ordinal++)), *queue.usage);
  }
  return uses;
}

}  // namespace kernbench::topology
