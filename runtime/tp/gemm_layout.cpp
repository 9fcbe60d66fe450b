#include "runtime/tp/gemm_layout.h"

#include <algorithm>
#include <utility>

#include "runtime/tp/own_shard.h"

namespace kernbench::tp {
namespace {

GemmLayout::Copies copies_of(const TensorGeometry& c) {
  GemmLayout::Copies copies;
  std::map<std::uint64_t, int> cubes;  // by place in c
  for (const ShardSpec& shard : c.shards()) {
    if (shard.region.empty()) continue;
    const auto [known, fresh] = cubes.emplace(shard.offset_bytes, shard.cube);
    copies.any |= !fresh;
    copies.over_cubes |= !fresh && known->second != shard.cube;
  }
  return copies;
}

/// Rows of a tensor that each cube holds, from its first to its last.
std::map<int, Piece> rows_by_cube(const TensorGeometry& tensor) {
  std::map<int, Piece> rows;
  for (const ShardSpec& shard : tensor.shards()) {
    if (shard.region.empty()) continue;
    const std::int64_t first = shard.region.row, end = first + shard.region.rows;
    Piece& own = rows.emplace(shard.cube, Piece{first, 0}).first->second;
    const std::int64_t begin = std::min(own.begin, first);
    own = {begin, std::max(own.begin + own.length, end) - begin};
  }
  return rows;
}

}  // namespace

bool cubes_hold_rows(const TensorGeometry& tensor) {
  const std::map<int, Piece> rows = rows_by_cube(tensor);
  return std::any_of(rows.begin(), rows.end(), [&](const auto& one) {
    return one.second.begin != rows.begin()->second.begin || one.second.length != rows.begin()->second.length;
  });
}

GemmLayout::GemmLayout(Va a_base, Va b_base, Va bias_base, Va c_base, const GemmCall& the_call,
                       const SumExchange* exchange, const Tl& tl, std::optional<TensorView> the_residual)
    : call(the_call),
      a(a_base, call.a, call.first_row),
      b(b_base, call.b),
      bias(bias_base, call.bias),
      c(c_base, call.c),
      residual(std::move(the_residual)),
      has_bias(bias_base != 0),
      copies(copies_of(call.c)),
      k(exchange != nullptr ? exchange->own_k() : Piece{0, call.a.shape.cols}) {
  const Region part = exchange != nullptr ? exchange->sums() : own_shard(c_base, call.c, tl).region;
  std::vector<std::int64_t> cuts_of_k;
  b.row_cuts(k.begin, k.begin + k.length, cuts_of_k);
  a.col_cuts(k.begin, k.begin + k.length, cuts_of_k);
  for (const Piece& piece : pieces(k.begin, k.begin + k.length, std::move(cuts_of_k), call.mapping.tile_k))
    steps.push_back({piece});
  if (call.mapping.kind == GemmMapping::Kind::stream && !copies.any) begin_at_own_rows(b_base, tl);
  std::vector<std::int64_t> col_cuts;
  const std::int64_t end = part.row + part.rows, end_col = part.col + part.cols;
  const bool ring = call.mapping.kind == GemmMapping::Kind::ring;
  a.row_cuts(part.row, end, row_cuts_);
  if (residual) residual->row_cuts(part.row, end, row_cuts_);
  groups = ring ? rounds(part) : pieces(part.row, end, row_cuts_, block_rows() * call.mapping.row_blocks);
  if (!ring) begin_by_cube(exchange != nullptr, tl);
  find_spans();
  b.col_cuts(part.col, end_col, col_cuts);
  if (has_bias) bias.col_cuts(part.col, end_col, col_cuts);
  if (residual) residual->col_cuts(part.col, end_col, col_cuts);
  for (const TensorGeometry* tensor : {&call.b, &call.c}) {  // what each cube and PE has, whatever lies beside it
    for (const ShardSpec& shard : ring ? tensor->shards() : std::vector<ShardSpec>())
      if (shard.region.col > part.col && shard.region.col < end_col) col_cuts.push_back(shard.region.col);
  }
  columns = pieces(part.col, end_col, std::move(col_cuts), call.mapping.tile_n);
  if (ring) deal_columns();
}

/// Groups of rows of a cube's part: b goes round once for each of as many as the cube with the most rows has.
std::vector<Piece> GemmLayout::rounds(const Region& part) const {
  std::int64_t most = 0;
  for (const auto& [cube, rows] : rows_by_cube(call.c)) most = std::max(most, rows.length);
  const std::int64_t group = block_rows() * call.mapping.row_blocks;
  std::vector<Piece> all;
  for (std::int64_t begin = 0; begin < most; begin += group)
    all.push_back({part.row + begin, std::clamp<std::int64_t>(part.rows - begin, 0, group)});
  return all;
}

void GemmLayout::deal_columns() {
  for (const ShardSpec& shard : call.b.shards()) {
    std::vector<Piece>& own = columns_of_cube[shard.cube];
    if (shard.region.empty() || !own.empty()) continue;
    const std::int64_t end = shard.region.col + shard.region.cols;
    for (const Piece& piece : columns) {
      if (piece.begin >= shard.region.col && piece.begin < end) own.push_back(piece);
    }
  }
}

std::int64_t GemmLayout::block_rows() const {
  return call.mapping.kind == GemmMapping::Kind::lanes ? 1 : call.mapping.tile_m;
}

/// Where PEs hold different rows of b, each begins with its own and goes round: otherwise all would read from one
/// memory at a time.
void GemmLayout::begin_at_own_rows(Va b_base, const Tl& tl) {
  const ShardView here = tl.shard(b_base);
  if (here.rows == 0 || here.cols == 0) return;
  const Region rows = own_shard(b_base, call.b, tl).region;
  const auto own = [&](const Step& step) { return step.k.begin >= rows.row; };
  std::rotate(steps.begin(), std::find_if(steps.begin(), steps.end(), own), steps.end());
}

/// Where a is cut over cubes, each cube begins somewhere else: all would read from one memory at a time. Where cubes
/// hold whole rows, with its own. By `split`, at other rows first. PEs of a cube exchange block after block: their
/// order is the same for all of them, also for one that has rows of c and nothing of k.
void GemmLayout::begin_by_cube(bool split, const Tl& tl) {
  if (groups.empty() || call.mapping.kind == GemmMapping::Kind::passed) return;
  const auto cube = static_cast<std::size_t>(tl.program_id(1)), cubes = static_cast<std::size_t>(tl.num_programs(1));
  std::vector<std::int64_t> cuts;
  a.col_cuts(0, call.a.shape.cols, cuts);
  const bool own_rows = cubes_hold_rows(call.a);
  if (own_rows)
    std::rotate(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(cube * groups.size() / cubes),
                groups.end());
  if (cuts.empty()) return;
  const auto rotate_steps = [&](std::size_t first) {
    if (copies.over_cubes || steps.empty()) return;
    std::rotate(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(first % steps.size()), steps.end());
  };
  if (!split) return rotate_steps(cube * steps.size() / cubes);
  if (own_rows) return;
  const auto blocks = static_cast<std::size_t>(call.mapping.row_blocks);
  const std::size_t group = cube % groups.size();
  std::rotate(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(group), groups.end());
  first_block_ = cube / groups.size();
  rotate_steps(first_block_ / blocks);
}

/// Rows of a that are short pieces of long ones fall on few channels: up to `span` of them come at once, and steps
/// are cut out of them in TCM.
void GemmLayout::find_spans() {
  std::vector<std::int64_t> cuts;
  a.col_cuts(0, call.a.shape.cols, cuts);
  const auto widest = std::max(call.mapping.tile_k, call.span);
  for (Step& step : steps) {
    const bool joins = !spans.empty() && spans.back().begin + spans.back().length == step.k.begin &&
                       spans.back().length + step.k.length <= widest &&
                       std::find(cuts.begin(), cuts.end(), step.k.begin) == cuts.end();
    if (joins) {
      spans.back().length += step.k.length;
    } else {
      spans.push_back(step.k);
    }
    step.span = spans.size() - 1;
  }
}

std::vector<Piece> GemmLayout::rows_of_group(const Piece& group) const {
  std::vector<std::int64_t> cuts;
  for (const std::int64_t cut : row_cuts_) {
    if (cut > group.begin && cut < group.begin + group.length) cuts.push_back(cut);
  }
  std::vector<Piece> rows = pieces(group.begin, group.begin + group.length, std::move(cuts), block_rows());
  if (rows.empty()) return rows;
  std::rotate(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(first_block_ % rows.size()), rows.end());
  return rows;
}

}  // namespace kernbench::tp
