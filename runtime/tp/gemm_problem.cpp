#include "runtime/tp/gemm_problem.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "runtime/tp/gemm_layout.h"
#include "runtime/tp/gemm_ring.h"
#include "runtime/tp/launch_bound.h"
#include "runtime/tp/own_shard.h"
#include "runtime/tp/tensor_view.h"

namespace kernbench::tp {

namespace {
std::int64_t common(std::int64_t a, std::int64_t a_length, std::int64_t b, std::int64_t b_length) {
  return std::max<std::int64_t>(0, std::min(a + a_length, b + b_length) - std::max(a, b));
}

/// Each block from the copy that the PE sees: its own, one in its cube, any.
GemmReads reads_of(const MachineMap& map, const Tensor& tensor, const Region& need, PeCoord pe) {
  struct Block {
    double bytes = 0;
    int distance = 3;
    PeCoord owner{};
  };
  std::map<std::uint64_t, Block> blocks;
  for (const ShardSpec& shard : tensor.shards()) {
    if (shard.region.empty()) continue;
    const std::int64_t elements = common(shard.region.row, shard.region.rows, need.row, need.rows) *
                                  common(shard.region.col, shard.region.cols, need.col, need.cols);
    if (elements == 0) continue;
    const PeCoord owner = owner_of(shard);
    Block& block = blocks[shard.offset_bytes];
    block.bytes = static_cast<double>(elements) * static_cast<double>(size_of(tensor.dtype()));
    const int distance = owner.cube != pe.cube ? 2 : owner.pe != pe.pe ? 1 : 0;
    if (distance >= block.distance) continue;
    block.distance = distance;
    block.owner = owner;
  }
  GemmReads reads;
  double waits = 0;  // bytes times picoseconds
  for (const auto& [offset, block] : blocks) {
    (block.distance == 0 ? reads.own : block.distance == 1 ? reads.cube : reads.far) += block.bytes;
    waits += block.bytes * static_cast<double>(access_of(map, pe, block.owner));
  }
  if (reads.all() > 0) reads.latency = static_cast<Ps>(waits / reads.all());
  reads.width = TensorView(0, geometry_of(tensor)).at(need.row, need.col).row_stride;
  return reads;
}

using ByCube = std::map<int, std::vector<ShardSpec>>;
ByCube by_cube(const Tensor& tensor) {
  ByCube cubes;
  for (const ShardSpec& shard : tensor.shards()) {
    if (!shard.region.empty()) cubes[shard.cube].push_back(shard);
  }
  return cubes;
}

/// PEs over which b and c spread, bit p for PE p, if these are the same of every cube; 0 if they are not.
std::uint64_t pes_of_split_k(const GemmOperands& operands) {
  const std::uint64_t of_b = pes_of_every_cube(operands.b), of_c = pes_of_every_cube(operands.c), all = of_b | of_c;
  return of_b != 0 && of_c != 0 && (all == of_b || all == of_c) ? all : 0;
}

/// Every cube's shards have the same rows and lie on the same PEs: what passing on asks for.
std::uint64_t pes_in_common(const ByCube& cubes) {
  std::uint64_t all = 0;
  for (const auto& [cube, shards] : cubes) {
    std::uint64_t mask = 0;
    for (const ShardSpec& shard : shards) {
      if (shard.pe >= 64 || shard.region.row != shards.front().region.row ||
          shard.region.rows != shards.front().region.rows) {
        return 0;
      }
      mask |= std::uint64_t{1} << shard.pe;
    }
    if (all != 0 && mask != all) return 0;
    all = mask;
  }
  return all;
}

/// What follows from part, PE and the range of k.
void look_at(const GemmOperands& operands, GemmProblem& p) {
  p.dtype = operands.c.dtype();
  p.item = static_cast<double>(size_of(p.dtype));
  p.residual = static_cast<bool>(operands.residual);
  p.rows_over_cubes = cubes_hold_rows(geometry_of(operands.a));
  p.rates = p.map.rates(p.pe);
  p.a = reads_of(p.map, operands.a, {p.part.row + operands.first_row.value_or(0), p.first_k, p.part.rows, p.k}, p.pe);
  p.b = reads_of(p.map, operands.b, {p.first_k, p.part.col, p.k, p.part.cols}, p.pe);
  p.a_holders = holders({operands.a});
  p.b_holders = holders({operands.b});
  const TensorView a_view(0, geometry_of(operands.a)), b_view(0, geometry_of(operands.b));
  a_view.col_cuts(p.first_k, p.first_k + p.k, p.a_cuts);
  b_view.row_cuts(p.first_k, p.first_k + p.k, p.b_cuts);
  b_view.col_cuts(p.part.col, p.part.col + p.part.cols, p.columns);
}

/// Ends of the rows of b on the PEs of a cube, if these are all of k, each once, of the same columns.
std::vector<std::int64_t> borders_of(const std::vector<ShardSpec>& of_b, std::int64_t k) {
  std::vector<std::int64_t> ends;
  std::int64_t rows = 0;
  for (const ShardSpec& shard : of_b) {
    if (shard.region.col != of_b.front().region.col || shard.region.cols != of_b.front().region.cols) return {};
    rows += shard.region.rows;
    ends.push_back(shard.region.row + shard.region.rows);
  }
  std::sort(ends.begin(), ends.end());
  const bool each_once = rows == k && std::adjacent_find(ends.begin(), ends.end()) == ends.end();
  return each_once ? ends : std::vector<std::int64_t>();
}

/// Rows of b in one cube are all of k, each once, of the same columns as the shards of c there.
bool splits_k(const std::vector<ShardSpec>& of_b, const std::vector<ShardSpec>& of_c, std::int64_t k) {
  const Region& columns = of_c.front().region;
  const auto alike = [&](const ShardSpec& shard) {
    return shard.region.col == columns.col && shard.region.cols == columns.cols;
  };
  return !borders_of(of_b, k).empty() && alike(of_b.front()) && std::all_of(of_c.begin(), of_c.end(), alike);
}
/// Which PEs have which parts of a tensor.
class Homes {
 public:
  explicit Homes(const Tensor& tensor) : item_(static_cast<double>(size_of(tensor.dtype()))) {
    std::map<std::uint64_t, std::size_t> known;  // by offset
    for (const ShardSpec& shard : tensor.shards()) {
      if (shard.region.empty()) continue;
      const auto [found, fresh] = known.emplace(shard.offset_bytes, parts_.size());
      if (fresh) parts_.push_back({shard.region, {}});
      parts_[found->second].owners.push_back(owner_of(shard));
    }
  }
  /// What a PE reads of a region from another cube, and whom from: of the cube's PEs that hold some of it one, so that
  /// those who read the same take different ones.
  struct Far {
    double bytes = 0;
    PeCoord owner{};
  };
  std::vector<Far> far(const Region& need, PeCoord pe) const {
    std::map<int, std::pair<double, std::vector<PeCoord>>> by_cube;
    for (const Part& part : parts_) {
      const std::int64_t rows = common(part.region.row, part.region.rows, need.row, need.rows);
      const std::int64_t cols = rows == 0 ? 0 : common(part.region.col, part.region.cols, need.col, need.cols);
      const auto here = [&](PeCoord owner) { return owner.cube == pe.cube; };
      if (cols == 0 || std::any_of(part.owners.begin(), part.owners.end(), here)) continue;
      auto& [bytes, owners] = by_cube[part.owners.front().cube];
      bytes += static_cast<double>(rows * cols) * item_;
      owners.push_back(part.owners.front());
    }
    std::vector<Far> reads;
    for (const auto& [cube, read] : by_cube) {
      const std::size_t turn = std::size_t{pe.cube} + pe.pe + static_cast<std::size_t>(cube);
      reads.push_back({read.first, read.second[turn % read.second.size()]});
    }
    return reads;
  }

