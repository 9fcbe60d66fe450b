#pragma once
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tlm/kernel/call.h"
#include "tlm/kernel/direction.h"
#include "tlm/kernel/program.h"
#include "tlm/kernel/tile.h"

namespace kernbench {

enum class MathOp : std::uint8_t {
  // of two operands
  add,
  sub,
  mul,
  div,
  minimum,
  maximum,
  // of one
  neg,
  abs,
  exp,
  log,
  sqrt,
  rsqrt,
  tanh,
  sigmoid,
  gelu,
  silu,
  relu,
  // comparisons, which give bool; select(mask, a, b); changes of type
  less,
  less_equal,
  equal,
  select,
  cast,
  copy,
  // of no operand, or of another shape
  fill,
  arange,
  broadcast,
  transpose
};
enum class ReduceKind : std::uint8_t { sum, max, min };
const char* to_string(MathOp op);
const char* to_string(ReduceKind kind);

/// Fused end of a composite GEMM, applied to each output tile before it is written.
enum class Activation : std::uint8_t { none, relu, gelu, silu, tanh, sigmoid };
struct Epilogue {
  Va bias = 0;                               ///< 1 x n row added to every row; 0: none
  Va residual = 0;                           ///< m x n added after the activation; 0: none
  Activation activation = Activation::none;  ///< before the residual
};

/// c[m x n] = a[m x k] * b[k x n], then the epilogue. All row-major; leading dimensions (elements) default to the
/// width.
struct CompositeGemm {
  /** operands and result */ Va a = 0, b = 0, c = 0;
  /** elements */ std::int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::f16;  ///< of all three
  /** leading dimensions, elements */ std::int64_t lda = 0, ldb = 0, ldc = 0;
  Epilogue epilogue;  ///< fused end
};

/// A misuse of the kernel API: names the kernel, the PE, the op and what was wrong. Surfaces in the worker that waits.
class KernelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a kernel sees of the machine. Calling it records ops that the PE's engines execute in order of program and of
/// operands; nothing here depends on data or time, so a kernel can be recorded ahead of its execution.
///
/// Every call costs PE_CPU one dispatch and returns at issue. wait, fence and a full engine queue are what stalls it.
/// All calls throw KernelError on a shape or dtype mismatch (op, both shapes, kernel), on TCM that does not fit
/// (with what occupies it), on an unmapped direction (with those that exist).
class Tl {
 public:
  virtual ~Tl() = default;

  // Identity.
  virtual std::int64_t program_id(int axis) const = 0;    ///< 0 PE in cube, 1 cube in SIP, 2 SIP
  virtual std::int64_t num_programs(int axis) const = 0;  ///< of the machine: PEs per cube, cubes per SIP, SIPs
  virtual ShardView shard(Va tensor) const = 0;           ///< this PE's own tile of a tensor
  /// Cubes before this PE's that hold some of a tensor: what ShardSpec::cube counts in TensorGeometry::shards(), where
  /// cubes without PEs, or in front of a part of the SIP, have no number.
  virtual unsigned cube_place(Va tensor) const = 0;
  virtual const CollectiveCall& call() const = 0;  ///< throws KernelError outside a collective
  /// Bytes of TCM that a launch has on a PE without overrides, with what rings of queues take of them: one number for
  /// all, so that PEs which exchange tiles cut them alike.
  virtual std::uint64_t tcm() const = 0;
  virtual const Program& program(ProgramId id) const;  ///< throws KernelError if this PE has none of that number

