#pragma once
#include <cstddef>
#include <cstdint>

#include "tlm/kernel/dtype.h"
#include "tlm/kernel/tile.h"
#include "tlm/kernel/tl.h"

/// What the GEMM and math engines compute, on tiles in host memory. Knows no time and no simulation.
///
/// Every function gives the same bits on every machine: orders of summation are part of the contract, nothing is
/// reassociated or contracted to FMA.
/// - f16, bf16, f8: operands widen to f32 exactly; + - * / min max and compare in f32, then rounded to the result
///   (which equals one rounding: f32 has 2p + 2 digits; but for bf16 results below 2^-126).
/// - f32 in f32, f64 in f64. exp, log, sqrt, rsqrt, tanh, sigmoid, gelu (with erf), silu and softmax are evaluated in
/// f64
///   and rounded once.
/// - Integers wrap; division truncates, and by zero gives 0. bool: add and max are OR, mul and min are AND.
/// - min, max and relu give NaN for a NaN.
/// Data are aligned to their element size. All functions throw std::invalid_argument on operands that they are not
/// defined for: engines check when recording.
namespace kernbench::arith {

/// A dense row-major tile.
struct In {
  const void* data = nullptr;
  Shape shape;
  DType dtype = DType::f32;
};
struct Out {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::f32;
};

/// Common shape of two operands: each dimension equal, or 1 on one side; nothing if there is none.
std::optional<Shape> broadcast_shape(Shape a, Shape b);

/// Number of tiles that `op` takes: 0 (fill, arange), 1, 2 or 3 (select).
int operands(MathOp op);
/// Whether `op` can be applied to operands of `dtype` (for select: the values, not the mask).
bool is_defined(MathOp op, DType dtype);
bool is_defined(ReduceKind kind, DType dtype);
bool gemm_is_defined(DType in, DType out);  ///< both floats, or both integers
/// What `op` asks of a lane of the math engine; the engine's configuration says how long each kind takes.
enum class OpClass : std::uint8_t { simple, divide, root, transcendental, activation };
OpClass op_class(MathOp op);
/// Type of the result of `op`: bool for compares, else that of the operands.
DType result_type(MathOp op, DType operands);

/// out = op(in...): every elementwise op, compare, select(bool mask, a, b), cast, copy, broadcast, transpose.
/// Operands agree in dtype and broadcast to `out.shape`; out.dtype is result_type(), or any for cast. `out` may be the
/// memory of an operand of its own shape and dtype, except for transpose.
void math(MathOp op, const In* in, std::size_t count, const Out& out);

/// axis 0: over rows, out is 1 x cols, summed row by row; axis 1: rows x 1. Without elements only where out has none.
/// Sums along axis 1 are kept in 8 lanes (element j in lane j mod 8), which are added as
/// ((0+4)+(2+6))+((1+5)+(3+7)). f16, bf16, f8 and f32 sum in f32.
void reduce(ReduceKind kind, const In& in, int axis, const Out& out);

/// exp(x - max of its row) / sum of its row, evaluated in f64 in order of columns, rounded once.
void softmax(const In& in, const Out& out);

/// c = acc + a * b; a is m x k, b is k x n. `acc`, of c's shape and dtype, may be null (zero) and may be c itself.
/// Each element starts from acc and adds a[i][0]*b[0][j], a[i][1]*b[1][j], ... in f32 (products of f16, bf16 and f8 are
/// exact there), f64 if an operand or c is f64; integers in 32 bits, or 64 if i64 is involved, wrapping. Rounded once.
/// So a sum over k cut into tiles with an f32 accumulator has the bits of the whole sum.
void gemm(const In& a, const In& b, const void* acc, const Out& c);

void fill(const Out& out, double value);
/// start, start + 1, ... in row-major order; integers wrap.
void arange(const Out& out, std::int64_t start);

}  // namespace kernbench::arith
