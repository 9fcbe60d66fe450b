#include "ccl/data/region_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ccl/contract/error.h"
#include "tlm/kernel/operations.h"
#include "tlm/machine/names.h"

namespace kernbench::ccl {
namespace {

using Shards = std::vector<const TensorShard*>;
using TensorArg = LaunchMessage::TensorArg;

/// A contributor of one rank: the shards of the SIP, of a cube or of a PE.
struct Unit {
  std::uint16_t cube = 0, pe = 0;
  Shards shards;
};

std::vector<Unit> units_of(const TensorArg& tensor, Scope scope) {
  std::map<std::pair<std::uint16_t, std::uint16_t>, Unit> units;
  for (const TensorShard& shard : tensor.shards) {
    if (shard.rows * shard.cols == 0) continue;
    const std::uint16_t cube = scope == Scope::sip ? std::uint16_t{0} : shard.owner.cube;
    const std::uint16_t pe = scope == Scope::pe ? shard.owner.pe : std::uint16_t{0};
    Unit& unit = units[{cube, pe}];
    unit.cube = cube;
    unit.pe = pe;
    unit.shards.push_back(&shard);
  }
  std::vector<Unit> list;
  list.reserve(units.size());
  for (auto& [key, unit] : units) list.push_back(std::move(unit));
  return list;
}

Place place_of(const TensorShard& shard, std::uint64_t offset) { return {shard.owner.cube, shard.owner.pe, offset}; }

/// In the order of the packed virtual range: what is elementwise needs no other.
RegionMap packed(const Shards& shards) {
  std::map<std::uint64_t, Run> runs;
  for (const TensorShard* shard : shards) {
    Run& run = runs[shard->offset_bytes];
    run.count = shard->rows * shard->cols;
    run.places.push_back(place_of(*shard, shard->offset_bytes));
  }
  RegionMap map;
  std::int64_t begin = 0;
  for (auto& [offset, run] : runs) {
    run.begin = begin;
    begin += run.count;
    map.push_back(std::move(run));
  }
  return map;
}

/// Row by row over the rectangle that the shards cover together.
RegionMap row_major(const Shards& shards, std::size_t item, const char* what) {
  if (shards.empty()) return {};
  std::int64_t top = shards.front()->row, left = shards.front()->col, bottom = 0, right = 0;
  for (const TensorShard* shard : shards) {
    top = std::min(top, shard->row);
    left = std::min(left, shard->col);
    bottom = std::max(bottom, shard->row + shard->rows);
    right = std::max(right, shard->col + shard->cols);
  }
  const std::int64_t width = right - left;
  std::map<std::int64_t, Run> runs;
  for (const TensorShard* shard : shards) {
    const bool whole = shard->cols == width;
    const std::int64_t rows = whole ? 1 : shard->rows, count = whole ? shard->rows * shard->cols : shard->cols;
    for (std::int64_t row = 0; row < rows; ++row) {
      Run& run = runs[(shard->row - top + row) * width + shard->col - left];
      run.count = count;
      run.places.push_back(
          place_of(*shard, shard->offset_bytes + static_cast<std::uint64_t>(row * shard->cols) * item));
    }
  }
  RegionMap map;
  std::int64_t begin = 0;
  for (auto& [first, run] : runs) {
    if (first != begin) {
      throw Error(fmt::format("{}: its shards do not tile the rectangle that they cover: element {} is {}", what,
                              std::min(first, begin), first < begin ? "in two of them" : "in none"));
    }
    run.begin = begin;
    begin += run.count;
    map.push_back(std::move(run));
  }
  if (begin != (bottom - top) * width) {
    throw Error(fmt::format("{}: its shards hold {} of the {} elements of the rectangle that they cover", what, begin,
                            (bottom - top) * width));
  }
  return map;
}

std::int64_t size_of_map(const RegionMap& map) { return map.empty() ? 0 : map.back().end(); }

void append(RegionMap& map, const RegionMap& more) {
  const std::int64_t end = size_of_map(map);
  for (const Run& run : more) {
    map.push_back(run);
    map.back().begin += end;
  }
}

/// Every unit's places stand beside each other: terms, or destinations, of the same elements.
RegionMap overlay(const std::vector<RegionMap>& maps, std::size_t item) {
  std::vector<std::int64_t> borders;
  for (const RegionMap& map : maps) {
    for (const Run& run : map) borders.push_back(run.begin);
  }
  borders.push_back(size_of_map(maps.front()));
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  RegionMap joined;
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    Run run{borders[i], borders[i + 1] - borders[i], {}};
    for (const RegionMap& map : maps) {
      const RegionMap cut = part_of(map, run.begin, run.count, item);
      run.places.insert(run.places.end(), cut.front().places.begin(), cut.front().places.end());
    }
    joined.push_back(std::move(run));
  }
  return joined;
}

std::vector<RegionMap> regions_of(const RegionMap& whole, std::int64_t regions, std::size_t item) {
  std::vector<RegionMap> list;
  const std::int64_t each = size_of_map(whole) / regions;
  for (std::int64_t r = 0; r < regions; ++r) list.push_back(part_of(whole, r * each, each, item));
  return list;
}

const char* unit_name(Scope scope) { return scope == Scope::cube ? "cube" : scope == Scope::pe ? "PE" : "rank"; }

/// Makes the maps of one call.
class Builder {
 public:
  Builder(const MachineMap& map, CollectiveOp op, Scope scope, int ranks, const TensorArg& in, const TensorArg& out,
          std::size_t item)
      : map_(map), op_(op), facts_(facts_of(op)), scope_(scope), ranks_(ranks), in_(in), out_(out), item_(item) {
    same_ = same_geometry(in, out);
  }

