#pragma once
#include <cstdint>
#include <tuple>

namespace kernbench {

/// An endpoint of the network: whatever can be the source or destination of a packet.
enum class NodeId : std::uint32_t {};
inline constexpr NodeId kNoNode{0xFFFF'FFFF};
constexpr std::uint32_t index(NodeId id) { return static_cast<std::uint32_t>(id); }

/// Structural identity of a cube: cube within SIP, row-major over the cube mesh (cube = y * w + x).
struct CubeCoord {
  /** SIP, and cube within it */ std::uint16_t sip = 0, cube = 0;
  friend bool operator==(const CubeCoord& a, const CubeCoord& b) {
    return std::tie(a.sip, a.cube) == std::tie(b.sip, b.cube);
  }
  friend bool operator!=(const CubeCoord& a, const CubeCoord& b) { return !(a == b); }
  friend bool operator<(const CubeCoord& a, const CubeCoord& b) {
    return std::tie(a.sip, a.cube) < std::tie(b.sip, b.cube);
  }
};

/// Structural identity of a PE: the triple, never a flat index.
struct PeCoord {
  /** SIP, cube within it, PE within that */ std::uint16_t sip = 0, cube = 0, pe = 0;
  CubeCoord in_cube() const { return {sip, cube}; }  ///< its cube
  friend bool operator==(const PeCoord& a, const PeCoord& b) {
    return std::tie(a.sip, a.cube, a.pe) == std::tie(b.sip, b.cube, b.pe);
  }
  friend bool operator!=(const PeCoord& a, const PeCoord& b) { return !(a == b); }
  friend bool operator<(const PeCoord& a, const PeCoord& b) {
    return std::tie(a.sip, a.cube, a.pe) < std::tie(b.sip, b.cube, b.pe);
  }
};

enum class Side : std::uint8_t { north, south, east, west };
inline constexpr int kSides = 4;
constexpr Side opposite(Side side) {
  switch (side) {
    case Side::north:
      return Side::south;
    case Side::south:
      return Side::north;
    case Side::east:
      return Side::west;
    default:
      return Side::east;
  }
}

}  // namespace kernbench
