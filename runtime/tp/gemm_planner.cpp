#include "runtime/tp/gemm_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "runtime/tp/gemm_kernel.h"
#include "runtime/tp/gemm_problem.h"
#include "runtime/tp/own_shard.h"
#include "runtime/tp/tensor_view.h"

namespace kernbench::tp {

namespace {

/// Most rows that the math engine is asked to weight b by: from some on the array is always faster.
constexpr std::int64_t kMostWeighted = 8;

/// Columns from which on a split k may take them in two passes.   measured on `default`: of 256, a read twice costs
/// more than the exchange that is hidden (128 x 4096 x 2048: 14.0 us against 8.1), of 896 less
constexpr std::int64_t kTwoPasses = 512;

/// Steps of k: powers of two, and such that a shard of a, or of b, has whole ones.
std::vector<std::int64_t> steps_of_k(const GemmProblem& p) {
  std::vector<std::int64_t> list;
  std::int64_t longest = 0;  // no step reaches over a border between rows of b
  for (const Piece& piece : pieces(p.first_k, p.first_k + p.k, p.b_cuts, p.k))
    longest = std::max(longest, piece.length);
  for (std::int64_t k = 32; k <= 4096; k *= 2) {
    if (k == 32 || k / 2 < longest) list.push_back(std::min(k, p.k));
  }
  std::vector<std::int64_t> whole{p.a.width / 2, p.a.width};
  if (!p.b_borders.empty()) {
    for (std::int64_t parts = 1; parts <= 4; parts *= 2) whole.push_back(p.b_borders.front() / parts);
  }
  for (const std::int64_t k : whole) {
    if (k >= 32 && k < p.k && std::find(list.begin(), list.end(), k) == list.end()) list.push_back(k);
  }
  return list;
}

/// Tiles that fit, of one kind.
std::vector<GemmMapping> candidates(const GemmProblem& p, GemmMapping::Kind kind, std::uint64_t room) {
  std::vector<GemmMapping> list;
  const std::int64_t rows = p.part.rows, cols = p.part.cols;
  const bool lanes = kind == GemmMapping::Kind::lanes, ring = kind == GemmMapping::Kind::ring;
  if (lanes && rows > kMostWeighted) return list;
  const auto bytes = [&](const GemmMapping& t, std::uint64_t kept) {
    const double wide = static_cast<double>(size_of(compute_type(p.dtype)));
    const auto tk = static_cast<double>(std::min(t.tile_k, p.k)), tm = static_cast<double>(std::min(t.tile_m, rows));
    const auto tn = static_cast<double>(t.tile_n);
    const double group = tm * t.row_blocks;
    const double added = p.residual ? group * tn * (p.item + wide) : 0;  // loaded while the sums are there
    const double weights = lanes ? group * static_cast<double>(p.k) * (p.item + wide) + 3 * group * tn * wide : 0;
    if (t.kind == GemmMapping::Kind::ring) {
      const double coming = 5 * static_cast<double>(p.block_cols * p.k) * p.item;
      return coming + group * static_cast<double>(p.k) * p.item +
             group * tn * wide * (3 * t.chains + 2 + static_cast<double>(p.sharers)) + added;
    }
    if (on_math_engine(t.kind)) return 4 * tk * tn * (p.item + 2 * wide) + group * tn * wide + weights + added;
    const double exchanged = t.kind == GemmMapping::Kind::split ? 2 * group * tn * wide : 0;
    const double x = t.kind == GemmMapping::Kind::passed
                         ? 3.5 * group * static_cast<double>(p.pes_of_cube) * tk
                         : 9 * tm * tk + (2 * group + 9 * tm) * static_cast<double>(span_of(p, t, t.tile_k));
    return static_cast<double>(kept) + 4 * tk * tn * p.item + x * p.item + 3 * group * tn * wide * t.chains +
           exchanged + added;
  };
  const bool vector = on_math_engine(kind);
  for (const std::int64_t tile_k : steps_of_k(p)) {
    for (const std::int64_t tile_m : {32, 64, 128}) {
      if (tile_m > 32 && (tile_m / 2 >= rows || vector)) break;
      for (std::int32_t row_blocks : {1, 2, 4, 8, 16}) {
        if (row_blocks > 1 && tile_m * row_blocks / 2 >= rows) break;
        if (lanes) row_blocks = static_cast<std::int32_t>(rows);
        for (const std::int32_t chains : {1, 2, 4}) {
          if (vector && chains > 1) break;
          GemmMapping t{kind,  lanes ? 1 : std::min(tile_m, rows), ring ? p.block_cols : cols, tile_k, row_blocks,
                        chains};
          const auto kept = [&] {
            const bool once = kind != GemmMapping::Kind::passed && tile_m * row_blocks >= rows;
            return vector || ring || once ? 0
                                          : static_cast<std::uint64_t>(static_cast<double>(t.tile_n * p.k) * p.item);
          };
          while (t.tile_n > 1 && bytes(t, kept()) > static_cast<double>(room)) t.tile_n = (t.tile_n + 1) / 2;
          if (kind == GemmMapping::Kind::passed && t.tile_n < cols) continue;  // every part of a is passed on once
          const std::int64_t widest = ring ? p.block_cols : cols;
          if (t.tile_n < widest && t.tile_n < 32 && t.tile_n * 4 < widest) continue;
          list.push_back(t);
          if (kind != GemmMapping::Kind::split || t.tile_n < cols || cols < kTwoPasses) continue;
          t.tile_n = (cols + 1) / 2;  // the first half's sums are exchanged behind the products of the second
          list.push_back(t);
        }
        if (lanes) break;
      }
    }
  }
  if (!lanes && !ring && kind != GemmMapping::Kind::passed) {  // the least that there is, which runs in little room
    list.push_back({kind, std::min<std::int64_t>(rows, 32), std::min<std::int64_t>(cols, 32),
                    std::min<std::int64_t>(p.k, 64), 1, 1});
  }
  return list;
}

/// The least estimate. Where wires between cubes bind, of those that come near it the one that keeps the array busy for
/// the shortest time: nothing else tells them apart. Else the longest pieces of memory, where they tell more than
/// estimates: of long GEMMs, and where the array waits for a from afar (each product takes new TCM for its sums, so
/// that short ones are soon as far ahead as loads may be).
std::optional<GemmCandidate> best_of(const GemmProblem& p, const std::vector<GemmMapping>& list,
                                     std::uint64_t kept_bytes) {
  constexpr Ps kLongTime = 10'000'000;  // 10 us
  std::vector<GemmCandidate> all;
  all.reserve(list.size());
  for (const GemmMapping& one : list) all.push_back({one, estimate(p, one, kept_bytes)});
  const auto faster = [](const GemmCandidate& x, const GemmCandidate& y) { return x.estimate.time < y.estimate.time; };
  const auto least = std::min_element(all.begin(), all.end(), faster);
  if (least == all.end()) return std::nullopt;
  if (least->estimate.binds() == "UCIe") {
    constexpr double kNear = 1.04;  // measured on `default`: 128 x 1024 x 2048 3.57 to 4.13 us, estimates 3.54 to 3.66
    const auto shorter = [&](const GemmCandidate& x, const GemmCandidate& y) {
      return std::pair(x.estimate.array, x.estimate.time) < std::pair(y.estimate.array, y.estimate.time);
    };
    const double most = kNear * static_cast<double>(least->estimate.time);
    const auto near_end = std::stable_partition(all.begin(), all.end(), [&](const GemmCandidate& one) {
      return static_cast<double>(one.estimate.time) <= most;
    });
    return *std::min_element(all.begin(), near_end, shorter);
  }
  const bool is_long = least->estimate.time >= kLongTime;
  const bool waits_for_far = 2 * p.a.far > p.a.all() && least->estimate.binds() == "array";
  if (!is_long && !waits_for_far) return *least;
  const double factor = is_long ? 1.03 : 1.1;  // measured: as good as estimates are
  // Elements of k that lie in one piece, whatever a step could have.
  const auto piece = [&](const GemmCandidate& one) {
    return std::min(p.a.width, pieces(p.first_k, p.first_k + p.k, p.b_cuts, one.mapping.tile_k).front().length);
  };
  GemmCandidate best = *least;
  for (const GemmCandidate& one : all) {
    const bool near = static_cast<double>(one.estimate.time) <= factor * static_cast<double>(least->estimate.time);
    if (near && (piece(one) > piece(best) || (piece(one) == piece(best) && faster(one, best)))) best = one;
  }
  return best;
}

/// Puts the one to take first; `sorted` by estimates. Where the array waits for an a from afar, estimates do not know
/// how late it comes: of kinds that come near the least, the one that asks least of slices, ports and links, so that
/// most of it is hidden.   measured on `default`: 512 x 4096 x 7168 by `stream` 90.3 us (estimate 75.1, ports busy
/// for 54.6), by `split` 77.9 (76.7, 28.8)
void choose(std::vector<GemmCandidate>& sorted, bool a_is_far) {
  constexpr double kNear = 1.04;
  const GemmEstimate least = sorted.front().estimate;
  if (!a_is_far || least.binds() != "array") return;
  const auto near_end = std::find_if(sorted.begin(), sorted.end(), [&](const GemmCandidate& one) {
    return static_cast<double>(one.estimate.time) > kNear * static_cast<double>(least.time);
  });
  const auto asked = [](const GemmEstimate& one) { return std::max({one.memory, one.port, one.cut}); };
  const auto best = std::min_element(
      sorted.begin(), near_end, [&](const auto& x, const auto& y) { return asked(x.estimate) < asked(y.estimate); });
  std::rotate(sorted.begin(), best, best + 1);
}

void check_operands(const std::string& name, const GemmOperands& operands) {
  if (!operands.a || !operands.b || !operands.c) {
    throw std::invalid_argument(fmt::format("gemm '{}': an operand is an empty handle", name));
  }
  const Shape a = operands.a.shape(), b = operands.b.shape(), c = operands.c.shape();
  const auto& first = operands.first_row;
  const bool rows_fit = first ? *first >= 0 && *first + c.rows <= a.rows : c.rows == a.rows;
  if (a.cols != b.rows || !rows_fit || c.cols != b.cols) {
    throw std::invalid_argument(
        fmt::format("gemm '{}': {} times {} does not give {}", name, a.str(), b.str(), c.str()));
  }
  if (operands.bias && operands.bias.shape() != Shape{1, c.cols}) {
    throw std::invalid_argument(
        fmt::format("gemm '{}': the bias is {}, not {}", name, operands.bias.shape().str(), Shape{1, c.cols}.str()));
  }
  if (operands.residual && operands.residual.shape() != c) {
    throw std::invalid_argument(
        fmt::format("gemm '{}': the residual is {}, not {}", name, operands.residual.shape().str(), c.str()));
  }
  const DType dtype = operands.c.dtype();
  if (!is_float(dtype)) {
    throw std::invalid_argument(fmt::format("gemm '{}': {} is no floating-point type", name, to_string(dtype)));
  }
  for (const Tensor& tensor : {operands.a, operands.b, operands.bias, operands.residual}) {
    if (tensor && tensor.dtype() != dtype) {
      throw std::invalid_argument(fmt::format("gemm '{}': tensor '{}' is {}, the result is {}", name, tensor.name(),
                                              to_string(tensor.dtype()), to_string(dtype)));
    }
  }
}

/// What a mapping asks of operands that not all have.
const char* needs(GemmMapping::Kind kind) {
  using Kind = GemmMapping::Kind;
  switch (kind) {
    case Kind::passed:
      return "the PEs of a cube have to make the same rows of the result, and their TCM to hold their columns of b";
    case Kind::split:
    case Kind::lanes:
      return "the PEs of a cube have to hold different rows of b, and the same columns of b and of the result";
    case Kind::ring:
      return "all cubes have to hold columns of b and rows of the result, cut alike over their PEs";
    default:
      return "no tile of it fits in TCM";
  }
}

}  // namespace

const GemmPlan& GemmPlans::of(const MachineMap& map, const std::string& name, const GemmOperands& operands) {
  std::string key;
  for (const Tensor& tensor : {operands.a, operands.b, operands.bias, operands.c, operands.residual}) {
    if (tensor)
      key += fmt::format("{} {} {} {};", tensor.shape().str(), to_string(tensor.dtype()), to_string(tensor.policy()),
                         tensor.sip());
  }
  key += std::to_string(operands.first_row.value_or(0)) + (operands.residual ? " and a residual" : "");
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second;
  return plans_.emplace(key, plan_gemm(map, name, operands)).first->second;
}

GemmPlan plan_gemm(const MachineMap& map, const std::string& name, const GemmOperands& operands,
                   const std::string& mapping) {
  check_operands(name, operands);
  GemmProblem problem = as_c_lies(map, operands);
  problem.farthest = farthest_access(problem);
  const std::optional<GemmProblem> split = as_k_is_split(map, operands), ring = as_b_goes_round(map, operands);
  GemmPlan plan;
  const std::uint64_t room = room_of(problem);
  plan.kept_bytes = room;
  const std::uint64_t pes = problem.common_pes;
  plan.pes_of_cube = pes;
  std::optional<GemmMapping> forced;
  if (mapping != "auto") forced = parse_gemm_mapping(mapping);
  for (const GemmMapping::Kind kind : gemm_mapping_kinds()) {
    if (forced && forced->kind != kind) continue;
    if (kind == GemmMapping::Kind::passed && (pes & (pes - 1)) == 0) continue;  // fewer than two PEs
    const std::optional<GemmProblem>& shared = kind == GemmMapping::Kind::ring ? ring : split;
    if (exchanges_sums(kind) && !shared) continue;
    const GemmProblem& p = exchanges_sums(kind) ? *shared : problem;
    std::vector<GemmMapping> list = candidates(p, kind, room);
    if (forced && forced->whole()) list = {*forced};
    if (const auto best = best_of(p, list, room)) plan.considered.push_back(*best);
  }
  if (plan.considered.empty() && split && forced && forced->kind == GemmMapping::Kind::lanes &&
      split->part.rows > kMostWeighted) {
    throw std::invalid_argument(
        fmt::format("gemm '{}': mapping {} makes at most {} rows of a cube's result one by one; these have {}", name,
                    mapping, kMostWeighted, split->part.rows));
  }
  if (plan.considered.empty()) {
    throw std::invalid_argument(fmt::format("gemm '{}': mapping {} does not serve these operands: {}", name, mapping,
                                            forced ? needs(forced->kind) : "no tile of any fits in TCM"));
  }
  std::stable_sort(plan.considered.begin(), plan.considered.end(),
                   [](const auto& x, const auto& y) { return x.estimate.time < y.estimate.time; });
  choose(plan.considered, 2 * problem.a.far > problem.a.all());
  plan.best = plan.considered.front();
  plan.bound = gemm_bound(map, operands, plan.best.mapping);
  if (exchanges_sums(plan.best.mapping.kind)) {
    const GemmProblem& p = plan.best.mapping.kind == GemmMapping::Kind::ring ? *ring : *split;
    plan.span = longest_span(p);
    plan.pes_of_cube = p.common_pes;
  }
  return plan;
}

}  // namespace kernbench::tp
