#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/hbm/hbm_config.h"
#include "models/io/io_cpu.h"
#include "models/io/pcie_ep.h"
#include "models/link/link_config.h"
#include "models/m_cpu/m_cpu.h"
#include "models/noc/noc_config.h"
#include "models/pe/pe_config.h"
#include "models/sram/sram_config.h"
#include "models/ucie/ucie_config.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::topology {

/// A router position.
struct GridPoint {
  std::uint16_t row = 0, col = 0;
  friend bool operator<(GridPoint a, GridPoint b) { return std::pair(a.row, a.col) < std::pair(b.row, b.col); }
  friend bool operator==(GridPoint a, GridPoint b) { return a.row == b.row && a.col == b.col; }
};
/// "r2c1"
std::string to_string(GridPoint point);
/// What to_string() writes, and nothing else: no signs, blanks or leading zeros.
std::optional<GridPoint> parse_point(const std::string& text);
/// Whether `point` is one of them.
bool contains(const std::vector<GridPoint>& points, GridPoint point);

/// Where the parts of a cube are attached. Empty lists: the layout stage spreads them (PEs evenly over the mesh, HBM
/// port i at PE i's router, M_CPU and SRAM near the middle).
struct PlacementHints {
  std::vector<GridPoint> holes;        ///< positions without a router
  std::vector<GridPoint> exclusion;    ///< routers without attachments (HBM PHY zone)
  std::vector<GridPoint> pes;          ///< one per PE, or empty
  std::vector<GridPoint> m_cpu, sram;  ///< zero or one
};

struct CubeSpec {
  NocConfig noc;
  std::uint16_t pes = 8;
  PlacementHints placement;
  MCpuConfig m_cpu;
  SramConfig sram;
  HbmConfig hbm;
  UcieConfig ucie;
  PeConfig pe;  ///< of its PEs, unless overridden
};

/// The IO chiplet: a crossbar with UCIe ports to the row-0 cubes, PCIE_EP, IO_CPU and the inter-SIP link ports.
struct IoSpec {
  NocConfig crossbar;
  UcieConfig ucie;
  PcieConfig pcie;
  IoCpuConfig cpu;
};

struct SipSpec {
  std::uint16_t cube_w = 4, cube_h = 4;
  IoSpec io;
};

struct InterSipSpec {
  LinkConfig link;                                      ///< what follows from the rest
  std::uint32_t lanes = 32;                             ///< of a link, each way
  std::uint64_t transfers_per_second = 32'000'000'000;  ///< of a lane, one bit each
  Ps serdes_per_side = 0;                               ///< PHY, FEC and link layer of one end
  Ps propagation = 0;                                   ///< over board or cable
  Ps switch_latency = 0;                                ///< of the fabric switch beside its crossbar
  std::uint32_t links_per_neighbour = 1;
  NocConfig switch_crossbar;  ///< of the fabric switch; topology `switch` only
};

/// Where an initiator of somebody else is attached, beside what is there: at a router of a cube's mesh.
struct InitiatorSpot {
  CubeCoord cube;
  GridPoint router;
};

/// Stage 2's result: everything about the machine, typed, in base units.
struct SystemSpec {
  std::string name;  ///< preset or file it came from
  std::uint16_t sips = 2;
  SipTopology topology = SipTopology::ring_1d;
  std::uint16_t sip_w = 0, sip_h = 0;  ///< 0 where is_grid() is not
  bool is_grid() const { return topology == SipTopology::torus_2d || topology == SipTopology::mesh_2d_no_wrap; }
  InterSipSpec links;
  SipSpec sip;
  CubeSpec cube;                 ///< of every cube, unless overridden
  std::string cube_mesh;         ///< file of a pinned layout (docs/routing.md); empty: laid out by rule
  std::string cube_mesh_text{};  ///< what it holds
  std::string fingerprint;       ///< MachineMap::fingerprint, once the values have been resolved

  /// A SystemC program's own, in no file (docs/tlm.md): Machine::initiator(i) is the socket of the i-th.
  std::vector<InitiatorSpot> initiators;

  // Overrides.
  std::map<CubeCoord, CubeSpec> cubes;  ///< whole specs of cubes that differ in something other than shape
  std::map<PeCoord, PeConfig> pes;
  std::set<PeCoord> missing_pes;
  std::set<std::pair<std::uint16_t, std::uint16_t>> broken_sip_links;  ///< (lower, higher) SIP
  std::set<std::pair<CubeCoord, std::uint16_t>> broken_cube_links;     ///< (cube, neighbour), lower first

  const CubeSpec& cube_at(CubeCoord at) const {
    const auto found = cubes.find(at);
    return found == cubes.end() ? cube : found->second;
  }
  const PeConfig& pe_at(PeCoord at) const {
    const auto found = pes.find(at);
    return found == pes.end() ? cube_at(at.in_cube()).pe : found->second;
  }
};

}  // namespace kernbench::topology
