#include "models/pe/cpu/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <systemc>

#include "models/arith/arith.h"
#include "models/pe/compute/composite_overlap.h"
#include "models/pe/compute/composite_plan.h"
#include "models/pe/ipcq/directions.h"
#include "tlm/kernel/activation.h"
#include "tlm/machine/names.h"

namespace kernbench::pe {

namespace {
constexpr std::uint64_t kNoOp = 0;                       ///< Tile::State::id of what no op gives
constexpr unsigned kUnwrittenReports = 10;               ///< of a PE, as of a memory
constexpr std::int64_t kBeyond = std::int64_t{1} << 48;  ///< elements from any place; addresses end far before

bool lies_beyond(std::int64_t stride, std::int64_t rows) { return stride > kBeyond / std::max<std::int64_t>(rows, 1); }

std::string text(Shape shape, DType dtype) { return fmt::format("{} {}", shape.str(), to_string(dtype)); }
std::string text(const Tile& tile) { return text(tile.shape(), tile.dtype()); }

/// A tile that owns its range of TCM, or keeps the tile alive that it is a slice of.
struct OwnedTile : Tile::State {
  std::shared_ptr<TcmArena> arena;
  std::uint64_t reserved = 0;
  Tile parent;
  OwnedTile() = default;
  OwnedTile(const OwnedTile&) = delete;
  OwnedTile& operator=(const OwnedTile&) = delete;
  ~OwnedTile() {
    if (arena) arena->release(tcm, reserved);
  }
};

TileRef ref(const Tile& tile) {
  const Tile::State& state = tile.state();
  return {static_cast<std::uint32_t>(state.tcm), static_cast<std::uint32_t>(state.shape.rows),
          static_cast<std::uint32_t>(state.shape.cols), state.dtype};
}
}  // namespace

Recorder::Recorder(const KernelEnvironment& environment)
    : env_(environment),
      next_op_id_(env_.first_op_id),
      fiber_(env_.stacks, {env_.launch.kernel, env_.self, env_.activity}) {}

// ---- Running the kernel ----

void Recorder::start() {
  fiber_.start([this] {
    std::string reason;
    try {
      env_.launch.entry(env_.launch.arguments.data(), *this);
      return;
    } catch (const std::exception& error) {
      reason = error.what();
    }
    const std::string whose = fmt::format("kernel '{}' on {}: ", env_.launch.kernel, names::pe(env_.self));
    if (reason.compare(0, whose.size(), whose) != 0) reason = whose + reason;
    end_with_fault(reason);
  });
}

void Recorder::end_with_fault(const std::string& reason) {
  OpPtr fault = make(OpKind::fault, Unit::cpu);
  fault->detail = std::make_unique<OpDetail>();
  fault->detail->text = reason;
  ops_.push_back(std::move(fault));
}

const Op* Recorder::front() {
  while (ops_.empty() && fiber_.active()) fiber_.resume();
  if (ops_.empty() && fiber_.take_error() != nullptr) {
    end_with_fault(fmt::format("kernel '{}' on {}: threw something that is not a std::exception", env_.launch.kernel,
                               names::pe(env_.self)));
  }
  return ops_.empty() ? nullptr : ops_.front().get();
}

std::unique_ptr<Op> Recorder::pop() {
  OpPtr op = std::move(ops_.front());
  ops_.pop_front();
  return op;
}

void Recorder::cancel() {
  fiber_.cancel();
  ops_.clear();
}

void Recorder::record(OpPtr op) {
  fiber_.check();
  if (unwritten_) report_unwritten(*op);
  ops_.push_back(std::move(op));
  if (ops_.size() >= env_.window) fiber_.suspend();
}

Recorder::OpPtr Recorder::make(OpKind kind, Unit unit) {
  auto op = std::make_unique<Op>();
  op->id = next_op_id_++;
  op->context = env_.context;
  op->kind = kind;
  op->unit = unit;
  unwritten_ = false;
  return op;
}

// ---- Checks ----

void Recorder::fail(const std::string& op, const std::string& reason) const {
  throw KernelError(fmt::format("kernel '{}' on {}: {}: {}", env_.launch.kernel, names::pe(env_.self), op, reason));
}

void Recorder::check_enumerator(const char* op, const char* type, int value, int last) const {
  if (value > last) fail(op, fmt::format("{}({}) is none: they are numbered from 0 to {}", type, value, last));
}

void Recorder::check_shape(const char* op, Shape shape, DType dtype) const {
  check_enumerator(op, "DType", static_cast<int>(dtype), kDTypes - 1);
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (shape.rows < 0 || shape.cols < 0 || shape.rows > kMost || shape.cols > kMost) {
    fail(fmt::format("{}({})", op, text(shape, dtype)), fmt::format("give rows and columns from 0 to {}", kMost));
  }
}

void Recorder::check_tile(const char* op, const Tile& tile) const {
  if (!tile) fail(op, "a tile is empty: it was never made");
  if (tile.state().tl == this) {  // or a recorder made it that stood in the same place before: no other outlives tiles
    const auto* root = static_cast<const OwnedTile*>(&tile.state());
    while (root->parent) root = static_cast<const OwnedTile*>(&root->parent.state());
    if (root->arena == env_.arena) return;
  }
  fail(fmt::format("{}({})", op, text(tile)), "the tile belongs to another kernel");
}

std::uint64_t Recorder::stride_in_bytes(const char* op, std::int64_t row_stride, Shape shape, DType dtype) const {
  if (row_stride == 0) row_stride = shape.cols;
  if (row_stride < shape.cols) {
    fail(fmt::format("{}({})", op, text(shape, dtype)),
         fmt::format("row_stride is {}; give 0 or at least the {} columns", row_stride, shape.cols));
  }
  if (lies_beyond(row_stride, shape.rows)) {
    fail(fmt::format("{}({})", op, text(shape, dtype)),
         fmt::format("row_stride is {}: the last row lies beyond all addresses", row_stride));
  }
  return static_cast<std::uint64_t>(row_stride) * size_of(dtype);
}

// ---- Tiles ----

Tile Recorder::allocate(const char* label, Shape shape, DType dtype, std::uint64_t op_id) {
  check_shape(label, shape, dtype);
  auto tile = std::make_shared<OwnedTile>();
  tile->tl = this;
  tile->id = op_id;
  tile->shape = shape;
  tile->dtype = dtype;
  const auto bytes = static_cast<std::uint64_t>(shape.count()) * size_of(dtype);
  auto offset = env_.arena->allocate(bytes, {label, shape, dtype});
  if (!offset && workspace_) {
    workspace_ = Tile();
    offset = env_.arena->allocate(bytes, {label, shape, dtype});
  }
  while (!offset && (give_up_one(held_) || give_up_one(sent_)))
    offset = env_.arena->allocate(bytes, {label, shape, dtype});
  if (!offset) {
    fail(fmt::format("{}({})", label, text(shape, dtype)),
         fmt::format(
             "TCM cannot hold {} B: {} B of this launch's {} B are free, the largest block {} B; occupied by {}", bytes,
             env_.arena->free_bytes(), env_.arena->capacity(), env_.arena->largest_free(), env_.arena->occupants(8)));
  }
  tile->tcm = *offset;
  tile->reserved = bytes;
  tile->arena = env_.arena;
  return Tile(std::move(tile));
}

void Recorder::add_input(Op& op, const Tile& tile) {
  op.in[op.inputs++] = ref(tile);
  // Ops write tiles of their own: into one of alloc() only others could, from outside.
  if (env_.unwritten_reports != nullptr && tile.state().id == kNoOp && tile.shape().count() != 0) unwritten_ = true;
}

void Recorder::report_unwritten(const Op& op) {
  unwritten_ = false;
  if ((*env_.unwritten_reports)++ >= kUnwrittenReports) return;
  SC_REPORT_WARNING("kernbench/unwritten",
                    fmt::format("kernel '{}' on {}: {} reads a tile of alloc, which no op has written",
                                env_.launch.kernel, names::pe(env_.self), text_of(op))
                        .c_str());
}

Tile Recorder::result(const char* label, OpPtr op, Shape shape, DType dtype) {
  Tile tile = allocate(label, shape, dtype, op->id);
  op->out = ref(tile);
  record(std::move(op));
  return tile;
}

Tile Recorder::alloc(Shape shape, DType dtype) { return allocate("alloc", shape, dtype, kNoOp); }

Tile Recorder::slice(const Tile& tile, std::int64_t begin, std::int64_t count) {
  check_tile("slice", tile);
  const bool columns = tile.shape().rows == 1;
  const std::int64_t length = columns ? tile.shape().cols : tile.shape().rows;
  if (begin < 0 || count < 0 || begin > length || count > length - begin) {
    fail(fmt::format("slice({})", text(tile)),
         fmt::format("[{}, {}) is not within its {} {}", begin, begin + count, length, columns ? "columns" : "rows"));
  }
  auto part = std::make_shared<OwnedTile>();
  static_cast<Tile::State&>(*part) = tile.state();
  part->shape = columns ? Shape{1, count} : Shape{count, tile.shape().cols};
  const std::int64_t row = columns ? 1 : tile.shape().cols;
  part->tcm += static_cast<std::uint64_t>(begin * row) * size_of(tile.dtype());
  part->parent = tile;
  return Tile(std::move(part));
}

void Recorder::hold(const Tile& tile, std::size_t count, unsigned list) {
  check_tile("hold", tile);
  keep(held_, list, tile, count);
}

// ---- Memory ----

Tile Recorder::load(Va va, Shape shape, DType dtype, std::int64_t row_stride) {
  check_shape("load", shape, dtype);
  OpPtr op = make(OpKind::load, Unit::dma_r);
  op->va = va;
  op->stride_bytes = stride_in_bytes("load", row_stride, shape, dtype);
  return result("load", std::move(op), shape, dtype);
}

void Recorder::store(Va va, const Tile& tile, std::int64_t row_stride) {
  check_tile("store", tile);
  OpPtr op = make(OpKind::store, Unit::dma_w);
  op->va = va;
  op->stride_bytes = stride_in_bytes("store", row_stride, tile.shape(), tile.dtype());
  add_input(*op, tile);
  record(std::move(op));
}

Tile Recorder::gather(Va table, const std::vector<std::int64_t>& index, std::int64_t cols, DType dtype,
                      std::int64_t row_stride) {
  const Shape shape{static_cast<std::int64_t>(index.size()), cols};
  check_shape("gather", shape, dtype);
  if (!index.empty() && *std::min_element(index.begin(), index.end()) < 0) {
    fail(fmt::format("gather({})", text(shape, dtype)),
         fmt::format("index {} is negative", *std::min_element(index.begin(), index.end())));
  }
  OpPtr op = make(OpKind::gather, Unit::dma_r);
  op->va = table;
  op->stride_bytes = stride_in_bytes("gather", row_stride, shape, dtype);
  const auto last = std::max_element(index.begin(), index.end());
  if (last != index.end() && *last > kBeyond / std::max({row_stride, cols, std::int64_t{1}})) {
    fail(fmt::format("gather({})", text(shape, dtype)), fmt::format("index {} lies beyond all addresses", *last));
  }
  op->detail = std::make_unique<OpDetail>();
  op->detail->index = index;
  return result("gather", std::move(op), shape, dtype);
}

// ---- Compute ----

Tile Recorder::dot(const Tile& a, const Tile& b, const Tile& acc) {
  check_tile("dot", a);
  check_tile("dot", b);
  const std::string call = fmt::format("dot({}, {})", text(a), text(b));
  if (a.shape().cols != b.shape().rows) {
    fail(call, fmt::format("a has {} columns but b has {} rows", a.shape().cols, b.shape().rows));
  }
  if (a.dtype() != b.dtype()) fail(call, "the dtypes differ; cast one of them");
  const Shape shape{a.shape().rows, b.shape().cols};
  DType dtype = a.dtype();
  OpPtr op = make(OpKind::dot, Unit::gemm);
  add_input(*op, a);
  add_input(*op, b);
  if (acc) {
    check_tile("dot", acc);
    if (acc.shape() != shape) fail(call, fmt::format("the accumulator is {}, the product {}", text(acc), shape.str()));
    dtype = acc.dtype();
    add_input(*op, acc);
    op->accumulates = true;
  }
  if (!arith::gemm_is_defined(a.dtype(), dtype)) {
    fail(call, fmt::format("there is no product of {} into {}", to_string(a.dtype()), to_string(dtype)));
  }
  return result("dot", std::move(op), shape, dtype);
}

Tile Recorder::math(MathOp op, const std::vector<Tile>& operands) {
  check_enumerator("math", "MathOp", static_cast<int>(op), static_cast<int>(MathOp::transpose));
  const char* name = to_string(op);
  if (op == MathOp::cast || op == MathOp::fill || op == MathOp::arange || op == MathOp::broadcast) {
    fail(name, fmt::format("use tl.{}", name));
  }
  for (const Tile& tile : operands) check_tile(name, tile);
  const auto fail = [&](const std::string& reason) {
    std::string list;
    for (const Tile& tile : operands) list += (list.empty() ? "" : ", ") + text(tile);
    this->fail(fmt::format("{}({})", name, list), reason);
  };
  const auto expected = static_cast<std::size_t>(arith::operands(op));
  if (operands.size() != expected) fail(fmt::format("takes {} operand{}", expected, expected == 1 ? "" : "s"));
  const Tile& value = operands[op == MathOp::select ? 1 : 0];
  if (op == MathOp::select && operands[0].dtype() != DType::boolean) {
    fail(fmt::format("the mask is {}; it must be bool", to_string(operands[0].dtype())));
  }
  Shape shape = operands[0].shape();
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const auto common = arith::broadcast_shape(shape, operands[i].shape());
    if (!common) fail("the shapes do not agree, and neither can be broadcast");
    shape = *common;
    if (operands[i].dtype() != value.dtype()) fail("the dtypes differ; cast one of them");
  }
  if (!arith::is_defined(op, value.dtype())) fail(fmt::format("not defined for {}", to_string(value.dtype())));
  if (op == MathOp::transpose) shape = {shape.cols, shape.rows};
  OpPtr recorded = make(OpKind::math, Unit::math);
  recorded->math = op;
  for (const Tile& tile : operands) add_input(*recorded, tile);
  return result(name, std::move(recorded), shape, arith::result_type(op, value.dtype()));
}

