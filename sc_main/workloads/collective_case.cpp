#include "sc_main/workloads/collective_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <stdexcept>

#include "ccl/contract/legal.h"
#include "sc_main/workloads/placement_option.h"
#include "tlm/kernel/operations.h"

namespace kernbench {
namespace {

/// Blocks in a tile or whole array of p contributors. In place both sides are as long as the longer one.
int blocks_in(const CollectiveCase& c, int p) {
  return facts_of(c.op).in == Blocks::each || (c.in_place && facts_of(c.op).longer_out()) ? p : 1;
}
int blocks_out(const CollectiveCase& c, int p) {
  return facts_of(c.op).out == Blocks::each || (c.in_place && facts_of(c.op).longer_in()) ? p : 1;
}

int cubes_of(const DPPolicy& policy, const PlacementUnits& units) {
  return policy.num_cubes().value_or(static_cast<int>(units.cubes.size()));
}
int pes_of(const DPPolicy& policy, const PlacementUnits& units) {
  return policy.num_pes().value_or(units.pes_per_cube());
}
int tiles_of(Scope scope, const DPPolicy& policy, const PlacementUnits& units) {
  if (scope == Scope::sip) return 1;
  return cubes_of(policy, units) * (scope == Scope::pe ? pes_of(policy, units) : 1);
}

/// The part of a tensor that is split over `tiles` tiles when each shall have the shape `tile`.
Shape whole_of(Scope scope, const DPPolicy& policy, const PlacementUnits& units, Shape tile) {
  if (scope == Scope::sip) return tile;
  if (scope == Scope::pe) {
    const int pes = pes_of(policy, units);
    int down = 1;  // the grid of tiles: rows are the largest divisor not above the root
    for (int d = 1; d * d <= pes; ++d) {
      if (pes % d == 0) down = d;
    }
    switch (policy.pe()) {
      case PeSplit::replicate:
        break;
      case PeSplit::column_wise:
        tile.cols *= pes;
        break;
      case PeSplit::row_wise:
        tile.rows *= pes;
        break;
      case PeSplit::tiled_column_major:
      case PeSplit::tiled_row_major:
        tile.rows *= down;
        tile.cols *= pes / down;
        break;
    }
  }
  if (policy.cube() == CubeSplit::column_wise) tile.cols *= cubes_of(policy, units);
  if (policy.cube() == CubeSplit::row_wise) tile.rows *= cubes_of(policy, units);
  return tile;
}

void cover(Region& tile, const Region& more) {
  const std::int64_t bottom = std::max(tile.row + tile.rows, more.row + more.rows);
  const std::int64_t right = std::max(tile.col + tile.cols, more.col + more.cols);
  tile.row = std::min(tile.row, more.row);
  tile.col = std::min(tile.col, more.col);
  tile.rows = bottom - tile.row;
  tile.cols = right - tile.col;
}

/// The tiles of a rank's tensor, in order of cube, then PE.
std::vector<TileView> tiles_in(Scope scope, const DPPolicy& policy, const PlacementUnits& units, Shape shape,
                               DType dtype) {
  if (scope == Scope::sip) return {{{0, 0, shape.rows, shape.cols}, shape.cols}};
  std::map<std::pair<int, int>, Region> regions;
  for (const ShardSpec& shard : place_shards(policy, shape, static_cast<int>(size_of(dtype)), units, 0)) {
    if (shard.region.empty()) continue;
    const auto [found, is_new] =
        regions.emplace(std::pair(shard.cube, scope == Scope::pe ? shard.pe : 0), shard.region);
    if (!is_new) cover(found->second, shard.region);
  }
  std::vector<TileView> tiles;
  tiles.reserve(regions.size());
  for (const auto& [unit, region] : regions) tiles.push_back({region, shape.cols});
  return tiles;
}

void check_in_place(const CollectiveCase& c) {
  if (!c.in_place || ccl::works_in_place(c.op, c.scope)) return;
  if (ccl::works_in_place(c.op, Scope::sip)) {
    throw std::invalid_argument(fmt::format("--in-place 1: {} works in place with scope sip only", to_string(c.op)));
  }
  throw std::invalid_argument(
      fmt::format("--in-place 1: {} needs an output of its own; give --in-place 0", to_string(c.op)));
}

/// Row counts that split evenly: PEs inside a tile, cubes in a whole tensor.
Shape tile_shape(Scope scope, const DPPolicy& policy, const PlacementUnits& units, std::int64_t count) {
  if (scope == Scope::sip) return shape_for(policy, count, cubes_of(policy, units));
  return shape_for(policy, count, scope == Scope::pe ? 1 : pes_of(policy, units));
}

}  // namespace

int contributions_of(const CollectiveCase& c, const PlacementUnits& units) {
  return c.ranks * tiles_of(c.scope, facts_of(c.op).whole_in() ? c.out_policy : c.in_policy, units);
}

std::uint64_t size_of_shards(const CollectiveCase& c, const PlacementUnits& units, std::int64_t elements) {
  const DPPolicy& policy = facts_of(c.op).whole_in() ? c.out_policy : c.in_policy;
  const bool over_cubes = c.scope == Scope::sip && policy.cube() != CubeSplit::replicate;
  const bool over_pes = c.scope != Scope::pe && policy.pe() != PeSplit::replicate;
  const int shards = (over_cubes ? cubes_of(policy, units) : 1) * (over_pes ? pes_of(policy, units) : 1);
  return static_cast<std::uint64_t>(elements * shards * blocks_in_size(c.op, contributions_of(c, units))) *
         size_of(c.dtype);
}

CollectiveLayout::CollectiveLayout(const CollectiveCase& c, const PlacementUnits& units, std::int64_t n)
    : case_(c), n_(n) {
  check_in_place(c);
  const bool whole_in = facts_of(c.op).whole_in(), whole_out = facts_of(c.op).whole_out();
  const DPPolicy& tiled = whole_in ? c.out_policy : c.in_policy;
  per_rank_ = tiles_of(c.scope, tiled, units);
  if (c.scope != Scope::sip && !whole_in && !whole_out && tiles_of(c.scope, c.out_policy, units) != per_rank_) {
    throw std::invalid_argument(
        fmt::format("--scope {}: --placement has {} tiles and --out-placement has {}; both need as many",
                    to_string(c.scope), per_rank_, tiles_of(c.scope, c.out_policy, units)));
  }
  const bool copies =
      c.out_policy.cube() == CubeSplit::replicate || (c.scope == Scope::pe && c.out_policy.pe() == PeSplit::replicate);
  if (c.scope != Scope::sip && copies && !whole_out && !facts_of(c.op).alike) {
    throw std::invalid_argument(fmt::format(
        "--scope {}: {} leaves other data in every tile, but '{}' makes tiles copies of each other; split "
        "the output over cubes{}",
        to_string(c.scope), to_string(c.op), to_string(c.out_policy), c.scope == Scope::pe ? " and PEs" : ""));
  }
  const auto side = [&](bool whole, const DPPolicy& policy, int blocks, Shape& shape, std::vector<TileView>& tiles) {
    const std::int64_t count = n * blocks;
    const Scope scope = whole ? Scope::sip : c.scope;
    shape = whole_of(scope, policy, units, tile_shape(scope, policy, units, count));
    tiles = tiles_in(scope, policy, units, shape, c.dtype);
    const bool alike = std::all_of(tiles.begin(), tiles.end(), [&](const TileView& t) { return t.count() == count; });
    if (!alike || static_cast<int>(tiles.size()) != (whole ? 1 : per_rank_)) {
      throw std::invalid_argument(
          fmt::format("--scope {} needs equal tiles, and {} elements of {} placed {} give other ones; choose a size or "
                      "a --placement that divides",
                      to_string(c.scope), count, to_string(c.dtype), to_string(policy)));
    }
  };
  side(whole_in, c.in_policy, blocks_in(c, contributions()), in_shape_, in_tiles_);
  side(whole_out, c.out_policy, blocks_out(c, contributions()), out_shape_, out_tiles_);
}

bool CollectiveLayout::has_in(int rank) const {
  return case_.in_place || facts_of(case_.op).parties != Parties::from_root || rank == case_.root;
}

bool CollectiveLayout::has_out(int rank) const {
  return case_.in_place || facts_of(case_.op).parties != Parties::to_root || rank == case_.root;
}

std::vector<Flow> CollectiveLayout::flows() const {
  const OperationFacts& op = facts_of(case_.op);
  const int p = contributions(), root = op.rooted() ? case_.root * per_rank_ : -1;
  // Block `block` of contributor k's tile, or of its rank's whole tensor.
  const auto from = [&](int k, int block) { return Place{k / per_rank_, in_tile(k % per_rank_), block * n_}; };
  const auto to = [&](int k, int block) { return Place{k / per_rank_, out_tile(k % per_rank_), block * n_}; };
  std::vector<Flow> flows;
  for (int own = 0; own < p; own += op.whole_out() ? per_rank_ : 1) {
    if (op.parties == Parties::to_root && own != root) {
      if (case_.in_place) flows.push_back({{from(own, 0)}, {to(own, 0)}});  // is left as it was
      continue;
    }
    for (int block = 0; block < (op.out == Blocks::each ? p : 1); ++block) {
      const Contributors givers = op.from({own, block, p, root, per_rank_});
      const int taken = op.in == Blocks::each ? own : 0;
      Flow& flow = op.alike && own > 0 ? flows[static_cast<std::size_t>(block)] : flows.emplace_back();
      if (flow.sources.empty()) {
        for (int k = givers.first; k <= givers.last; ++k)
          flow.sources.push_back(from(k, case_.in_place && op.longer_out() ? k : taken));
      }
      flow.destinations.push_back(to(own, case_.in_place && op.longer_in() ? own : block));
      flow.reduces = op.combines();
    }
  }
  return flows;
}

int blocks_in_size(CollectiveOp op, int contributions) { return facts_of(op).counts_all() ? contributions : 1; }

double bus_factor(CollectiveOp op, int contributions) { return facts_of(op).bus_factor(contributions); }

Pattern input_pattern(const CollectiveCase& c, const PlacementUnits& units, std::uint64_t seed) {
  const bool reduces = ccl::reduces(c.op);
  const bool adds = reduces && (c.reduce_op == ReduceOp::sum || c.reduce_op == ReduceOp::avg);
  const Pattern::Range range = reduces && c.reduce_op == ReduceOp::prod ? Pattern::Range::factor
                               : adds || !is_float(c.dtype)             ? Pattern::Range::term
                                                                        : Pattern::Range::unit;
  return Pattern(seed, c.dtype, range, {c.ranks, contributions_of(c, units) / c.ranks});
}

namespace {

/// Elements of a place as they stand in memory, one after the other.
class Elements {
 public:
  Elements(DType dtype, std::size_t most) : item_(size_of(dtype)), gathered_(most * item_) {}
  /// `n` elements from `first` of the place on, in the contents of its tensor. Valid until the next call.
  const std::uint8_t* of(const Place& place, std::int64_t first, std::int64_t n, const std::uint8_t* tensor) {
    const std::int64_t from = place.offset + first, cols = place.tile.region.cols;
    const bool is_whole_rows = cols == place.tile.columns;
    if (is_whole_rows || from / cols == (from + n - 1) / cols) return tensor + place.tile.at(from) * item_;
    for (std::int64_t i = 0; i < n; ++i) {
      std::memcpy(gathered_.data() + static_cast<std::size_t>(i) * item_, tensor + place.tile.at(from + i) * item_,
                  item_);
    }
    return gathered_.data();
  }

