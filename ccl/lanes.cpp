#include "ccl/lanes.h"

#include <algorithm>
#include <set>

#include "ccl/grid.h"
#include "ccl/registry.h"
#include "tlm/machine/names.h"

namespace kernbench::ccl {
namespace {

/// Bytes of a region below which a lane's part is not worth loads from elsewhere.
constexpr std::int64_t kLeastShare = 1024;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

bool any_copies(const std::vector<RegionMap>& regions) {
  return std::any_of(regions.begin(), regions.end(), [](const RegionMap& map) {
    return std::any_of(map.begin(), map.end(), [](const Run& run) { return has_copies(run); });
  });
}

/// The PEs among which a run is split: all that hold it; where copies lie in several cubes and are to be spread, those
/// of the middle one.
std::vector<std::pair<int, int>> holders(const MachineMap& map, const Run& run, bool spreads) {
  std::set<std::pair<int, int>> found;
  std::set<int> cubes;
  for (const Place& place : run.places) cubes.insert(place.cube);
  const bool middle = spreads && has_copies(run) && cubes.size() > 1;
  const int cube =
      middle ? *std::next(cubes.begin(), tree_root(Grid::mesh(map.cube_w, static_cast<int>(cubes.size())))) : 0;
  for (const Place& place : run.places) {
    if (!middle || place.cube == cube) found.emplace(place.cube, place.pe);
  }
  return {found.begin(), found.end()};
}

}  // namespace

LaneId lane_of(const CallMaps& maps, int cube, int pe) {
  return {maps.level == NodeLevel::rank ? cube : 0, maps.level == NodeLevel::pe ? 0 : pe};
}

bool has_copies(const Run& run) {
  for (std::size_t i = 1; i < run.places.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (run.places[i].offset == run.places[j].offset) return true;
    }
  }
  return false;
}

std::pair<std::int64_t, std::int64_t> even_part(std::int64_t count, std::int64_t i, std::int64_t n, std::size_t item) {
  const auto grain = std::max<std::int64_t>(64 / static_cast<std::int64_t>(item), 1);
  const std::int64_t step = count >= 4 * n * grain ? grain : 1, units = ceil_div(count, step);
  return {std::min(units * i / n * step, count), std::min(units * (i + 1) / n * step, count)};
}

Lanes::Lanes(const MachineMap& map, const CallMaps& maps, CollectiveOp op, bool in_place, std::size_t item)
    : own_in_(maps.own_region_in), own_out_(maps.own_region_out), item_(item) {
  switch (op) {
    case CollectiveOp::all_reduce:
    case CollectiveOp::broadcast:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::scatter:
    case CollectiveOp::send_recv:
      key_ = LaneKey::out;
      break;
    default:
      key_ = any_copies(maps.out[0]) ? LaneKey::out : LaneKey::in;
  }
  if (op == CollectiveOp::all_to_all && in_place) key_ = LaneKey::lesser;
  regions_ = (key_ == LaneKey::out ? maps.out : maps.in)[0].size();
  deal(map, maps);
  const bool every_lane_worth =
      maps.elements * static_cast<std::int64_t>(item) >= kLeastShare * static_cast<std::int64_t>(lanes_.size());
  if (every_lane_worth && can_deal_evenly(maps) && !dealt_alike()) deal_evenly(maps);
}

void Lanes::cut(const CallMaps& maps, const Schedule& schedule, std::int64_t message_bytes, std::int64_t rounds) {
  find_segments(maps, schedule);
  count_rounds(schedule, std::max<std::int64_t>(message_bytes / static_cast<std::int64_t>(item_), 1), rounds);
}

std::int32_t Lanes::key_of(const Block& block) const {
  const std::int32_t region = key_ == LaneKey::in    ? in_region(block)
                              : key_ == LaneKey::out ? out_region(block)
                                                     : std::min(block.in_region, block.out_region);
  return std::max(region, 0);  // what only passes through goes like region 0
}

void Lanes::deal(const MachineMap& map, const CallMaps& maps) {
  const auto& nodes = key_ == LaneKey::out ? maps.out : maps.in;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    std::map<LaneId, Lane> lanes;
    for (std::size_t region = 0; region < nodes[node].size(); ++region) {
      for (const Run& run : nodes[node][region]) {
        const auto pes = holders(map, run, key_ != LaneKey::in);
        for (std::size_t i = 0; i < pes.size(); ++i) {
          const auto [first, last] =
              even_part(run.count, static_cast<std::int64_t>(i), static_cast<std::int64_t>(pes.size()), item_);
          if (first == last) continue;
          const LaneId id = lane_of(maps, pes[i].first, pes[i].second);
          auto& intervals = lanes[id].regions[static_cast<std::int32_t>(region)];
          const std::int64_t at = intervals.empty() ? 0 : intervals.back().at + intervals.back().count;
          intervals.push_back({run.begin + first, last - first, at});
        }
      }
    }
    if (node == 0) {
      lanes_ = std::move(lanes);
      continue;
    }
    const auto same = [](const auto& a, const auto& b) {
      const auto interval = [](const Lane::Interval& x, const Lane::Interval& y) {
        return x.begin == y.begin && x.count == y.count;
      };
      const auto region = [&](const auto& x, const auto& y) {
        return x.first == y.first &&
               std::equal(x.second.begin(), x.second.end(), y.second.begin(), y.second.end(), interval);
      };
      return a.first == b.first && std::equal(a.second.regions.begin(), a.second.regions.end(),
                                              b.second.regions.begin(), b.second.regions.end(), region);
    };
    if (!std::equal(lanes.begin(), lanes.end(), lanes_.begin(), lanes_.end(), same)) {
      throw Error("scope cube and pe need tiles that lie alike on the PEs of every cube: cube " +
                  std::to_string(maps.cube_of(static_cast<int>(node))) +
                  " differs from cube 0; choose a shape that divides");
    }
  }
}

