#include "ccl/data/spread.h"

#include <fmt/format.h>

#include <algorithm>

#include "ccl/contract/error.h"
#include "ccl/data/layout.h"
#include "tlm/machine/names.h"

namespace kernbench::ccl {
namespace {

using Holders = std::vector<std::pair<int, int>>;  // (cube, PE), sorted

/// What one set of PEs holds copies of: by lane, in order of regions.
using Parts = std::map<std::pair<int, int>, std::vector<Spread::Part>>;

/// Splits a run's places by address: those behind one address are copies of each other.
std::map<std::uint64_t, Holders> by_address(const Run& run) {
  std::map<std::uint64_t, Holders> found;
  for (const Place& place : run.places) found[place.offset].emplace_back(place.cube, place.pe);
  for (auto& [offset, holders] : found) std::sort(holders.begin(), holders.end());
  return found;
}

void add_role(Spread& spread, const MachineMap& map, const Holders& holders, const Parts& parts) {
  std::map<int, std::vector<int>> pes;
  for (const auto& [cube, pe] : holders) pes[cube].push_back(pe);
  check_copies(pes, lacks_pes(map), 0);
  const std::vector<int>& line = pes.begin()->second;
  std::vector<std::vector<Spread::Part>> by_line;
  for (const int pe : line) {
    std::vector<Spread::Part> of_pe;
    for (const auto& [lane, list] : parts) {
      if (lane.second == pe) of_pe.insert(of_pe.end(), list.begin(), list.end());
    }
    by_line.push_back(std::move(of_pe));
  }
  const Grid grid = Grid::mesh(map.cube_w, static_cast<int>(pes.size()));
  for (const auto& [cube, of_cube] : pes) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      Spread::Role role;
      if (pes.size() > 1) role.cubes = tree_position(grid, cube, false);
      role.index = static_cast<int>(i);
      if (i > 0) role.before = Direction::local(static_cast<unsigned>(line[i - 1]));
      if (i + 1 < line.size()) role.after = Direction::local(static_cast<unsigned>(line[i + 1]));
      role.parts = by_line;
      if (!spread.roles.emplace(std::pair(cube, line[i]), std::move(role)).second) {
        throw Error(fmt::format("{} holds copies that it shares with different sets of PEs; choose another placement",
                                names::pe({0, static_cast<std::uint16_t>(cube), static_cast<std::uint16_t>(line[i])})));
      }
    }
  }
}

}  // namespace

void check_copies(const std::map<int, std::vector<int>>& pes_by_cube, bool gaps_allowed, std::uint16_t sip) {
  const auto pe_name = [&](int cube, int pe) {
    return names::pe({sip, static_cast<std::uint16_t>(cube), static_cast<std::uint16_t>(pe)});
  };
  const auto& [first_cube, first] = *pes_by_cube.begin();
  for (std::size_t i = 1; i < first.size(); ++i) {
    if (gaps_allowed || first[i] == first[i - 1] + 1) continue;
    throw Error(fmt::format("copies of one shard lie on {} and {}, but not on the PEs between them",
                            pe_name(first_cube, first[i - 1]), pe_name(first_cube, first[i])));
  }
  int expected = 0;
  for (const auto& [cube, pes] : pes_by_cube) {
    if (pes != first) {
      throw Error(fmt::format("copies of one shard lie on other PEs of {} than of {}",
                              names::cube({sip, static_cast<std::uint16_t>(cube)}),
                              names::cube({sip, static_cast<std::uint16_t>(first_cube)})));
    }
    if (pes_by_cube.size() > 1 && cube != expected++) {
      throw Error(fmt::format(
          "copies of one shard lie on cube {} but not on cube {}: they must start at cube 0 and leave none out", cube,
          expected - 1));
    }
  }
}

Spread make_spread(const MachineMap& map, const CallMaps& maps, const Lanes& lanes, int node,
                   const std::vector<std::int32_t>& regions, std::size_t item) {
  std::map<Holders, Parts> groups;
  const auto& out = maps.out[static_cast<std::size_t>(node)];
  for (const std::int32_t region : regions) {
    const RegionMap& runs = out[static_cast<std::size_t>(region)];
    if (std::none_of(runs.begin(), runs.end(), [](const Run& run) { return has_copies(run); })) continue;
    for (const auto& [id, lane] : lanes.all()) {
      const auto found = lane.regions.find(region);
      if (found == lane.regions.end()) continue;
      for (const Lane::Interval& interval : found->second) {
        for (std::int64_t at = interval.begin; at < interval.begin + interval.count;) {
          const Run& run = run_at(runs, at);
          const std::int64_t count = std::min(run.end(), interval.begin + interval.count) - at;
          const std::pair<int, int> pe{maps.level == NodeLevel::rank ? id.first : maps.cube_of(node), id.second};
          for (const auto& [offset, holders] : by_address(run)) {
            if (holders.size() == 1) continue;
            groups[holders][pe].push_back({count, offset + static_cast<std::uint64_t>(at - run.begin) * item});
          }
          at += count;
        }
      }
    }
  }
  Spread spread;
  for (const auto& [holders, parts] : groups) add_role(spread, map, holders, parts);
  return spread;
}

void spread(const Spread& spread, Verbs& verbs, int cube, int pe) {
  const auto found = spread.roles.find({cube, pe});
  if (found == spread.roles.end()) return;
  const Spread::Role& role = found->second;
  std::vector<std::vector<Slice>> parts;
  for (const auto& list : role.parts) {
    std::vector<Slice> slices;
    slices.reserve(list.size());
    for (const Spread::Part& part : list) slices.push_back({verbs.out() + part.offset, part.count, verbs.item()});
    parts.push_back(std::move(slices));
  }
  if (role.cubes) tree_broadcast(verbs, *role.cubes, parts[static_cast<std::size_t>(role.index)]);
  line_all_gather(verbs, parts, role.index, role.before, role.after);
}

}  // namespace kernbench::ccl
