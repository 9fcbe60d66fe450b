#include "runtime/tp/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "runtime/tp/own_shard.h"
#include "runtime/tp/tcm_room.h"
#include "runtime/tp/tensor_view.h"

namespace kernbench::tp {

namespace {
/// Largest tile, elements. assumed: six of them in f32 are 1.5 MiB of a kernel's TCM.
constexpr std::int64_t kLogitElements = 65536;
std::int64_t logit_elements(const Tl& tl) { return fitting_elements(tl, kLogitElements, 8 * size_of(DType::f32)); }
constexpr double kLowest = std::numeric_limits<float>::lowest();  // of columns that are not there
constexpr std::int64_t kNoIndex = std::numeric_limits<std::int32_t>::max();

/// What the kernels get beside the bases: how logits and numbers lie, and which columns are the rank's.
struct VocabCall {
  TensorGeometry logits, numbers, other;  ///< other: probabilities or the result
  std::int64_t first = 0;                 ///< number of the rank's first column
  std::int64_t valid = 0;                 ///< of its columns that are no padding
};

/// A PE's own columns, and blocks of rows that fit.
struct OwnColumns {
  OwnColumns(Va logits, const VocabCall& call, const Tl& tl) : shard(own_shard(logits, call.logits, tl)) {
    cols = std::clamp<std::int64_t>(call.valid - shard.region.col, 0, shard.region.cols);
    const std::int64_t widest = std::max({std::int64_t{1}, shard.region.cols, call.numbers.shape.rows});
    const std::int64_t most = std::max<std::int64_t>(1, logit_elements(tl) / widest);
    blocks = pieces(0, call.logits.shape.rows, {}, most);
  }
  OwnShard shard;
  std::int64_t cols = 0;  ///< that count, from the first on
  std::vector<Piece> blocks;
};

Tile load_logits(Tl& tl, const TensorView& view, const OwnColumns& own, const Piece& rows, DType dtype) {
  const TensorView::Place at = view.at(rows.begin, own.shard.region.col);
  return as_type(tl, tl.load(at.va, {rows.length, own.cols}, dtype, at.row_stride), DType::f32);
}

/// Row `unit`, columns `rows`, of numbers that stand as a row for each PE.
void store_numbers(Tl& tl, const TensorView& view, const OwnColumns& own, const Piece& rows, const Tile& column) {
  const Tile row = column.shape().rows == 1 ? column : tl.transpose(column);
  tl.store(view.at(own.shard.number, rows.begin).va, row);
}

Tile load_own(Tl& tl, const TensorView& view, const OwnColumns& own, const Piece& rows, DType dtype) {
  return tl.load(view.at(own.shard.number, rows.begin).va, {1, rows.length}, dtype);
}

/// The numbers of all PEs for some rows, reduced to 1 x rows.
Tile reduce_numbers(Tl& tl, ReduceKind kind, const TensorView& view, const TensorGeometry& geometry, const Piece& rows,
                    DType dtype) {
  const TensorView::Place at = view.at(0, rows.begin);
  return tl.reduce(kind, tl.load(at.va, {geometry.shape.rows, rows.length}, dtype, at.row_stride), 0);
}

void sums_kernel(Va logits, Va maxima, Va sums, const VocabCall& call, Tl& tl) {
  const TensorView x(logits, call.logits), max_view(maxima, call.numbers), sum_view(sums, call.numbers);
  const OwnColumns own(logits, call, tl);
  for (const Piece& rows : own.blocks) {
    if (own.cols == 0) {
      store_numbers(tl, max_view, own, rows, tl.fill({1, rows.length}, DType::f32, kLowest));
      store_numbers(tl, sum_view, own, rows, tl.fill({1, rows.length}, DType::f32, 0));
      continue;
    }
    const Tile values = load_logits(tl, x, own, rows, call.logits.dtype), most = tl.reduce(ReduceKind::max, values, 1);
    store_numbers(tl, max_view, own, rows, most);
    store_numbers(tl, sum_view, own, rows, tl.reduce(ReduceKind::sum, tl.exp(values - most), 1));
  }
}

/// A PE's sum in terms of the largest value of all. Not in place: PEs that hold the same columns read the same sum.
void rescale_kernel(Va logits, Va maxima, Va all_maxima, Va sums, Va scaled, const VocabCall& call, Tl& tl) {
  const TensorView max_view(maxima, call.numbers), all_view(all_maxima, call.numbers), sum_view(sums, call.numbers),
      scaled_view(scaled, call.numbers);
  const OwnColumns own(logits, call, tl);
  for (const Piece& rows : own.blocks) {
    const Tile most = reduce_numbers(tl, ReduceKind::max, all_view, call.numbers, rows, DType::f32);
    const Tile factor = tl.exp(load_own(tl, max_view, own, rows, DType::f32) - most);
    store_numbers(tl, scaled_view, own, rows, load_own(tl, sum_view, own, rows, DType::f32) * factor);
  }
}

void divide_kernel(Va logits, Va all_maxima, Va sums, Va probabilities, const VocabCall& call, Tl& tl) {
  const TensorView x(logits, call.logits), all_view(all_maxima, call.numbers), sum_view(sums, call.numbers),
      out(probabilities, call.other);
  const OwnColumns own(logits, call, tl);
  const Region part = own.shard.region;
  for (const Piece& rows : own.blocks) {
    if (own.cols > 0) {
      const Tile most = tl.transpose(reduce_numbers(tl, ReduceKind::max, all_view, call.numbers, rows, DType::f32));
      const Tile sum = tl.transpose(reduce_numbers(tl, ReduceKind::sum, sum_view, call.numbers, rows, DType::f32));
      const Tile result = tl.exp(load_logits(tl, x, own, rows, call.logits.dtype) - most) / sum;
      const TensorView::Place at = out.at(rows.begin, part.col);
      tl.store(at.va, as_type(tl, result, call.other.dtype), at.row_stride);
    }
    if (own.cols == part.cols) continue;
    const TensorView::Place at = out.at(rows.begin, part.col + own.cols);
    tl.store(at.va, tl.fill({rows.length, part.cols - own.cols}, call.other.dtype, 0), at.row_stride);
  }
}

/// The largest value of a PE's columns, and the first column that has it.
void largest_kernel(Va logits, Va maxima, Va index, const VocabCall& call, Tl& tl) {
  const TensorView x(logits, call.logits), max_view(maxima, call.numbers), index_view(index, call.numbers);
  const OwnColumns own(logits, call, tl);
  for (const Piece& rows : own.blocks) {
    if (own.cols == 0) {
      store_numbers(tl, max_view, own, rows, tl.fill({1, rows.length}, DType::f32, kLowest));
      store_numbers(tl, index_view, own, rows, tl.fill({1, rows.length}, DType::i32, static_cast<double>(kNoIndex)));
      continue;
    }
    const Tile values = load_logits(tl, x, own, rows, call.logits.dtype), most = tl.reduce(ReduceKind::max, values, 1);
    const Tile numbers = tl.arange(own.cols, DType::i32, call.first + own.shard.region.col);
    const Tile none = tl.fill({1, 1}, DType::i32, static_cast<double>(kNoIndex));
    const Tile found = tl.select(tl.math(MathOp::equal, {values, most}), numbers, none);
    store_numbers(tl, max_view, own, rows, most);
    store_numbers(tl, index_view, own, rows, tl.reduce(ReduceKind::min, found, 1));
  }
}

/// A PE whose largest value is not the largest of all has no candidate.
void candidate_kernel(Va logits, Va maxima, Va all_maxima, Va index, Va candidates, const VocabCall& call, Tl& tl) {
  const TensorView max_view(maxima, call.numbers), all_view(all_maxima, call.numbers), index_view(index, call.numbers),
      candidate_view(candidates, call.numbers);
  const OwnColumns own(logits, call, tl);
  for (const Piece& rows : own.blocks) {
    const Tile most = reduce_numbers(tl, ReduceKind::max, all_view, call.numbers, rows, DType::f32);
    const Tile has = tl.math(MathOp::equal, {load_own(tl, max_view, own, rows, DType::f32), most});
    const Tile none = tl.fill({1, 1}, DType::i32, static_cast<double>(kNoIndex));
    store_numbers(tl, candidate_view, own, rows, tl.select(has, load_own(tl, index_view, own, rows, DType::i32), none));
  }
}

void first_kernel(Va index, Va result, const VocabCall& call, Tl& tl) {
  const TensorView index_view(index, call.numbers), out(result, call.other);
  const Region own = own_shard(result, call.other, tl).region;
  const std::int64_t most = std::max<std::int64_t>(1, logit_elements(tl) / call.numbers.shape.rows);
  for (const Piece& rows : pieces(own.col, own.col + own.cols, {}, most)) {
    const Tile least = reduce_numbers(tl, ReduceKind::min, index_view, call.numbers, rows, DType::i32);
    tl.store(out.at(0, rows.begin).va, least);
  }
}
}  // namespace

VocabParallelLogits::VocabParallelLogits(const ParallelState& state, std::string name, const Tensor& logits,
                                         std::int64_t vocabulary)
    : state_(state), name_(std::move(name)), vocabulary_(vocabulary) {
  Context& context = state_.context();
  if (!logits)
    throw std::invalid_argument(fmt::format("VocabParallelLogits '{}': the logits are an empty handle", name_));
  shape_ = logits.shape();
  policy_ = to_string(logits.policy());
  const std::int64_t columns = shape_.cols * state_.tensor_model_parallel_world_size();
  if (vocabulary < 1 || vocabulary > columns) {
    throw std::invalid_argument(
        fmt::format("VocabParallelLogits '{}': vocabulary is {}: give 1 to {}, the columns of all ranks", name_,
                    vocabulary, columns));
  }
  for (const ShardSpec& shard : logits.shards()) {
    if (shard.region.empty() || shard.region.rows == shape_.rows) continue;
    throw std::invalid_argument(
        fmt::format("VocabParallelLogits '{}': the logits are placed {}, which splits rows: place them by columns",
                    name_, policy_));
  }
  const TensorGeometry geometry = geometry_of(logits);
  const Shape numbers{distinct_shards(geometry), shape_.rows};
  const auto make = [&](DType dtype, const char* suffix) {
    return context.empty(numbers, dtype, dense_rows(), name_ + suffix);
  };
  maxima_ = make(DType::f32, ".maxima");
  all_maxima_ = make(DType::f32, ".all_maxima");
  sums_ = make(DType::f32, ".sums");
  scaled_ = make(DType::f32, ".scaled");
  index_ = make(DType::i32, ".index");
  candidates_ = make(DType::i32, ".candidates");
  result_ = context.empty({1, shape_.rows}, DType::i32, LinearPlacement::split(), name_ + ".arg_max");
}

void VocabParallelLogits::prepare() const {
  const Group& group = state_.tensor_model_parallel_group();
  Context& context = state_.context();
  context.prepare_all_reduce(maxima_, all_maxima_, ReduceOp::max, group);
  context.prepare_all_reduce(scaled_, scaled_, ReduceOp::sum, group);
  context.prepare_all_reduce(candidates_, candidates_, ReduceOp::min, group);
}

void VocabParallelLogits::check(const char* what, const Tensor& logits) const {
  if (logits && logits.shape() == shape_ && to_string(logits.policy()) == policy_ && is_float(logits.dtype())) return;
  throw std::invalid_argument(
      fmt::format("VocabParallelLogits '{}': {} are {}, not {} placed {}", name_, what,
                  logits ? logits.shape().str() + " placed " + to_string(logits.policy()) : "an empty handle",
                  shape_.str(), policy_));
}

namespace {
VocabCall vocab_call(const ParallelState& state, const Tensor& logits, const Tensor& numbers, const Tensor& other,
                     std::int64_t vocabulary) {
  VocabCall call{geometry_of(logits), geometry_of(numbers), geometry_of(other)};
  call.first = state.tensor_model_parallel_rank() * logits.shape().cols;
  call.valid = std::clamp<std::int64_t>(vocabulary - call.first, 0, logits.shape().cols);
  return call;
}
}  // namespace

void VocabParallelLogits::soft_max(const Tensor& logits, const Tensor& probabilities) const {
  check("the logits", logits);
  check("the probabilities", probabilities);
  Context& context = state_.context();
  const Group& group = state_.tensor_model_parallel_group();
  const VocabCall call = vocab_call(state_, logits, maxima_, probabilities, vocabulary_);
  const LaunchOptions options = on_pes_of(logits);
  context.launch(name_ + ".sums", options, sums_kernel, logits, maxima_, sums_, call);
  context.all_reduce(maxima_, all_maxima_, ReduceOp::max, group);
  context.launch(name_ + ".rescale", options, rescale_kernel, logits, maxima_, all_maxima_, sums_, scaled_, call);
  context.all_reduce(scaled_, ReduceOp::sum, group);
  context.launch(name_ + ".divide", options, divide_kernel, logits, all_maxima_, scaled_, probabilities, call);
}

Tensor VocabParallelLogits::arg_max(const Tensor& logits) const {
  check("the logits", logits);
  Context& context = state_.context();
  const Group& group = state_.tensor_model_parallel_group();
  const VocabCall call = vocab_call(state_, logits, maxima_, result_, vocabulary_);
  const LaunchOptions options = on_pes_of(logits);
  context.launch(name_ + ".largest", options, largest_kernel, logits, maxima_, index_, call);
  context.all_reduce(maxima_, all_maxima_, ReduceOp::max, group);
  context.launch(name_ + ".candidates", options, candidate_kernel, logits, maxima_, all_maxima_, index_, candidates_,
                 call);
  context.all_reduce(candidates_, ReduceOp::min, group);
  context.launch(name_ + ".first", on_pes_of(result_), first_kernel, candidates_, result_, call);
  return result_;
}

}  // namespace kernbench::tp