/// A copy is seen by the PEs that hold it only.
bool Lanes::can_deal_evenly(const CallMaps& maps) const {
  return maps.level == NodeLevel::rank && !any_copies(maps.in[0]) && !any_copies(maps.out[0]);
}

void Lanes::deal_evenly(const CallMaps& maps) {
  const auto count = static_cast<std::int64_t>(lanes_.size());
  std::int64_t number = 0;
  for (auto lane = lanes_.begin(); lane != lanes_.end();) {
    const auto [first, last] = even_part(maps.elements, number++, count, item_);
    if (first == last) {
      lane = lanes_.erase(lane);
      continue;
    }
    for (std::size_t region = 0; region < regions_; ++region) {
      lane->second.regions[static_cast<std::int32_t>(region)] = {{first, last - first, 0}};
    }
    ++lane;
  }
}

bool Lanes::dealt_alike() const {
  const auto same = [](const Lane::Interval& a, const Lane::Interval& b) {
    return a.begin == b.begin && a.count == b.count;
  };
  return std::all_of(lanes_.begin(), lanes_.end(), [&](const auto& entry) {
    const auto& regions = entry.second.regions;
    return regions.size() == regions_ && std::all_of(regions.begin(), regions.end(), [&](const auto& region) {
             const auto& first = regions.begin()->second;
             return std::equal(first.begin(), first.end(), region.second.begin(), region.second.end(), same);
           });
  });
}

void Lanes::find_segments(const CallMaps& maps, const Schedule& schedule) {
  std::set<std::pair<std::int32_t, std::int32_t>> pairs;  // (key, region of in) that occur
  for (const Block& block : schedule.blocks) {
    if (block.contributor != kNobody && in_region(block) >= 0) pairs.emplace(key_of(block), in_region(block));
  }
  const auto passes = [&](const Block& block) {
    return key_ == LaneKey::in ? block.in_region < 0 && !own_in_ : block.out_region < 0 && !own_out_;
  };
  if (std::any_of(schedule.blocks.begin(), schedule.blocks.end(), passes) && !dealt_alike()) {
    if (can_deal_evenly(maps)) {
      deal_evenly(maps);
      return find_segments(maps, schedule);
    }
    throw Error("schedule '" + schedule.algorithm +
                "' has blocks of no region; it needs regions that lie alike on the PEs: choose another placement");
  }
  for (auto& [id, lane] : lanes_) {
    std::set<std::int64_t> borders;
    for (const auto& [region, intervals] : lane.regions) {
      for (const Lane::Interval& interval : intervals) borders.insert({interval.at, interval.at + interval.count});
    }
    for (const auto& [key, in_region] : pairs) {
      const auto found = lane.regions.find(key);
      if (found == lane.regions.end()) continue;
      for (const auto& node : maps.in) {
        const RegionMap& in = node.at(static_cast<std::size_t>(in_region));
        for (const Lane::Interval& interval : found->second) {
          for (std::int64_t at = interval.begin; at < interval.begin + interval.count;) {
            borders.insert(interval.at + at - interval.begin);
            at = run_at(in, at).end();
          }
        }
      }
    }
    for (auto border = borders.begin(); std::next(border) != borders.end(); ++border) {
      lane.segments.push_back({*border, *std::next(border), 0, 1});
    }
  }
}

void Lanes::count_rounds(const Schedule& schedule, std::int64_t message_elements, std::int64_t rounds) {
  std::int64_t share = 1;  // units of the largest block
  for (const Block& block : schedule.blocks) share = std::max<std::int64_t>(share, block.end - block.begin);
  for (auto& [id, lane] : lanes_) {
    const std::int64_t row = lane.segments.back().end;
    std::int64_t first = 0;
    for (std::size_t s = 0; s < lane.segments.size(); ++s) {
      Lane::Segment& segment = lane.segments[s];
      const std::int64_t length = segment.end - segment.begin;
      const auto largest = [&](std::int64_t m) { return ceil_div(ceil_div(length, m) * share, schedule.units); };
      segment.first = first;
      segment.rounds =
          std::max<std::int64_t>({1, length * rounds / row, length * share / schedule.units / message_elements});
      while (largest(segment.rounds) > message_elements) ++segment.rounds;
      first += segment.rounds;
      lane.segment_of.insert(lane.segment_of.end(), static_cast<std::size_t>(segment.rounds),
                             static_cast<std::uint32_t>(s));
    }
  }
}

}  // namespace kernbench::ccl
