#include "ccl/schedule/level_cost.h"

#include <algorithm>
#include <optional>

#include "ccl/schedule/ways.h"

namespace kernbench::ccl {
namespace {

/// Of a sum beside its bytes, over what fills the math engine.   assumed: a step and a half of it is TCM's
constexpr double kSumOverFill = 1.2;
/// Bytes of an element where the lanes of the math engine have to tell how many bytes they sum.   assumed: f32
constexpr double kSumItem = 4;
/// Virtual networks that the messages between two neighbours take.
constexpr unsigned kNetworksOfMessages = 1;

/// Zero-load times between PEs, where the map knows them.
class LevelWays {
 public:
  explicit LevelWays(const MachineMap& map) : map_(map) {}

  /// The longest from a PE of cubes [first, last) of one SIP to the PE at the same place of another, `cubes` cubes on.
  Ps longest(int first, int last, SipPair sips, int cubes) const {
    Ps most = 0;
    for (int cube = first; cube < last; ++cube) {
      for (const int pe : {0, map_.pes_per_cube - 1}) {
        const PeCoord from = at(sips.first, cube, pe), to = at(sips.second, cube + cubes, pe);
        if (!map_.has(from) || !map_.has(to)) continue;
        most = std::max(most, map_.packet_latency(map_.pe(from), map_.pe(to), kShortMessage));
      }
    }
    return most;
  }

  static PeCoord at(int sip, int cube, int pe) {
    return {static_cast<std::uint16_t>(sip), static_cast<std::uint16_t>(cube), static_cast<std::uint16_t>(pe)};
  }

 private:
  const MachineMap& map_;
};

/// The slowest link of a level.
LevelCost slowest(const MachineMap& map, bool between_sips) {
  LevelCost cost;
  bool any = false;
  for (const LinkBundle& link : between_sips ? map.sip_links : map.cube_links) {
    if (!between_sips && (link.a == kIoChiplet || link.b == kIoChiplet)) continue;
    const double rate = lasting_rate(link, kNetworksOfMessages);
    if (any && rate >= cost.bytes_per_second) continue;
    any = true;
    cost.bytes_per_second = rate;
    cost.hop_seconds = seconds(link.latency);
  }
  return cost;
}

/// A SIP that is two links away from SIP 0 where no link is broken; 0 if there is none.
std::uint16_t two_links_away(const MachineMap& map) {
  switch (map.sip_topology) {
    case SipTopology::ring_1d:
      return map.sips >= 4 ? 2 : 0;
    case SipTopology::torus_2d:
    case SipTopology::mesh_2d_no_wrap:
      if (map.sip_w >= 2 && map.sip_h >= 2) return static_cast<std::uint16_t>(map.sip_w + 1);
      return map.sips >= (map.sip_topology == SipTopology::torus_2d ? 4 : 3) ? 2 : 0;
    default:
      return 0;
  }
}

/// Of a load or store of one flit by a PE at the memory of another.
double access_seconds(const MachineMap& map, PeCoord from, PeCoord owner) {
  const NodeId pe = map.pe(from), hbm = map.hbm_port(owner);
  return seconds(map.packet_latency(pe, hbm, 0) + map.packet_latency(hbm, pe, kShortMessage) + map.engines.hbm_hit);
}

/// The farthest of a SIP.
double farthest_access_seconds(const MachineMap& map) {
  double most = 0;
  const PeCoord first = LevelWays::at(0, 0, 0);
  for (const PeCoord owner : map.pes(0)) most = std::max(most, access_seconds(map, first, owner));
  return most;
}

}  // namespace

double window_bytes(const LinkBundle& link) { return 256.0 * link.packets; }

double lasting_rate(const LinkBundle& link, unsigned networks) {
  const auto wire = static_cast<double>(link.capacity.bytes_per_second());
  return link.packets == 0 ? wire : std::min(wire, window_bytes(link) * networks / seconds(link.round_trip));
}

void spread_regions(const MachineMap& map, PlanRequest& request) {
  if (!map.packet_latency || request.lanes < 2 || !map.has(LevelWays::at(0, 0, 0))) return;
  const double far = farthest_access_seconds(map);
  if (regions_in(request.op, request.ranks) > 1) request.load_seconds = far;
  if (regions_out(request.op, request.ranks) > 1) request.store_seconds = far;
}

void describe_machine(const MachineMap& map, PlanRequest& request) {
  request.sip = slowest(map, true);
  request.cube = slowest(map, false);
  request.columns = map.cube_w;
  for (const LinkBundle& link : map.cube_links) {
    if (link.a != kIoChiplet && link.b != kIoChiplet) continue;
    const double rate = lasting_rate(link, kNetworksOfMessages);
    if (request.column_bytes_per_second <= 0 || rate < request.column_bytes_per_second)
      request.column_bytes_per_second = rate;
  }
  request.lane_bytes_per_second =
      static_cast<double>(std::min(map.pe_port.bytes_per_second(), map.tcm.peak.bytes_per_second()));
  const PeEngines& engines = map.engines;
  request.issue_seconds = seconds(engines.dispatch);
  request.queue_ops = static_cast<std::int32_t>(std::min(engines.math_queue, engines.ipcq_queue));
  request.sum_seconds = kSumOverFill * engines.math_fill / static_cast<double>(engines.math_hz);
  request.sum_bytes_per_second = kSumItem * engines.math_lanes * static_cast<double>(engines.math_hz);
  if (!map.packet_latency || map.pes_per_cube == 0) return;
  const LevelWays ways(map);
  const int cubes = map.cubes_per_sip(), w = map.cube_w;
  if (map.sips > 1) {
    const std::optional<SipPair> near = sips_apart(map, 1, SipPair{0, 1});
    if (const Ps top = near ? ways.longest(0, w, *near, 0) : 0; top > 0) {
      request.sip.hop_seconds = seconds(top);
      request.row_skew_seconds = seconds(std::max<Ps>(ways.longest(cubes - w, cubes, *near, 0) - top, 0));
      const std::uint16_t two = two_links_away(map);
      if (const auto far = sips_apart(map, 2, two > 0 ? std::optional(SipPair{0, two}) : std::nullopt))
        request.sip.pass_seconds = seconds(std::max<Ps>(ways.longest(0, w, *far, 0) - top, 0));
    }
  }
  if (cubes > 1) {
    const int next = w > 1 ? 1 : w;
    if (const Ps hop = ways.longest(0, 1, {0, 0}, next); hop > 0) {
      request.cube.hop_seconds = seconds(hop);
      const int far = w > 2 ? 2 : map.cube_h > 1 && w > 1 ? w + 1 : map.cube_h > 2 ? 2 * w : 0;
      if (far > 0) request.cube.pass_seconds = seconds(std::max<Ps>(ways.longest(0, 1, {0, 0}, far) - hop, 0));
    }
  }
  if (const PeCoord first = LevelWays::at(0, 0, 0); map.has(first)) {
    request.load_seconds = request.store_seconds = access_seconds(map, first, first);
  }
}

void set_nodes(PlanRequest& request, std::int32_t cube_w, std::int32_t cube_h) {
  request.cube_w = cube_w;
  request.cube_h = cube_h;
  if (request.cubes() > 1) return;
  request.sip.hop_seconds += request.row_skew_seconds;
  request.row_skew_seconds = 0;
}

}  // namespace kernbench::ccl
