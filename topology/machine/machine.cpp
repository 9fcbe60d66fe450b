#include "topology/machine/machine.h"

#include <algorithm>

#include "tlm/ext/train.h"
#include "tlm/machine/names.h"
#include "topology/machine/modules.h"

namespace kernbench::topology {

namespace {
/// Messages as long as a slot, up to a limit, travel whole: where slots are small, so are trains, as then many messages
/// are under way at a time.
std::uint32_t longest_of(const Plan& plan) {
  std::uint32_t longest = kMaxTrainBytes;
  while (longest < kLongestTrainBytes && 2 * longest <= plan.map.ipcq_slot_bytes) longest *= 2;
  return longest;
}

/// The queues of all stacks take a train's data in step: a train that waits for one of them keeps the port from the
/// rest.
bool queues_take_trains(const SystemSpec& spec) {
  return spec.cube.hbm.queues_cover_units() && std::all_of(spec.cubes.begin(), spec.cubes.end(), [](const auto& odd) {
           return odd.second.hbm.queues_cover_units();
         });
}

RunOptions fitted(RunOptions options, const Plan& plan) {
  options.fidelity = fidelity_that_holds(plan, options.fidelity);
  options.longest = longest_packet(plan, options.fidelity);
  return options;
}
}  // namespace

Fidelity fidelity_that_holds(const Plan& plan, const Fidelity& asked) {
  Fidelity holds = asked;
  const bool all_cover = std::all_of(plan.networks.begin(), plan.networks.end(), buffers_cover_credits);
  if (!all_cover && !asked.noc_by_name) holds.noc = Grade::accurate;
  return holds;
}

/// A wire whose far end has room for the round trip of a credit carries trains of any length at its rate; where one has
/// not, all trains are so short that two of them fit that room, and a power of two.
std::uint32_t longest_packet(const Plan& plan, const Fidelity& fidelity) {
  if (!fidelity.trains() || !queues_take_trains(plan.spec)) return kMaxPacketBytes;
  std::uint32_t packets = longest_of(plan) / kMaxPacketBytes;
  for (const LinkEnd& end : plan.ends) {
    const LinkEnd& peer = plan.ends[end.peer];
    const std::uint32_t room = peer.link.buffer_packets;
    if (room >= packets_to_cover(end, peer)) continue;
    while (packets > 1 && 2 * packets > room) packets /= 2;
  }
  return packets * kMaxPacketBytes;
}

struct Machine::Impl {
  Impl(const Plan& plan, const RunOptions& options, Observer* observer, ForeignParts given)
      : plan(plan),
        options(fitted(options, plan)),
        foreign(std::move(given)),
        dispatcher("dispatcher", plan.spec.sips + (plan.has_fabric() ? 1u : 0u)),
        context{plan, this->options, observer, dispatcher, pool, stacks, foreign} {
    for (std::uint16_t sip = 0; sip < plan.spec.sips; ++sip) {
      sips.push_back(std::make_unique<SipModule>(names::sip(sip).c_str(), context, sip));
    }
    if (plan.has_fabric())
      fabric = std::make_unique<FabricModule>(names::parent(names::fabric_crossbar()).c_str(), context);
    for (std::uint32_t end = 0; end < plan.ends.size(); ++end) {
      if (end < plan.ends[end].peer) join(context, link_port(end), link_port(plan.ends[end].peer));
    }
    set_lookahead();
  }

  /// Queues of the dispatcher go ahead of each other by what links take. Some observers see instants in order, and
  /// foreign parts may wait for any instant.
  void set_lookahead() {
    if (context.observer != nullptr && context.observer->wants_order()) return;
    if (!plan.initiators.empty() || !foreign.initiators.empty() || !foreign.memories.empty()) return;
    std::vector<std::vector<Dispatcher::Neighbour>> neighbours(dispatcher.sips());
    for (const LinkEnd& end : plan.ends) {
      const unsigned here = context.queue_of(end.network).sip();
      const unsigned there = context.queue_of(plan.ends[end.peer].network).sip();
      if (here == there) continue;
      std::vector<Dispatcher::Neighbour>& list = neighbours[there];  // a bundle is one way, its shortest
      const auto known = std::find_if(list.begin(), list.end(), [&](const auto& other) { return other.queue == here; });
      if (known == list.end()) {
        list.push_back({here, end.link.latency});
      } else {
        known->latency = std::min(known->latency, end.link.latency);
      }
    }
    dispatcher.set_lookahead(std::move(neighbours), plan.spec.sip.io.pcie.latency);
    if (fabric != nullptr) dispatcher.queue(plan.spec.sips).set_silent_until([] { return kNever; });
  }

