#include "ccl/region_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "ccl/registry.h"
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

bool same_geometry(const TensorArg& a, const TensorArg& b) {
  return std::equal(a.shards.begin(), a.shards.end(), b.shards.begin(), b.shards.end(),
                    [](const TensorShard& x, const TensorShard& y) {
                      return x.owner.cube == y.owner.cube && x.owner.pe == y.owner.pe &&
                             x.offset_bytes == y.offset_bytes && x.rows == y.rows && x.cols == y.cols &&
                             x.row == y.row && x.col == y.col;
                    });
}

const char* unit_name(Scope scope) { return scope == Scope::cube ? "cube" : scope == Scope::pe ? "PE" : "rank"; }

/// Makes the maps of one call.
class Builder {
 public:
  Builder(const MachineMap& map, CollectiveOp op, Scope scope, int ranks, const TensorArg& in, const TensorArg& out,
          std::size_t item)
      : map_(map), op_(op), scope_(scope), ranks_(ranks), in_(in), out_(out), item_(item) {
    same_ = same_geometry(in, out);
  }

  CallMaps build() {
    const bool larger_in = op_ == CollectiveOp::reduce_scatter || op_ == CollectiveOp::scatter;
    const bool larger_out = op_ == CollectiveOp::all_gather || op_ == CollectiveOp::gather;
    maps_.own_region_in = same_ && larger_out && ranks_ > 1;
    maps_.own_region_out = same_ && larger_in && ranks_ > 1;
    if ((maps_.own_region_in || maps_.own_region_out) && scope_ != Scope::sip) {
      throw Error(fmt::format("{} in place needs scope sip", to_string(op_)));
    }
    const bool elementwise = op_ == CollectiveOp::all_reduce || op_ == CollectiveOp::reduce ||
                             op_ == CollectiveOp::broadcast || op_ == CollectiveOp::send_recv;
    packed_ = elementwise && same_;
    const bool reduces = op_ == CollectiveOp::all_reduce || op_ == CollectiveOp::reduce ||
                         op_ == CollectiveOp::reduce_scatter || op_ == CollectiveOp::broadcast;
    maps_.per_cube = scope_ != Scope::sip && reduces;
    in_units_ = units_of(in_, scope_);
    out_units_ = units_of(out_, scope_);
    const auto& contributors = larger_in || (op_ == CollectiveOp::broadcast) ? out_units_ : in_units_;
    const auto units =
        static_cast<std::int64_t>(op_ == CollectiveOp::reduce_scatter ? in_units_.size() : contributors.size());
    maps_.contributions = static_cast<int>(units) * ranks_;
    if (units == 0) return std::move(maps_);
    for (const Unit& unit : in_units_) in_tiles_.push_back(tile(unit.shards, "the input"));
    for (const Unit& unit : out_units_) out_tiles_.push_back(tile(unit.shards, "the output"));
    if (maps_.per_cube) {
      per_cube(static_cast<int>(units));
    } else {
      per_rank(units, larger_in, larger_out);
    }
    return std::move(maps_);
  }