  CallMaps build() {
    maps_.own_region_in = same_ && facts_.longer_out() && ranks_ > 1;
    maps_.own_region_out = same_ && facts_.longer_in() && ranks_ > 1;
    if ((maps_.own_region_in || maps_.own_region_out) && scope_ != Scope::sip) {
      throw Error(fmt::format("{} in place needs scope sip", to_string(op_)));
    }
    packed_ = !facts_.counts_all() && same_;  // elementwise
    maps_.op = op_;
    in_units_ = units_of(in_, scope_);
    out_units_ = units_of(out_, scope_);
    const auto units =
        static_cast<std::int64_t>((facts_.parties == Parties::from_root ? out_units_ : in_units_).size());
    maps_.contributions = static_cast<int>(units) * ranks_;
    if (units == 0) return std::move(maps_);
    for (const Unit& unit : in_units_) in_tiles_.push_back(tile(unit.shards, "the input"));
    for (const Unit& unit : out_units_) out_tiles_.push_back(tile(unit.shards, "the output"));
    maps_.level = level();
    if (maps_.level == NodeLevel::rank) {
      per_rank(units);
    } else {
      per_node(units);
    }
    return std::move(maps_);
  }

 private:
  NodeLevel level() const {
    if (scope_ == Scope::sip) return NodeLevel::rank;
    const NodeLevel each = scope_ == Scope::cube ? NodeLevel::cube : NodeLevel::pe;
    if (facts_.joins_tiles()) return hidden(in_units_, true) || hidden(out_units_, true) ? each : NodeLevel::cube;
    if (facts_.longer_out()) return hidden(in_units_, false) && copies(out_) ? each : NodeLevel::rank;
    return facts_.exchanges() && (hidden(in_units_, false) || hidden(out_units_, false)) ? each : NodeLevel::rank;
  }

  /// Two contributors (of one cube) have data behind the same address.
  static bool hidden(const std::vector<Unit>& units, bool within_cube) {
    std::set<std::pair<int, std::uint64_t>> seen;
    for (const Unit& unit : units) {
      if (!seen.emplace(within_cube ? unit.cube : 0, unit.shards.front()->offset_bytes).second) return true;
    }
    return false;
  }
  static bool copies(const TensorArg& tensor) {
    std::set<std::uint64_t> seen;
    return std::any_of(tensor.shards.begin(), tensor.shards.end(), [&](const TensorShard& shard) {
      return shard.rows * shard.cols > 0 && !seen.insert(shard.offset_bytes).second;
    });
  }

