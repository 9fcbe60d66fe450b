#include "topology/machine/modules.h"

#include <algorithm>

#include "tlm/machine/names.h"

namespace kernbench::topology {

NetworkModules::NetworkModules(const BuildContext& context, std::uint32_t id)
    : network_(*context.plan.networks[id].noc, *context.plan.networks[id].routes, context.queue_of(id),
               context.options.fidelity.noc) {
  const Plan& plan = context.plan;
  const Network& network = plan.networks[id];
  for (std::uint16_t router = 0; router < network.routers(); ++router) {
    std::vector<bool> connected(network.ports(router));
    for (unsigned port = 0; port < connected.size(); ++port) {
      const Beyond beyond = plan.beyond(id, router, static_cast<std::uint8_t>(port));
      connected[port] = beyond.kind != Beyond::Kind::nothing;
      if (beyond.kind == Beyond::Kind::node) make_interface(context, id, beyond.node);
    }
    const std::string name = names::leaf(plan.router_name(id, router));
    routers_.push_back(std::make_unique<Router>(name.c_str(), network_, connected, context.observer));
  }
  link_ports_.resize(network.ends.size());
  for (std::size_t slot = 0; slot < network.ends.size(); ++slot) {
    if (network.ends[slot] != kNoEnd) make_link_port(context, network.ends[slot], slot);
  }
  bind(context, id);
}

void NetworkModules::make_interface(const BuildContext& context, std::uint32_t id, NodeId node) {
  const Plan& plan = context.plan;
  const NodeKind kind = plan.map.node(node).kind;
  NetworkInterface::Config config;
  config.noc = *plan.networks[id].noc;
  config.self = node;
  config.router = plan.map.node(node).at.router;
  config.longest = context.options.longest;
  config.map = &plan.map;
  config.has_initiator = kind != NodeKind::hbm_port && kind != NodeKind::sram;
  const std::string name = names::leaf(names::network_interface(plan.map.name(node)));
  interfaces_.push_back(
      std::make_unique<NetworkInterface>(name.c_str(), config, *plan.networks[id].routes, context.queue_of(id)));
  nodes_.push_back(node);
}

void NetworkModules::make_link_port(const BuildContext& context, std::uint32_t id, std::size_t slot) {
  const Plan& plan = context.plan;
  const LinkEnd& end = plan.ends[id];
  LinkPort::Config config;
  config.link = end.link;
  config.noc = *plan.networks[end.network].noc;
  config.far_flit_bytes = plan.networks[plan.ends[end.peer].network].noc->flit_bytes;
  for (const Spot spot : *end.spots) config.routers.push_back(spot.router);
  config.from_io = end.kind->from_io;
  // What passes UCIe between IO chiplet and cube does so in any case.
  const bool between_sips = end.kind->between_sips;
  config.detours = between_sips == (plan.networks[end.network].kind == NetworkKind::io) &&
                   (between_sips ? !plan.spec.broken_sip_links.empty() : !plan.spec.broken_cube_links.empty());
  config.longest = context.options.longest;
  config.delay = end.kind->delay;
  link_ports_[slot] = std::make_unique<LinkPort>(names::leaf(plan.end_name(id)).c_str(), config,
                                                 *plan.networks[end.network].routes, context.queue_of(end.network),
                                                 context.queue_of(plan.ends[end.peer].network), context.observer);
}

void NetworkModules::bind(const BuildContext& context, std::uint32_t id) {
  const Plan& plan = context.plan;
  const Network& network = plan.networks[id];
  for (std::uint16_t at = 0; at < network.routers(); ++at) {
    Router& router = *routers_[at];
    for (unsigned port = 0; port < network.ports(at); ++port) {
      const Beyond beyond = plan.beyond(id, at, static_cast<std::uint8_t>(port));
      switch (beyond.kind) {
        case Beyond::Kind::nothing:
          break;
        case Beyond::Kind::router:
          context.bind(*router.out[port], *routers_[beyond.router]->in[beyond.in_port]);
          break;
        case Beyond::Kind::node: {
          NetworkInterface& ni = interface(beyond.node);
          context.bind(*router.out[port], ni.from_router);
          context.bind(ni.to_router, *router.in[port]);
          break;
        }
        case Beyond::Kind::end: {
          const auto slot = std::find(network.ends.begin(), network.ends.end(), beyond.end) - network.ends.begin();
          LinkPort& link = *link_ports_[static_cast<std::size_t>(slot)];
          context.bind(*router.out[port], *link.from_network[beyond.connection]);
          context.bind(*link.to_network[beyond.connection], *router.in[port]);
          break;
        }
      }
    }
  }
}

NetworkInterface& NetworkModules::interface(NodeId node) {
  const auto found = std::find(nodes_.begin(), nodes_.end(), node);
  sc_assert(found != nodes_.end());
  return *interfaces_[static_cast<std::size_t>(found - nodes_.begin())];
}

namespace {
/// Joins an endpoint that injects and takes transactions to its network interface.
template <class Endpoint>
void join_endpoint(const BuildContext& context, Endpoint& endpoint, NetworkInterface& interface) {
  context.bind(endpoint.out, *interface.from_endpoint);
  context.bind(*interface.to_endpoint, endpoint.in);
}

/// Bound to the port of a memory that a foreign one replaces.
struct NoInitiator final : tlm::tlm_initiator_socket<>, tlm::tlm_bw_transport_if<> {
  explicit NoInitiator(const char* name) : tlm_initiator_socket(name) {
    bind(*static_cast<tlm_bw_transport_if*>(this));
  }
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload&, tlm::tlm_phase&, sc_core::sc_time&) override {
    return tlm::TLM_COMPLETED;
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}
};
}  // namespace

