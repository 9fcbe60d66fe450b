#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tlm/base/time.h"
#include "tlm/machine/address.h"
#include "tlm/machine/ids.h"
#include "tlm/machine/routing.h"

namespace kernbench {

enum class NodeKind : std::uint8_t { pe, hbm_port, sram, m_cpu, pcie_ep, io_cpu, initiator };

/// One endpoint of the network. `unit` is the PE (pe), the PE whose slice the port serves (hbm_port), or the number of
/// the initiator that somebody else brings along (initiator).
struct Node {
  NodeKind kind = NodeKind::pe;
  std::uint16_t unit = 0;
  Attachment at;
};

/// Constants are part of the algorithm contract (spec).
enum class SipTopology : std::uint8_t { ring_1d, torus_2d, mesh_2d_no_wrap, switch_star, fully_connected };
const char* to_string(SipTopology topology);  ///< the name used in topology.yaml

/// A bundle of parallel links between two SIPs or two cubes, in both directions. Capacity is the payload rate of one
/// direction, after flit, header and encoding efficiency.
struct LinkBundle {
  std::uint16_t a = 0, b = 0;  ///< SIPs, or cubes of a SIP; kIoChiplet for the IO chiplet end of a cube link
  Rate capacity{1};
  Ps latency = 0;             ///< zero-load, of a minimal packet, one way
  std::uint16_t sip = 0;      ///< of a link between cubes
  std::uint32_t packets = 0;  ///< that the receivers of one direction hold; 0: no limit
  Ps round_trip = 0;  ///< from the start of a packet of 256 B until its place at the far end is known to be free
};

/// One direction of one connection of a link.
struct WireUse {
  static constexpr std::uint32_t kConnections = 64;  ///< of a link, at most

  std::uint32_t wire = 0;  ///< a number of its own in the machine
  Rate rate{1};            ///< payload rate of full packets

  /// The link and direction that it belongs to, by a number of its own.
  std::uint32_t link() const { return wire / kConnections; }
};

/// What a memory endpoint looks like to software.
struct MemoryInfo {
  std::uint64_t bytes = 0;
  Rate peak{1};
};

/// What the engines of a PE take, and the memory behind the port of its slice.   defaults: those of preset default
struct PeEngines {
  Ps dispatch = 2'000;                             ///< that PE_CPU is busy with an op
  std::uint32_t math_queue = 16, ipcq_queue = 16;  ///< ops that wait
  Ps dma_setup = 0;                                ///< per op
  std::uint64_t dma_bytes = 16'384;                ///< of loads under way, and of stores
  std::uint64_t math_hz = 1'600'000'000;
  std::uint32_t math_lanes = 128;  ///< elements of up to 32 bits per cycle
  std::uint32_t math_fill = 8;     ///< cycles before the first
  Ps hbm_hit = 33'750;             ///< a read of an open row, until its data leave
  std::uint64_t hbm_write_queue =
      8'192;                          ///< B of its slice not yet written: in queues, and a burst a bank behind its ACT
  std::uint32_t kernel_contexts = 2;  ///< launches that share the PE's TCM equally
  std::uint64_t gemm_hz = 1'600'000'000;
  std::uint32_t gemm_rows = 32, gemm_cols = 32;            ///< cells of the array
  bool weights_stay = false;                               ///< weight stationary; otherwise outputs stay in the array
  std::uint32_t f8_rate = 2, f16_rate = 1, f32_cycles = 4; /**< MACs of a cell per cycle; cycles of one in f32 */
};

/// What one PE meets.
struct PeRates {
  Rate hbm_slice{1}, tcm{1}, port{1};
  PeEngines engines{};
};

/// Read-only map of the machine: what there is, where it is, how far and how fast. Topology fills it; the runtime,
/// collectives and models read it and never walk a graph themselves.
class MachineMap {
 public:
  // Shape.
  std::uint16_t sips = 0, cube_w = 0, cube_h = 0, pes_per_cube = 0;
  SipTopology sip_topology = SipTopology::ring_1d;
  std::uint16_t sip_w = 0,
                sip_h = 0;  ///< grid of SIPs; 0 where the topology has none (ring_1d, switch, fully connected)