  NetworkModules& network(std::uint32_t id) {
    const Network& at = plan.networks[id];
    switch (at.kind) {
      case NetworkKind::cube:
        return sips[at.sip]->cubes[at.cube]->network;
      case NetworkKind::io:
        return sips[at.sip]->io->network;
      default:
        return fabric->network;
    }
  }
  NetworkModules& network_of(NodeId node) { return network(plan.network_of(node)); }
  LinkPort& link_port(std::uint32_t end) {
    const std::uint32_t id = plan.ends[end].network;
    const auto& ends = plan.networks[id].ends;
    return *network(id).link_port(static_cast<std::size_t>(std::find(ends.begin(), ends.end(), end) - ends.begin()));
  }

  const Plan& plan;
  const RunOptions options;
  const ForeignParts foreign;
  PayloadPool pool;
  StackPool stacks;
  Dispatcher dispatcher;
  const BuildContext context;
  std::vector<std::unique_ptr<SipModule>> sips;
  std::unique_ptr<FabricModule> fabric;
  std::vector<RaceKind> races;
};

Machine::Machine(const Plan& plan, const RunOptions& options, Observer* observer, ForeignParts foreign)
    : impl_(std::make_unique<Impl>(plan, options, observer, std::move(foreign))) {
  for (const auto& sip : impl_->sips) sip->races.share(&impl_->races);
}

Machine::~Machine() {
#ifndef KERNBENCH_TEARDOWN
  // SystemC's destructors search its registry linearly: a large machine would take minutes to vanish.
  static_cast<void>(impl_.release());
#endif
}

const MachineMap& Machine::map() const { return impl_->plan.map; }
Dispatcher& Machine::dispatcher() { return impl_->dispatcher; }
PayloadPool& Machine::pool() { return impl_->pool; }
tlm::tlm_target_socket<>& Machine::host_socket(std::uint16_t sip) { return impl_->sips.at(sip)->io->pcie_ep.host; }

tlm::tlm_target_socket<>& Machine::foreign_initiator(PeCoord place) {
  return impl_->sips.at(place.sip)->cubes.at(place.cube)->initiators.at(map().pe(place))->foreign;
}
tlm::tlm_target_socket<>& Machine::initiator(std::size_t i) {
  const CubeCoord cube = impl_->plan.spec.initiators.at(i).cube;
  return impl_->sips[cube.sip]->cubes[cube.cube]->initiators.at(map().initiator_nodes[i])->foreign;
}
tlm::tlm_initiator_socket<>& Machine::foreign_memory(NodeId place) {
  for (const auto& cube : impl_->sips.at(impl_->plan.networks[impl_->plan.network_of(place)].sip)->cubes) {
    const auto found = cube->foreign_memories.find(place);
    if (found != cube->foreign_memories.end()) return found->second->foreign;
  }
  throw std::out_of_range("no foreign memory at that place");
}

void Machine::explain(std::vector<Blocked>& blocked) const {
  for (const auto& sip : impl_->sips) {
    for (const auto& cube : sip->cubes) {
      for (const auto& pe : cube->pes) {
        if (pe != nullptr) pe->explain(blocked);
      }
    }
  }
}

void Machine::flush() {
  for (const auto& sip : impl_->sips) {
    for (const auto& cube : sip->cubes) cube->hbm.flush();
  }
}

Router& Machine::router(std::uint32_t network, std::uint16_t index) { return impl_->network(network).router(index); }
LinkPort& Machine::link_port(std::uint32_t end) { return impl_->link_port(end); }
NetworkInterface& Machine::network_interface(NodeId node) { return impl_->network_of(node).interface(node); }
Hbm& Machine::hbm(CubeCoord cube) { return impl_->sips.at(cube.sip)->cubes.at(cube.cube)->hbm; }
Sram& Machine::sram(CubeCoord cube) { return impl_->sips.at(cube.sip)->cubes.at(cube.cube)->sram; }
const std::vector<RaceKind>& Machine::races() const { return impl_->races; }
PageTable& Machine::page_table(std::uint16_t sip) { return impl_->sips.at(sip)->pages; }
PcieEp& Machine::pcie_ep(std::uint16_t sip) { return impl_->sips.at(sip)->io->pcie_ep; }
IoCpu& Machine::io_cpu(std::uint16_t sip) { return impl_->sips.at(sip)->io->io_cpu; }
MCpu& Machine::m_cpu(CubeCoord cube) { return impl_->sips.at(cube.sip)->cubes.at(cube.cube)->m_cpu; }
Pe& Machine::pe(PeCoord pe) { return *impl_->sips.at(pe.sip)->cubes.at(pe.cube)->pes.at(pe.pe); }

}  // namespace kernbench::topology