Tile Recorder::cast(const Tile& a, DType dtype) {
  check_tile("cast", a);
  OpPtr op = make(OpKind::math, Unit::math);
  op->math = MathOp::cast;
  add_input(*op, a);
  return result("cast", std::move(op), a.shape(), dtype);
}

Tile Recorder::fill(Shape shape, DType dtype, double value) {
  OpPtr op = make(OpKind::math, Unit::math);
  op->math = MathOp::fill;
  op->value = value;
  return result("fill", std::move(op), shape, dtype);
}

Tile Recorder::arange(std::int64_t n, DType dtype, std::int64_t start) {
  const Shape shape{1, n};
  check_shape("arange", shape, dtype);
  if (!arith::is_defined(MathOp::arange, dtype)) {
    fail(fmt::format("arange({})", text(shape, dtype)), fmt::format("not defined for {}", to_string(dtype)));
  }
  OpPtr op = make(OpKind::math, Unit::math);
  op->math = MathOp::arange;
  op->first = start;
  return result("arange", std::move(op), shape, dtype);
}

Tile Recorder::broadcast(const Tile& a, Shape shape) {
  check_tile("broadcast", a);
  const auto common = arith::broadcast_shape(a.shape(), shape);
  if (!common || *common != shape) {
    fail(fmt::format("broadcast({})", text(a)), fmt::format("cannot be broadcast to {}", shape.str()));
  }
  OpPtr op = make(OpKind::math, Unit::math);
  op->math = MathOp::broadcast;
  add_input(*op, a);
  return result("broadcast", std::move(op), shape, a.dtype());
}

