#include "topology/plan/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>

#include "topology/plan/latency.h"
#include "topology/plan/walk.h"

namespace kernbench::topology {

bool includes(View view, EdgeKind kind) {
  switch (view) {
    case View::everything:
      return true;
    case View::data:
      return kind != EdgeKind::command;
    case View::m_cpu_dma:
      return kind != EdgeKind::command && kind != EdgeKind::pe_local && kind != EdgeKind::pcie;
    case View::pe_local:
      return kind == EdgeKind::noc || kind == EdgeKind::pe_local || kind == EdgeKind::hbm_port ||
             kind == EdgeKind::sram_port || kind == EdgeKind::cpu_port;
  }
  return false;
}

const char* to_string(View view) {
  constexpr std::array<const char*, 4> kNames = {"everything", "data", "m_cpu_dma", "pe_local"};
  return kNames[static_cast<std::size_t>(view)];
}

NodeId Paths::resolve(const PhysicalAddress& address) const {
  const NodeId node = plan_.map.resolve(address);
  if (node == kNoNode) throw std::out_of_range(fmt::format("no memory of the machine serves {}", address.str()));
  return node;
}

namespace {

/// Shortest way over edges that `allowed` accepts; empty if there is none.
std::vector<std::uint32_t> breadth_first(const Graph& graph, std::uint32_t from, std::uint32_t to,
                                         const std::function<bool(const GraphEdge&)>& allowed) {
  std::unordered_map<std::uint32_t, std::uint32_t> previous = {{from, from}};
  std::deque<std::uint32_t> queue = {from};
  while (!queue.empty() && previous.count(to) == 0) {
    const std::uint32_t at = queue.front();
    queue.pop_front();
    for (auto [i, end] = graph.from(at); i < end; ++i) {
      const GraphEdge& edge = graph.edges[i];
      if (allowed(edge) && previous.emplace(edge.to, at).second) queue.push_back(edge.to);
    }
  }
  std::vector<std::uint32_t> way;
  if (previous.count(to) == 0) return way;
  for (std::uint32_t at = to; at != from; at = previous[at]) way.push_back(at);
  way.push_back(from);
  std::reverse(way.begin(), way.end());
  return way;
}

}  // namespace

std::vector<std::uint32_t> Paths::inside_pe(std::uint32_t from, std::uint32_t to) const {
  const NodeId pe = graph_.nodes[from].endpoint;
  return breadth_first(graph_, from, to, [&](const GraphEdge& edge) {
    return edge.kind == EdgeKind::pe_local && graph_.nodes[edge.to].endpoint == pe;
  });
}

std::vector<std::uint32_t> Paths::by_command(std::uint32_t from, std::uint32_t to) const {
  return breadth_first(graph_, from, to, [](const GraphEdge& edge) { return edge.kind == EdgeKind::command; });
}

void Paths::append_network_path(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& nodes) const {
  const GraphNode& source = graph_.nodes[from];
  const GraphNode& target = graph_.nodes[to];
  const bool starts_at_router = source.kind == PartKind::router || source.kind == PartKind::crossbar;
  if (target.endpoint == kNoNode) {  // a router
    if (starts_at_router && source.network == target.network) {
      const Network& network = plan_.networks[source.network];
      nodes.push_back(from);
      for (std::uint16_t at = source.router; at != target.router;) {
        at = plan_.beyond(source.network, at, network.routes->next_port(at, {target.router, kNoPort})).router;
        nodes.push_back(from - source.router + at);
      }
      return;
    }
    throw Unreachable(fmt::format(
        "no path from {} to {}: packets are sent to endpoints only, and {} is no endpoint (cut: all edges into it)",
        source.name, target.name, target.name));
  }
  if (source.endpoint == kNoNode && !starts_at_router) {
    throw Unreachable(fmt::format("no path from {} to {}: nothing is injected at {} (cut: all edges out of it)",
                                  source.name, target.name, source.name));
  }
  const std::vector<RouterStep> steps = starts_at_router
                                            ? walk_from(plan_, source.network, source.router, kNoPort, target.endpoint)
                                            : walk(plan_, source.endpoint, target.endpoint);
  if (!starts_at_router) nodes.push_back(from);
  for (const RouterStep& step : steps) {
    nodes.push_back(graph_.find(plan_.router_name(step.network, step.router)));
    if (step.end == kNoEnd) continue;
    nodes.push_back(graph_.find(plan_.end_name(step.end)));
    nodes.push_back(graph_.find(plan_.end_name(plan_.ends[step.end].peer)));
  }
  nodes.push_back(to);
}

Path Paths::find_path_with_distance(const std::string& from, const std::string& to, View view) const {
  const std::uint32_t a = graph_.find(from), b = graph_.find(to);
  const auto hub = [&](std::uint32_t node) {  // the PE of a part of one
    const GraphNode& at = graph_.nodes[node];
    return at.kind == PartKind::pe_part ? graph_.find(plan_.map.name(at.endpoint)) : node;
  };
  if (view == View::everything) {
    if (const std::vector<std::uint32_t> way = by_command(a, b); !way.empty()) return finish(way, view);
  }
  if (a == b) return finish({a}, view);
  const std::uint32_t out = hub(a), in = hub(b);
  if (out == in) return finish(inside_pe(a, b), view);
  if (graph_.nodes[a].kind == PartKind::host || graph_.nodes[b].kind == PartKind::host) {
    const std::uint32_t other = graph_.nodes[a].kind == PartKind::host ? b : a;
    const NodeId endpoint = graph_.nodes[other].endpoint;
    if (endpoint == kNoNode)
      throw Unreachable(fmt::format("no path from {} to {}: the host speaks with endpoints only", from, to));
    const std::string ep = plan_.map.name(plan_.map.pcie_ep(plan_.map.node(endpoint).at.sip));
    Path path = other == b ? find_path_with_distance(ep, to, view) : find_path_with_distance(from, ep, view);
    const Ps link = graph_.edge(graph_.find("host"), graph_.find(ep))->latency;
    if (!includes(view, EdgeKind::pcie)) {
      throw Unreachable(fmt::format("no path from {} to {} in view {}: it leaves out pcie (cut: host -> {})", from, to,
                                    to_string(view), ep));
    }
    path.components.insert(other == b ? path.components.begin() : path.components.end(), "host");
    path.edges.insert(other == b ? path.edges.begin() : path.edges.end(), EdgeKind::pcie);
    path.distance += link;
    return path;
  }
  std::vector<std::uint32_t> nodes;
  if (out != a) {
    nodes = inside_pe(a, out);
    nodes.pop_back();
  }
  append_network_path(out, in, nodes);
  if (in != b) {
    const std::vector<std::uint32_t> tail = inside_pe(in, b);
    nodes.insert(nodes.end(), tail.begin() + 1, tail.end());
  }
  Path path = finish(nodes, view);
  const NodeId source = graph_.nodes[out].endpoint, target = graph_.nodes[in].endpoint;
  if (source != kNoNode && target != kNoNode) path.distance = plan_.map.packet_latency(source, target, 0);
  return path;
}

Path Paths::finish(const std::vector<std::uint32_t>& nodes, View view) const {
  Path path;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    path.components.push_back(graph_.nodes[nodes[i]].name);
    if (i == 0) continue;
    const GraphEdge* edge = graph_.edge(nodes[i - 1], nodes[i]);
    if (edge == nullptr)
      throw std::logic_error(fmt::format("the path uses no edge of the graph at {}", path.components.back()));
    if (!includes(view, edge->kind)) {
      throw Unreachable(fmt::format("no path from {} to {} in view {}: it leaves out {} (cut: {} -> {})",
                                    graph_.nodes[nodes.front()].name, graph_.nodes[nodes.back()].name, to_string(view),
                                    to_string(edge->kind), path.components[i - 1], path.components[i]));
    }
    path.edges.push_back(edge->kind);
    path.distance += edge->latency;
  }
  return path;
}

Path Paths::find_mcpu_dma_path(CubeCoord m_cpu, const PhysicalAddress& to) const {
  return find_node_path(find_m_cpu(m_cpu), resolve(to), View::m_cpu_dma);
}

Path Paths::find_memory_path(PeCoord pe, const PhysicalAddress& to) const {
  return find_node_path(plan_.map.pe(pe), resolve(to), View::data);
}

}  // namespace kernbench::topology
