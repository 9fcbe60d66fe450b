#pragma once
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "tlm/machine/machine_map.h"
#include "tlm/machine/routing.h"
#include "topology/plan/layout.h"
#include "topology/plan/network.h"
#include "topology/spec/spec.h"

namespace kernbench::topology {

/// Next hops between the cubes of one SIP. E/W first, then N/S; to the IO chiplet straight N, from it straight S.
///
/// Around broken links a path keeps the form (E|W|N)* S*, shortest first: moves E, W and N travel on VC set 0, moves S
/// on set 1, so the form is what keeps the sets acyclic (docs/routing.md). A broken N-S link therefore has no way
/// round.
class CubeTable {
 public:
  using Broken = std::set<std::pair<std::uint16_t, std::uint16_t>>;  ///< (lower, higher) cube
  /// `sip` is for error messages only. Throws ConfigError naming both ends if a pair cannot reach each other.
  CubeTable(std::uint16_t w, std::uint16_t h, const Broken& broken, std::uint16_t sip);
  /// REQUIRES: at != to. `to` may be kIoChiplet.
  Side next(std::uint16_t at, std::uint16_t to) const { return next_[way(at, to)]; }
  /// Whether a broken link makes the way longer.
  bool detour(std::uint16_t at, std::uint16_t to) const { return longer_[way(at, to)]; }

 private:
  std::size_t way(std::uint16_t at, std::uint16_t to) const {
    return std::size_t{at} * (cubes_ + 1) + (to == kIoChiplet ? cubes_ : to);
  }
  std::uint16_t cubes_;
  std::vector<Side> next_;
  std::vector<bool> longer_;
};

/// Next hops between SIPs: the shorter way round a ring (the positive one on a tie), X before Y on a grid, one hop
/// where all are connected. A broken link is passed the other way round its ring, or over the lowest third SIP where
/// all are connected.
///
/// VC sets, chosen so that what turns or arrives never waits in a buffer with what is still on its way round an earlier
/// part (docs/routing.md): along X set 1 while the rest of the way along X crosses the wrap link, else 0; along Y set 0
/// until the wrap link has been crossed, then 1; over a third SIP first 0, then 1.
class SipTable {
 public:
  struct Hop {
    std::uint8_t link = 0;     ///< link port of the IO chiplet
    std::uint8_t vc_set = 0;   ///< along X
    bool by_dateline = false;  ///< the packet's dateline bit decides instead
    bool dateline = false;     ///< the hop sets the bit
  };
  /// Throws ConfigError naming both ends if a pair cannot reach each other.
  explicit SipTable(const SystemSpec& spec);
  /// REQUIRES: at != to.
  Hop next(std::uint16_t at, std::uint16_t to) const { return hops_[std::size_t{at} * sips_ + to]; }
  /// Whether a broken link makes the way longer.
  bool detour(std::uint16_t at, std::uint16_t to) const {
    return !longer_.empty() && longer_[std::size_t{at} * sips_ + to];
  }
  /// VC set in the crossbar of the destination's SIP.
  std::uint8_t last_set(std::uint8_t dateline) const { return grid_ && (dateline & kDatelineBit) != 0 ? 1 : 0; }

  static constexpr std::uint8_t kDatelineBit = 2;  ///< of Packet::dateline: dimension 1

 private:
  std::uint16_t sips_;
  bool grid_;
  std::vector<Hop> hops_;
  std::vector<bool> longer_;  // empty: no link is broken

  std::vector<unsigned> lengths(const SystemSpec& spec) const;
};

/// Which of `connections` parallel links a packet takes: fixed by its destination, so that the order of a pair is kept.
inline std::uint32_t choose_link(NodeId destination, std::size_t connections) {
  const std::uint32_t mixed = (index(destination) * 0x9E3779B1u) >> 16;  // Fibonacci hashing
  return static_cast<std::uint32_t>(mixed % connections);
}

/// Routing of one cube's mesh.
class CubeRoutes final : public NetworkRoutes {
 public:
  CubeRoutes(const MachineMap& map, const std::vector<const CubeLayout*>& layouts, const CubeTable& table,
             const CubeLayout& layout, const MeshRoutes& mesh, CubeCoord self)
      : map_(map), layouts_(layouts), table_(table), layout_(layout), mesh_(mesh), self_(self) {}
  RouteDecision enter(NodeId destination, std::uint16_t at, bool from_io, std::uint8_t dateline) const override;
  std::uint8_t next_port(std::uint16_t at, Exit exit) const override {
    return at == exit.router ? exit.port : mesh_.port(at, exit.router);
  }
  bool detour(NodeId source, NodeId destination) const override;

 private:
  const MachineMap& map_;
  const std::vector<const CubeLayout*>& layouts_;  // by (sip, cube)
  const CubeTable& table_;
  const CubeLayout& layout_;
  const MeshRoutes& mesh_;
  const CubeCoord self_;
};

/// Routing of one IO chiplet's crossbar: transit SIPs are crossed here.
class IoRoutes final : public NetworkRoutes {
 public:
  IoRoutes(const MachineMap& map, const std::vector<const CubeLayout*>& layouts, const SipTable& table,
           const CrossbarLayout& layout, std::uint16_t sip)
      : map_(map), layouts_(layouts), table_(table), layout_(layout), sip_(sip) {}
  RouteDecision enter(NodeId destination, std::uint16_t at, bool from_io, std::uint8_t dateline) const override;
  std::uint8_t next_port(std::uint16_t, Exit exit) const override { return exit.port; }
  bool detour(NodeId source, NodeId destination) const override {
    const std::uint16_t from = map_.node(source).at.sip, to = map_.node(destination).at.sip;
    return from != to && table_.detour(from, to);
  }

 private:
  const MachineMap& map_;
  const std::vector<const CubeLayout*>& layouts_;
  const SipTable& table_;
  const CrossbarLayout& layout_;
  const std::uint16_t sip_;
};

/// Routing of the fabric switch.
class FabricRoutes final : public NetworkRoutes {
 public:
  FabricRoutes(const MachineMap& map, const CrossbarLayout& layout) : map_(map), layout_(layout) {}
  RouteDecision enter(NodeId destination, std::uint16_t at, bool from_io, std::uint8_t dateline) const override;
  std::uint8_t next_port(std::uint16_t, Exit exit) const override { return exit.port; }

 private:
  const MachineMap& map_;
  const CrossbarLayout& layout_;
};

}  // namespace kernbench::topology