  RegionMap tile(const Shards& shards, const char* what) const {
    return packed_ ? packed(shards) : row_major(shards, item_, what);
  }
  RegionMap whole(const TensorArg& tensor, const char* what) const {
    Shards all;
    for (const TensorShard& shard : tensor.shards) {
      if (shard.rows * shard.cols > 0) all.push_back(&shard);
    }
    return row_major(all, item_, what);
  }

  /// All units' tiles have as many elements.
  std::int64_t equal_tiles(const std::vector<RegionMap>& tiles, const std::vector<Unit>& units) const {
    for (std::size_t i = 1; i < tiles.size(); ++i) {
      if (size_of_map(tiles[i]) == size_of_map(tiles[0])) continue;
      const auto name = [&](const Unit& unit) {
        return scope_ == Scope::cube ? names::cube({0, unit.cube}) : names::pe({0, unit.cube, unit.pe});
      };
      throw Error(
          fmt::format("scope {} needs equal tiles: {} holds {} elements, {} holds {}; choose a shape that divides",
                      to_string(scope_), name(units[0]), size_of_map(tiles[0]), name(units[i]), size_of_map(tiles[i])));
    }
    return size_of_map(tiles[0]);
  }

  void expect(const char* what, std::int64_t got, std::int64_t wanted, const std::string& why) const {
    if (got == wanted) return;
    throw Error(fmt::format("{} over {} contributions: the {} has {} elements, it needs {} ({})", to_string(op_),
                            maps_.contributions, what, got, wanted, why));
  }

  void same_units() const {
    const auto same = [](const Unit& a, const Unit& b) { return a.cube == b.cube && a.pe == b.pe; };
    if (!std::equal(in_units_.begin(), in_units_.end(), out_units_.begin(), out_units_.end(), same)) {
      throw Error(fmt::format("{} with scope {}: input and output must lie on the same {}s", to_string(op_),
                              to_string(scope_), unit_name(scope_)));
    }
  }

  void per_rank(std::int64_t units) {
    const bool larger_out = facts_.longer_out();
    const std::int64_t p = maps_.contributions;
    RegionMap in, out;
    std::int64_t in_regions = 1, out_regions = 1;
    if (facts_.longer_in() || larger_out) {
      const bool same_tensor = maps_.own_region_in || maps_.own_region_out;
      const std::vector<RegionMap>& tiles = larger_out ? in_tiles_ : out_tiles_;
      const std::int64_t tile = same_tensor ? 0 : equal_tiles(tiles, larger_out ? in_units_ : out_units_);
      RegionMap all = larger_out ? whole(out_, "the output") : whole(in_, "the input"), parts;
      const std::int64_t elements = size_of_map(all);
      (larger_out ? out_regions : in_regions) = ranks_;
      if (same_tensor) {
        if (elements % p != 0) expect("tensor", elements, elements / p * p + p, "a multiple");
        parts = all;
        in_regions = out_regions = ranks_;
      } else {
        for (const RegionMap& each : tiles) append(parts, each);
        expect(larger_out ? "output" : "input", elements, tile * p,
               larger_out ? "one input of each" : "one output of each");
      }
      out = larger_out ? std::move(all) : std::move(parts);
      in = larger_out ? std::move(parts) : std::move(all);
    } else {
      same_units();
      const std::int64_t tile = equal_tiles(in_tiles_, in_units_);
      expect("output", equal_tiles(out_tiles_, out_units_), tile, "as many as the input");
      if (facts_.exchanges()) {
        if (tile % p != 0) expect("input", tile, tile / p * p + p, "a multiple");
        all_to_all(units, tile / p);
        return;
      }
      for (const RegionMap& each : in_tiles_) append(in, each);
      for (const RegionMap& each : out_tiles_) append(out, each);
    }
    maps_.in = {regions_of(in, in_regions, item_)};
    maps_.out = {regions_of(out, out_regions, item_)};
    maps_.elements = size_of_map(maps_.in[0][0]);
  }

