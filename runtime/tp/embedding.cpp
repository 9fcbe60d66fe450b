#include "runtime/tp/embedding.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "runtime/tp/launch_bound.h"
#include "runtime/tp/load_part.h"
#include "runtime/tp/own_shard.h"
#include "runtime/tp/pass.h"
#include "runtime/tp/regions.h"
#include "runtime/tp/tcm_room.h"
#include "runtime/tp/tensor_view.h"

namespace kernbench::tp {

namespace {
/// Stands for a token of another rank.
constexpr std::int32_t kOthers = -1;

/// Largest tile, elements. assumed: two of them in f64 are 1 MiB of a kernel's TCM.
constexpr std::int64_t kLookUpElements = 65536;

/// What the kernel gets beside the bases. `Most`: what the block has room for, so that few tokens are few bytes.
template <int Most>
struct LookUpCall {
  TensorGeometry table, output;
  std::int64_t first = 0;       ///< row of the output of the first token
  std::int64_t count = 0;       ///< tokens
  std::int32_t ids[Most] = {};  ///< rows of the table; kOthers: of another rank's
};

template <int Most>
void look_up_kernel(Va table, Va output, const LookUpCall<Most>& call, Tl& tl) {
  const TensorView from(table, call.table), into(output, call.output);
  const Region own = own_shard(output, call.output, tl).region;
  const std::int64_t begin = std::max(own.row, call.first), end = std::min(own.row + own.rows, call.first + call.count);
  if (begin >= end) return;
  std::vector<std::int64_t> row_cuts, col_cuts;
  from.row_cuts(0, call.table.shape.rows, row_cuts);
  from.col_cuts(own.col, own.col + own.cols, col_cuts);
  const bool whole = row_cuts.empty();
  const std::int64_t elements = fitting_elements(tl, kLookUpElements, 3 * size_of(call.table.dtype));
  for (const Piece& cols : pieces(own.col, own.col + own.cols, col_cuts, elements)) {
    const std::int64_t most = std::max<std::int64_t>(1, elements / cols.length);
    Tile zeros;
    // Runs of rows that are this rank's, or that are not. A table in one piece gives many rows at once.
    for (std::int64_t row = begin, length = 0; row < end; row += length) {
      const std::int32_t* ids = call.ids + (row - call.first);
      const bool others = ids[0] == kOthers;
      const std::int64_t longest = std::min(end - row, others || whole ? most : 1);
      for (length = 1; length < longest && (ids[length] == kOthers) == others;) ++length;
      const TensorView::Place out = into.at(row, cols.begin);
      if (others) {
        if (!zeros) zeros = tl.fill({std::min(most, end - begin), cols.length}, call.table.dtype, 0);
        tl.store(out.va, length == zeros.shape().rows ? zeros : tl.slice(zeros, 0, length), out.row_stride);
        continue;
      }
      const TensorView::Place in = from.at(whole ? 0 : ids[0], cols.begin);
      tl.store(out.va,
               whole ? tl.gather(in.va, std::vector<std::int64_t>(ids, ids + length), cols.length, call.table.dtype,
                                 in.row_stride)
                     : tl.load(in.va, {1, cols.length}, call.table.dtype),
               out.row_stride);
    }
  }
}

template <int Most>
Handle look_up(Context& context, const std::string& name, const Tensor& table, const Tensor& output, std::int64_t first,
               const std::int32_t* ids, std::int64_t count) {
  LookUpCall<Most> call;
  call.table = geometry_of(table);
  call.output = geometry_of(output);
  call.first = first;
  call.count = count;
  std::copy(ids, ids + count, call.ids);
  LaunchOptions options = on_pes_of(output);
  const double share = static_cast<double>(count) / static_cast<double>(output.shape().rows);
  const auto others = std::count(ids, ids + count, kOthers);
  options.work = {first, count, (8 * others + count / 2) / count};
  const std::set<std::int32_t> rows(ids, ids + count);
  const auto read = static_cast<double>(rows.size() - rows.count(kOthers));  // each at least once
  options.bound =
      stream_bound(context.map(), "embedding",
                   {{output, share, share}, {table, read / static_cast<double>(table.shape().rows)}}, read > 0);
  return context.launch_async(name, options, look_up_kernel<Most>, table, output, call);
}
}  // namespace

VocabParallelEmbedding::VocabParallelEmbedding(const ParallelState& state, std::int64_t vocabulary, std::int64_t width,
                                               EmbeddingOptions options)
    : state_(state), vocabulary_(vocabulary), width_(width), options_(std::move(options)) {
  const int ranks = state_.tensor_model_parallel_world_size();
  if (vocabulary < 1 || vocabulary % ranks != 0) {
    throw std::invalid_argument(fmt::format(
        "VocabParallelEmbedding '{}': vocabulary is {}: give a positive multiple of the tensor-parallel world size {}",
        options_.name, vocabulary, ranks));
  }
  if (width < 1) {
    throw std::invalid_argument(
        fmt::format("VocabParallelEmbedding '{}': width is {}: give 1 or more", options_.name, width));
  }
  own_ = vocabulary / ranks;
  weight_ = state_.context().zeros({own_, width}, options_.dtype, options_.weight, options_.name + ".weight");
}

void VocabParallelEmbedding::load_weight(const WeightPattern& whole) {
  load_part(weight_, whole, state_.tensor_model_parallel_rank() * own_, 0);
}

ForwardTensors VocabParallelEmbedding::place(std::int64_t rows) const {
  const auto make = [&](std::int64_t count, const char* suffix) {
    return state_.context().empty({count, width_}, options_.dtype, options_.placement.of_results(count, dense_rows()),
                                  options_.name + suffix);
  };
  ForwardTensors tensors;
  if (!options_.sequence_parallel) {
    tensors.output = make(rows, ".output");
    return tensors;
  }
  const int ranks = state_.tensor_model_parallel_world_size();
  if (rows < 1 || rows % ranks != 0) {
    throw std::invalid_argument(fmt::format(
        "VocabParallelEmbedding '{}': tokens is {}: give a positive multiple of the tensor-parallel world size {}",
        options_.name, rows, ranks));
  }
  tensors.partial = make(rows, ".partial");
  tensors.output = make(rows / ranks, ".output");
  return tensors;
}

void VocabParallelEmbedding::prepare(const ForwardTensors& tensors) const {
  if (options_.sequence_parallel) {
    prepare_reduce_scatter_to_sequence_region(state_, tensors.partial, tensors.output);
    return;
  }
  state_.context().prepare_all_reduce(tensors.output, tensors.output, ReduceOp::sum,
                                      state_.tensor_model_parallel_group());
}

Tensor VocabParallelEmbedding::forward(const std::vector<std::int64_t>& tokens) const {
  return forward(tokens, place(static_cast<std::int64_t>(tokens.size())));
}

Tensor VocabParallelEmbedding::forward(const std::vector<std::int64_t>& tokens, const ForwardTensors& tensors) const {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const Tensor& output = options_.sequence_parallel ? tensors.partial : tensors.output;
  if (!output || output.shape() != Shape{count, width_} || output.dtype() != options_.dtype) {
    throw std::invalid_argument(
        fmt::format("VocabParallelEmbedding '{}': the output is not {}x{} {}: give what place({}) returns",
                    options_.name, count, width_, to_string(options_.dtype), count));
  }
  const std::int64_t first = state_.tensor_model_parallel_rank() * own_;
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocabulary_) {
      throw std::invalid_argument(fmt::format("VocabParallelEmbedding '{}': token {} is {}: give 0 to {}",
                                              options_.name, i, tokens[i], vocabulary_ - 1));
    }
    const std::int64_t row = tokens[i] - first;
    ids.push_back(static_cast<std::int32_t>(row >= 0 && row < own_ ? row : kOthers));
  }
  Pass pass(state_);
  for (std::int64_t at = 0; at < count; at += kMostTokens) {
    const std::int64_t block = std::min(kMostTokens, count - at);
    const auto submit = block <= 8 ? look_up<8> : block <= 64 ? look_up<64> : look_up<kMostTokens>;
    pass.add(submit(state_.context(), options_.name, weight_, output, at, ids.data() + at, block));
  }
  if (options_.sequence_parallel) {
    reduce_scatter_to_sequence_region(state_, output, tensors.output);
  } else {
    reduce_from_region(state_, output);
  }
  return tensors.output;
}

}  // namespace kernbench::tp
