#include "ccl/run/group_queues.h"

#include <fmt/format.h>

#include <algorithm>

#include "ccl/contract/contract.h"
#include "ccl/contract/error.h"
#include "tlm/machine/names.h"

namespace kernbench::ccl {
namespace {

constexpr Side kAllSides[] = {Side::north, Side::south, Side::east, Side::west};

const char* kind_name(std::int32_t kind) { return to_string(static_cast<SipTopology>(kind)); }

/// Part of a grid is no grid: its ranks form a ring of routed queues.
SipTopology seen_topology(const MachineMap& map, const Group& group) {
  bool whole = group.sips.size() == map.sips && !group.ranks_are_pes();
  for (std::size_t r = 0; r < group.sips.size(); ++r) whole = whole && group.sips[r] == r;
  const bool grid = map.sip_topology == SipTopology::torus_2d || map.sip_topology == SipTopology::mesh_2d_no_wrap;
  return group.ranks_are_pes() || (grid && !whole) ? SipTopology::ring_1d : map.sip_topology;
}

SipShape with_grid(SipShape shape, const MachineMap& map, const Group& group) {
  shape.ranks = static_cast<int>(group.sips.size());
  if (shape.kind == kTorus2d || shape.kind == kMesh2d) {
    shape.w = map.sip_w;
    shape.h = map.sip_h;
  }
  return shape;
}
}  // namespace

SipShape sip_shape(const MachineMap& map, const Group& group) {
  const std::string topology = to_string(seen_topology(map, group));
  SipShape shape;
  for (std::int32_t kind = 0; kind <= kFullyConnected; ++kind) {
    if (topology == kind_name(kind)) shape.kind = kind;
  }
  return with_grid(shape, map, group);
}

SipShape sip_shape(const AlgorithmEntry& entry, const MachineMap& map, const Group& group) {
  SipShape shape;
  const SipTopology topology = seen_topology(map, group);
  const Algorithm& algorithm = *entry.algorithm;
  shape.kind = algorithm.topo_name_to_kind ? algorithm.topo_name_to_kind(to_string(topology)) : kRing1d;
  if (shape.kind < 0 || shape.kind > kFullyConnected) {
    throw Error(fmt::format("algorithm '{}': its topo_name_to_kind says {} to {}; give 0 to {}", entry.name, shape.kind,
                            to_string(topology), kFullyConnected));
  }
  if ((algorithm.topologies & topology_bit(shape.kind)) == 0) {
    std::string served;
    for (std::int32_t kind = 0; kind <= kFullyConnected; ++kind) {
      if (algorithm.topologies & topology_bit(kind))
        served += (served.empty() ? "" : ", ") + std::string(kind_name(kind));
    }
    throw Error(fmt::format("algorithm '{}': unsupported topology kind {}; it serves {}", entry.name,
                            to_string(topology), served));
  }
  return with_grid(shape, map, group);
}

GroupQueues::GroupQueues(const MachineMap& map, Group group, RingNumbers& rings)
    : map_(map), group_(std::move(group)), rings_(rings) {
  if (group_.sips.empty()) throw Error("a process group needs at least one rank");
  for (const std::uint16_t sip : group_.sips) {
    if (sip >= map.sips) {
      throw Error(fmt::format("process group {}: {} does not exist; the machine has {} SIPs", group_.id,
                              names::sip(sip), map.sips));
    }
    if (!group_.ranks_are_pes() && std::count(group_.sips.begin(), group_.sips.end(), sip) > 1) {
      throw Error(fmt::format("process group {}: {} stands in it twice", group_.id, names::sip(sip)));
    }
  }
  if (group_.queue.slots == 0 || group_.queue.slot_bytes < 8) throw Error("IPCQ rings need at least one slot of 8 B");
}

GroupQueues::Wanted GroupQueues::wanted(const SipShape& shape, std::uint32_t directions, int rank, std::uint16_t cube,
                                        std::uint16_t pe) const {
  Wanted found;
  const auto sip_of = [&](int r) { return group_.sips[static_cast<std::size_t>(r)]; };
  const auto facing = [&](int r) {
    return group_.ranks_are_pes() ? group_.pes[static_cast<std::size_t>(r)] : PeCoord{sip_of(r), cube, pe};
  };
  const bool inside = !group_.ranks_are_pes();  // nothing of a rank lies beside its PE
  const auto add = [&](Direction direction, PeCoord peer, Direction back) { found.push_back({direction, peer, back}); };
  if (inside && (directions & kCubeGrid)) {
    const Grid cubes = Grid::mesh(map_.cube_w, map_.cubes_per_sip());
    for (const Side side : kAllSides) {
      const auto other = cubes.neighbour(cube, side);
      if (other)
        add(direction_of(side, false), {sip_of(rank), static_cast<std::uint16_t>(*other), pe},
            direction_of(opposite(side), false));
    }
  }
  if (directions & (kGlobalGrid | kGlobalRing)) {
    const Grid sips = Grid::sips(shape.kind, shape.w, shape.h, shape.ranks);
    for (const Side side : kAllSides) {
      const auto other = sips.neighbour(rank, side);
      if (other) add(direction_of(side, true), facing(*other), direction_of(opposite(side), true));
    }
  }
  const auto global = [&](int other) {
    add(Direction::global(static_cast<unsigned>(other)), facing(other), Direction::global(static_cast<unsigned>(rank)));
  };
  if (directions & kGlobalPeers) {
    for (int other = 0; other < shape.ranks; ++other) {
      if (other != rank) global(other);
    }
  } else if (directions & kGlobalRing) {
    const auto closure = routed_closure(shape.kind, shape.w, shape.h, shape.ranks);
    if (closure && closure->first == rank) global(closure->second);
    if (closure && closure->second == rank) global(closure->first);
  }
  if (inside && (directions & (kLocalLine | kLocalPeers))) {
    for (std::uint16_t other = 0; other < map_.pes_per_cube; ++other) {
      const bool next = other + 1 == pe || pe + 1 == other;
      if (other == pe || (!next && !(directions & kLocalPeers))) continue;
      add(Direction::local(other), {sip_of(rank), cube, other}, Direction::local(pe));
    }
  }
  return found;
}

std::vector<PeCoord> GroupQueues::members(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  if (group_.ranks_are_pes()) return {group_.pes.at(at)};
  return map_.pes(group_.sips.at(at));
}

const GroupQueues::Pair* GroupQueues::find(PeCoord pe, Direction direction) const {
  const auto of_pe = pairs_.find(pe);
  if (of_pe == pairs_.end()) return nullptr;
  const auto found = std::find_if(of_pe->second.begin(), of_pe->second.end(),
                                  [&](const Pair& pair) { return pair.direction == direction; });
  return found == of_pe->second.end() ? nullptr : &*found;
}

Direction GroupQueues::direction(NodeLevel level, int nodes_per_rank, std::int32_t from, std::int32_t to) const {
  const int rank = to / nodes_per_rank;
  if (from % nodes_per_rank == to % nodes_per_rank) return Direction::global(static_cast<unsigned>(rank));
  const int pes = level == NodeLevel::pe ? map_.pes_per_cube : 1;
  const int a = from % nodes_per_rank, b = to % nodes_per_rank;
  if (from / nodes_per_rank == rank) {
    if (a / pes == b / pes) return Direction::local(static_cast<unsigned>(b % pes));
    const Grid grid = Grid::mesh(map_.cube_w, map_.cubes_per_sip());
    for (const Side side : kAllSides) {
      if (a % pes == b % pes && grid.neighbour(a / pes, side) == b / pes) return direction_of(side, false);
    }
  }
  const int ranks = static_cast<int>(group_.sips.size()), cubes = map_.cubes_per_sip();
  const int first = level == NodeLevel::pe ? ranks + ranks * cubes : ranks;
  const std::int64_t number = first + std::int64_t{rank} * cubes * pes + b;
  if (number >= Direction::kGlobals) {
    throw Error(fmt::format("is for machines of at most {} ranks, cubes and PEs: queues have no more numbers",
                            Direction::kGlobals));
  }
  return Direction::global(static_cast<unsigned>(number));
}

bool GroupQueues::surely_fit(const QueueNeeds& needs) const {
  std::size_t most = 4 + 4 + map_.pes_per_cube;  // directions of a grid, and PEs of a cube
  if (needs.directions & kGlobalPeers) most += group_.sips.size();
  for (const auto* pairs : {&needs.links.ranks, &needs.links.cubes, &needs.links.pes}) {
    std::map<std::int32_t, std::size_t> degrees;
    std::size_t degree = 0;
    for (const auto& [a, b] : *pairs) degree = std::max({degree, ++degrees[a], ++degrees[b]});
    most += degree;
  }
  return (rings_.most_used() + most) * group_.queue.ring_bytes() <= memory_of(PeCoord{}, needs.sparing).bytes;
}

RingMemory GroupQueues::memory_of(PeCoord pe, bool sparing) const {
  const RingMemory memory = ring_memory(map_, group_.queue.memory, pe);
  return sparing ? RingMemory{memory.base, memory.bytes / 2, "half of " + memory.name} : memory;
}

GroupQueues::Added GroupQueues::add(const SipShape& shape, const QueueNeeds& needs) {
  Missing more = missing(shape, needs);
  check_room(more, needs.sparing);
  Added added;
  for (auto& [pe, pairs] : more) {
    const auto first = static_cast<std::uint32_t>(pairs_[pe].size());
    std::uint16_t ring = rings_.take(pe, static_cast<std::uint16_t>(pairs.size()), group_.queue, memory_of(pe, false));
    for (Pair& pair : pairs) {
      pair.ring = ring++;
      pairs_[pe].push_back(pair);
    }
    added[pe] = {first, first + static_cast<std::uint32_t>(pairs.size())};
  }
  return added;
}

void GroupQueues::check(const SipShape& shape, const QueueNeeds& needs) const {
  if (!surely_fit(needs)) check_room(missing(shape, needs), needs.sparing);
}

void GroupQueues::check_room(const Missing& more, bool sparing) const {
  for (const auto& [pe, pairs] : more)
    rings_.check(pe, static_cast<std::uint16_t>(pairs.size()), group_.queue, memory_of(pe, sparing));
}

GroupQueues::Missing GroupQueues::missing(const SipShape& shape, const QueueNeeds& needs) const {
  Missing more;
  const auto add = [&](PeCoord self, const Pair& pair) {
    if (!map_.has(pair.peer) || find(self, pair.direction) != nullptr) return;
    std::vector<Pair>& pairs = more[self];
    const auto same = [&](const Pair& other) { return other.direction == pair.direction; };
    if (std::none_of(pairs.begin(), pairs.end(), same)) pairs.push_back(pair);
  };
  const int ranks = static_cast<int>(group_.sips.size()), cubes = map_.cubes_per_sip();
  for (int rank = 0; rank < ranks; ++rank) {
    for (const PeCoord pe : members(rank)) {
      for (const Pair& pair : wanted(shape, needs.directions, rank, pe.cube, pe.pe)) add(pe, pair);
    }
  }
  const auto join = [&](PeCoord a, PeCoord b, Direction forth, Direction back) {
    if (!map_.has(a) || !map_.has(b)) return;
    add(a, {forth, b, back});
    add(b, {back, a, forth});
  };
  const auto join_all = [&](NodeLevel level, int nodes, std::int32_t a, std::int32_t b) {
    const Direction forth = direction(level, nodes, a, b), back = direction(level, nodes, b, a);
    if (group_.ranks_are_pes()) {
      join(group_.pes.at(static_cast<std::size_t>(a)), group_.pes.at(static_cast<std::size_t>(b)), forth, back);
      return;
    }
    const std::uint16_t sip_a = group_.sips.at(static_cast<std::size_t>(a / nodes));
    const std::uint16_t sip_b = group_.sips.at(static_cast<std::size_t>(b / nodes));
    for (int place = 0; place < cubes * map_.pes_per_cube; ++place) {
      const int cube = place / map_.pes_per_cube, pe = place % map_.pes_per_cube;
      const auto of = [&](std::uint16_t sip, int node) {
        if (level == NodeLevel::rank)
          return PeCoord{sip, static_cast<std::uint16_t>(cube), static_cast<std::uint16_t>(pe)};
        const int node_cube = level == NodeLevel::cube ? node : node / map_.pes_per_cube;
        const int node_pe = level == NodeLevel::cube ? pe : node % map_.pes_per_cube;
        return PeCoord{sip, static_cast<std::uint16_t>(node_cube), static_cast<std::uint16_t>(node_pe)};
      };
      if ((level != NodeLevel::rank && cube > 0) || (level == NodeLevel::pe && pe > 0)) break;
      join(of(sip_a, a % nodes), of(sip_b, b % nodes), forth, back);
    }
  };
  for (const auto& [a, b] : needs.links.ranks) join_all(NodeLevel::rank, 1, a, b);
  for (const auto& [a, b] : needs.links.cubes) join_all(NodeLevel::cube, cubes, a, b);
  for (const auto& [a, b] : needs.links.pes) join_all(NodeLevel::pe, cubes * map_.pes_per_cube, a, b);
  return more;
}

PhysicalAddress GroupQueues::ring_base(PeCoord pe, std::uint16_t ring) const {
  const RingMemory memory = ring_memory(map_, group_.queue.memory, pe);
  PhysicalAddress base = memory.base;
  base.offset += memory.bytes - (std::uint64_t{ring} + 1) * group_.queue.ring_bytes();
  return base;
}

std::vector<NeighbourEntry> GroupQueues::rows(const Added& added, int rank) const {
  std::vector<NeighbourEntry> entries;
  for (const PeCoord self : members(rank)) {
    const auto found = added.find(self);
    if (found == added.end()) continue;
    const auto& [first, last] = found->second;
    for (std::uint32_t i = first; i < last; ++i) {
      const Pair& pair = pairs_.at(self)[i];
      const Pair* other = find(pair.peer, pair.back);
      sc_assert(other != nullptr && other->peer == self);
      NeighbourEntry entry;
      entry.self = self;
      entry.group = group_.id;
      entry.direction = pair.direction;
      entry.ring = entry.queue = pair.ring;
      entry.peer = entry.source = pair.peer;
      entry.peer_ring = entry.source_queue = other->ring;
      entry.slots = group_.queue.slots;
      entry.slot_bytes = group_.queue.slot_bytes;
      entry.ring_base = ring_base(self, entry.ring);
      entry.peer_ring_base = ring_base(pair.peer, entry.peer_ring);
      entries.push_back(entry);
    }
  }
  return entries;
}

}  // namespace kernbench::ccl