  /// Region d of a rank: from each of its units u, in order, what goes to each unit v of rank d. There it is region s.
  void all_to_all(std::int64_t units, std::int64_t block) {
    maps_.in.resize(1);
    maps_.out.resize(1);
    for (int rank = 0; rank < ranks_; ++rank) {
      RegionMap in, out;
      for (std::int64_t u = 0; u < units; ++u) {
        append(in, part_of(in_tiles_[static_cast<std::size_t>(u)], rank * units * block, units * block, item_));
        for (std::int64_t v = 0; v < units; ++v) {
          append(out, part_of(out_tiles_[static_cast<std::size_t>(v)], (rank * units + u) * block, block, item_));
        }
      }
      maps_.in[0].push_back(std::move(in));
      maps_.out[0].push_back(std::move(out));
    }
    maps_.elements = units * units * block;
  }

  /// Nodes lie on cubes 0 .. n-1, in one row or in full rows; with level pe on PEs 0 .. m-1 of each.
  void take_nodes(const std::vector<Unit>& units) {
    std::map<int, int> cubes;  // and how many units each has
    for (const Unit& unit : units) ++cubes[unit.cube];
    const int count = static_cast<int>(cubes.size()), last = cubes.rbegin()->first;
    if (last != count - 1 || (count > map_.cube_w && count % map_.cube_w != 0)) {
      throw Error(
          fmt::format("scope {} needs tiles on cube 0 and the cubes after it in one row or in full rows of {}; {} "
                      "cubes up to cube {} hold one",
                      to_string(scope_), map_.cube_w, count, last));
    }
    per_cube_ = cubes[0];
    for (const auto& [cube, held] : cubes) {
      if (held == per_cube_) continue;
      throw Error(fmt::format("scope pe needs as many PEs with a tile in every cube: cube 0 has {}, cube {} has {}",
                              per_cube_, cube, held));
    }
    maps_.node_w = std::min<int>(count, map_.cube_w);
    maps_.node_h = count / maps_.node_w;
    if (maps_.level != NodeLevel::pe) return;
    if (per_cube_ != map_.pes_per_cube) {
      throw Error(fmt::format("{} with scope pe of copies needs tiles on all {} PEs of a cube; {} hold one",
                              to_string(op_), map_.pes_per_cube, per_cube_));
    }
    maps_.pes = per_cube_;
    maps_.node_w *= maps_.pes;
  }

  /// The tiles of one node's units.
  std::vector<RegionMap> of_node(const std::vector<RegionMap>& tiles, const std::vector<Unit>& units, int node) const {
    std::vector<RegionMap> list;
    for (std::size_t i = 0; i < units.size(); ++i) {
      const int owner = maps_.level == NodeLevel::cube ? units[i].cube : units[i].cube * maps_.pes + units[i].pe;
      if (owner == node) list.push_back(tiles[i]);
    }
    return list;
  }

  /// Only what lies on a node; the rest is nobody's there.
  RegionMap only(const RegionMap& map, int node) const {
    RegionMap own = map;
    for (Run& run : own) {
      const auto elsewhere = [&](const Place& place) {
        return (maps_.level == NodeLevel::cube ? place.cube : place.cube * maps_.pes + place.pe) != node;
      };
      run.places.erase(std::remove_if(run.places.begin(), run.places.end(), elsewhere), run.places.end());
    }
    return own;
  }