CubeModule::CubeModule(const sc_core::sc_module_name& name, const BuildContext& context, CubeCoord self,
                       PageTable& pages, RaceDetector& races)
    : sc_module(name),
      network(context, context.plan.cube_network(self)),
      m_cpu("m_cpu", context.plan.spec.cube_at(self).m_cpu, self, context.plan.map, context.pool,
            context.dispatcher.queue(self.sip), context.observer),
      sram("sram", context.plan.spec.cube_at(self).sram, context.options, context.dispatcher.queue(self.sip),
           context.observer),
      hbm("hbm", context.plan.spec.cube_at(self).hbm, self, context.plan.map.pes_per_cube, context.options,
          context.dispatcher.queue(self.sip), context.observer) {
  const MachineMap& map = context.plan.map;
  EventQueue& queue = context.dispatcher.queue(self.sip);
  for (std::uint16_t i = 0; i < map.pes_per_cube; ++i) {
    const PeCoord coord{self.sip, self.cube, i};
    pes.push_back(nullptr);
    if (context.foreign.initiators.count(coord) != 0) {
      auto& bridge = initiators[map.pe(coord)];
      bridge = std::make_unique<InitiatorBridge>(names::leaf(names::pe(coord)).c_str(),
                                                 InitiatorBridge::Config{map.pe(coord), 64}, map, context.pool,
                                                 context.options, context.dispatcher);
      join_endpoint(context, *bridge, network.interface(map.pe(coord)));
    } else if (map.has(coord)) {
      pes.back() = std::make_unique<Pe>(names::leaf(names::pe(coord)).c_str(), context.plan.spec.pe_at(coord), coord,
                                        map, pages, context.pool, context.options, queue, context.observer,
                                        &context.stacks, context.options.debug ? &races : nullptr);
      join_endpoint(context, *pes.back(), network.interface(map.pe(coord)));
    }
    bind_memory(context, map.hbm_port(coord), *hbm.port[i]);
  }
  for (const NodeId node : map.initiator_nodes) {
    if (map.node(node).at.sip != self.sip || map.node(node).at.cube != self.cube) continue;
    auto& bridge = initiators[node];
    bridge = std::make_unique<InitiatorBridge>(names::leaf(map.name(node)).c_str(), InitiatorBridge::Config{node, 64},
                                               map, context.pool, context.options, context.dispatcher);
    join_endpoint(context, *bridge, network.interface(node));
  }
  join_endpoint(context, m_cpu, network.interface(map.m_cpu(self)));
  bind_memory(context, map.sram_of(self), sram.port);
}

void CubeModule::bind_memory(const BuildContext& context, NodeId node, tlm::tlm_target_socket<>& memory) {
  tlm::tlm_initiator_socket<>& from = *network.interface(node).to_endpoint;
  if (context.foreign.memories.count(node) == 0) return context.bind(from, memory);
  const std::string name = "foreign" + std::to_string(foreign_memories.size());
  auto& bridge = foreign_memories[node];
  const std::uint16_t sip = context.plan.networks[context.plan.network_of(node)].sip;
  bridge = std::make_unique<TargetBridge>(name.c_str(), TargetBridge::Config{sip, 16, context.foreign.at_once},
                                          context.dispatcher);
  context.bind(from, bridge->in);
  auto unused = std::make_unique<NoInitiator>((name + "_replaced").c_str());
  unused->bind(memory);
  unused_.push_back(std::move(unused));
}

IoModule::IoModule(const sc_core::sc_module_name& name, const BuildContext& context, std::uint16_t sip,
                   PageTable& pages)
    : sc_module(name),
      network(context, context.plan.io_network(sip)),
      pcie_ep("pcie_ep", context.plan.spec.sip.io.pcie, sip, context.plan.map, context.pool, context.options,
              context.dispatcher.queue(sip), context.observer),
      io_cpu("io_cpu", context.plan.spec.sip.io.cpu, sip, context.plan.map, pages, context.pool,
             context.dispatcher.queue(sip), context.observer) {
  join_endpoint(context, pcie_ep, network.interface(context.plan.map.pcie_ep(sip)));
  join_endpoint(context, io_cpu, network.interface(context.plan.map.io_cpu(sip)));
}

SipModule::SipModule(const sc_core::sc_module_name& name, const BuildContext& context, std::uint16_t sip)
    : sc_module(name) {
  const Plan& plan = context.plan;
  for (std::uint16_t cube = 0; cube < plan.map.cubes_per_sip(); ++cube) {
    const CubeCoord at{sip, cube};
    cubes.push_back(std::make_unique<CubeModule>(names::leaf(names::cube(at)).c_str(), context, at, pages, races));
  }
  io = std::make_unique<IoModule>(names::leaf(names::io(sip)).c_str(), context, sip, pages);
}

FabricModule::FabricModule(const sc_core::sc_module_name& name, const BuildContext& context)
    : sc_module(name), network(context, context.plan.fabric_network()) {}

void join(const BuildContext& context, LinkPort& a, LinkPort& b) {
  for (std::size_t i = 0; i < a.wire_out.size(); ++i) {
    context.bind(*a.wire_out[i], *b.wire_in[i]);
    context.bind(*b.wire_out[i], *a.wire_in[i]);
  }
}

}  // namespace kernbench::topology
