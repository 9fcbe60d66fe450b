#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tlm/machine/ids.h"
#include "tlm/machine/routing.h"
#include "topology/spec/spec.h"

namespace kernbench::topology {

inline constexpr std::uint16_t kNoRouter = 0xFFFF;

/// Which router and which of its ports something is attached to.
struct Spot {
  std::uint16_t router = 0;
  std::uint8_t port = kNoPort;
};

enum class LocalKind : std::uint8_t { pe, hbm_port, m_cpu, sram, ucie, initiator };

/// What hangs on a local port of a router. `unit`: PE, HBM slice, UCIe connection or number of an initiator; `side`: of
/// a UCIe connection.
struct LocalPort {
  LocalKind kind = LocalKind::pe;
  std::uint16_t unit = 0;
  Side side = Side::north;
};

/// Where everything of a cube is attached, as router positions: what cube_mesh.yaml holds and a user may edit.
struct CubeMesh {
  std::vector<GridPoint> pes, hbm_ports;
  GridPoint m_cpu, sram;
  std::array<std::vector<GridPoint>, kSides> ucie;  ///< by side, by connection
  friend bool operator==(const CubeMesh& a, const CubeMesh& b) {
    return a.pes == b.pes && a.hbm_ports == b.hbm_ports && a.m_cpu == b.m_cpu && a.sram == b.sram && a.ucie == b.ucie;
  }
};

/// Stage 3's result: the routers of a cube with their neighbours, and the port that everything hangs on.
struct CubeLayout {
  std::uint16_t rows = 0, cols = 0;
  std::vector<GridPoint> routers;                             ///< by number: row-major, holes left out
  std::vector<std::uint16_t> number;                          ///< by row * cols + col; kNoRouter: a hole
  std::vector<std::array<std::uint16_t, kSides>> neighbours;  ///< by router and port 0..3; kNoRouter: none
  std::vector<std::vector<LocalPort>> locals;                 ///< by router; port kFirstLocalPort + i
  std::vector<Spot> pes, hbm_ports;
  Spot m_cpu, sram;
  std::array<std::vector<Spot>, kSides> ucie;
  CubeMesh mesh;  ///< the same as positions

  std::uint16_t at(GridPoint point) const { return number[std::size_t{point.row} * cols + point.col]; }
  unsigned ports(std::uint16_t router) const { return kFirstLocalPort + static_cast<unsigned>(locals[router].size()); }
  /// Connection of a side that is nearest to a row (E, W) or a column (N, S); the lower number on a tie.
  std::uint16_t nearest_connection(Side side, std::uint16_t row_or_col) const;
};

/// The rule. PEs that have no hint are spread evenly over the rows of routers outside the exclusion zone, and over
/// their columns: none gets a second PE before all have one, since a packet to the IO chiplet takes the UCIe connection
/// of its column. They are numbered row-major (a checkerboard for a PE on every second router). HBM port i is at PE i's
/// router; the M_CPU, then the SRAM, at the router nearest to the middle, of several the one with least attached; a
/// hint at a hole or in the zone moves to the nearest router that may be used; UCIe connections are spread evenly over
/// the routers of their edge. Throws ConfigError if something finds no router.
CubeMesh place(const CubeSpec& spec);

/// Numbers the routers and hands out ports, in the order PEs, HBM ports, M_CPU, SRAM, UCIe N, S, E, W.
/// REQUIRES: every position of `mesh` is a router.
CubeLayout attach(const CubeSpec& spec, CubeMesh mesh);

/// Hands out one port more. Throws ConfigError if the router has all that a port number holds, or there is no router.
Spot hang(CubeLayout& layout, GridPoint point, LocalPort local);

inline CubeLayout layout(const CubeSpec& spec) { return attach(spec, place(spec)); }

/// The five things that determine a layout, in a canonical text each: mesh size, PE count, HBM ports and zone,
/// placement hints, UCIe ports.
struct Determinants {
  static constexpr std::size_t kCount = 5;
  std::array<std::string, kCount> value;
  static const std::array<const char*, kCount>& names();  ///< keys in cube_mesh.yaml
  std::string hash() const;                               ///< 16 hex digits (FNV-1a)
  friend bool operator==(const Determinants& a, const Determinants& b) { return a.value == b.value; }
};
Determinants determinants(const CubeSpec& spec);

std::string to_string(const std::vector<GridPoint>& points);  ///< "[r0c0, r0c1]"
const char* letter(Side side);                                ///< "n", "s", "e", "w"

}  // namespace kernbench::topology