 private:
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
          fmt::format("scope {} needs equal tiles: {} holds {} elements, {} holds {}; choose a shape that "
                      "divides",
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

  void per_rank(std::int64_t units, bool larger_in, bool larger_out) {
    const std::int64_t p = maps_.contributions;
    RegionMap in, out;
    std::int64_t in_regions = 1, out_regions = 1;
    if (larger_out) {
      const std::int64_t tile = maps_.own_region_in ? 0 : equal_tiles(in_tiles_, in_units_);
      out = whole(out_, "the output");
      out_regions = ranks_;
      if (maps_.own_region_in) {
        if (size_of_map(out) % p != 0) expect("tensor", size_of_map(out), size_of_map(out) / p * p + p, "a multiple");
        in = out;
        in_regions = ranks_;
      } else {
        for (const RegionMap& each : in_tiles_) append(in, each);
        expect("output", size_of_map(out), tile * p, "one input of each");
      }
    } else if (larger_in) {
      const std::int64_t tile = maps_.own_region_out ? 0 : equal_tiles(out_tiles_, out_units_);
      in = whole(in_, "the input");
      in_regions = ranks_;
      if (maps_.own_region_out) {
        if (size_of_map(in) % p != 0) expect("tensor", size_of_map(in), size_of_map(in) / p * p + p, "a multiple");
        out = in;
        out_regions = ranks_;
      } else {
        for (const RegionMap& each : out_tiles_) append(out, each);
        expect("input", size_of_map(in), tile * p, "one output of each");
      }
    } else {
      same_units();
      const std::int64_t tile = equal_tiles(in_tiles_, in_units_);
      expect("output", equal_tiles(out_tiles_, out_units_), tile, "as many as the input");
      if (op_ == CollectiveOp::all_to_all) {
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

  /// Nodes are cubes 0 .. n-1, in one row or in full rows.
  void take_cubes(const std::vector<Unit>& units) {
    std::vector<int> cubes;
    for (const Unit& unit : units) {
      if (cubes.empty() || cubes.back() != unit.cube) cubes.push_back(unit.cube);
    }
    const int count = static_cast<int>(cubes.size());
    if (cubes.back() != count - 1 || (count > map_.cube_w && count % map_.cube_w != 0)) {
      throw Error(
          fmt::format("scope {} needs tiles on cube 0 and the cubes after it in one row or in full rows of {}; {} "
                      "cubes up to cube {} hold one",
                      to_string(scope_), map_.cube_w, count, cubes.back()));
    }
    maps_.cube_w = std::min<int>(count, map_.cube_w);
    maps_.cube_h = count / maps_.cube_w;
  }

  /// The tiles of one cube's units, as one map each.
  std::vector<RegionMap> of_cube(const std::vector<RegionMap>& tiles, const std::vector<Unit>& units, int cube) const {
    std::vector<RegionMap> list;
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (units[i].cube == cube) list.push_back(tiles[i]);
    }
    return list;
  }

  void per_cube(int units) {
    const bool broadcast = op_ == CollectiveOp::broadcast, reduce = op_ == CollectiveOp::reduce;
    take_cubes(broadcast ? out_units_ : in_units_);
    if (!broadcast && !reduce) same_units();
    const int cubes = maps_.nodes_per_rank(), per_cube = units / cubes;
    const auto& tiles = broadcast ? out_tiles_ : in_tiles_;
    const auto& owners = broadcast ? out_units_ : in_units_;
    const std::int64_t tile = equal_tiles(tiles, owners);
    if (per_cube * cubes != units) throw Error("scope pe needs as many PEs with a tile in every cube");
    std::int64_t regions = 1;
    if (op_ == CollectiveOp::reduce_scatter) {
      regions = maps_.contributions;
      expect("input", tile, equal_tiles(out_tiles_, out_units_) * regions, "one output of each");
    } else {
      expect(broadcast ? "input" : "output", size_of_map((broadcast ? in_tiles_ : out_tiles_).at(0)), tile,
             broadcast ? "as many as the output" : "as many as the input");
    }
    maps_.elements = tile / regions * (regions > 1 ? per_cube : 1);
    for (int cube = 0; cube < cubes; ++cube) {
      std::vector<RegionMap> in = of_cube(in_tiles_, in_units_, cube), out = of_cube(out_tiles_, out_units_, cube);
      if (broadcast) in = {in_tiles_[0]};  // of the root's first contributor: read on that node alone
      if (reduce) out = {out_tiles_[0]};
      check_terms(in, cube);
      std::vector<RegionMap> in_regions, out_regions;
      if (regions == 1) {
        in_regions = {overlay(in, item_)};
        out_regions = {overlay(out, item_)};
      } else {
        for (int node = 0; node < ranks_ * cubes; ++node)
          in_regions.push_back(part_of(overlay(in, item_), node * maps_.elements, maps_.elements, item_));
        RegionMap joined;
        for (const RegionMap& each : out) append(joined, each);
        out_regions = {joined};
      }
      maps_.in.push_back(std::move(in_regions));
      maps_.out.push_back(std::move(out_regions));
    }
  }

  /// Scope pe: the PEs of a cube must not hide their tiles from each other behind one address.
  void check_terms(const std::vector<RegionMap>& tiles, int cube) const {
    for (std::size_t i = 1; i < tiles.size(); ++i) {
      if (tiles[i].front().places.front().offset != tiles[0].front().places.front().offset) continue;
      throw Error(
          fmt::format("{} with scope pe: PEs of cube {} hold copies of one shard, and cannot read each other's; "
                      "split the tensor over the PEs of a cube",
                      to_string(op_), cube));
    }
  }

  const MachineMap& map_;
  const CollectiveOp op_;
  const Scope scope_;
  const int ranks_;
  const TensorArg &in_, &out_;
  const std::size_t item_;
  bool same_ = false, packed_ = false;
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

CallMaps make_call_maps(const MachineMap& map, CollectiveOp op, Scope scope, int ranks,
                        const LaunchMessage::TensorArg& in, const LaunchMessage::TensorArg& out, std::size_t item) {
  return Builder(map, op, scope, ranks, in, out, item).build();
}

}  // namespace kernbench::ccl