 private:
  struct Part {
    Region region;
    std::vector<PeCoord> owners;
  };
  double item_;
  std::vector<Part> parts_;
};

/// Adds up what reads from other cubes put on the wires.
class Wires {
 public:
  Wires(const MachineMap& map, const GemmOperands& operands)
      : map_(map), first_row_(operands.first_row.value_or(0)), a_(operands.a), b_(operands.b) {}

  /// What a PE reads, in rows of c and of b; returns how many bytes of that come from other cubes.
  double add(PeCoord pe, const Region& of_c, std::int64_t first_k, std::int64_t k) {
    const Region of_a{of_c.row + first_row_, first_k, of_c.rows, k}, of_b{first_k, of_c.col, k, of_c.cols};
    double bytes = 0;
    for (const auto& [homes, need, load] : {std::tuple(&a_, of_a, &WireLoad::a), std::tuple(&b_, of_b, &WireLoad::b)}) {
      for (const Homes::Far& read : homes->far(need, pe)) {
        bytes += read.bytes;
        if (!map_.wires) continue;
        for (const WireUse& use : map_.wires(map_.hbm_port(read.owner), map_.pe(pe)))
          loads_[use.wire].*load += read.bytes / static_cast<double>(use.rate.bytes_per_second()) * 1e12;
      }
    }
    return bytes;
  }
  std::vector<WireLoad> loads() const {
    std::vector<WireLoad> list;
    for (const auto& [wire, load] : loads_) list.push_back(load);
    return list;
  }

