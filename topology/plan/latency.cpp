#include "topology/plan/latency.h"

#include <algorithm>
#include <set>

#include "models/link/zero_load.h"
#include "models/noc/zero_load.h"
#include "tlm/ext/message.h"
#include "topology/plan/plan.h"

namespace kernbench::topology {

Ps LatencyModel::packet(NodeId from, NodeId to, std::uint32_t bytes) const {
  return along(walk(plan_, from, to), bytes);
}

Ps LatencyModel::along(const std::vector<RouterStep>& steps, std::uint32_t bytes) const {
  const NocConfig* noc = plan_.networks[steps.front().network].noc;
  Flight flight = inject(*noc, bytes, 0);
  unsigned routers = 0;
  for (const RouterStep& step : steps) {
    ++routers;
    if (step.end == kNoEnd) continue;
    const LinkEnd& end = plan_.ends[step.end];
    const NocConfig* next = plan_.networks[plan_.ends[end.peer].network].noc;
    flight = cross(end.link, *noc, *next, pass(*noc, flight, routers));
    noc = next;
    routers = 0;
  }
  return pass(*noc, flight, routers).tail;
}

Ps LatencyModel::waits(const std::vector<RouterStep>& steps) const {
  // At an output the command may find a packet on the output, one on its own input, and a command from each other side.
  constexpr std::uint32_t kPackets = 2, kCommands = 4;
  Ps sum = 0;
  const auto add = [&](const NocConfig& noc) {
    const FlitCounter flits(noc.flit_bytes);
    const std::uint64_t cycles = kPackets * flits(kMaxPacketBytes) + kCommands * flits(kCommandBytes) + 1;
    sum += Clock(noc.clock_hz).at(cycles);
  };
  add(*plan_.networks[steps.front().network].noc);  // injection
  for (const RouterStep& step : steps) {
    add(*plan_.networks[step.network].noc);
    if (step.end == kNoEnd) continue;
    const LinkEnd& end = plan_.ends[step.end];
    const Rate rate = end.link.rate();
    sum += rate.time_for(kMaxPacketBytes + end.link.header_bytes) +
           kCommands * rate.time_for(kCommandBytes + end.link.header_bytes);
    sum += end.link.flit_time();  // one that is not its own
    if (end.link.bit_errors > 0) {
      const std::uint64_t bytes = std::uint64_t{kPackets + kCommands + 1} * (kMaxPacketBytes + end.link.header_bytes);
      const std::uint64_t flits = bytes * end.link.raw_parts / end.link.payload_parts / end.link.flit_bytes + 2;
      sum += flits * BitErrors::kMaxReplays * Wire::replay_time(end.link);
    }
    add(*plan_.networks[plan_.ends[end.peer].network].noc);  // injection at the other side
  }
  return sum;
}

Ps LatencyModel::worst_command() const {
  const MachineMap& map = plan_.map;
  const SystemSpec& spec = plan_.spec;
  std::set<std::uint16_t> different;  // SIPs that are not like the others
  for (const auto& entry : spec.cubes) different.insert(entry.first.sip);
  for (const auto& entry : spec.pes) different.insert(entry.first.sip);
  std::set<const CubeTable*> known;
  Ps worst = 0;
  const auto trip = [&](NodeId from, NodeId to) {
    const std::vector<RouterStep> steps = walk(plan_, from, to);
    return along(steps, kCommandBytes) + waits(steps);
  };
  for (std::uint16_t sip = 0; sip < map.sips; ++sip) {
    if (different.count(sip) == 0 && !known.insert(plan_.cube_table_of[sip]).second) continue;
    for (std::uint16_t cube = 0; cube < map.cubes_per_sip(); ++cube) {
      const CubeCoord at{sip, cube};
      Ps inside = 0;
      for (std::uint16_t pe = 0; pe < map.pes_per_cube; ++pe) {
        if (!map.has({sip, cube, pe})) continue;
        const PeConfig& config = spec.pe_at({sip, cube, pe});
        const Ps handling = config.cpu.command * (config.cpu.kernel_contexts + 1);
        inside = std::max(inside, trip(map.m_cpu(at), map.pe({sip, cube, pe})) + handling);
      }
      const Ps commands = spec.cube_at(at).m_cpu.command * (map.pes_per_cube + 2u);
      worst = std::max(worst, trip(map.io_cpu(sip), map.m_cpu(at)) + commands + inside);
    }
  }
  return worst;
}

}  // namespace kernbench::topology
