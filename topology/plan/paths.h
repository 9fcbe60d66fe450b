#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tlm/machine/address.h"
#include "tlm/machine/ids.h"
#include "topology/plan/graph.h"
#include "topology/plan/plan.h"

namespace kernbench::topology {

/// Adjacency views: which edge kinds a path may use.
enum class View : std::uint8_t {
  everything,  ///< all
  data,        ///< all but command
  m_cpu_dma,   ///< what an M_CPU's DMA uses: neither command nor pe_local, pcie
  pe_local     ///< inside a cube: noc, pe_local, hbm_port, sram_port, cpu_port
};
bool includes(View view, EdgeKind kind);
const char* to_string(View view);

/// There is no path in the view. The message has both names and the cut.
class Unreachable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Components in order, both ends included, and the time of a minimal packet with nothing in the way.
struct Path {
  std::vector<std::string> components;
  std::vector<EdgeKind> edges;  ///< between them
  Ps distance = 0;
};

/// Where is X, and how does one get there: the one owner of both. Paths between endpoints are worked out by the very
/// routing objects that the models ask. Names are structural; an unknown one throws std::out_of_range.
class Paths {
 public:
  explicit Paths(const Plan& plan) : plan_(plan), graph_(plan) {}

  // Address resolver.
  NodeId resolve(const PhysicalAddress& address) const;  ///< throws std::out_of_range naming the address
  NodeId find_m_cpu(CubeCoord cube) const { return plan_.map.m_cpu(cube); }
  NodeId find_io_cpu(std::uint16_t sip) const { return plan_.map.io_cpu(sip); }
  NodeId find_pcie_ep(std::uint16_t sip) const { return plan_.map.pcie_ep(sip); }
  std::vector<NodeId> find_all_pcie_eps() const { return plan_.map.pcie_nodes; }

  // Path router. From an endpoint, a part of a PE or a router, to an endpoint, a part of a PE or, inside one network, a
  // router.
  std::vector<std::string> find_path(const std::string& from, const std::string& to, View view = View::data) const {
    return find_path_with_distance(from, to, view).components;
  }
  Path find_path_with_distance(const std::string& from, const std::string& to, View view = View::data) const;
  /// Of a cube's M_CPU to the memory that serves an address.
  Path find_mcpu_dma_path(CubeCoord m_cpu, const PhysicalAddress& to) const;
  /// Of a PE's DMA to the memory that serves an address.
  Path find_memory_path(PeCoord pe, const PhysicalAddress& to) const;
  Path find_node_path(NodeId from, NodeId to, View view = View::data) const {
    return find_path_with_distance(plan_.map.name(from), plan_.map.name(to), view);
  }

  const Graph& graph() const { return graph_; }

 private:
  std::vector<std::uint32_t> inside_pe(std::uint32_t from, std::uint32_t to) const;
  std::vector<std::uint32_t> by_command(std::uint32_t from, std::uint32_t to) const;
  void append_network_path(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& nodes) const;
  Path finish(const std::vector<std::uint32_t>& nodes, View view) const;

  const Plan& plan_;
  const Graph graph_;
};

}  // namespace kernbench::topology
