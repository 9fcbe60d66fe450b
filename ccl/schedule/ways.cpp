#include "ccl/schedule/ways.h"

#include <algorithm>
#include <map>
#include <set>
#include <systemc>

#include "ccl/schedule/machine.h"

namespace kernbench::ccl {
namespace {

/// Ends of the links that there are, the lower one first.
using Joined = std::set<std::pair<std::int32_t, std::int32_t>>;

void add_ends(const LinkBundle& link, Joined& joined) {
  joined.emplace(std::min(link.a, link.b), std::max(link.a, link.b));
}

/// By SIP, of its cubes.
std::vector<Joined> joined_cubes(const MachineMap& map) {
  std::vector<Joined> joined(map.sips);
  for (const LinkBundle& link : map.cube_links) {
    if (link.a != kIoChiplet && link.b != kIoChiplet) add_ends(link, joined[link.sip]);
  }
  return joined;
}

/// The links between SIPs, or between the cubes of one SIP, and how packets take them.
class LinkLevel {
 public:
  static LinkLevel of_sips(const MachineMap& map) {
    PlanRequest whole;
    whole.kind = static_cast<std::int32_t>(map.sip_topology);
    whole.ranks = map.sips;
    whole.sip_w = map.sip_w;
    whole.sip_h = map.sip_h;
    Joined joined;
    for (const LinkBundle& link : map.sip_links) add_ends(link, joined);
    const bool direct = map.sip_topology != SipTopology::switch_star;
    return {map, {}, joined, direct ? sip_graph(whole) : Graph{}};
  }
  static LinkLevel of_cubes(const MachineMap& map, std::uint16_t sip, const Joined& joined) {
    PlanRequest whole;
    whole.cube_w = map.cube_w;
    whole.cube_h = map.cube_h;
    return {map, sip, joined, Graph::of(cube_lattice(whole))};
  }

  bool any_broken() const { return broken_; }
  std::size_t links(std::int32_t from, std::int32_t to) const { return wires(from, to).size(); }
  /// SIPs or cubes, both included.
  std::vector<std::int32_t> way(std::int32_t from, std::int32_t to) const {
    std::vector<std::int32_t> passed{from};
    for (const WireUse& wire : wires(from, to)) passed.push_back(ends_.at(wire.link()));
    sc_assert(passed.back() == to);
    return passed;
  }

 private:
  LinkLevel(const MachineMap& map, std::optional<std::uint16_t> sip, const Joined& joined, const Graph& whole)
      : map_(map), sip_(sip) {
    broken_ = map.wires && std::any_of(whole.edges.begin(), whole.edges.end(), [&](const Graph::Edge& edge) {
                return joined.count(std::minmax(edge.a, edge.b)) == 0;
              });
    if (!broken_) return;
    for (const auto& [a, b] : joined) {  // a packet to a neighbour takes the link to it
      ends_[wires(a, b).front().link()] = b;
      ends_[wires(b, a).front().link()] = a;
    }
  }

  /// IO chiplets are where links between SIPs begin and end; of cubes every node will do.
  std::vector<WireUse> wires(std::int32_t from, std::int32_t to) const { return map_.wires(node(from), node(to)); }
  NodeId node(std::int32_t place) const {
    const auto number = static_cast<std::uint16_t>(place);
    return sip_ ? map_.m_cpu({*sip_, number}) : map_.io_cpu(number);
  }

  const MachineMap& map_;
  const std::optional<std::uint16_t> sip_;  // of the cubes
  bool broken_ = false;
  std::map<std::uint32_t, std::int32_t> ends_;  // where a link leads, by its number
};

}  // namespace

std::shared_ptr<const Ways> sip_ways(const MachineMap& map, const std::vector<std::uint16_t>& sips) {
  const LinkLevel level = LinkLevel::of_sips(map);
  if (!level.any_broken()) return nullptr;
  auto ways = std::make_shared<Ways>();
  for (std::size_t a = 0; a < sips.size(); ++a) {
    for (std::size_t b = 0; b < sips.size(); ++b) {
      if (sips[a] != sips[b]) (*ways)[{a, b}] = level.way(sips[a], sips[b]);
    }
  }
  return ways;
}

std::shared_ptr<const Ways> cube_ways(const MachineMap& map, const std::vector<std::uint16_t>& sips) {
  auto ways = std::make_shared<Ways>();
  const std::int32_t cubes = map.cubes_per_sip();
  const std::vector<Joined> joined = joined_cubes(map);
  for (std::size_t rank = 0; rank < sips.size(); ++rank) {
    const LinkLevel level = LinkLevel::of_cubes(map, sips[rank], joined[sips[rank]]);
    if (!level.any_broken()) continue;
    const std::int32_t first = static_cast<std::int32_t>(rank) * cubes;
    for (std::int32_t a = 0; a < cubes; ++a) {
      for (std::int32_t b = 0; b < cubes; ++b) {
        if (a == b) continue;
        std::vector<std::int32_t>& way = (*ways)[{first + a, first + b}] = level.way(a, b);
        for (std::int32_t& cube : way) cube += first;
      }
    }
  }
  return ways->empty() ? nullptr : ways;
}

std::optional<SipPair> sips_apart(const MachineMap& map, std::size_t links, std::optional<SipPair> whole) {
  const LinkLevel level = LinkLevel::of_sips(map);
  if (!level.any_broken() || (whole && level.links(whole->first, whole->second) == links)) return whole;
  for (std::uint16_t a = 0; a < map.sips; ++a) {
    for (std::uint16_t b = 0; b < map.sips; ++b) {
      if (a != b && level.links(a, b) == links) return SipPair{a, b};
    }
  }
  return {};
}

}  // namespace kernbench::ccl