Tile Recorder::reduce(ReduceKind kind, const Tile& a, int axis) {
  check_enumerator("reduce", "ReduceKind", static_cast<int>(kind), static_cast<int>(ReduceKind::min));
  const std::string name = fmt::format("reduce_{}", to_string(kind));
  check_tile(name.c_str(), a);
  const std::string call = fmt::format("{}({})", name, text(a));
  if (axis != 0 && axis != 1) fail(call, fmt::format("axis is {}; give 0 (over rows) or 1 (over columns)", axis));
  const Shape shape = axis == 0 ? Shape{1, a.shape().cols} : Shape{a.shape().rows, 1};
  if (a.shape().count() == 0 && shape.count() > 0) fail(call, "there is nothing to reduce");
  if (!arith::is_defined(kind, a.dtype())) fail(call, fmt::format("not defined for {}", to_string(a.dtype())));
  OpPtr op = make(OpKind::reduce, Unit::math);
  op->reduce = kind;
  op->axis = static_cast<std::uint8_t>(axis);
  add_input(*op, a);
  return result("reduce", std::move(op), shape, a.dtype());
}

Tile Recorder::softmax(const Tile& a) {
  check_tile("softmax", a);
  if (!is_float(a.dtype())) fail(fmt::format("softmax({})", text(a)), "not defined for integers");
  OpPtr op = make(OpKind::softmax, Unit::math);
  add_input(*op, a);
  return result("softmax", std::move(op), a.shape(), a.dtype());
}

