#include "topology/plan/plan.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "tlm/machine/names.h"
#include "topology/plan/cube_mesh.h"
#include "topology/plan/deadlock.h"
#include "topology/plan/latency.h"
#include "topology/plan/machine_error.h"
#include "topology/spec/neighbours.h"

namespace kernbench::topology {

Plan::Plan(SystemSpec the_spec) : spec(std::move(the_spec)) {
  map.sips = spec.sips;
  map.cube_w = spec.sip.cube_w;
  map.cube_h = spec.sip.cube_h;
  map.pes_per_cube = spec.cube.pes;
  map.sip_topology = spec.topology;
  map.sip_w = spec.sip_w;
  map.sip_h = spec.sip_h;
  lay_out();
  attach_initiators();
  fill_nodes();
  connect();
  route();
  fill_capacities();
  check_deadlock(*this, Coverage::representatives);
  const auto latency = std::make_shared<const LatencyModel>(*this);
  map.packet_latency = [latency](NodeId from, NodeId to, std::uint32_t bytes) {
    return latency->packet(from, to, bytes);
  };
  map.wires = [this](NodeId from, NodeId to) {
    std::vector<WireUse> on_way;
    for (const RouterStep& step : walk(*this, from, to)) {
      if (step.end == kNoEnd) continue;
      on_way.push_back(
          {step.end * WireUse::kConnections + step.connection, ends[step.end].link.payload_rate(kMaxPacketBytes)});
    }
    return on_way;
  };
  map.worst_command_latency = latency->worst_command();
}

void Plan::lay_out() {
  std::map<std::string, const CubeLayout*> known;
  std::map<std::string, const MeshRoutes*> routed;
  Mismatches found;
  for (std::uint16_t sip = 0; sip < spec.sips; ++sip) {
    for (std::uint16_t cube = 0; cube < map.cubes_per_sip(); ++cube) {
      const CubeSpec& here = spec.cube_at({sip, cube});
      const bool first = sip == 0 && cube == 0;
      if (!first && &here == &spec.cube && layout_of.front() != nullptr && &spec.cube_at({0, 0}) == &spec.cube) {
        layout_of.push_back(layout_of.front());
        mesh_of.push_back(mesh_of.front());
        continue;
      }
      const std::string hash = determinants(here).hash();
      const auto [layout, new_layout] = known.try_emplace(hash);
      if (new_layout) found.tell([&, at = layout] { at->second = &layouts.emplace_back(find_layout(here, spec)); });
      const auto [mesh, new_mesh] = routed.try_emplace(hash + std::to_string(static_cast<int>(here.noc.routing)));
      if (new_mesh && layout->second != nullptr) {
        found.tell([&, at = mesh, of = layout->second] {
          at->second = &meshes.emplace_back(route_mesh(*of, here.noc.routing));
        });
      }
      layout_of.push_back(layout->second);
      mesh_of.push_back(mesh->second);
    }
    found.tell([&] { crossbars.push_back(layout_io(spec, sip)); });
  }
  if (has_fabric()) found.tell([&] { crossbars.push_back(layout_fabric(spec)); });
  found.throw_if_any();
}

void Plan::attach_initiators() {
  std::map<std::uint32_t, CubeLayout*> own;  // by cube: one that no other cube shares
  Mismatches found;
  const auto attach = [&](const InitiatorSpot& at) {
    if (at.cube.sip >= spec.sips || at.cube.cube >= map.cubes_per_sip()) {
      throw MachineError("system.sips", fmt::format("the machine has no {} for an initiator", names::cube(at.cube)),
                         "give a cube that there is");
    }
    CubeLayout*& layout = own[cube_network(at.cube)];
    const CubeLayout*& used = layout_of[cube_network(at.cube)];
    if (layout == nullptr) used = layout = &layouts.emplace_back(*used);
    const auto number = static_cast<std::uint16_t>(initiators.size());
    initiators.push_back(hang(*layout, at.router, {LocalKind::initiator, number, Side::north}));
  };
  for (const InitiatorSpot& at : spec.initiators) found.tell([&] { attach(at); });
  found.throw_if_any();
}

void Plan::fill_nodes() {
  const auto add = [&](NodeKind kind, std::uint16_t unit, std::uint16_t sip, std::uint16_t cube, Spot spot) {
    map.nodes.push_back({kind, unit, {sip, cube, spot.router, spot.port}});
    return NodeId{static_cast<std::uint32_t>(map.nodes.size() - 1)};
  };
  for (std::uint16_t sip = 0; sip < spec.sips; ++sip) {
    for (std::uint16_t cube = 0; cube < map.cubes_per_sip(); ++cube) {
      const CubeLayout& layout = *layout_of[cube_network({sip, cube})];
      for (std::uint16_t pe = 0; pe < map.pes_per_cube; ++pe) {
        const bool missing = spec.missing_pes.count({sip, cube, pe}) != 0;
        map.pe_nodes.push_back(missing ? kNoNode : add(NodeKind::pe, pe, sip, cube, layout.pes[pe]));
      }
      for (std::uint16_t pe = 0; pe < map.pes_per_cube; ++pe) {
        map.hbm_nodes.push_back(add(NodeKind::hbm_port, pe, sip, cube, layout.hbm_ports[pe]));
      }
      map.sram_nodes.push_back(add(NodeKind::sram, 0, sip, cube, layout.sram));
      map.m_cpu_nodes.push_back(add(NodeKind::m_cpu, 0, sip, cube, layout.m_cpu));
    }
    map.pcie_nodes.push_back(add(NodeKind::pcie_ep, 0, sip, kIoChiplet, crossbars[sip].pcie_ep));
    map.io_cpu_nodes.push_back(add(NodeKind::io_cpu, 0, sip, kIoChiplet, crossbars[sip].io_cpu));
  }
  for (std::uint16_t i = 0; i < initiators.size(); ++i) {  // last: all others keep their numbers
    const CubeCoord at = spec.initiators[i].cube;
    map.initiator_nodes.push_back(add(NodeKind::initiator, i, at.sip, at.cube, initiators[i]));
  }
}

void Plan::route() {
  const std::uint16_t cubes = map.cubes_per_sip();
  std::map<CubeTable::Broken, const CubeTable*> known;
  Mismatches found;
  for (std::uint16_t sip = 0; sip < spec.sips; ++sip) {
    CubeTable::Broken broken;
    for (const auto& [cube, other] : spec.broken_cube_links) {
      if (cube.sip == sip) broken.insert({cube.cube, other});
    }
    const auto [table, fresh] = known.try_emplace(broken);
    if (fresh) {
      found.tell([&, at = table] { at->second = &cube_tables.emplace_back(map.cube_w, map.cube_h, broken, sip); });
    }
    cube_table_of.push_back(table->second);
  }
  found.tell([&] { sip_table.emplace(spec); });
  found.throw_if_any();
  for (Network& network : networks) {
    switch (network.kind) {
      case NetworkKind::cube: {
        const std::size_t slot = std::size_t{network.sip} * cubes + network.cube;
        routes.push_back(std::make_unique<CubeRoutes>(map, layout_of, *cube_table_of[network.sip], *network.layout,
                                                      *mesh_of[slot], CubeCoord{network.sip, network.cube}));
        break;
      }
      case NetworkKind::io:
        routes.push_back(std::make_unique<IoRoutes>(map, layout_of, *sip_table, *network.crossbar, network.sip));
        break;
      case NetworkKind::fabric:
        routes.push_back(std::make_unique<FabricRoutes>(map, *network.crossbar));
        break;
    }
    network.routes = routes.back().get();
  }
}

namespace {

PeEngines engines_of(const HbmConfig& hbm, std::uint32_t slices, const PeConfig& pe) {
  PeEngines engines;
  engines.dispatch = pe.cpu.dispatch;
  engines.math_queue = pe.math.queue_depth;
  engines.ipcq_queue = pe.ipcq.queue_depth;
  engines.dma_setup = pe.dma.setup;
  engines.dma_bytes = std::uint64_t{pe.dma.outstanding} * pe.dma.burst_bytes;
  engines.math_hz = pe.math.clock_hz;
  engines.math_lanes = pe.math.lanes;
  engines.math_fill = pe.math.pipeline_cycles;
  const Clock ck(hbm.ck_hz);
  engines.hbm_hit = hbm.controller_latency + ck.at(hbm.timing.t_cl + hbm.timing.t_dqsck + hbm.burst_ck);
  const std::uint64_t waiting = hbm.queue_places_of_pseudo_channel() + hbm.channel_banks() / hbm.pseudo_channels;
  engines.hbm_write_queue = waiting * hbm.burst_bytes * (hbm.total_pseudo_channels() / slices);
  engines.kernel_contexts = pe.cpu.kernel_contexts;
  engines.gemm_hz = pe.gemm.clock_hz;
  engines.gemm_rows = pe.gemm.rows;
  engines.gemm_cols = pe.gemm.cols;
  engines.weights_stay = pe.gemm.dataflow == GemmDataflow::weight_stationary;
  engines.f8_rate = pe.gemm.f8_rate;
  engines.f16_rate = pe.gemm.f16_rate;
  engines.f32_cycles = pe.gemm.f32_cycles;
  return engines;
}

PeRates rates_of(const CubeSpec& cube, const PeConfig& pe) {
  const HbmConfig& hbm = cube.hbm;
  return {Rate(hbm.pseudo_channel_peak().bytes_per_second() * (hbm.total_pseudo_channels() / cube.pes)),
          Rate(pe.tcm.bytes_per_second), cube.noc.link_rate(), engines_of(hbm, cube.pes, pe)};
}

}  // namespace

void Plan::fill_capacities() {
  const CubeSpec& cube = spec.cube;
  const PeRates usual = rates_of(cube, cube.pe);
  map.hbm_slice = {cube.hbm.bytes / cube.pes, usual.hbm_slice};
  map.tcm = {cube.pe.tcm.bytes, usual.tcm};
  map.sram = {cube.sram.bytes, Rate(cube.sram.bytes_per_second)};
  map.pe_port = usual.port;
  map.engines = usual.engines;
  map.fingerprint = spec.fingerprint;
  for (const auto& [at, odd] : spec.cubes) {
    for (std::uint16_t pe = 0; pe < map.pes_per_cube; ++pe) map.odd_pes[{at.sip, at.cube, pe}] = rates_of(odd, odd.pe);
  }
  for (const auto& [at, odd] : spec.pes) map.odd_pes[at] = rates_of(spec.cube_at(at.in_cube()), odd);
  map.ipcq_slots = static_cast<std::uint16_t>(cube.pe.ipcq.slots);
  map.ipcq_slot_bytes = cube.pe.ipcq.slot_bytes;
  constexpr MemoryKind kBuffers[] = {MemoryKind::tcm, MemoryKind::sram, MemoryKind::hbm};  // by IpcqBuffer
  map.ipcq_buffer = kBuffers[static_cast<std::size_t>(cube.pe.ipcq.buffer)];
  for (const LinkEnd& end : ends) {
    const LinkEnd& peer = ends[end.peer];
    const Network& a = networks[end.network];
    const Network& b = networks[peer.network];
    if (&end > &peer) continue;
    const bool between_sips = end.kind->between_sips;
    const LinkConfig& link = end.link;
    LinkBundle bundle;
    bundle.a = between_sips ? a.sip : a.cube;
    bundle.b = between_sips ? (b.kind == NetworkKind::fabric ? kFabric : b.sip) : b.cube;
    const std::size_t connections = end.spots->size();
    bundle.capacity =
        Rate(std::min({link.payload_rate().bytes_per_second(), port_payload_rate(*a.noc), port_payload_rate(*b.noc)}) *
             connections);
    // There and back may differ: behind a switch one way has its latency, too.
    bundle.latency = (link.latency + peer.link.latency) / 2 + link.rate().time_for(link.header_bytes);
    bundle.round_trip = round_trip(end, peer);
    bundle.sip = a.sip;
    bundle.packets = std::max(link.buffer_packets, peer.link.buffer_packets) * static_cast<std::uint32_t>(connections);
    (between_sips ? map.sip_links : map.cube_links).push_back(bundle);
  }
}

std::uint32_t Plan::network_of(NodeId node) const {
  const Attachment& at = map.node(node).at;
  return at.cube == kIoChiplet ? io_network(at.sip) : cube_network({at.sip, at.cube});
}

bool Plan::leads_between_sips(std::uint32_t id, std::uint16_t router, std::uint8_t port) const {
  if (networks[id].kind == NetworkKind::cube) return false;
  const Beyond to = beyond(id, router, port);
  return networks[id].kind == NetworkKind::fabric || (to.kind == Beyond::Kind::end && ends[to.end].kind->between_sips);
}

std::uint16_t Plan::sip_of(const LinkEnd& end) const {
  const Network& network = networks[end.network];
  return network.kind == NetworkKind::fabric ? end.number : network.sip;
}

std::uint16_t Plan::sip_of(std::uint32_t id, std::uint16_t router, std::uint8_t port) const {
  if (networks[id].kind != NetworkKind::fabric) return networks[id].sip;
  const Beyond to = beyond(id, router, port);
  return to.kind == Beyond::Kind::end ? sip_of(ends[to.end]) : kNoSip;
}

Beyond Plan::beyond(std::uint32_t id, std::uint16_t router, std::uint8_t port) const {
  const Network& network = networks[id];
  Beyond out;
  const auto to_node = [&](NodeId node) {
    out.kind = node == kNoNode ? Beyond::Kind::nothing : Beyond::Kind::node;
    out.node = node;
  };
  const auto to_end = [&](std::uint32_t end, std::uint16_t connection) {
    out.kind = end == kNoEnd ? Beyond::Kind::nothing : Beyond::Kind::end;
    out.end = end;
    out.connection = connection;
  };
  if (port >= network.ports(router)) return out;
  if (port < kFirstLocalPort) {
    if (network.kind != NetworkKind::cube || network.layout->neighbours[router][port] == kNoRouter) return out;
    out.kind = Beyond::Kind::router;
    out.router = network.layout->neighbours[router][port];
    out.in_port = static_cast<std::uint8_t>(opposite(static_cast<Side>(port)));
    return out;
  }
  if (network.kind == NetworkKind::cube) {
    const LocalPort& local = network.layout->locals[router][port - kFirstLocalPort];
    const std::size_t first = std::size_t{id} * map.pes_per_cube;
    switch (local.kind) {
      case LocalKind::pe:
        to_node(map.pe_nodes[first + local.unit]);
        break;
      case LocalKind::hbm_port:
        to_node(map.hbm_nodes[first + local.unit]);
        break;
      case LocalKind::m_cpu:
        to_node(map.m_cpu_nodes[id]);
        break;
      case LocalKind::sram:
        to_node(map.sram_nodes[id]);
        break;
      case LocalKind::ucie:
        to_end(network.ends[static_cast<std::size_t>(local.side)], local.unit);
        break;
      case LocalKind::initiator:
        to_node(map.initiator_nodes[local.unit]);
        break;
    }
    return out;
  }
  const CrossbarPort& local = network.crossbar->ports[port - kFirstLocalPort];
  switch (local.kind) {
    case CrossbarPort::Kind::pcie_ep:
      to_node(map.pcie_nodes[network.sip]);
      break;
    case CrossbarPort::Kind::io_cpu:
      to_node(map.io_cpu_nodes[network.sip]);
      break;
    case CrossbarPort::Kind::ucie:
      to_end(network.ends[local.end], local.connection);
      break;
    case CrossbarPort::Kind::link:
      to_end(network.ends[network.crossbar->ucie.size() + local.end], local.connection);
      break;
  }
  return out;
}

std::string Plan::router_name(std::uint32_t id, std::uint16_t router) const {
  const Network& network = networks[id];
  if (network.kind == NetworkKind::fabric) return names::fabric_crossbar();
  if (network.kind == NetworkKind::io) return names::crossbar(network.sip);
  const GridPoint at = network.layout->routers[router];
  return names::router({network.sip, network.cube}, at.row, at.col);
}

std::string Plan::end_name(std::uint32_t id) const {
  const LinkEnd& end = ends[id];
  return end.kind->name(networks[end.network], end.number);
}

}  // namespace kernbench::topology
