#include "topology/plan/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "tlm/machine/names.h"
#include "topology/plan/plan.h"

namespace kernbench::topology {

const char* to_string(EdgeKind kind) {
  constexpr std::array<const char*, kEdgeKinds> kNames = {"noc",  "pe_local", "hbm_port", "sram_port", "cpu_port",
                                                          "ucie", "io",       "pcie",     "inter_sip", "command"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* describe(EdgeKind kind) {
  constexpr std::array<const char*, kEdgeKinds> kText = {"router to router",
                                                         "PE to its router, and between the parts of a PE",
                                                         "router to HBM port",
                                                         "router to SRAM",
                                                         "router or crossbar to M_CPU or IO_CPU",
                                                         "router to UCIe port, and UCIe port to UCIe port",
                                                         "crossbar to its ports",
                                                         "host to PCIE_EP",
                                                         "link port to link port",
                                                         "who commands whom"};
  return kText[static_cast<std::size_t>(kind)];
}

const char* to_string(PartKind kind) {
  constexpr std::array<const char*, 13> kNames = {"host",   "pcie_ep", "io_cpu",   "crossbar", "link_port",
                                                  "router", "ucie",    "m_cpu",    "sram",     "hbm_port",
                                                  "pe",     "pe_part", "initiator"};
  return kNames[static_cast<std::size_t>(kind)];
}

const std::vector<std::string>& pe_parts() {
  static const std::vector<std::string> kParts = {"cpu", "dma_r", "dma_w", "gemm", "math", "tcm", "mmu", "ipcq"};
  return kParts;
}

namespace {

class Builder {
 public:
  Builder(const Plan& plan, Graph& graph) : plan_(plan), graph_(graph) {}

  void build() {
    const std::uint32_t host = add(PartKind::host, "host");
    for (std::uint32_t id = 0; id < plan_.networks.size(); ++id) {
      routers_.push_back(static_cast<std::uint32_t>(graph_.nodes.size()));
      for (std::uint16_t router = 0; router < plan_.networks[id].routers(); ++router) {
        const bool mesh = plan_.networks[id].kind == NetworkKind::cube;
        const std::uint32_t node = add(mesh ? PartKind::router : PartKind::crossbar, plan_.router_name(id, router));
        graph_.nodes[node].network = id;
        graph_.nodes[node].router = router;
      }
    }
    for (std::uint32_t end = 0; end < plan_.ends.size(); ++end) {
      ends_.push_back(add(plan_.ends[end].kind->part, plan_.end_name(end)));
    }
    for (std::uint32_t node = 0; node < plan_.map.nodes.size(); ++node) add_endpoint(NodeId{node});
    for (std::uint32_t id = 0; id < plan_.networks.size(); ++id) add_network_edges(id);
    for (std::uint32_t end = 0; end < plan_.ends.size(); ++end) {
      const LinkEnd& at = plan_.ends[end];
      join(ends_[end], ends_[at.peer], at.kind->edge, at.link.rate().bytes_per_second() * at.spots->size(),
           at.link.latency);
    }
    for (std::uint16_t sip = 0; sip < plan_.map.sips; ++sip) {
      const std::uint32_t ep = endpoints_[index(plan_.map.pcie_ep(sip))];
      const PcieConfig& pcie = plan_.spec.sip.io.pcie;
      join_both(host, ep, EdgeKind::pcie, pcie.bytes_per_second, pcie.latency);
      add_commands(sip, ep);
    }
  }

 private:
  std::uint32_t add(PartKind kind, std::string name, NodeId endpoint = kNoNode) {
    graph_.nodes.push_back({kind, std::move(name), endpoint, 0, 0});
    return static_cast<std::uint32_t>(graph_.nodes.size() - 1);
  }
  void join(std::uint32_t from, std::uint32_t to, EdgeKind kind, std::uint64_t rate, Ps latency) {
    graph_.edges.push_back({from, to, kind, rate, latency});
  }
  void join_both(std::uint32_t a, std::uint32_t b, EdgeKind kind, std::uint64_t rate, Ps latency) {
    join(a, b, kind, rate, latency);
    join(b, a, kind, rate, latency);
  }
  void add_endpoint(NodeId id);
  void add_network_edges(std::uint32_t id);
  void add_commands(std::uint16_t sip, std::uint32_t pcie_ep);

  const Plan& plan_;
  Graph& graph_;
  std::vector<std::uint32_t> routers_, ends_, endpoints_;  // first of a network; by end; by NodeId
};

void Builder::add_endpoint(NodeId id) {
  constexpr std::array<PartKind, 7> kKinds = {PartKind::pe,       PartKind::hbm_port, PartKind::sram,
                                              PartKind::m_cpu,    PartKind::pcie_ep,  PartKind::io_cpu,
                                              PartKind::initiator};
  const Node& node = plan_.map.node(id);
  const std::uint32_t self = add(kKinds[static_cast<std::size_t>(node.kind)], plan_.map.name(id), id);
  endpoints_.push_back(self);
  if (node.kind != NodeKind::pe) return;
  const PeCoord pe = plan_.map.coord(id);
  const PeConfig& config = plan_.spec.pe_at(pe);
  const std::uint64_t port = plan_.networks[plan_.network_of(id)].noc->link_rate().bytes_per_second();
  const std::uint64_t tcm_rate = config.tcm.bytes_per_second;
  const std::uint32_t first = static_cast<std::uint32_t>(graph_.nodes.size());
  for (const std::string& part : pe_parts()) add(PartKind::pe_part, names::pe_part(pe, part), id);
  const auto part = [&](const char* name) {
    return first +
           static_cast<std::uint32_t>(std::find(pe_parts().begin(), pe_parts().end(), name) - pe_parts().begin());
  };
  const std::uint32_t tcm = part("tcm"), cpu = part("cpu");
  join_both(self, cpu, EdgeKind::pe_local, 0, 0);
  for (const char* name : {"dma_r", "dma_w", "ipcq"}) {
    join_both(self, part(name), EdgeKind::pe_local, port, 0);
    join_both(part(name), tcm, EdgeKind::pe_local, tcm_rate, config.tcm.latency);
  }
  for (const char* name : {"gemm", "math"})
    join_both(part(name), tcm, EdgeKind::pe_local, tcm_rate, config.tcm.latency);
  join_both(part("dma_r"), part("mmu"), EdgeKind::pe_local, 0, 0);
  join_both(part("dma_w"), part("mmu"), EdgeKind::pe_local, 0, 0);
  for (const char* name : {"dma_r", "dma_w", "gemm", "math", "ipcq"})
    join(cpu, part(name), EdgeKind::command, 0, config.cpu.dispatch);
}

void Builder::add_network_edges(std::uint32_t id) {
  const Network& network = plan_.networks[id];
  const NocConfig& noc = *network.noc;
  const Clock clock(noc.clock_hz);
  const std::uint64_t rate = noc.link_rate().bytes_per_second();
  const Ps hop = clock.at(std::uint64_t{noc.routing_delay} + noc.vc_alloc_delay + noc.sw_alloc_delay +
                          noc.switch_delay + noc.link_delay);
  const Ps injection = clock.at(std::uint64_t{1} + noc.link_delay);
  for (std::uint16_t router = 0; router < network.routers(); ++router) {
    const std::uint32_t self = routers_[id] + router;
    for (unsigned port = 0; port < network.ports(router); ++port) {
      const Beyond beyond = plan_.beyond(id, router, static_cast<std::uint8_t>(port));
      const auto attach = [&](std::uint32_t other, EdgeKind kind) {
        join(self, other, kind, rate, hop);
        join(other, self, kind, rate, injection);
      };
      switch (beyond.kind) {
        case Beyond::Kind::nothing:
          break;
        case Beyond::Kind::router:
          join(self, routers_[id] + beyond.router, EdgeKind::noc, rate, hop);
          break;
        case Beyond::Kind::end:
          attach(ends_[beyond.end], network.kind == NetworkKind::cube ? EdgeKind::ucie : EdgeKind::io);
          break;
        case Beyond::Kind::node: {
          constexpr std::array<EdgeKind, 7> kKinds = {EdgeKind::pe_local, EdgeKind::hbm_port, EdgeKind::sram_port,
                                                      EdgeKind::cpu_port, EdgeKind::io,       EdgeKind::cpu_port,
                                                      EdgeKind::pe_local};
          attach(endpoints_[index(beyond.node)], kKinds[static_cast<std::size_t>(plan_.map.node(beyond.node).kind)]);
          break;
        }
      }
    }
  }
}

void Builder::add_commands(std::uint16_t sip, std::uint32_t pcie_ep) {
  const MachineMap& map = plan_.map;
  const std::uint32_t io_cpu = endpoints_[index(map.io_cpu(sip))];
  join_both(pcie_ep, io_cpu, EdgeKind::command, 0, plan_.spec.sip.io.cpu.command);
  for (std::uint16_t cube = 0; cube < map.cubes_per_sip(); ++cube) {
    const Ps cost = plan_.spec.cube_at({sip, cube}).m_cpu.command;
    const std::uint32_t m_cpu = endpoints_[index(map.m_cpu({sip, cube}))];
    join_both(io_cpu, m_cpu, EdgeKind::command, 0, cost);
    for (std::uint16_t pe = 0; pe < map.pes_per_cube; ++pe) {
      if (!map.has({sip, cube, pe})) continue;
      join_both(m_cpu, endpoints_[index(map.pe({sip, cube, pe}))] + 1, EdgeKind::command, 0,
                plan_.spec.pe_at({sip, cube, pe}).cpu.command);
    }
  }
}

}  // namespace

Graph::Graph(const Plan& plan) {
  Builder(plan, *this).build();
  // Several connections of one port are one edge: their rates add up.
  std::stable_sort(edges.begin(), edges.end(), [](const GraphEdge& a, const GraphEdge& b) {
    return std::tie(a.from, a.to, a.kind) < std::tie(b.from, b.to, b.kind);
  });
  std::size_t kept = 0;
  for (const GraphEdge& edge : edges) {
    GraphEdge* last = kept > 0 ? &edges[kept - 1] : nullptr;
    if (last != nullptr && last->from == edge.from && last->to == edge.to && last->kind == edge.kind) {
      last->bytes_per_second += edge.bytes_per_second;
    } else {
      edges[kept++] = edge;
    }
  }
  edges.resize(kept);
  first_.assign(nodes.size() + 1, 0);
  for (const GraphEdge& edge : edges) ++first_[edge.from + 1];
  for (std::size_t i = 0; i < nodes.size(); ++i) first_[i + 1] += first_[i];
  for (std::uint32_t i = 0; i < nodes.size(); ++i) by_name_.emplace(nodes[i].name, i);
}

std::uint32_t Graph::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) throw std::out_of_range(fmt::format("the machine has no '{}'", name));
  return found->second;
}

const GraphEdge* Graph::edge(std::uint32_t a, std::uint32_t b) const {
  for (auto [i, end] = from(a); i < end; ++i) {
    if (edges[i].to == b) return &edges[i];
  }
  return nullptr;
}

}  // namespace kernbench::topology