void Recorder::composite_gemm(const CompositeGemm& gemm) {
  check_enumerator("composite_gemm", "DType", static_cast<int>(gemm.dtype), kDTypes - 1);
  check_enumerator("composite_gemm", "Activation", static_cast<int>(gemm.epilogue.activation),
                   static_cast<int>(Activation::sigmoid));
  const std::string call = fmt::format("composite_gemm({}x{}x{} {})", gemm.m, gemm.n, gemm.k, to_string(gemm.dtype));
  if (gemm.m <= 0 || gemm.n <= 0 || gemm.k <= 0) fail(call, "give positive m, n and k");
  const auto check_leading = [&](const char* name, std::int64_t leading, std::int64_t rows, std::int64_t width) {
    if (leading == 0) leading = width;
    if (leading < width) fail(call, fmt::format("{} is {}; give 0 or at least {}", name, leading, width));
    if (lies_beyond(leading, rows))
      fail(call, fmt::format("{} is {}: the last row lies beyond all addresses", name, leading));
  };
  check_leading("lda", gemm.lda, gemm.m, gemm.k);
  check_leading("ldb", gemm.ldb, gemm.k, gemm.n);
  check_leading("ldc", gemm.ldc, gemm.m, gemm.n);
  if (const auto activation = to_math(gemm.epilogue.activation);
      activation && !arith::is_defined(*activation, gemm.dtype)) {
    fail(call, fmt::format("activation {} is not defined for {}", to_string(*activation), to_string(gemm.dtype)));
  }
  if (!arith::gemm_is_defined(gemm.dtype, gemm.dtype)) fail(call, "there is no product of this dtype");
  if (const char* input = overwritten(gemm)) {
    fail(call, fmt::format("c lies over {}, of which later tiles need what is there: give c a place of its own{}",
                           input, input == std::string_view("the residual") ? ", or that of the residual" : ""));
  }
  OpPtr op = make(OpKind::composite, Unit::composite);
  const CompositePlan plan(env_.config, gemm, 0);
  workspace_ = Tile();
  workspace_ = allocate("composite_gemm", {1, static_cast<std::int64_t>(plan.workspace_bytes())}, DType::i8, op->id);
  op->detail = std::make_unique<OpDetail>();
  op->detail->gemm = plan.gemm();
  op->detail->workspace = ref(workspace_);
  record(std::move(op));
}

