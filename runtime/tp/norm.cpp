#include "runtime/tp/norm.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "runtime/tp/launch_bound.h"
#include "runtime/tp/load_part.h"
#include "runtime/tp/own_shard.h"
#include "runtime/tp/pass.h"
#include "runtime/tp/tensor_view.h"
#include "tlm/kernel/tl.h"

namespace kernbench::tp {

namespace {

/// Columns [col, col + parts * width) of a row, which a kernel holds as a tile of `parts` x `width`: rows that lie in
/// equal shards, one after the other in memory, come by a single gather instead of a load for each shard.
struct RowPart {
  std::int64_t col = 0, parts = 1, width = 0;
};

std::vector<std::int64_t> cuts_of(const TensorView& view, std::int64_t columns) {
  std::vector<std::int64_t> cuts;
  view.col_cuts(0, columns, cuts);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

/// Width of equal shards, 0 if they are not.
std::int64_t equal_width(const std::vector<std::int64_t>& cuts, std::int64_t columns) {
  const std::int64_t width = cuts.front();
  if (columns % width != 0 || static_cast<std::int64_t>(cuts.size()) != columns / width - 1) return 0;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    if (cuts[i] != width * static_cast<std::int64_t>(i + 1)) return 0;
  }
  return width;
}

/// How whole rows of some tensors of one width are held in TCM, so that arithmetic on them can meet.
///
/// One part where all lie in one piece (then several rows may be one tile); one of equal shards where those that do not
/// agree on them; else a part for each column at which one of them is cut.
///
/// views     what is read and written; the same columns of each meet
/// begin     columns [begin, end) are written, all are read
/// gathers   what is written lies in one piece, so that equal shards may be held side by side
std::vector<RowPart> row_parts(const std::vector<const TensorView*>& views, std::int64_t columns, std::int64_t begin,
                               std::int64_t end, bool gathers) {
  std::vector<std::int64_t> all;
  std::int64_t width = columns;
  bool alike = gathers && begin == 0 && end == columns;
  for (const TensorView* view : views) {
    const std::vector<std::int64_t> cuts = cuts_of(*view, columns);
    if (cuts.empty()) continue;
    const std::int64_t own = equal_width(cuts, columns);
    alike = alike && own != 0 && (width == columns || width == own);
    if (own != 0) width = own;
    all.insert(all.end(), cuts.begin(), cuts.end());
  }
  if (alike) return {{0, columns / width, width}};
  if (begin > 0) all.push_back(begin);
  if (end < columns) all.push_back(end);
  std::vector<RowPart> parts;
  for (const Piece& piece : pieces(0, columns, all, columns)) parts.push_back({piece.begin, 1, piece.length});
  return parts;
}

/// Loads `part` of rows [row, row + rows). REQUIRES: rows is 1 if the part has several; no view is cut between them.
Tile load_rows(Tl& tl, const TensorView& view, const RowPart& part, std::int64_t row, std::int64_t rows, DType dtype) {
  const TensorView::Place first = view.at(row, part.col);
  if (part.parts == 1) return tl.load(first.va, {rows, part.width}, dtype, first.row_stride);
  if (first.row_stride > part.width) return tl.load(first.va, {part.parts, part.width}, dtype);
  // Equal shards: each row of one has the width of the part, and whole shards lie between those of two of them.
  std::vector<std::int64_t> index;
  const std::uint64_t row_bytes = static_cast<std::uint64_t>(part.width) * size_of(dtype);
  for (std::int64_t i = 0; i < part.parts; ++i) {
    const Va va = view.at(row, part.col + i * part.width).va;
    index.push_back(static_cast<std::int64_t>((va - first.va) / row_bytes));
  }
  return tl.gather(first.va, index, part.width, dtype);
}

/// The other way. REQUIRES: the part lies in one piece.
void store_rows(Tl& tl, const TensorView& view, const RowPart& part, std::int64_t row, const Tile& tile) {
  const TensorView::Place first = view.at(row, part.col);
  tl.store(first.va, tile, part.parts == 1 ? first.row_stride : 0);
}

/// Tiles of a part of a kernel's rows that live at once, and most elements of each.   measured on `default`: of 16,384
/// elements 2,048 x 4,096 with a residual take 16.1 us, of 65,536 12.9
constexpr std::uint64_t kNormTiles = 8, kNormElements = 65536;

/// What the kernel gets beside the bases; those of tensors that may be missing are here.
struct NormCall {
  TensorGeometry x, residual, weight, bias, sum, output;
  bool adds = false, biased = false;  ///< there are residual and sum; there is a bias
  NormKind kind = NormKind::rms;
  double epsilon = 0;
  std::int64_t elements = 0;  ///< of a tile, at most, unless a single row has more
};

/// Some rows while they are normalised: a tile for each part, in the type of the arithmetic.
class NormRows {
 public:
  NormRows(Tl& tl, const std::vector<RowPart>& parts, std::int64_t width) : tl_(tl), parts_(parts), width_(width) {}