 private:
  std::size_t item_;
  std::vector<std::uint8_t> gathered_;
};

constexpr std::int64_t kCompared = 1024;  // elements at a time

/// The elements whose bits differ.
template <class F>
void for_each_difference(const std::uint8_t* a, const std::uint8_t* b, std::int64_t n, std::size_t item, F&& f) {
  if (std::memcmp(a, b, static_cast<std::size_t>(n) * item) == 0) return;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    if (std::memcmp(a + i * item, b + i * item, item) != 0) f(i);
  }
}

/// Calls f(elements [first, first + n) of a copy) for every place where they have to be.
template <class F>
void for_each_output(const Flow& flow, const CollectiveData& data, std::int64_t first, std::int64_t n,
                     Elements& elements, F&& f) {
  for (const Place& place : flow.destinations) {
    for (const auto& copy : data.outputs[static_cast<std::size_t>(place.rank)]) {
      f(elements.of(place, first, n, copy.data()));
    }
  }
}

void compare_moved(const CollectiveCase& c, const Flow& flow, const CollectiveData& data, std::int64_t first,
                   std::int64_t n, Comparison& comparison) {
  const Place& source = flow.sources.front();
  Elements inputs(c.dtype, kCompared), outputs(c.dtype, kCompared);
  const std::uint8_t* input = inputs.of(source, first, n, data.inputs[static_cast<std::size_t>(source.rank)].data());
  for_each_output(flow, data, first, n, outputs, [&](const std::uint8_t* output) {
    for_each_difference(output, input, n, size_of(c.dtype), [&](std::size_t i) {
      ++comparison.mismatches;
      const double error = std::abs(load_element(output, c.dtype, i) - load_element(input, c.dtype, i));
      if (std::isfinite(error)) comparison.max_abs_error = std::max(comparison.max_abs_error, error);
    });
  });
}

void compare_reduced(const CollectiveCase& c, const Flow& flow, const CollectiveData& data, std::int64_t first,
                     std::int64_t n, Comparison& comparison) {
  Elements elements(c.dtype, kCompared);
  Reference reference(c.reduce_op, c.dtype, static_cast<std::size_t>(n));
  for (const Place& place : flow.sources) {
    reference.add(elements.of(place, first, n, data.inputs[static_cast<std::size_t>(place.rank)].data()));
  }
  std::vector<std::uint8_t> bits;  // of the first copy: all others are like it
  for_each_output(flow, data, first, n, elements, [&](const std::uint8_t* output) {
    std::vector<bool> wrong(static_cast<std::size_t>(n));  // an element is so once
    reference.check(output, comparison, &wrong);
    if (bits.empty()) bits.assign(output, output + static_cast<std::size_t>(n) * size_of(c.dtype));
    for_each_difference(output, bits.data(), n, size_of(c.dtype),
                        [&](std::size_t i) { comparison.mismatches += wrong[i] ? 0 : 1; });
  });
}

}  // namespace

Comparison compare_collective(const CollectiveCase& c, const CollectiveLayout& layout, const CollectiveData& data) {
  Comparison comparison;
  for (const Flow& flow : layout.flows()) {
    for (std::int64_t first = 0; first < layout.block(); first += kCompared) {
      const std::int64_t n = std::min(kCompared, layout.block() - first);
      (flow.reduces ? compare_reduced : compare_moved)(c, flow, data, first, n, comparison);
    }
  }
  return comparison;
}

}  // namespace kernbench