// ---- Queues, order, tracing ----

void Recorder::send(Direction direction, const Tile& tile) {
  check_tile("send", tile);
  check_direction("send", direction, tile.shape(), tile.dtype());
  OpPtr op = make(OpKind::send, Unit::ipcq_send);
  op->direction = direction;
  add_input(*op, tile);
  keep(sent_, direction, tile, std::size_t{env_.config.ipcq.queue_depth} + 1);
  record(std::move(op));
}

template <class Key>
void Recorder::keep(KeptBy<Key>& all, Key key, const Tile& tile, std::size_t most) const {
  auto kept = std::find_if(all.begin(), all.end(), [&](const auto& of) { return of.first == key; });
  if (kept == all.end()) kept = all.insert(kept, {key, {}});
  kept->second.push_back({next_op_id_, tile});
  if (kept->second.size() > most) kept->second.pop_front();
}

template <class Key>
bool Recorder::give_up_one(KeptBy<Key>& all) {
  std::deque<Kept>* oldest = nullptr;
  for (auto& [key, kept] : all) {
    if (!kept.empty() && (oldest == nullptr || kept.front().op_id < oldest->front().op_id)) oldest = &kept;
  }
  if (oldest != nullptr) oldest->pop_front();
  return oldest != nullptr;
}

Tile Recorder::receive(Direction direction, Shape shape, DType dtype, bool async) {
  const char* name = async ? "recv_async" : "recv";
  check_shape(name, shape, dtype);
  check_direction(name, direction, shape, dtype);
  OpPtr op = make(OpKind::recv, Unit::ipcq_recv);
  op->direction = direction;
  op->async = async;
  return result("recv", std::move(op), shape, dtype);
}

Tile Recorder::recv(Direction direction, Shape shape, DType dtype) { return receive(direction, shape, dtype, false); }
Tile Recorder::recv_async(Direction direction, Shape shape, DType dtype) {
  return receive(direction, shape, dtype, true);
}

void Recorder::wait(const Tile& tile) {
  check_tile("wait", tile);
  OpPtr op = make(OpKind::wait, Unit::cpu);
  op->target = tile.state().id;
  record(std::move(op));
}

void Recorder::fence() {
  sent_.clear();
  record(make(OpKind::fence, Unit::cpu));
}

void Recorder::mark(const std::string& label) {
  OpPtr op = make(OpKind::mark, Unit::cpu);
  op->detail = std::make_unique<OpDetail>();
  op->detail->text = label;
  record(std::move(op));
}

}  // namespace kernbench::pe