  std::vector<Tile> values;

  /// The mean of f(values) over each row: rows x 1, or 1 x 1 of a row that is held in several parts.
  template <class Of>
  Tile mean(const Of& of) const {
    Tile sum;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      Tile part = tl_.reduce(ReduceKind::sum, of(values[i]), 1);
      if (parts_[i].parts > 1) part = tl_.reduce(ReduceKind::sum, part, 0);
      sum = sum ? sum + part : part;
    }
    return sum * tl_.fill({1, 1}, sum.dtype(), 1.0 / static_cast<double>(width_));
  }

 private:
  Tl& tl_;
  const std::vector<RowPart>& parts_;
  std::int64_t width_;
};

void norm_kernel(Va x, Va weight, Va bias, Va residual, Va sum, Va output, const NormCall& call, Tl& tl) {
  const TensorView in(x, call.x), other(residual, call.residual), scale(weight, call.weight), shift(bias, call.bias),
      total(sum, call.sum), out(output, call.output);
  const bool adds = call.adds, biased = call.biased;
  const Region own = own_rows(output, call.output, tl);
  const DType dtype = call.output.dtype, wide = compute_type(dtype);
  const std::int64_t width = call.output.shape.cols, end_col = own.col + own.cols;
  std::vector<const TensorView*> views = {&in, &scale, &out};
  std::vector<std::int64_t> out_cuts, row_cuts;
  out.col_cuts(0, width, out_cuts);
  in.row_cuts(own.row, own.row + own.rows, row_cuts);
  if (adds) {
    views.insert(views.end(), {&other, &total});
    other.row_cuts(own.row, own.row + own.rows, row_cuts);
  }
  if (biased) views.push_back(&shift);
  const std::vector<RowPart> parts = row_parts(views, width, own.col, end_col, out_cuts.empty());
  const auto written = [&](const RowPart& part) { return part.col >= own.col && part.col < end_col; };
  std::vector<Tile> scales, shifts;
  for (const RowPart& part : parts) {
    scales.push_back(written(part) ? as_type(tl, load_rows(tl, scale, part, 0, 1, dtype), wide) : Tile());
    shifts.push_back(biased && written(part) ? as_type(tl, load_rows(tl, shift, part, 0, 1, dtype), wide) : Tile());
  }
  // PEs begin at different parts: all would read from one memory at a time.
  const auto first = static_cast<std::size_t>(tl.program_id(1)) * parts.size() / tl.num_programs(1) +
                     static_cast<std::size_t>(tl.program_id(0)) * parts.size() / tl.num_programs(0);
  const std::int64_t most = parts.front().parts > 1 ? 1 : std::max<std::int64_t>(1, call.elements / width);
  for (const Piece& rows : pieces(own.row, own.row + own.rows, std::move(row_cuts), most)) {
    NormRows held(tl, parts, width);
    held.values.resize(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::size_t number = (first + i) % parts.size();
      const RowPart& part = parts[number];
      Tile value = as_type(tl, load_rows(tl, in, part, rows.begin, rows.length, dtype), wide);
      if (adds) {
        value = value + as_type(tl, load_rows(tl, other, part, rows.begin, rows.length, dtype), wide);
        const Tile rounded = as_type(tl, value, dtype);
        if (written(part)) store_rows(tl, total, part, rows.begin, rounded);
        value = as_type(tl, rounded, wide);  // what the next layers read of it
      }
      held.values[number] = value;
    }
    if (call.kind == NormKind::layer) {
      const Tile mean = held.mean([](const Tile& value) { return value; });
      for (Tile& value : held.values) value = value - mean;
    }
    const Tile square = held.mean([](const Tile& value) { return value * value; });
    const Tile factor = tl.math(MathOp::rsqrt, {square + tl.fill({1, 1}, wide, call.epsilon)});
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::size_t number = (first + i) % parts.size();
      if (!written(parts[number])) continue;
      Tile result = held.values[number] * factor * scales[number];
      if (biased) result = result + shifts[number];
      store_rows(tl, out, parts[number], rows.begin, as_type(tl, result, dtype));
    }
  }
}

