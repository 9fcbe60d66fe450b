#include "ccl/data/lanes.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "ccl/contract/error.h"
#include "ccl/contract/grid.h"
#include "ccl/data/layout.h"
#include "tlm/kernel/operations.h"
#include "tlm/kernel/rounding.h"
#include "tlm/machine/names.h"

namespace kernbench::ccl {
namespace {

/// Bytes of a region below which a lane's part is not worth loads from elsewhere.
constexpr std::int64_t kLeastShare = 1024;

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

/// Adds elements of a region to what a lane works on, behind what it has of it.
void add_interval(Lane& lane, std::size_t region, std::int64_t begin, std::int64_t count) {
  auto& intervals = lane.regions[static_cast<std::int32_t>(region)];
  const std::int64_t at = intervals.empty() ? 0 : intervals.back().at + intervals.back().count;
  intervals.push_back({begin, count, at});
}

/// Below this, per PE, what a message takes on its way outweighs how evenly PEs share the work: one packet.
constexpr std::int64_t kLittleBytes = 256;

bool in_one_place(const std::vector<std::vector<RegionMap>>& nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [](const auto& regions) {
    return std::all_of(regions.begin(), regions.end(), [](const RegionMap& region) {
      return std::all_of(region.begin(), region.end(), [](const Run& run) { return run.places.size() == 1; });
    });
  });
}

/// Whether a call's pieces go to the PEs nearest to their way.
bool little(const MachineMap& map, const CallMaps& maps, CollectiveOp op, std::size_t item) {
  const OperationFacts& facts = facts_of(op);
  const bool moves = facts.counts_all() && facts.parties != Parties::to_root;
  if (!moves || maps.level == NodeLevel::pe || !map.packet_latency || lacks_pes(map)) return false;
  const auto regions = static_cast<std::int64_t>(std::max(maps.in[0].size(), maps.out[0].size()));
  // A block that one of many ranks sends lies elsewhere at each of them: no PE is near to all.
  if (facts.exchanges() && regions > 2) return false;
  const std::int64_t pes = std::int64_t{map.pes_per_cube} * (maps.level == NodeLevel::rank ? map.cubes_per_sip() : 1);
  return maps.elements * regions * static_cast<std::int64_t>(item) <= kLittleBytes * pes && in_one_place(maps.in) &&
         in_one_place(maps.out);
}

/// Contributors from which on an all_to_all's stores, one for each, take the PE that gets them longer than another PE
/// of its cube takes to load half of what it holds.   assumed: a store 4 ns, a load some 50 ns more than from its own
/// HBM
constexpr int kManyContributors = 64;

/// Whether two PEs of a cube share what one of them holds for a rank.
bool many_stores(const MachineMap& map, const CallMaps& maps, CollectiveOp op, std::size_t item) {
  const auto regions = static_cast<std::int64_t>(maps.in[0].size());
  return facts_of(op).exchanges() && maps.level == NodeLevel::rank && !lacks_pes(map) && map.pes_per_cube > 1 &&
         regions > 2 && maps.contributions >= kManyContributors && maps.contributions > regions &&
         in_one_place(maps.in) && in_one_place(maps.out) &&
         maps.elements * regions * static_cast<std::int64_t>(item) <= kLittleBytes * map.pes_per_sip();
}

/// Pieces of a lane, each a message to every rank, that a queue of four slots holds: a fifth would wait for the first
/// one's credit.
constexpr std::size_t kMostPieces = 4;

/// What a lane takes to send and receive a message.   assumed: some ops of PE_CPU, IPCQ and DMA at 3 to 6 ns each
constexpr Ps kMessageTakes = 20'000;

/// Times of the ways of little data between ranks.
class LaneWays {
 public:
  explicit LaneWays(const MachineMap& map) : map_(map) {}

  /// From `in` to `out` by way of a lane: a load there, a message to the lane's like, a store.
  Ps by(const Place& in, const Place& lane, const Place& out) const {
    return there_and_back(lane, in) + there_and_back(lane, out) + across(lane);
  }

  Ps there_and_back(const Place& a, const Place& b) const { return way(pe(a, 0), pe(b, 0)) + way(pe(b, 0), pe(a, 0)); }