  void per_node(std::int64_t units) {
    const bool broadcast = facts_.parties == Parties::from_root, gathers = facts_.longer_out();
    take_nodes(broadcast ? out_units_ : in_units_);
    if (!gathers && !facts_.rooted()) same_units();
    const auto& tiles = broadcast ? out_tiles_ : in_tiles_;
    const std::int64_t tile = equal_tiles(tiles, broadcast ? out_units_ : in_units_);
    const int nodes = maps_.nodes_per_rank();
    if (op_ == CollectiveOp::gather) maps_.op = CollectiveOp::all_gather;
    RegionMap all;
    maps_.elements = tile;
    if (facts_.longer_in()) {
      expect("input", tile, equal_tiles(out_tiles_, out_units_) * maps_.contributions, "one output of each");
      maps_.elements = tile / ranks_ / nodes;
    } else if (facts_.exchanges()) {
      expect("output", equal_tiles(out_tiles_, out_units_), tile, "as many as the input");
      if (tile % maps_.contributions != 0) {
        expect("input", tile, tile / maps_.contributions * maps_.contributions + maps_.contributions, "a multiple");
      }
      maps_.elements = tile / maps_.contributions;
    } else if (gathers) {
      all = whole(out_, "the output");
      expect("output", size_of_map(all), tile * maps_.contributions, "one input of each");
    } else {
      expect(broadcast ? "input" : "output", size_of_map((broadcast ? in_tiles_ : out_tiles_).at(0)), tile,
             broadcast ? "as many as the output" : "as many as the input");
    }
    const int regions = ranks_ * nodes;
    const auto cut = [&](const RegionMap& map) { return regions_of(map, regions, item_); };
    for (int node = 0; node < nodes; ++node) {
      // A broadcast reads, and a reduce writes, only on the node of the root's first contributor.
      const auto in = broadcast ? std::vector<RegionMap>{in_tiles_[0]} : of_node(in_tiles_, in_units_, node);
      const auto out = gathers                              ? std::vector<RegionMap>{only(all, node)}
                       : facts_.parties == Parties::to_root ? std::vector<RegionMap>{out_tiles_[0]}
                                                            : of_node(out_tiles_, out_units_, node);
      if (facts_.longer_in()) {
        maps_.in.push_back(cut(overlay(in, item_)));
        RegionMap joined;
        for (const RegionMap& each : out) append(joined, each);
        maps_.out.push_back({joined});
      } else if (facts_.counts_all()) {
        maps_.in.push_back(facts_.exchanges() ? cut(in[0]) : std::vector<RegionMap>{in[0]});
        maps_.out.push_back(cut(out[0]));
      } else {
        maps_.in.push_back({overlay(in, item_)});
        maps_.out.push_back({overlay(out, item_)});
      }
    }
    sc_assert(units == std::int64_t{nodes} * (maps_.level == NodeLevel::cube ? per_cube_ : 1));
  }

  const MachineMap& map_;
  const CollectiveOp op_;
  const OperationFacts& facts_;
  const Scope scope_;
  const int ranks_;
  const TensorArg &in_, &out_;
  const std::size_t item_;
  bool same_ = false, packed_ = false;
  int per_cube_ = 1;
  CallMaps maps_;
  std::vector<Unit> in_units_, out_units_;
  std::vector<RegionMap> in_tiles_, out_tiles_;
};

}  // namespace

const Run& run_at(const RegionMap& map, std::int64_t element) {
  const auto after = std::upper_bound(map.begin(), map.end(), element,
                                      [](std::int64_t value, const Run& run) { return value < run.begin; });
  sc_assert(after != map.begin() && element < std::prev(after)->end());
  return *std::prev(after);
}

RegionMap part_of(const RegionMap& map, std::int64_t begin, std::int64_t count, std::size_t item) {
  RegionMap part;
  for (std::int64_t at = begin; at < begin + count;) {
    const Run& run = run_at(map, at);
    Run cut{at - begin, std::min(run.end(), begin + count) - at, run.places};
    for (Place& place : cut.places) place.offset += static_cast<std::uint64_t>(at - run.begin) * item;
    part.push_back(std::move(cut));
    at = run.end();
  }
  return part;
}

bool same_geometry(const TensorArg& a, const TensorArg& b, bool anywhere) {
  return std::equal(a.shards.begin(), a.shards.end(), b.shards.begin(), b.shards.end(),
                    [anywhere](const TensorShard& x, const TensorShard& y) {
                      return (anywhere || (x.owner.cube == y.owner.cube && x.owner.pe == y.owner.pe)) &&
                             x.offset_bytes == y.offset_bytes && x.rows == y.rows && x.cols == y.cols &&
                             x.row == y.row && x.col == y.col;
                    });
}

CallMaps make_call_maps(const MachineMap& map, CollectiveOp op, Scope scope, int ranks,
                        const LaunchMessage::TensorArg& in, const LaunchMessage::TensorArg& out, std::size_t item) {
  return Builder(map, op, scope, ranks, in, out, item).build();
}

}  // namespace kernbench::ccl