void check_norm(const NormOptions& options, const char* what, const Tensor& tensor, Shape shape) {
  if (tensor && tensor.shape() == shape && tensor.dtype() == options.dtype) return;
  throw std::invalid_argument(
      fmt::format("Norm '{}': {} is {}, not {} {}", options.name, what,
                  tensor ? tensor.shape().str() + " " + to_string(tensor.dtype()) : std::string("an empty handle"),
                  shape.str(), to_string(options.dtype)));
}
}  // namespace

Norm::Norm(const ParallelState& state, std::int64_t width, NormOptions options)
    : state_(state), width_(width), options_(std::move(options)) {
  Context& context = state_.context();
  if (width < 1)
    throw std::invalid_argument(fmt::format("Norm '{}': width is {}: give 1 or more", options_.name, width));
  weight_ = context.full(1, {1, width}, options_.dtype, options_.weight, options_.name + ".weight");
  if (options_.kind == NormKind::layer) {
    bias_ = context.zeros({1, width}, options_.dtype, options_.weight, options_.name + ".bias");
  }
}

void Norm::load_weight(const WeightPattern& whole) { load_part(weight_, whole, 0, 0); }

void Norm::load_bias(const WeightPattern& whole) {
  if (!bias_) throw std::logic_error(fmt::format("Norm '{}' has no bias", options_.name));
  load_part(bias_, whole, 0, 0);
}

Tensor Norm::place(std::int64_t rows) const {
  const DPPolicy policy = options_.output ? *options_.output : rows_for_gemm(rows);
  return state_.context().empty({rows, width_}, options_.dtype, policy, options_.name + ".output");
}

Tensor Norm::forward(const Tensor& x) const {
  check_norm(options_, "the input", x, {x ? x.shape().rows : 1, width_});
  Tensor output = place(x.shape().rows);
  forward(x, output);
  return output;
}

void Norm::forward(const Tensor& x, const Tensor& output) const { forward(x, Tensor(), Tensor(), output); }

void Norm::forward(const Tensor& x, const Tensor& residual, const Tensor& sum, const Tensor& output) const {
  const Shape shape{x ? x.shape().rows : 1, width_};
  check_norm(options_, "the input", x, shape);
  check_norm(options_, "the output", output, shape);
  if (residual || sum) {
    check_norm(options_, "the residual", residual, shape);
    check_norm(options_, "the sum", sum, shape);
    if (to_string(sum.policy()) != to_string(output.policy())) {
      throw std::invalid_argument(fmt::format("Norm '{}': the sum is placed {}, the output {}: give place({}) for both",
                                              options_.name, to_string(sum.policy()), to_string(output.policy()),
                                              shape.rows));
    }
  }
  Pass pass(state_);
  pass.add(normalise(state_.context(), options_.name,
                     {x, weight_, bias_, residual, sum, output, options_.kind, options_.epsilon}));
  pass.end();
}

Handle normalise(Context& context, const std::string& name, const NormOperands& operands) {
  const auto& [x, weight, bias, residual, sum, output, kind, epsilon] = operands;
  NormCall call{geometry_of(x),    geometry_of(residual), geometry_of(weight),
                geometry_of(bias), geometry_of(sum),      geometry_of(output)};
  call.biased = static_cast<bool>(bias);
  call.adds = static_cast<bool>(sum);
  call.kind = kind;
  call.epsilon = epsilon;
  const MachineMap& map = context.map();
  const std::uint64_t room = map.tcm.bytes / map.rates(owner_of(output.shards().front())).engines.kernel_contexts;
  call.elements =
      static_cast<std::int64_t>(std::min(kNormElements, room / kNormTiles / size_of(compute_type(output.dtype()))));
  LaunchOptions options = on_pes_of(output);
  options.bound = stream_bound(context.map(), "norm", {{x}, {residual}, {sum, 1, 1}, {output, 1, 1}});
  // What is not there is not looked at: another one stands in its place.
  return context.launch_async(name, options, norm_kernel, x, weight, call.biased ? bias : weight,
                              call.adds ? residual : x, call.adds ? sum : output, output, call);
}

}  // namespace kernbench::tp