 private:
  static PeCoord pe(const Place& place, std::uint16_t sip) { return {sip, place.cube, place.pe}; }
  Ps way(PeCoord from, PeCoord to) const {
    return from == to ? 0 : map_.packet_latency(map_.pe(from), map_.pe(to), MachineMap::kLeastPacket);
  }
  Ps across(const Place& lane) const { return map_.sips < 2 ? 0 : way(pe(lane, 0), pe(lane, 1)); }

  const MachineMap& map_;
};

/// Adds elements to a lane's intervals of a region, to the last one if they continue it.
void extend(std::vector<Lane::Interval>& intervals, std::int64_t begin, std::int64_t count) {
  if (intervals.empty()) {
    intervals.push_back({begin, count, 0});
  } else if (intervals.back().begin + intervals.back().count == begin) {
    intervals.back().count += count;
  } else {
    intervals.push_back({begin, count, intervals.back().at + intervals.back().count});
  }
}

/// The addresses of a run go on in the next one; of little data on the same PE, since no message waits for two.
bool goes_on(const Run& run, const Run& next, std::size_t item, bool little) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(run.count) * item;
  const auto follows = [&](const Place& a, const Place& b) {
    return a.offset + bytes == b.offset && (!little || (a.cube == b.cube && a.pe == b.pe));
  };
  return std::equal(run.places.begin(), run.places.end(), next.places.begin(), next.places.end(), follows);
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
  const OperationFacts& facts = facts_of(op);
  const bool each_gets_one = facts.out == Blocks::one && facts.parties != Parties::to_root;
  key_ = each_gets_one || any_copies(maps.out[0]) ? LaneKey::out : LaneKey::in;
  if (facts.exchanges() && in_place) key_ = LaneKey::lesser;
  near_ = key_ != LaneKey::lesser && little(map, maps, op, item);
  by_two_ = key_ == LaneKey::in && many_stores(map, maps, op, item);
  // Blocks are told apart by the side that has more regions.
  if (near_) key_ = maps.out[0].size() > maps.in[0].size() ? LaneKey::out : LaneKey::in;
  regions_ = (key_ == LaneKey::out ? maps.out : maps.in)[0].size();
  deal(map, maps);
  const bool every_lane_worth =
      maps.elements * static_cast<std::int64_t>(item) >= kLeastShare * static_cast<std::int64_t>(lanes_.size());
  if (!near_ && every_lane_worth && can_deal_evenly(maps) && !dealt_alike()) deal_evenly(maps);
  const bool many_regions = std::max(maps.in[0].size(), maps.out[0].size()) > 1;
  in_turns_ = !near_ && every_lane_worth && many_regions && can_deal_evenly(maps) && dealt_alike();
}

void Lanes::bundle(const MachineMap& map, const CallMaps& maps) {
  if (!near_ && !any_copies(maps.in[0]) && !any_copies(maps.out[0])) {
    key_ = LaneKey::in;
    regions_ = maps.in[0].size();
    deal(map, maps);
  }
  in_turns_ = false;
  bundled_ = true;
  for (auto& [id, lane] : lanes_) {
    for (std::int64_t region = 0; region < static_cast<std::int64_t>(maps.in[0].size()); ++region) {
      const auto found = lane.regions.find(regions_ == 1 ? 0 : static_cast<std::int32_t>(region));
      if (found == lane.regions.end()) continue;
      for (const Lane::Interval& interval : found->second) {
        extend(lane.bundle, region * maps.elements + interval.begin, interval.count);
      }
    }
  }
}

void Lanes::cut(const CallMaps& maps, const Schedule& schedule, std::int64_t message_bytes, std::int64_t rounds) {
  bundled_ ? find_segments_of_bundles(maps) : find_segments(maps, schedule);
  count_rounds(schedule, std::max<std::int64_t>(message_bytes / static_cast<std::int64_t>(item_), 1), rounds);
}

std::int32_t Lanes::key_of(const Block& block) const {
  const std::int32_t region = key_ == LaneKey::in    ? in_region(block)
                              : key_ == LaneKey::out ? out_region(block)
                                                     : std::min(block.in_region, block.out_region);
  return std::max(region, 0);  // what only passes through goes like region 0
}

