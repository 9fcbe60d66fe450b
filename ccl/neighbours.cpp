#include "ccl/neighbours.h"

#include <fmt/format.h>

#include <algorithm>

#include "tlm/machine/names.h"

namespace kernbench::ccl {
namespace {

constexpr Side kAllSides[] = {Side::north, Side::south, Side::east, Side::west};

}  // namespace

RingMemory ring_memory(const MachineMap& map, MemoryKind kind, PeCoord pe) {
  constexpr std::uint64_t kGrain = 256;  // a packet never crosses a multiple of it
  switch (kind) {
    case MemoryKind::tcm:
      return {PhysicalAddress::tcm(pe, 0), map.tcm.bytes, "TCM"};
    case MemoryKind::hbm:
      return {PhysicalAddress::hbm(pe, 0), map.hbm_slice.bytes / kGrain * kGrain, "its HBM slice"};
    case MemoryKind::sram: {
      const std::uint64_t share = map.sram.bytes / map.pes_per_cube / kGrain * kGrain;
      const std::uint64_t top = map.sram.bytes / kGrain * kGrain - pe.pe * share;
      return {PhysicalAddress::sram({pe.sip, pe.cube}, top - share), share, "its share of the cube's SRAM"};
    }
    default:
      throw Error(fmt::format("IPCQ rings cannot lie in {} memory; use tcm, sram or hbm", to_string(kind)));
  }
}

std::uint16_t RingNumbers::take(PeCoord pe, std::uint16_t count, const QueueShape& queue, const RingMemory& memory) {
  std::uint16_t& used = used_[pe];
  const std::uint64_t bytes = (std::uint64_t{used} + count) * queue.ring_bytes();
  if (bytes > memory.bytes) {
    throw Error(
        fmt::format("{}: {} IPCQ rings of {} x {} B need {} B of {}, which has {} B; use fewer slots or smaller ones",
                    names::pe(pe), used + count, queue.slots, queue.slot_bytes, bytes, memory.name, memory.bytes));
  }
  const std::uint16_t first = used;
  used = static_cast<std::uint16_t>(used + count);
  return first;
}

std::uint16_t RingNumbers::used(PeCoord pe) const {
  const auto found = used_.find(pe);
  return found == used_.end() ? std::uint16_t{0} : found->second;
}

NeighbourTables::NeighbourTables(const MachineMap& map, Group group, SipShape shape, std::uint32_t directions,
                                 RingNumbers& rings)
    : map_(map), group_(std::move(group)), shape_(shape), directions_(directions) {
  for (std::size_t rank = 0; rank < group_.sips.size(); ++rank) {
    for (const PeCoord pe : members(static_cast<int>(rank))) {
      const auto count = pairs(static_cast<int>(rank), pe.cube, pe.pe).size();
      first_ring_[pe] =
          rings.take(pe, static_cast<std::uint16_t>(count), group_.queue, ring_memory(map_, group_.queue.memory, pe));
    }
  }
}

std::vector<NeighbourTables::Pair> NeighbourTables::pairs(int rank, std::uint16_t cube, std::uint16_t pe) const {
  std::vector<Pair> found;
  const auto sip_of = [&](int r) { return group_.sips[static_cast<std::size_t>(r)]; };
  const auto facing = [&](int r) {
    return group_.ranks_are_pes() ? group_.pes[static_cast<std::size_t>(r)] : PeCoord{sip_of(r), cube, pe};
  };
  const auto add = [&](Direction direction, PeCoord peer, Direction back) {
    if (map_.has(peer)) found.push_back({direction, peer, back});
  };
  const bool inside = !group_.ranks_are_pes();  // nothing of a rank lies beside its PE
  if (inside && (directions_ & kCubeGrid)) {
    const Grid cubes = Grid::mesh(map_.cube_w, map_.cubes_per_sip());
    for (const Side side : kAllSides) {
      const auto other = cubes.neighbour(cube, side);
      if (other)
        add(direction_of(side, false), {sip_of(rank), static_cast<std::uint16_t>(*other), pe},
            direction_of(opposite(side), false));
    }
  }
  if (directions_ & (kGlobalGrid | kGlobalRing)) {
    const Grid sips = Grid::sips(shape_.kind, shape_.w, shape_.h, shape_.ranks);
    for (const Side side : kAllSides) {
      const auto other = sips.neighbour(rank, side);
      if (other) add(direction_of(side, true), facing(*other), direction_of(opposite(side), true));
    }
  }
  const auto global = [&](int other) {
    add(Direction::global(static_cast<unsigned>(other)), facing(other), Direction::global(static_cast<unsigned>(rank)));
  };
  if (directions_ & kGlobalPeers) {
    for (int other = 0; other < shape_.ranks; ++other) {
      if (other != rank) global(other);
    }
  } else if (directions_ & kGlobalRing) {
    const auto closure = routed_closure(shape_.kind, shape_.w, shape_.h, shape_.ranks);
    if (closure && closure->first == rank) global(closure->second);
    if (closure && closure->second == rank) global(closure->first);
  }
  if (inside && (directions_ & (kLocalLine | kLocalPeers))) {
    for (std::uint16_t other = 0; other < map_.pes_per_cube; ++other) {
      const bool next = other + 1 == pe || pe + 1 == other;
      if (other == pe || (!next && !(directions_ & kLocalPeers))) continue;
      add(Direction::local(other), {sip_of(rank), cube, other}, Direction::local(pe));
    }
  }
  return found;
}

std::vector<PeCoord> NeighbourTables::members(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  if (group_.ranks_are_pes()) return {group_.pes.at(at)};
  return map_.pes(group_.sips.at(at));
}

int NeighbourTables::rank_of(PeCoord pe) const {
  if (group_.ranks_are_pes()) {
    return static_cast<int>(std::find(group_.pes.begin(), group_.pes.end(), pe) - group_.pes.begin());
  }
  return static_cast<int>(std::find(group_.sips.begin(), group_.sips.end(), pe.sip) - group_.sips.begin());
}

std::uint16_t NeighbourTables::ring(PeCoord pe, int rank, Direction direction) const {
  const auto all = pairs(rank, pe.cube, pe.pe);
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Pair& pair) { return pair.direction == direction; });
  sc_assert(found != all.end());
  return static_cast<std::uint16_t>(first_ring_.at(pe) + (found - all.begin()));
}

PhysicalAddress NeighbourTables::ring_base(PeCoord pe, std::uint16_t ring) const {
  const RingMemory memory = ring_memory(map_, group_.queue.memory, pe);
  PhysicalAddress base = memory.base;
  base.offset += memory.bytes - (std::uint64_t{ring} + 1) * group_.queue.ring_bytes();
  return base;
}

std::vector<NeighbourEntry> NeighbourTables::of_rank(int rank) const {
  std::vector<NeighbourEntry> entries;
  for (const PeCoord self : members(rank)) {
    std::uint16_t number = first_ring_.at(self);
    for (const Pair& pair : pairs(rank, self.cube, self.pe)) {
      NeighbourEntry entry;
      entry.self = self;
      entry.group = group_.id;
      entry.direction = pair.direction;
      entry.ring = entry.queue = number++;
      entry.peer = entry.source = pair.peer;
      entry.peer_ring = entry.source_queue = ring(pair.peer, rank_of(pair.peer), pair.back);
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
