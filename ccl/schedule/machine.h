#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "ccl/contract/plan_request.h"
#include "ccl/schedule/lattice.h"
#include "ccl/schedule/tasks.h"

/// The nodes of a PlanRequest as lattices, graphs and fabrics. Node = rank * cubes + cube.
namespace kernbench::ccl {

/// SIPs in a ring (any kind that is no grid), torus or mesh.
Lattice sip_lattice(const PlanRequest& request);
Lattice cube_lattice(const PlanRequest& request);
/// The kind joins every pair of SIPs: switch, fully connected.
bool all_pairs(const PlanRequest& request);
/// SIPs as a graph: neighbours, or all pairs.
Graph sip_graph(const PlanRequest& request);
/// SIPs that a message passes from one rank to another, both included: along the row, then along the column, or what
/// `sip_ways` says.
std::vector<std::int32_t> sip_way(const PlanRequest& request, std::int32_t from, std::int32_t to);
/// The same for two nodes of a rank, with `cube_ways`.
std::vector<std::int32_t> cube_way(const PlanRequest& request, std::int32_t from, std::int32_t to);

/// All nodes: neighbouring cubes of a SIP, and neighbouring SIPs at every cube.
Graph machine_graph(const PlanRequest& request);
/// The same with times: a chunk between SIPs takes as long as the rates say, in chunks between cubes; all cubes share
/// the link between two SIPs. Latency: `lambda` chunks; between SIPs `columns` times as many, where that many queues
/// share a link in turn.
Fabric machine_fabric(const PlanRequest& request, int lambda, int columns = 1);

/// One line, ring or clique of a product of dimensions: node n has place (n / stride) mod size in it.
struct Dimension {
  enum class Kind : std::uint8_t { line, ring, all_pairs };
  std::int32_t size = 1, stride = 1;
  Kind kind = Kind::line;

  std::int32_t place(std::int32_t node) const { return node / stride % size; }
  /// The node of the same line at place `to`.
  std::int32_t at_place(std::int32_t node, std::int32_t to) const { return node + (to - place(node)) * stride; }
};
/// Those longer than 1: cube columns and rows, then the SIPs'.
std::vector<Dimension> dimensions(const PlanRequest& request);

/// The spanning tree of `sips` with its edges at cube `attach`, and `cubes`, rooted there, inside every SIP.
Tree product_tree(const Tree& sips, const Tree& cubes, std::int32_t attach);

using NodePairs = std::vector<std::pair<std::int32_t, std::int32_t>>;
NodePairs machine_links(const PlanRequest& request);  ///< edges of machine_graph
NodePairs peer_links(const PlanRequest& request);     ///< every pair of ranks; cubes must be 1 x 1

}  // namespace kernbench::ccl