 private:
  const MachineMap& map_;
  std::int64_t first_row_;
  Homes a_, b_;
  std::unordered_map<std::uint32_t, WireLoad> loads_;
};
}  // namespace

GemmProblem as_c_lies(const MachineMap& map, const GemmOperands& operands) {
  GemmProblem p(map);
  p.k = operands.a.shape().cols;
  const ByCube cubes = by_cube(operands.c);
  Wires wires(map, operands);
  double most_far = -1;
  for (const auto& [cube, shards] : cubes) {
    for (const ShardSpec& shard : shards) {
      p.workers.insert(owner_of(shard));
      const auto elements = [](const Region& region) { return region.rows * region.cols; };
      const double far = wires.add(owner_of(shard), shard.region, 0, p.k);
      if (elements(shard.region) < elements(p.part)) continue;
      if (elements(shard.region) == elements(p.part) && far <= most_far) continue;
      p.part = shard.region;
      p.pe = owner_of(shard);
      most_far = far;
    }
  }
  p.wires = wires.loads();
  p.pes_of_cube = cubes.begin()->second.size();
  p.common_pes = pes_in_common(cubes);
  look_at(operands, p);
  const ByCube of_b = by_cube(operands.b);
  const auto found = of_b.find(p.pe.cube);
  if (found != of_b.end() && found->second.size() > 1) p.b_borders = borders_of(found->second, p.k);
  return p;
}

std::optional<GemmProblem> as_k_is_split(const MachineMap& map, const GemmOperands& operands) {
  GemmProblem p(map);
  Wires wires(map, operands);
  const ByCube of_b = by_cube(operands.b);
  std::int64_t most = 0;
  for (const auto& [cube, shards] : by_cube(operands.c)) {
    const auto found = of_b.find(cube);
    if (found == of_b.end() || !splits_k(found->second, shards, operands.a.shape().cols)) return std::nullopt;
    std::int64_t begin = shards.front().region.row, end = begin, own = 0;
    for (const ShardSpec& shard : shards) {
      begin = std::min(begin, shard.region.row);
      end = std::max(end, shard.region.row + shard.region.rows);
      own = std::max(own, shard.region.rows);
    }
    for (const ShardSpec& shard : found->second) {
      const Region part{begin, shard.region.col, end - begin, shard.region.cols};
      wires.add(owner_of(shard), part, shard.region.row, shard.region.rows);
      const std::int64_t work = shard.region.rows * shard.region.cols * (end - begin);
      if (work <= most) continue;
      most = work;
      p.pe = owner_of(shard);
      p.first_k = shard.region.row;
      p.k = shard.region.rows;
      p.part = part;
      p.sharers = found->second.size();
      p.own_rows = own;
    }
  }
  p.common_pes = pes_of_split_k(operands);
  if (p.sharers < 2 || p.common_pes == 0) return std::nullopt;
  p.wires = wires.loads();
  p.workers = split_workers(operands);
  p.pes_of_cube = p.sharers;
  look_at(operands, p);
  return p;
}

namespace {
/// Cubes 0 to n-1 have shards, on the same PEs, and those of each are cut alike: `cut` is of what.
template <class Cut>
bool alike_in_all_cubes(const ByCube& cubes, int number, const Cut& cut) {
  if (static_cast<int>(cubes.size()) != number) return false;
  const std::vector<ShardSpec>& first = cubes.begin()->second;
  return std::all_of(cubes.begin(), cubes.end(), [&](const auto& one) {
    return one.second.size() == first.size() &&
           std::equal(first.begin(), first.end(), one.second.begin(), [&](const ShardSpec& a, const ShardSpec& b) {
             return a.pe == b.pe && cut(a.region) == cut(b.region);
           });
  });
}

/// The rows of c that a cube holds, if it holds all n columns of each, once.
struct RowsOfCube {
  std::int64_t begin = 0, count = 0;
  std::int64_t of_pe = 0;  ///< as many as a PE holds elements of, at most
};
std::optional<RowsOfCube> rows_of_cube(const std::vector<ShardSpec>& of_c, std::int64_t n) {
  std::int64_t begin = of_c.front().region.row, end = begin, held = 0, most = 0;
  for (const ShardSpec& shard : of_c) {
    const Region& region = shard.region;
    begin = std::min(begin, region.row);
    end = std::max(end, region.row + region.rows);
    held += region.rows * region.cols;
    most = std::max(most, region.rows * region.cols);
  }
  if (held != (end - begin) * n) return std::nullopt;
  return RowsOfCube{begin, end - begin, (most + n - 1) / n};
}
}  // namespace

std::optional<GemmProblem> as_b_goes_round(const MachineMap& map, const GemmOperands& operands) {
  const int cubes = map.cubes_per_sip();
  const std::int64_t k = operands.a.shape().cols, n = operands.c.shape().cols, m = operands.c.shape().rows;
  const ByCube of_b = by_cube(operands.b), of_c = by_cube(operands.c);
  const auto rows_of = [](const Region& region) { return std::pair(region.row, region.rows); };
  const auto cols_of = [](const Region& region) { return std::pair(region.col, region.cols); };
  if (!alike_in_all_cubes(of_b, cubes, rows_of) || !alike_in_all_cubes(of_c, cubes, cols_of)) return std::nullopt;
  // Of b each cube has columns of its own, of c rows; and of these all.
  GemmProblem p(map);
  std::int64_t all_cols = 0, all_rows = 0, most = 0;
  std::vector<std::int64_t> borders;
  for (int cube = 0; cube < cubes; ++cube) {
    const std::vector<ShardSpec>&b = of_b.at(cube), &c = of_c.at(cube);
    if (borders_of(b, k).empty()) return std::nullopt;
    const Region& block = b.front().region;
    all_cols += block.cols;
    borders.push_back(block.col + block.cols);
    p.block_cols = std::max(p.block_cols, block.cols);
    for (const ShardSpec& shard : c) borders.push_back(shard.region.col + shard.region.cols);
    const std::optional<RowsOfCube> rows = rows_of_cube(c, n);
    if (!rows) return std::nullopt;
    all_rows += rows->count;
    for (const ShardSpec& shard : b) {
      const std::int64_t work = shard.region.rows * rows->count;
      if (work <= most) continue;
      most = work;
      p.pe = owner_of(shard);
      p.first_k = shard.region.row;
      p.k = shard.region.rows;
      p.part = {rows->begin, 0, rows->count, n};
      p.own_rows = rows->of_pe;
    }
  }
  p.sharers = of_b.at(0).size();
  p.common_pes = pes_of_split_k(operands);
  if (all_cols != n || all_rows != m || p.sharers < 2 || p.common_pes == 0) return std::nullopt;
  p.workers = split_workers(operands);
  p.pes_of_cube = p.sharers;
  p.blocks_over_link = most_over_a_link(map.cube_w, map.cube_h);
  look_at(operands, p);
  const Region& block = of_b.at(p.pe.cube).front().region;
  p.b = reads_of(map, operands.b, {p.first_k, block.col, p.k, block.cols}, p.pe);
  borders.insert(borders.end(), p.columns.begin(), p.columns.end());
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  borders.pop_back();  // the end
  p.columns = borders;
  return p;
}

std::set<PeCoord> split_workers(const GemmOperands& operands) {
  std::set<PeCoord> workers;
  const ByCube of_c = by_cube(operands.c);
  for (const auto& [cube, shards] : of_c) {
    for (const ShardSpec& shard : shards) workers.insert(owner_of(shard));
  }
  for (const auto& [cube, shards] : by_cube(operands.b)) {
    if (of_c.count(cube) == 0) continue;
    for (const ShardSpec& shard : shards) workers.insert(owner_of(shard));
  }
  return workers;
}

}  // namespace kernbench::tp
