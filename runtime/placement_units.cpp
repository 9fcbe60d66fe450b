#include "runtime/placement_units.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace kernbench {

namespace {
bool on_every_sip(const MachineMap& map, int cube, int pe) {
  for (std::uint16_t sip = 0; sip < map.sips; ++sip) {
    if (!map.has({sip, static_cast<std::uint16_t>(cube), static_cast<std::uint16_t>(pe)})) return false;
  }
  return true;
}

/// Positions that all lists have.
std::vector<int> common(const std::vector<std::vector<int>>& lists) {
  std::vector<int> all = lists.front();
  for (const std::vector<int>& list : lists) {
    std::vector<int> both;
    std::set_intersection(all.begin(), all.end(), list.begin(), list.end(), std::back_inserter(both));
    all = std::move(both);
  }
  return all;
}

/// The user's number is checked here, where the reason for its limit is known.
void check_count(const char* argument, const std::optional<int>& value, std::size_t most, const char* why) {
  if (!value || (*value >= 1 && static_cast<std::size_t>(*value) <= most)) return;
  throw std::invalid_argument(fmt::format("{} is {}: give 1 to {}{}", argument, *value, most, why));
}
}  // namespace

PlacementUnits placement_units(const MachineMap& map) {
  PlacementUnits units;
  for (int cube = 0; cube < map.cubes_per_sip(); ++cube) {
    std::vector<int> pes;
    for (int pe = 0; pe < map.pes_per_cube; ++pe) {
      if (on_every_sip(map, cube, pe)) pes.push_back(pe);
    }
    units.all = units.all && pes.size() == map.pes_per_cube;
    if (pes.empty()) continue;
    units.cubes.push_back(cube);
    units.pes.push_back(std::move(pes));
  }
  if (units.all || units.pes.empty()) return units;
  std::size_t least = units.pes.front().size();
  for (const std::vector<int>& pes : units.pes) least = std::min(least, pes.size());
  const std::vector<int> everywhere = common(units.pes);
  for (std::vector<int>& pes : units.pes) {
    if (everywhere.size() == least) pes = everywhere;
    pes.resize(least);
  }
  return units;
}

std::vector<PeCoord> pes_of(const PlacementUnits& units, std::uint16_t sip) {
  std::vector<PeCoord> list;
  for (std::size_t i = 0; i < units.cubes.size(); ++i) {
    for (const int pe : units.pes[i]) {
      list.push_back({sip, static_cast<std::uint16_t>(units.cubes[i]), static_cast<std::uint16_t>(pe)});
    }
  }
  return list;
}

std::vector<ShardSpec> place_shards(const DPPolicy& policy, Shape shape, int itemsize, const PlacementUnits& units,
                                    int target_sip) {
  if (units.cubes.empty()) throw std::invalid_argument("no PE exists on every SIP: there is nowhere to place a tensor");
  if (!units.all) {
    check_count("policy.num_pes", policy.num_pes(), static_cast<std::size_t>(units.pes_per_cube()),
                ", the PEs that every cube offers: some are missing on this machine");
    check_count("policy.num_cubes", policy.num_cubes(), units.cubes.size(),
                ", the cubes that offer PEs: some are missing on this machine");
  }
  std::vector<ShardSpec> shards =
      resolve_dp_policy(policy, shape, itemsize, NumPes{units.pes_per_cube()},
                        NumCubes{static_cast<int>(units.cubes.size())}, SipNumber{target_sip});
  if (units.all) return shards;
  for (ShardSpec& shard : shards) {
    const auto position = static_cast<std::size_t>(shard.cube);
    shard.cube = units.cubes[position];
    shard.pe = units.pes[position][static_cast<std::size_t>(shard.pe)];
  }
  return shards;
}

std::vector<TensorShard> machine_shards(const std::vector<ShardSpec>& shards) {
  std::vector<TensorShard> list;
  list.reserve(shards.size());
  for (const ShardSpec& s : shards) {
    const PeCoord owner{static_cast<std::uint16_t>(s.sip), static_cast<std::uint16_t>(s.cube),
                        static_cast<std::uint16_t>(s.pe)};
    list.push_back({owner, s.offset_bytes, s.nbytes, s.region.rows, s.region.cols, s.region.row, s.region.col});
  }
  return list;
}

}  // namespace kernbench