std::map<LaneId, Lane> Lanes::deal_to_holders(const MachineMap& map, const CallMaps& maps, std::size_t node) const {
  std::map<LaneId, Lane> lanes;
  const auto& regions = (key_ == LaneKey::out ? maps.out : maps.in)[node];
  for (std::size_t region = 0; region < regions.size(); ++region) {
    for (const Run& run : regions[region]) {
      auto pes = holders(map, run, key_ != LaneKey::in);
      if (by_two_) {
        const auto [cube, first] = pes.front();
        pes.emplace_back(cube, (first + map.pes_per_cube / 2) % map.pes_per_cube);
      }
      for (std::size_t i = 0; i < pes.size(); ++i) {
        const auto [first, last] =
            even_part(run.count, static_cast<std::int64_t>(i), static_cast<std::int64_t>(pes.size()), item_);
        if (first == last) continue;
        add_interval(lanes[lane_of(maps, pes[i].first, pes[i].second)], region, run.begin + first, last - first);
      }
    }
  }
  return lanes;
}

std::map<LaneId, Lane> Lanes::deal_near(const MachineMap& map, const CallMaps& maps, std::size_t node) const {
  const std::vector<Piece> pieces = pieces_of(map, maps, node);
  Ps shortest = 0, longest = 0;  // of the longest ways: each piece by the better side, all by `in`
  std::set<Ps> limits;
  for (const Piece& piece : pieces) {
    shortest = std::max(shortest, std::min(piece.by_in, piece.by_out));
    longest = std::max(longest, piece.by_in);
    limits.insert({piece.by_in, piece.by_out});
  }
  const Ps piece_takes = kMessageTakes * static_cast<Ps>(pieces.back().region);  // to as many ranks
  std::map<LaneId, Lane> best;
  Ps best_takes = longest + piece_takes * static_cast<Ps>(deal_pieces(maps, pieces, longest, best));
  for (auto limit = limits.lower_bound(shortest); limit != limits.end() && *limit + piece_takes < best_takes; ++limit) {
    std::map<LaneId, Lane> lanes;
    const std::size_t most = deal_pieces(maps, pieces, *limit, lanes);
    const Ps takes = *limit + piece_takes * static_cast<Ps>(most);
    if (most > kMostPieces || takes >= best_takes) continue;
    best_takes = takes;
    best = std::move(lanes);
  }
  return best;
}

/// Deals pieces to the PEs that hold them in `in`, those with a longer way than `limit` from there to those in `out`.
/// Returns how many a lane has at most: a message never joins what lies in different places of `in`.
std::size_t Lanes::deal_pieces(const CallMaps& maps, const std::vector<Piece>& pieces, Ps limit,
                               std::map<LaneId, Lane>& lanes) {
  std::map<LaneId, std::set<std::int64_t>> borders;  // in a lane's row, whatever the region
  std::size_t most = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    const Place& at = piece.by_in <= limit ? piece.in : piece.out;
    const LaneId id = lane_of(maps, at.cube, at.pe);
    auto& intervals = lanes[id].regions[static_cast<std::int32_t>(piece.region)];
    const std::size_t before = intervals.size();
    extend(intervals, piece.begin, piece.count);
    const std::int64_t place = intervals.back().at + piece.begin - intervals.back().begin;
    const Ps load = piece.by_in <= limit ? 0 : piece.load_by_out;
    const Ps whole = piece.by_in <= limit ? piece.by_in : piece.by_out;
    lanes[id].ways.push_back({static_cast<std::int32_t>(piece.region), place, load, whole - load});
    if (intervals.size() > before || !(piece.in == pieces[i - 1].in)) {
      const Lane::Interval& last = intervals.back();
      borders[id].insert(last.at + piece.begin - last.begin);
      most = std::max(most, borders[id].size());
    }
  }
  return most;
}

