#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tlm/base/time.h"
#include "tlm/machine/ids.h"

namespace kernbench::topology {

struct Plan;

/// The catalogue of edges. Closed: whatever joins two components is one of these.
enum class EdgeKind : std::uint8_t {
  noc,        ///< router to router
  pe_local,   ///< PE, or an initiator beside it, to its router, and between the parts of a PE
  hbm_port,   ///< router to HBM port
  sram_port,  ///< router to SRAM
  cpu_port,   ///< router or crossbar to M_CPU or IO_CPU
  ucie,       ///< router to UCIe port, and UCIe port to UCIe port
  io,         ///< crossbar to its ports
  pcie,       ///< host to PCIE_EP
  inter_sip,  ///< link port to link port
  command     ///< who commands whom; the commands themselves travel over the other edges
};
inline constexpr int kEdgeKinds = 10;
const char* to_string(EdgeKind kind);
const char* describe(EdgeKind kind);  ///< one line

enum class PartKind : std::uint8_t {
  host,
  pcie_ep,
  io_cpu,
  crossbar,
  link_port,
  router,
  ucie,
  m_cpu,
  sram,
  hbm_port,
  pe,
  pe_part,
  initiator
};
const char* to_string(PartKind kind);

/// A component. `endpoint`: its node of the MachineMap, for a part of a PE the PE's; kNoNode for what cannot be
/// addressed.
struct GraphNode {
  PartKind kind = PartKind::router;
  std::string name;
  NodeId endpoint = kNoNode;
  std::uint32_t network = 0;  ///< of a router
  std::uint16_t router = 0;
};

/// One direction of a connection. Rate 0: not a data path, or without a limit of its own.
struct GraphEdge {
  std::uint32_t from = 0, to = 0;
  EdgeKind kind = EdgeKind::noc;
  std::uint64_t bytes_per_second = 0;
  Ps latency = 0;  ///< head in to head out, with nothing in the way
};

/// Stage 4's result: components and typed edges of the whole machine. Printed, drawn and searched; the simulation is
/// built from the plan itself.
class Graph {
 public:
  explicit Graph(const Plan& plan);

  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;  ///< by `from`

  /// Throws std::out_of_range: "the machine has no ...".
  std::uint32_t find(const std::string& name) const;
  /// Edges that leave a node: [first, last) of `edges`.
  std::pair<std::uint32_t, std::uint32_t> from(std::uint32_t node) const { return {first_[node], first_[node + 1]}; }
  /// Edge between two nodes; null if there is none. Of several kinds a data path comes first.
  const GraphEdge* edge(std::uint32_t from, std::uint32_t to) const;

 private:
  std::vector<std::uint32_t> first_;
  std::unordered_map<std::string, std::uint32_t> by_name_;
};

/// Parts of a PE, in the order in which they are listed; the first is the one that commands the others.
const std::vector<std::string>& pe_parts();

}  // namespace kernbench::topology
