#include "topology/plan/mesh_routes.h"

#include <fmt/format.h>

#include <deque>

#include "topology/plan/machine_error.h"

namespace kernbench::topology {

namespace {

constexpr unsigned kUnreached = 0xFFFF'FFFF;
constexpr std::array<std::uint8_t, kSides> kPreference = {kEastPort, kWestPort, kNorthPort, kSouthPort};

std::uint8_t dimension_order(GridPoint at, GridPoint to, bool x_first) {
  const std::uint8_t x = at.col < to.col ? kEastPort : at.col > to.col ? kWestPort : kNoPort;
  const std::uint8_t y = at.row < to.row ? kSouthPort : at.row > to.row ? kNorthPort : kNoPort;
  if (x_first) return x != kNoPort ? x : y;
  return y != kNoPort ? y : x;
}

/// Steps from router 0, by router.
std::vector<unsigned> levels(const CubeLayout& layout) {
  std::vector<unsigned> level(layout.routers.size(), kUnreached);
  std::deque<std::uint16_t> queue = {0};
  level[0] = 0;
  while (!queue.empty()) {
    const std::uint16_t at = queue.front();
    queue.pop_front();
    for (const std::uint16_t next : layout.neighbours[at]) {
      if (next == kNoRouter || level[next] != kUnreached) continue;
      level[next] = level[at] + 1;
      queue.push_back(next);
    }
  }
  const auto routers = static_cast<std::uint16_t>(level.size());
  for (std::uint16_t router = 0; router < routers; ++router) {
    if (level[router] == kUnreached) {
      throw MachineError("cube.placement.holes",
                         fmt::format("cube.placement.holes cuts router {} off from router {}",
                                     to_string(layout.routers[router]), to_string(layout.routers[0])),
                         "leave the routers of a cube connected");
    }
  }
  return level;
}

MeshRoutes up_down(const CubeLayout& layout) {
  const auto count = static_cast<std::uint16_t>(layout.routers.size());
  const std::vector<unsigned> level = levels(layout);
  std::vector<std::uint16_t> order(count);  // by level, then number: the total order that "up" refers to
  for (std::uint16_t i = 0; i < count; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::uint16_t a, std::uint16_t b) { return level[a] < level[b]; });
  std::vector<std::uint16_t> place(count);
  for (std::uint16_t i = 0; i < count; ++i) place[order[i]] = i;

  MeshRoutes routes(count);
  for (std::uint16_t exit = 0; exit < count; ++exit) {
    std::vector<unsigned> down(count, kUnreached), any(count, kUnreached);
    down[exit] = any[exit] = 0;
    // A router with a way that only descends must take it: packets that already descend come through it.
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      for (const std::uint8_t port : kPreference) {
        const std::uint16_t next = layout.neighbours[*it][port];
        if (next == kNoRouter || place[next] < place[*it] || down[next] == kUnreached) continue;
        if (down[next] + 1 < down[*it]) {
          down[*it] = any[*it] = down[next] + 1;
          routes.set(*it, exit, port);
        }
      }
    }
    for (const std::uint16_t at : order) {
      if (down[at] != kUnreached) continue;
      for (const std::uint8_t port : kPreference) {
        const std::uint16_t next = layout.neighbours[at][port];
        if (next == kNoRouter || place[next] > place[at] || any[next] == kUnreached) continue;
        if (any[next] + 1 < any[at]) {
          any[at] = any[next] + 1;
          routes.set(at, exit, port);
        }
      }
    }
  }
  return routes;
}

}  // namespace

MeshRoutes route_mesh(const CubeLayout& layout, RoutingAlgorithm algorithm) {
  if (algorithm == RoutingAlgorithm::table) return up_down(layout);
  const auto count = static_cast<std::uint16_t>(layout.routers.size());
  if (count != layout.rows * layout.cols) {
    throw MachineError("cube.noc.routing", "a mesh with holes cannot be routed in dimension order",
                       "say 'routing: table' in cube.noc");
  }
  MeshRoutes routes(count);
  for (std::uint16_t at = 0; at < count; ++at) {
    for (std::uint16_t exit = 0; exit < count; ++exit) {
      if (at == exit) continue;
      routes.set(at, exit,
                 dimension_order(layout.routers[at], layout.routers[exit], algorithm == RoutingAlgorithm::xy));
    }
  }
  return routes;
}

}  // namespace kernbench::topology