/// What lies contiguously on both sides, and how long its way takes.
std::vector<Lanes::Piece> Lanes::pieces_of(const MachineMap& map, const CallMaps& maps, std::size_t node) const {
  const auto& keys = (key_ == LaneKey::out ? maps.out : maps.in)[node];
  const auto& others = (key_ == LaneKey::out ? maps.in : maps.out)[node];
  std::vector<Piece> pieces;
  for (std::size_t region = 0; region < keys.size(); ++region) {
    // all_to_all of two: what one calls the other's block, the other calls its own.
    const std::size_t across = own_in_ || own_out_ ? region : region + 1;
    const RegionMap &key = keys[region], &other = others[across % others.size()];
    for (std::int64_t at = 0; at < maps.elements;) {
      const Run &here = run_at(key, at), &there = run_at(other, at);
      const std::int64_t end = std::min(here.end(), there.end());
      Piece piece{region, at, end - at, (key_ == LaneKey::out ? there : here).places.front(),
                  (key_ == LaneKey::out ? here : there).places.front()};
      if (maps.level == NodeLevel::rank) {
        const LaneWays ways(map);
        piece.by_in = ways.by(piece.in, piece.in, piece.out);
        piece.by_out = ways.by(piece.in, piece.out, piece.out);
        piece.load_by_out = ways.there_and_back(piece.out, piece.in);
      }
      pieces.push_back(piece);
      at = end;
    }
  }
  return pieces;
}

void Lanes::deal(const MachineMap& map, const CallMaps& maps) {
  const std::size_t nodes = (key_ == LaneKey::out ? maps.out : maps.in).size();
  for (std::size_t node = 0; node < nodes; ++node) {
    std::map<LaneId, Lane> lanes = near_ ? deal_near(map, maps, node) : deal_to_holders(map, maps, node);
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
          const std::int64_t end = interval.begin + interval.count;
          const Run* before = &run_at(in, interval.begin);
          for (std::int64_t at = before->end(); at < end; at = before->end()) {
            const Run& run = run_at(in, at);
            if (!goes_on(*before, run, item_, near_)) borders.insert(interval.at + at - interval.begin);
            before = &run;
          }
        }
      }
    }
    for (auto border = borders.begin(); std::next(border) != borders.end(); ++border) {
      lane.segments.push_back({*border, *std::next(border), 0, 1});
    }
    order_segments(lane);
  }
}

/// The order in which the last of little data is there first: what is ready to be sent goes before what is not, and
/// what has a long way before what has a short one. The row's own order, if it is as good.
void Lanes::order_segments(Lane& lane) {
  const std::size_t count = lane.segments.size();
  if (count < 2 || count > kMostPieces || lane.ways.empty()) return;
  std::map<std::int32_t, std::vector<Lane::Way>> by_region;  // by segment
  for (const Lane::Way& way : lane.ways) {
    auto& ways = by_region.try_emplace(way.region, count).first->second;
    for (std::size_t s = 0; s < count; ++s) {
      if (way.at < lane.segments[s].begin || way.at >= lane.segments[s].end) continue;
      ways[s].load = std::max(ways[s].load, way.load);
      ways[s].rest = std::max(ways[s].rest, way.rest);
    }
  }
  const auto takes = [&](const std::vector<std::size_t>& order) {
    Ps last = 0;
    for (const auto& [region, ways] : by_region) {
      Ps issued = 0, sent = 0;  // messages to one rank follow one another
      for (const std::size_t s : order) {
        sent = std::max(sent, issued + ways[s].load);
        last = std::max(last, sent + ways[s].rest);
        issued += kMessageTakes;
      }
    }
    return last;
  };
  std::vector<std::size_t> order(count), best;
  std::iota(order.begin(), order.end(), 0);
  do {
    if (best.empty() || takes(order) < takes(best)) best = order;
  } while (std::next_permutation(order.begin(), order.end()));
  const std::vector<Lane::Segment> segments = lane.segments;
  for (std::size_t i = 0; i < count; ++i) lane.segments[i] = segments[best[i]];
}

/// Segments of a row of all regions end where memory does not go on.
void Lanes::find_segments_of_bundles(const CallMaps& maps) {
  for (auto& [id, lane] : lanes_) {
    std::set<std::int64_t> borders;
    for (const Lane::Interval& interval : lane.bundle) {
      const std::int64_t begin = interval.begin, end = begin + interval.count;
      borders.insert({interval.at, interval.at + interval.count});
      for (const auto& node : maps.in) {
        const auto at = [&](std::int64_t element) -> const Run& {
          return run_at(node[static_cast<std::size_t>(element / maps.elements)], element % maps.elements);
        };
        for (std::int64_t element = begin; element < end;) {
          const Run& run = at(element);
          element += run.end() - element % maps.elements;
          if (element < end && !goes_on(run, at(element), item_, true)) borders.insert(interval.at + element - begin);
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
    std::int64_t row = 0;
    for (const Lane::Segment& segment : lane.segments) row = std::max(row, segment.end);
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
