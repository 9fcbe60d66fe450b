#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/runtime.h"
#include "runtime/tensor_geometry.h"
#include "tlm/kernel/tl.h"

/// Kernels of operations that are no GEMM. A *linear* tensor is one whose elements lie one after the other in virtual
/// memory, row by row: copies, whole rows on each PE, or a single row. All submit one launch and return at once.
namespace kernbench::pipeline {

inline constexpr int kMostDims = 8;  ///< of a tensor six: a move may split two of them

/// to[to_offset + i to[0] + j to[1] ...] = from[from_offset + i from[0] + j from[1] ...] for all (i, j, ...) below
/// dims. The last dimension is dense in `to`. Both are linear. The lines are dealt evenly to the PEs that hold `to`;
/// where the innermost elements do not follow each other in memory, tiles are transposed on the way, or columns are
/// gathered.
struct MoveCall {
  std::int64_t ranks = 1;  ///< at least 1
  std::array<std::int64_t, kMostDims> dims{}, from{}, to{};
  std::int64_t from_offset = 0, to_offset = 0;
  TensorGeometry target;  ///< set by move()
};
/// Of an array of these dimensions, with these distances between elements there and here.
inline MoveCall move_of(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& from,
                        const std::vector<std::int64_t>& to) {
  MoveCall call;
  call.ranks = static_cast<std::int64_t>(std::max<std::size_t>(1, dims.size()));
  call.dims[0] = 1;  // of a single element
  std::copy(dims.begin(), dims.end(), call.dims.begin());
  std::copy_n(from.begin(), dims.size(), call.from.begin());
  std::copy_n(to.begin(), dims.size(), call.to.begin());
  return call;
}
Handle move(Context& context, const std::string& name, const Tensor& from, const Tensor& to, MoveCall call);

enum class PointOp : std::uint8_t {
  copy,
  cast,
  add,
  sub,
  mul,
  div,
  pow,
  maximum,
  minimum,
  where,
  relu,
  gelu,
  gelu_tanh,
  silu,
  sigmoid,
  tanh,
  rsqrt,
  sqrt,
  neg,
  exp
};

/// One elementwise operation. Floats are computed in f32 (f64 for f64) and rounded once; integers wrap. A
/// cast of a float to an integer drops the fraction.
struct PointCall {
  PointOp op = PointOp::copy;
  bool with_number = false;  ///< `number` stands for the second operand
  double number = 0;
  /// Linear: operand i has element (row, col) of the result at row rows[i] + col cols[i]; all tensors are linear.
  /// Otherwise operands lie as the result does, in any placement, or are one row (or one element) for all of its rows.
  bool linear = false;
  std::int64_t height = 0, width = 0;  ///< of the result, linear
  std::array<std::int64_t, 3> rows{}, cols{};
  std::array<TensorGeometry, 4> tensors{};  ///< of the result, then of the operands; set by point()
  std::array<Va, 3> bases{};                ///< linear: bytes of each operand to pass over; point() adds where it lies
};
Handle point(Context& context, const std::string& name, const Tensor& out, const std::vector<Tensor>& operands,
             PointCall call);

enum class RowOp : std::uint8_t { sum, mean, amax, softmax, rms_norm, layer_norm };

/// One operation on rows of `width` elements: a number for each (sum, mean, amax), or as many elements. All linear;
/// rows are dealt evenly to the PEs that hold the result.
struct RowCall {
  RowOp op = RowOp::sum;
  std::int64_t height = 0, width = 0;
  double epsilon = 0;
  DType dtype = DType::f16;
  Va weight = 0, bias = 0;  ///< of norms, `width` elements; 0: none. Set by rows()
  TensorGeometry target;    ///< set by rows()
};
Handle rows(Context& context, const std::string& name, const Tensor& x, const Tensor& weight, const Tensor& bias,
            const Tensor& out, RowCall call);

/// c[i] = a[i] b[i] for each matrix i of a batch, all linear; matrix i of a begins at element i a_step, a step of 0
/// being the same for all. Rows are dealt evenly to the PEs that hold c. Sums in f32 (f64).
struct ProductCall {
  std::int64_t batch = 1, m = 0, n = 0, k = 0, a_step = 0, b_step = 0;
  DType dtype = DType::f16;
  TensorGeometry target;  ///< set by product()
};
Handle product(Context& context, const std::string& name, const Tensor& a, const Tensor& b, const Tensor& c,
               ProductCall call);

/// softmax(scale q k^T + mask) v of each head of a batch: q [heads, queries, width], k [heads, keys, width],
/// v [heads, keys, v_width], mask [heads, queries, keys], all linear. Scores stay in TCM (online soft max). Rows are
/// dealt evenly to the PEs that hold the result.
struct AttentionCall {
  std::int64_t heads = 1, queries = 0, keys = 0, width = 0, v_width = 0;
  double scale = 1;
  bool causal = false;
  DType dtype = DType::f16;
  Va mask = 0;            ///< 0: none; set by attention()
  TensorGeometry target;  ///< likewise
};
Handle attention(Context& context, const std::string& name, const Tensor& q, const Tensor& k, const Tensor& v,
                 const Tensor& mask, const Tensor& out, AttentionCall call);

/// Rows [first, first + indices) of the result are rows `indices` of the table, both linear. Indices are the host's:
/// they travel as arguments, at most kMostIndices a launch. Waits for nothing; returns the last launch.
inline constexpr std::int64_t kMostIndices = 448;
Handle look_up(Context& context, const std::string& name, const Tensor& table, const std::vector<std::int64_t>& indices,
               const Tensor& out, std::int64_t width);

/// [begin, end) of `count` things for the PE that runs the kernel: an even share by its place among the distinct shards
/// of `target`. REQUIRES: it holds a part of it.
struct Share {
  std::int64_t begin = 0, end = 0;
};
Share share_of(std::int64_t count, Va base, const TensorGeometry& target, const Tl& tl);

}  // namespace kernbench::pipeline