  // Memory. `row_stride` in elements; 0: rows are contiguous.
  virtual Tile load(Va va, Shape shape, DType dtype, std::int64_t row_stride = 0) = 0;  ///< a copy in TCM
  virtual void store(Va va, const Tile& tile, std::int64_t row_stride = 0) = 0;         ///< TCM to memory
  /// Rows `index[i]` of a table with `row_stride` elements a row (default: cols); the pattern is known when recorded.
  virtual Tile gather(Va table, const std::vector<std::int64_t>& index, std::int64_t cols, DType dtype,
                      std::int64_t row_stride = 0) = 0;
  virtual Tile alloc(Shape shape, DType dtype) = 0;  ///< uninitialised TCM, freed with the last copy of the handle
  /// Columns [begin, begin + count) of a 1 x n tile, or rows of an r x c one, without a copy; keeps the parent alive.
  virtual Tile slice(const Tile& tile, std::int64_t begin, std::int64_t count) = 0;
  /// Nobody gets the place of a tile, while TCM has others, until `count` later ones are held in the same list: who got
  /// it would wait for the ops that use the tile (docs/kernels.md, rule 4). No op, no cost.
  virtual void hold(const Tile& tile, std::size_t count, unsigned list = 0) = 0;

  // Compute.
  virtual Tile dot(
      const Tile& a, const Tile& b,
      const Tile& acc = Tile()) = 0;  ///< f16/bf16 accumulate in f32, result in acc's or the operands' dtype
  virtual Tile math(MathOp op, const std::vector<Tile>& operands) = 0;  ///< elementwise
  virtual Tile cast(const Tile& a, DType dtype) = 0;                    ///< to another type
  virtual Tile fill(Shape shape, DType dtype, double value) = 0;        ///< all elements alike
  /** start, start + 1, ... as 1 x n */ virtual Tile arange(std::int64_t n, DType dtype, std::int64_t start = 0) = 0;
  virtual Tile broadcast(const Tile& a, Shape shape) = 0;             ///< to a larger shape
  virtual Tile reduce(ReduceKind kind, const Tile& a, int axis) = 0;  ///< axis 0: over rows, 1 x cols; axis 1: rows x 1
  virtual Tile softmax(const Tile& a) = 0;                            ///< along rows (axis 1)
  virtual void composite_gemm(const CompositeGemm& gemm) = 0;         ///< streamed through TCM

  // Queues, of the launch's process group.
  virtual void send(Direction direction, const Tile& tile) = 0;          ///< to the peer there
  virtual Tile recv(Direction direction, Shape shape, DType dtype) = 0;  ///< the peer's next message
  virtual Tile recv_async(Direction direction, Shape shape,
                          DType dtype) = 0;  ///< does not stall later waits until wait(tile)
  virtual void wait(const Tile& tile) = 0;   ///< PE_CPU stalls until the tile is complete
  virtual void fence() = 0;                  ///< PE_CPU stalls until everything issued before is complete

  // Tracing.
  virtual void mark(const std::string& label) = 0;  ///< names what follows in traces

  // Sugar.
  Tile add(const Tile& a, const Tile& b) { return math(MathOp::add, {a, b}); }                ///< a + b
  Tile minimum(const Tile& a, const Tile& b) { return math(MathOp::minimum, {a, b}); }        ///< elementwise
  Tile maximum(const Tile& a, const Tile& b) { return math(MathOp::maximum, {a, b}); }        ///< elementwise
  Tile exp(const Tile& a) { return math(MathOp::exp, {a}); }                                  ///< e^a
  Tile gelu(const Tile& a) { return math(MathOp::gelu, {a}); }                                ///< by erf
  Tile relu(const Tile& a) { return math(MathOp::relu, {a}); }                                ///< max(a, 0)
  Tile less(const Tile& a, const Tile& b) { return math(MathOp::less, {a, b}); }              ///< a < b, as bool
  Tile less_equal(const Tile& a, const Tile& b) { return math(MathOp::less_equal, {a, b}); }  ///< a <= b, as bool
  Tile equal(const Tile& a, const Tile& b) { return math(MathOp::equal, {a, b}); }            ///< a == b, as bool
  Tile transpose(const Tile& a) { return math(MathOp::transpose, {a}); }                      ///< rows become columns
  Tile select(const Tile& mask, const Tile& a, const Tile& b) { return math(MathOp::select, {mask, a, b}); }
};

}  // namespace kernbench
