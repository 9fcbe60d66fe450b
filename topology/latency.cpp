#include "topology/latency.h"

#include <algorithm>
#include <set>

#include "tlm/ext/message.h"
#include "topology/plan.h"

namespace kernbench::topology {

namespace {

std::uint32_t flits(std::uint32_t bytes, const NocConfig& noc) {
  return bytes <= noc.flit_bytes ? 1 : (bytes + noc.flit_bytes - 1) / noc.flit_bytes;
}

/// Cycles from the input of a router to the next input.
std::uint64_t hop_cycles(const NocConfig& noc) {
  return noc.routing_delay + noc.vc_alloc_delay + noc.sw_alloc_delay + noc.switch_delay + noc.link_delay;
}

struct Flight {
  Ps head = 0, tail = 0;
};

/// Through a network with `routers` routers on the way, from the cycle in which the source sends the first flit.
Flight cross_network(std::uint64_t start, std::size_t routers, std::uint32_t bytes, const NocConfig& noc) {
  const Clock clock(noc.clock_hz);
  const std::uint64_t arrival = start + 1 + noc.link_delay + routers * hop_cycles(noc);
  return {clock.at(arrival), clock.at(arrival + flits(bytes, noc) - 1)};
}

/// Over a wire: cut-through, but never faster than the flits come in.
Flight cross_wire(Flight in, std::uint32_t bytes, const LinkConfig& link, const NocConfig& noc) {
  const Rate rate = link.rate();
  const Ps held = rate.time_for(std::uint64_t{bytes} + link.header_bytes);
  const Ps gapless = in.tail + rate.time_for(bytes - (flits(bytes, noc) - 1) * noc.flit_bytes);
  const Ps start = std::max(in.head, gapless > held ? gapless - held : 0);
  return {start + link.latency, start + held + link.latency};
}

/// Cycle in which a link port can inject what comes over a wire: once its first flit is complete, and no flit has to
/// wait.
std::uint64_t injection_cycle(Flight in, std::uint32_t bytes, const LinkConfig& link, const NocConfig& noc) {
  const Clock clock(noc.clock_hz);
  const std::uint32_t first = std::min(bytes, noc.flit_bytes);
  const Ps complete = std::min(in.tail, in.head + link.rate().time_for(std::uint64_t{first} + link.header_bytes));
  const std::uint64_t body = flits(bytes, noc) - 1, last = clock.tick_at_or_after(in.tail);
  return std::max(clock.tick_at_or_after(complete), last > body ? last - body : 0);
}

}  // namespace

Ps LatencyModel::packet(NodeId from, NodeId to, std::uint32_t bytes) const {
  return along(walk(plan_, from, to), bytes);
}

Ps LatencyModel::along(const std::vector<RouterStep>& steps, std::uint32_t bytes) const {
  std::uint64_t start = 0;
  std::size_t routers = 0;
  for (const RouterStep& step : steps) {
    ++routers;
    const NocConfig& noc = *plan_.networks[step.network].noc;
    if (&step == &steps.back()) return cross_network(start, routers, bytes, noc).tail;
    if (step.end == kNoEnd) continue;
    const LinkEnd& end = plan_.ends[step.end];
    const LinkEnd& peer = plan_.ends[end.peer];
    const Flight arrival = cross_wire(cross_network(start, routers, bytes, noc), bytes, end.link, noc);
    start = injection_cycle(arrival, bytes, peer.link, *plan_.networks[peer.network].noc);
    routers = 0;
  }
  return 0;
}

Ps LatencyModel::waits(const std::vector<RouterStep>& steps) const {
  // At an output the command may find a packet on the output, one on its own input, and a command from each other side.
  constexpr std::uint32_t kPackets = 2, kCommands = 4;
  Ps sum = 0;
  const auto add = [&](const NocConfig& noc) {
    const std::uint64_t cycles = kPackets * flits(kMaxPacketBytes, noc) + kCommands * flits(kCommandBytes, noc) + 1;
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