  // Capacities.
  MemoryInfo hbm_slice, tcm, sram;  ///< per PE, per PE, per cube; the peaks are those of a PE without overrides
  std::uint16_t ipcq_slots = 4;     ///< of every IPCQ ring
  std::uint32_t ipcq_slot_bytes = 4096;
  MemoryKind ipcq_buffer = MemoryKind::tcm;  ///< memory that the rings lie in: tcm, sram or hbm, of the receiver
  Rate pe_port{1};                           ///< payload rate between a PE and its router, one way, without overrides
  PeEngines engines;                         ///< of a PE, without overrides
  std::map<PeCoord, PeRates> odd_pes;        ///< of PEs whose rates an override changes
  std::vector<LinkBundle> sip_links;         ///< between SIPs
  std::vector<LinkBundle> cube_links;        ///< between cubes of a SIP, and between its row-0 cubes and the IO chiplet
  /// 16 hex digits over every value of the machine that moves times of collectives; empty: nobody has made them.
  std::string fingerprint;
  Ps worst_command_latency = 0;  ///< IO_CPU to the farthest PE, with every hop's worst wait (commands have priority)

  std::uint16_t cubes_per_sip() const { return static_cast<std::uint16_t>(cube_w * cube_h); }
  std::uint32_t pes_per_sip() const { return std::uint32_t{cubes_per_sip()} * pes_per_cube; }
  /// PEs that exist (overrides may remove some), in (sip, cube, pe) order.
  std::vector<PeCoord> pes(std::uint16_t sip) const;
  bool has(PeCoord pe) const;
  PeRates rates(PeCoord pe) const;

  // Nodes. Each throws std::out_of_range with the structural name if there is no such unit.
  const Node& node(NodeId id) const { return nodes[index(id)]; }
  NodeId pe(PeCoord pe) const;
  NodeId hbm_port(PeCoord owner) const;
  NodeId sram_of(CubeCoord cube) const;
  NodeId m_cpu(CubeCoord cube) const;  ///< find_m_cpu
  NodeId io_cpu(std::uint16_t sip) const;
  NodeId pcie_ep(std::uint16_t sip) const;
  std::string name(NodeId id) const;    ///< "sip0.cube3.pe5"
  PeCoord coord(NodeId pe_node) const;  ///< REQUIRES: kind pe or hbm_port

  /// The memory endpoint that serves an address (HBM port, SRAM, the PE for TCM and SFR, PCIE_EP for host memory).
  /// kNoNode if the unit does not exist or the offset lies beyond its capacity.
  NodeId resolve(const PhysicalAddress& address) const;
  /// The same for an encoded one; kNoNode also if its bits name no memory.
  NodeId resolve(std::uint64_t encoded) const;

  /// B of a packet whose size does not count: one element, a flit at most.
  static constexpr std::uint32_t kLeastPacket = 8;
  /// Zero-load time of one packet of `bytes` from node to node: injection of the head to arrival of the tail.
  std::function<Ps(NodeId from, NodeId to, std::uint32_t bytes)> packet_latency;

  /// The wires between networks that packets from node to node pass, in order.
  std::function<std::vector<WireUse>(NodeId from, NodeId to)> wires;

  // Filled by topology. kNoNode where a unit is missing.
  std::vector<Node> nodes;
  std::vector<NodeId> pe_nodes, hbm_nodes;       ///< by (sip, cube, pe), row-major
  std::vector<NodeId> sram_nodes, m_cpu_nodes;   ///< by (sip, cube)
  std::vector<NodeId> io_cpu_nodes, pcie_nodes;  ///< by sip
  std::vector<NodeId> initiator_nodes;           ///< beside the PEs, by number

 private:
  std::size_t slot(PeCoord pe) const {
    return (std::size_t{pe.sip} * cubes_per_sip() + pe.cube) * pes_per_cube + pe.pe;
  }
  std::size_t slot(CubeCoord cube) const { return std::size_t{cube.sip} * cubes_per_sip() + cube.cube; }
};

}  // namespace kernbench
