#include "topology/show/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "tlm/config/units.h"
#include "tlm/machine/names.h"
#include "topology/plan/deadlock.h"
#include "topology/plan/graph.h"
#include "topology/plan/plan.h"

namespace kernbench::topology {

namespace {

/// Cubes that have a layout: "sip0.cube0 and 31 others".
std::string users(const Plan& plan, const CubeLayout& layout) {
  std::string first;
  std::size_t others = 0;
  for (std::uint32_t id = 0; id < plan.layout_of.size(); ++id) {
    if (plan.layout_of[id] != &layout) continue;
    if (first.empty()) {
      first = names::cube({plan.networks[id].sip, plan.networks[id].cube});
    } else {
      ++others;
    }
  }
  return others == 0 ? first : fmt::format("{} and {} others", first, others);
}

std::string local_name(const LocalPort& local) {
  switch (local.kind) {
    case LocalKind::pe:
      return fmt::format("pe{}", local.unit);
    case LocalKind::hbm_port:
      return fmt::format("hbm.pe{}", local.unit);
    case LocalKind::m_cpu:
      return "m_cpu";
    case LocalKind::sram:
      return "sram";
    case LocalKind::ucie:
      return fmt::format("ucie_{}[{}]", letter(local.side), local.unit);
    case LocalKind::initiator:
      return fmt::format("initiator{}", local.unit);
  }
  return "?";
}

std::string show_layouts(const Plan& plan) {
  std::string text;
  for (const CubeLayout& layout : plan.layouts) {
    text += fmt::format("layout of {}: {} x {} routers", users(plan, layout), layout.rows, layout.cols);
    const std::size_t holes = layout.number.size() - layout.routers.size();
    text += holes == 0 ? "\n" : fmt::format(", {} of them holes\n", holes);
    text += fmt::format("  hash {}\n", determinants(plan.spec.cube).hash());
    for (std::uint16_t row = 0; row < layout.rows; ++row) {
      text += "  ";
      for (std::uint16_t col = 0; col < layout.cols; ++col) {
        const std::uint16_t router = layout.at({row, col});
        if (router == kNoRouter) {
          text += "   .   ";
          continue;
        }
        std::string mark;
        for (const LocalPort& local : layout.locals[router]) {
          if (local.kind == LocalKind::pe) mark += fmt::format("P{}", local.unit);
          if (local.kind == LocalKind::m_cpu) mark += "M";
          if (local.kind == LocalKind::sram) mark += "S";
        }
        text += fmt::format("[{:^4}] ", mark.substr(0, 6));
      }
      text += "\n";
    }
    const auto routers = static_cast<std::uint16_t>(layout.routers.size());
    for (std::uint16_t router = 0; router < routers; ++router) {
      if (layout.locals[router].empty()) continue;
      text += fmt::format("  {:<6}", to_string(layout.routers[router]));
      for (const LocalPort& local : layout.locals[router]) text += " " + local_name(local);
      text += "\n";
    }
  }
  return text;
}

std::string show_graph(const Plan& plan) {
  const Graph graph(plan);
  std::map<PartKind, std::size_t> parts;
  for (const GraphNode& node : graph.nodes) ++parts[node.kind];
  std::map<EdgeKind, std::vector<const GraphEdge*>> edges;
  for (const GraphEdge& edge : graph.edges) edges[edge.kind].push_back(&edge);
  std::string text = fmt::format("{} components\n", graph.nodes.size());
  for (const auto& [kind, count] : parts) text += fmt::format("  {:<10} {:>7}\n", to_string(kind), count);
  text += fmt::format("{} edges, one direction each\n", graph.edges.size());
  for (const auto& [kind, list] : edges) {
    text += fmt::format("  {:<10} {:>7}  {}\n", to_string(kind), list.size(), describe(kind));
  }
  text += "edges of sip0.cube0 and sip0.io0, and between SIPs; other cubes and SIPs alike\n";
  const auto shown = [&](const GraphEdge& edge) {
    const std::string& from = graph.nodes[edge.from].name;
    return edge.kind == EdgeKind::inter_sip || from.rfind("sip0.cube0.", 0) == 0 || from.rfind("sip0.io0.", 0) == 0;
  };
  for (const GraphEdge& edge : graph.edges) {
    if (!shown(edge)) continue;
    text +=
        fmt::format("  {:<10} {} -> {}", to_string(edge.kind), graph.nodes[edge.from].name, graph.nodes[edge.to].name);
    if (edge.bytes_per_second > 0) text += ", " + format_rate(edge.bytes_per_second);
    text += ", " + format_time(edge.latency) + "\n";
  }
  return text;
}

std::string show_routes(const Plan& plan) {
  const MachineMap& map = plan.map;
  std::string text = "inside a cube: port from router (line) to router (column)\n";
  for (const CubeLayout& layout : plan.layouts) {
    const auto slot = std::find(plan.layout_of.begin(), plan.layout_of.end(), &layout) - plan.layout_of.begin();
    const MeshRoutes& mesh = *plan.mesh_of[static_cast<std::size_t>(slot)];
    text += fmt::format("  {}\n", users(plan, layout));
    for (std::uint16_t at = 0; at < mesh.routers(); ++at) {
      text += fmt::format("  {:<6} ", to_string(layout.routers[at]));
      for (std::uint16_t to = 0; to < mesh.routers(); ++to)
        text += at == to ? "." : letter(static_cast<Side>(mesh.port(at, to)));
      text += "\n";
    }
  }
  text += "between cubes of a SIP: side from cube (line) to cube (column), last to the IO chiplet\n";
  for (const CubeTable& table : plan.cube_tables) {
    const auto sip =
        std::find(plan.cube_table_of.begin(), plan.cube_table_of.end(), &table) - plan.cube_table_of.begin();
    text += fmt::format("  {}{}\n", names::sip(static_cast<std::uint16_t>(sip)),
                        plan.cube_tables.size() == 1 && map.sips > 1 ? " and all others" : "");
    for (std::uint16_t at = 0; at < map.cubes_per_sip(); ++at) {
      text += fmt::format("  cube{:<3} ", at);
      for (std::uint16_t to = 0; to < map.cubes_per_sip(); ++to) text += at == to ? "." : letter(table.next(at, to));
      text += fmt::format(" {}\n", letter(table.next(at, kIoChiplet)));
    }
  }
  if (map.sips > 1) {
    text += fmt::format("between SIPs ({}): link port from SIP (line) to SIP (column)\n", to_string(map.sip_topology));
    for (std::uint16_t at = 0; at < map.sips; ++at) {
      text += fmt::format("  sip{:<4}", at);
      for (std::uint16_t to = 0; to < map.sips; ++to)
        text += at == to ? "  ." : fmt::format(" {:>2}", plan.sip_table->next(at, to).link);
      text += "\n";
    }
  }
  const DeadlockStats stats = check_deadlock(plan, Coverage::representatives);
  text += fmt::format("{} channels, {} dependencies, no cycle\n", stats.channels, stats.dependencies);
  text += fmt::format("a start command reaches every PE within {}\n", format_time(map.worst_command_latency));
  for (const LinkBundle& link : map.cube_links) {
    if (&link != &map.cube_links.front()) continue;
    text += fmt::format("UCIe between cubes: {} of payload each way, {}\n",
                        format_rate(link.capacity.bytes_per_second()), format_time(link.latency));
  }
  if (!map.sip_links.empty()) {
    const LinkBundle& link = map.sip_links.front();
    text += fmt::format("links between SIPs: {} bundles, {} of payload each way, {}\n", map.sip_links.size(),
                        format_rate(link.capacity.bytes_per_second()), format_time(link.latency));
  }
  return text;
}

std::string show_modules(const Plan& plan) {
  const MachineMap& map = plan.map;
  std::size_t interfaces = map.nodes.size(), routers = 0, ports = plan.ends.size(), sockets = 0;
  for (std::uint32_t id = 0; id < plan.networks.size(); ++id) {
    routers += plan.networks[id].routers();
    for (std::uint16_t router = 0; router < plan.networks[id].routers(); ++router) {
      for (unsigned port = 0; port < plan.networks[id].ports(router); ++port) {
        sockets += plan.beyond(id, router, static_cast<std::uint8_t>(port)).kind != Beyond::Kind::nothing;
      }
    }
  }
  std::int64_t pes = 0;
  for (std::uint16_t sip = 0; sip < map.sips; ++sip) pes += static_cast<std::int64_t>(map.pes(sip).size());
  std::string text = fmt::format(
      "modules: {}, {}, {}, {} routers with {} connected ports, {} network interfaces, {} link "
      "ports{}\n",
      counted(map.sips, "SIP"), counted(map.sips * map.cubes_per_sip(), "cube"), counted(pes, "PE"), routers, sockets,
      interfaces, ports, plan.has_fabric() ? ", a fabric switch" : "");
  const auto list = [&](std::uint32_t id, const std::string& parent) {
    text += parent + "\n";
    for (std::uint16_t router = 0; router < plan.networks[id].routers(); ++router) {
      text += fmt::format("  {:<12} router\n", names::leaf(plan.router_name(id, router)));
    }
    for (const std::uint32_t end : plan.networks[id].ends) {
      if (end == kNoEnd) continue;
      text += fmt::format("  {:<12} {} connections to {}\n", names::leaf(plan.end_name(end)),
                          plan.ends[end].spots->size(), plan.end_name(plan.ends[end].peer));
    }
    for (std::uint32_t node = 0; node < map.nodes.size(); ++node) {
      if (plan.network_of(NodeId{node}) != id) continue;
      const std::string name = map.name(NodeId{node});
      text += fmt::format("  {:<12} at {}, by {}\n", name.substr(parent.size() + 1),
                          plan.router_name(id, map.nodes[node].at.router), names::leaf(names::network_interface(name)));
    }
  };
  list(plan.cube_network({0, 0}), names::cube({0, 0}));
  list(plan.io_network(0), names::io(0));
  if (plan.has_fabric()) list(plan.fabric_network(), names::parent(names::fabric_crossbar()));
  return text + "other cubes and SIPs alike\n";
}

}  // namespace

std::string show(const Plan& plan, int stage) {
  switch (stage) {
    case 3:
      return show_layouts(plan);
    case 4:
      return show_graph(plan);
    case 5:
      return show_routes(plan);
    case 6:
      return show_modules(plan);
    default:
      throw std::invalid_argument(fmt::format("stage is {}; stages 3 to 6 are shown from a plan", stage));
  }
}

}  // namespace kernbench::topology
