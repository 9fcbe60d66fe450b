#include "ccl/schedule/machine.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "ccl/contract/grid.h"

namespace kernbench::ccl {
Lattice sip_lattice(const PlanRequest& request) {
  if (request.kind == kTorus2d) return {request.sip_w, request.sip_h, true, true};
  if (request.kind == kMesh2d) return {request.sip_w, request.sip_h, false, false};
  return {request.ranks, 1, true, false};
}

Lattice cube_lattice(const PlanRequest& request) { return {request.cube_w, request.cube_h, false, false}; }

bool all_pairs(const PlanRequest& request) { return request.kind == kSwitch || request.kind == kFullyConnected; }

Graph sip_graph(const PlanRequest& request) {
  return all_pairs(request) ? Graph::complete(request.ranks) : Graph::of(sip_lattice(request));
}

namespace {

const std::vector<std::int32_t>* known_way(const std::shared_ptr<const Ways>& ways, std::int32_t from,
                                           std::int32_t to) {
  if (!ways) return nullptr;
  const auto found = ways->find({from, to});
  return found == ways->end() ? nullptr : &found->second;
}

}  // namespace

std::vector<std::int32_t> sip_way(const PlanRequest& request, std::int32_t from, std::int32_t to) {
  if (const auto* known = known_way(request.sip_ways, from, to)) return *known;
  if (all_pairs(request)) return {from, to};
  const Lattice grid = sip_lattice(request);
  std::vector<std::int32_t> way{from};
  int x = grid.x(from), y = grid.y(from);
  while (x != grid.x(to)) {
    x = (x + step_towards(x, grid.x(to), grid.w, grid.ring_x(), true) + grid.w) % grid.w;
    way.push_back(grid.at(x, y));
  }
  while (y != grid.y(to)) {
    y = (y + step_towards(y, grid.y(to), grid.h, grid.ring_y(), true) + grid.h) % grid.h;
    way.push_back(grid.at(x, y));
  }
  return way;
}

std::vector<std::int32_t> cube_way(const PlanRequest& request, std::int32_t from, std::int32_t to) {
  if (const auto* known = known_way(request.cube_ways, from, to)) return *known;
  std::vector<std::int32_t> way{from};
  while (way.back() != to) {
    // The first node of a SIP lies in column 0, since its rows are full.
    const std::int32_t at = way.back(), across = to % request.cube_w - at % request.cube_w;
    way.push_back(across != 0 ? at + (across > 0 ? 1 : -1) : at + (to > at ? request.cube_w : -request.cube_w));
  }
  return way;
}

Graph machine_graph(const PlanRequest& request) {
  const Graph sips = sip_graph(request), cubes = Graph::of(cube_lattice(request));
  Graph graph;
  graph.nodes = request.nodes();
  const std::int32_t n = request.cubes();
  for (std::int32_t sip = 0; sip < request.ranks; ++sip) {
    for (const Graph::Edge& edge : cubes.edges) graph.edges.push_back({sip * n + edge.a, sip * n + edge.b, 1});
  }
  for (const Graph::Edge& edge : sips.edges) {
    for (std::int32_t cube = 0; cube < n; ++cube) graph.edges.push_back({edge.a * n + cube, edge.b * n + cube, 1});
  }
  return graph;
}

Fabric machine_fabric(const PlanRequest& request, int lambda, int columns) {
  const Graph sips = sip_graph(request), cubes = Graph::of(cube_lattice(request));
  const std::int32_t n = request.cubes();
  // With one level the chunk of that level is the tick.
  const double ratio = n > 1 ? request.cube.bytes_per_second / std::max(request.sip.bytes_per_second, 1.0) : 1;
  const auto width = static_cast<std::int32_t>(std::clamp(std::lround(ratio), 1L, 16L));
  Fabric fabric(request.nodes());
  for (std::int32_t sip = 0; sip < request.ranks; ++sip) {
    for (const Graph::Edge& edge : cubes.edges) fabric.add(sip * n + edge.a, sip * n + edge.b, 1, false);
  }
  for (const Graph::Edge& edge : sips.edges) {
    std::int32_t resource = -1;
    for (std::int32_t cube = 0; cube < n; ++cube) {
      const std::int32_t link = fabric.add(edge.a * n + cube, edge.b * n + cube, width, true, resource);
      resource = fabric.links()[index(link)].resource;
    }
  }
  fabric.assume_ticks(lambda * columns * width, lambda);
  return fabric;
}

std::vector<Dimension> dimensions(const PlanRequest& request) {
  std::vector<Dimension> found;
  const auto add = [&](std::int32_t size, std::int32_t stride, Dimension::Kind kind) {
    if (size > 1) found.push_back({size, stride, kind});
  };
  add(request.cube_w, 1, Dimension::Kind::line);
  add(request.cube_h, request.cube_w, Dimension::Kind::line);
  if (all_pairs(request)) {
    add(request.ranks, request.cubes(), Dimension::Kind::all_pairs);
  } else {
    const Lattice grid = sip_lattice(request);
    add(grid.w, request.cubes(), grid.ring_x() ? Dimension::Kind::ring : Dimension::Kind::line);
    add(grid.h, request.cubes() * grid.w, grid.ring_y() ? Dimension::Kind::ring : Dimension::Kind::line);
  }
  return found;
}

Tree product_tree(const Tree& sips, const Tree& cubes, std::int32_t attach) {
  const Tree inside = rooted(cubes, attach);
  const auto n = static_cast<std::int32_t>(cubes.parent.size());
  Tree tree;
  tree.root = sips.root * n + attach;
  tree.parent.reserve(sips.parent.size() * cubes.parent.size());
  for (std::size_t sip = 0; sip < sips.parent.size(); ++sip) {
    for (std::int32_t cube = 0; cube < n; ++cube) {
      if (cube != attach) {
        tree.parent.push_back(static_cast<std::int32_t>(sip) * n + inside.parent[index(cube)]);
      } else {
        tree.parent.push_back(sips.parent[sip] < 0 ? -1 : sips.parent[sip] * n + attach);
      }
    }
  }
  return tree;
}

NodePairs machine_links(const PlanRequest& request) {
  NodePairs pairs;
  for (const Graph::Edge& edge : machine_graph(request).edges) {
    pairs.emplace_back(std::min(edge.a, edge.b), std::max(edge.a, edge.b));
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

NodePairs peer_links(const PlanRequest& request) {
  if (request.cubes() > 1) throw std::invalid_argument("queues between all nodes are for ranks only, not for cubes");
  NodePairs pairs;
  for (std::int32_t a = 0; a < request.ranks; ++a) {
    for (std::int32_t b = a + 1; b < request.ranks; ++b) pairs.emplace_back(a, b);
  }
  return pairs;
}

}  // namespace kernbench::ccl
