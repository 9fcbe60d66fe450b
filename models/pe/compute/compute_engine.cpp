#include "models/pe/compute/compute_engine.h"

#include <algorithm>
#include <array>
#include <systemc>

#include "models/arith/arith.h"
#include "models/pe/compute/compute_timing.h"
#include "models/pe/cpu/kernel_context.h"
#include "models/pe/op.h"
#include "models/pe/op_log.h"
#include "models/pe/tcm/tcm.h"
#include "tlm/kernel/rounding.h"

namespace kernbench::pe {

namespace {

using Bytes = std::vector<unsigned char>;

arith::In in(const Bytes& data, const TileRef& tile) { return {data.data(), tile.shape(), tile.dtype}; }
arith::Out out(Bytes& data, const TileRef& tile) { return {data.data(), tile.shape(), tile.dtype}; }

Bytes converted(const Bytes& data, const TileRef& tile, DType dtype) {
  Bytes result(static_cast<std::size_t>(tile.shape().count()) * size_of(dtype));
  convert(data.data(), tile.dtype, result.data(), dtype, static_cast<std::size_t>(tile.shape().count()));
  return result;
}

/// A tile of a composite accumulates in in[2]'s type and may write its result in another one.
void execute_dot(const Op& op, Tcm& tcm) {
  const Bytes a = tcm.read(op.in[0]), b = tcm.read(op.in[1]);
  TileRef sum = op.out;
  if (op.inputs == 3) sum.dtype = op.in[2].dtype;
  Bytes c(sum.bytes());
  if (op.accumulates) c = tcm.read(op.in[2]);
  arith::gemm(in(a, op.in[0]), in(b, op.in[1]), op.accumulates ? c.data() : nullptr, out(c, sum));
  tcm.write(op.out, sum.dtype == op.out.dtype ? c : converted(c, sum, op.out.dtype));
}

/// Elementwise. In a composite's epilogue the first operand, the accumulator, decides the type of the arithmetic; the
/// others widen to it and the result is rounded once.
void execute_math(const Op& op, Tcm& tcm) {
  std::array<Bytes, 3> data;
  std::array<arith::In, 3> operands;
  const bool epilogue = op.stage == Stage::epilogue;
  for (std::size_t i = 0; i < op.inputs; ++i) {
    TileRef tile = op.in[i];
    data[i] = tcm.read(tile);
    if (epilogue && tile.dtype != op.in[0].dtype) {
      data[i] = converted(data[i], tile, op.in[0].dtype);
      tile.dtype = op.in[0].dtype;
    }
    operands[i] = in(data[i], tile);
  }
  TileRef computed = op.out;
  if (epilogue) computed.dtype = op.in[0].dtype;
  Bytes result(computed.bytes());
  switch (op.math) {
    case MathOp::fill:
      arith::fill(out(result, computed), op.value);
      break;
    case MathOp::arange:
      arith::arange(out(result, computed), op.first);
      break;
    default:
      arith::math(op.math, operands.data(), op.inputs, out(result, computed));
  }
  tcm.write(op.out, computed.dtype == op.out.dtype ? result : converted(result, computed, op.out.dtype));
}

/// Computes a GEMM or math op: reads its inputs from TCM, writes its result there. Takes no simulated time.
void execute(const Op& op, Tcm& tcm) {
  if (op.out.bytes() == 0) return;
  switch (op.kind) {
    case OpKind::dot:
      execute_dot(op, tcm);
      break;
    case OpKind::math:
      execute_math(op, tcm);
      break;
    case OpKind::reduce: {
      const Bytes a = tcm.read(op.in[0]);
      Bytes result(op.out.bytes());
      arith::reduce(op.reduce, in(a, op.in[0]), op.axis, out(result, op.out));
      tcm.write(op.out, result);
      break;
    }
    case OpKind::softmax: {
      const Bytes a = tcm.read(op.in[0]);
      Bytes result(op.out.bytes());
      arith::softmax(in(a, op.in[0]), out(result, op.out));
      tcm.write(op.out, result);
      break;
    }
    default:
      sc_assert(false);
  }
}

constexpr int kMathOps = static_cast<int>(MathOp::transpose) + 1;
constexpr int kReductions = 3;

std::vector<std::string> labels(ComputeEngine::Kind kind) {
  std::vector<std::string> list = {"idle"};
  if (kind == ComputeEngine::Kind::gemm) {
    list.push_back("gemm");
    return list;
  }
  for (int op = 0; op < kMathOps; ++op) list.push_back(to_string(static_cast<MathOp>(op)));
  for (int op = 0; op < kReductions; ++op)
    list.push_back(std::string("reduce_") + to_string(static_cast<ReduceKind>(op)));
  list.push_back("softmax");
  return list;
}
}  // namespace

ComputeEngine::ComputeEngine(Kind kind, Services& services, OpSink& sink)
    : services_(services),
      sink_(sink),
      kind_(kind),
      clock_(kind == Kind::gemm ? services.config.gemm.clock_hz : services.config.math.clock_hz),
      queues_(services.config.cpu.kernel_contexts,
              kind == Kind::gemm ? services.config.gemm.queue_depth : services.config.math.queue_depth),
      array_(services.config.gemm) {
  if (services.observer != nullptr) {
    track_ = Track(services, kind == Kind::gemm ? "gemm" : "math", TrackKind::state, labels(kind));
  }
}

bool ComputeEngine::full(const Op& op) const { return queues_.full(op, op.context->index); }

void ComputeEngine::enqueue(Op& op) {
  queues_.push(op, op.context->index);
  if (Usage* own = usage()) own->level(queues_.size(), services_.now());
  advance();
}

void ComputeEngine::remove(const KernelContext& context, std::vector<Op*>& removed) {
  queues_.remove(context, removed);
  if (holder_ == &context) holder_ = nullptr;
}

Op* ComputeEngine::next() { return holder_ != nullptr ? queues_.pop_ready_tile(holder_->index) : queues_.pop_ready(); }

void ComputeEngine::advance() {
  if (advancing_) return;
  advancing_ = true;
  while (accepting_) {
    Op* op = next();
    if (op == nullptr) break;
    begin(*op);
  }
  advancing_ = false;
}

void ComputeEngine::begin(Op& op) {
  const Ps now = services_.now();
  op.cause = services_.cause();
  if (services_.options.data) execute(op, services_.tcm);
  const Span span = take(op);
  op.started = span.begin;
  if (Usage* own = usage()) book_waits(*own, op);
  holder_ = op.stays && !op.aborted ? op.context : nullptr;
  if (span.accepts > now) {
    accepting_ = false;
    cause_ = op.cause;
    peak_ = at_peak(op);
    services_.queue.at(span.accepts, [this] {
      accepting_ = true;
      spend(cause_, peak_);
      advance();
    });
  }
  Op* running = &op;
  // A composite's next operands may take the place of these as soon as the last of them has entered the array.
  if (op.composite != nullptr && span.read < span.done) {
    services_.queue.at(std::max(span.read, now), [this, running] {
      spend(running->cause, at_peak(*running));
      sink_.reads_done(*running);
    });
  }
  services_.queue.at(span.done, [this, running] { finish(*running); });
  sink_.room();
}

ComputeEngine::Span ComputeEngine::take(const Op& op) { return kind_ == Kind::gemm ? take_product(op) : take_math(op); }

ComputeEngine::Span ComputeEngine::take_product(const Op& op) {
  const Ps now = services_.now();
  const GemmWork work = gemm_work_of(op);
  if (work.m == 0 || work.n == 0 || work.k == 0) return {now, now, now, now};
  const std::uint64_t cycle = clock_.tick_at_or_after(now);
  GemmArray::Times times = array_.take(cycle, work);
  const Ps longer = services_.tcm.timing().stream(now, clock_.at(times.begin), clock_.at(times.read),
                                                  tcm_bytes_of(services_.config.gemm, op));
  if (longer > 0) {
    const std::uint64_t stall = clock_.tick_at_or_after(longer);
    array_.stall(stall);
    times.accepts += stall;
    times.read += stall;
    times.done += stall;
  }
  services_.statistics.count_macs(work.dtype, work.m * work.n * work.k);
  return {times.begin == cycle ? now : clock_.at(times.begin), clock_.at(times.accepts), clock_.at(times.read),
          clock_.at(times.done)};
}

ComputeEngine::Span ComputeEngine::take_math(const Op& op) {
  const Ps now = services_.now();
  const std::uint64_t cycles = math_cycles_of(services_.config.math, op);
  if (cycles == 0) return {now, now, now, now};
  Ps done = clock_.after(now, cycles);
  const Ps longer = services_.tcm.timing().stream(now, now, done, tcm_bytes_of(services_.config.gemm, op));
  if (longer > 0) done = clock_.edge(done + longer);
  services_.statistics.math_lane_cycles += lane_cycles_of(services_.config.math, op);
  return {now, done, done, done};
}

Ps ComputeEngine::at_peak(const Op& op) const {
  if (services_.queue.causes() == nullptr || kind_ != Kind::gemm) return 0;
  const GemmWork work = gemm_work_of(op);
  const MacRate mac = mac_rate(services_.config.gemm, work.dtype);
  const std::uint64_t cells = std::uint64_t{services_.config.gemm.rows} * services_.config.gemm.cols * mac.at_once;
  return clock_.at(ceil_div(work.m * work.n * work.k * mac.cycles, cells));
}

void ComputeEngine::spend(const Cause& cause, Ps peak) {
  services_.follow(cause);
  const Ps now = services_.now();
  if (kind_ == Kind::gemm && now > CauseLog::end_of(cause) + peak)
    services_.spend(Spent::gemm_fill, Services::Part::gemm, now - peak);
  services_.spend(kind_ == Kind::gemm ? Spent::gemm : Spent::math,
                  kind_ == Kind::gemm ? Services::Part::gemm : Services::Part::math);
}

void ComputeEngine::finish(Op& op) {
  spend(op.cause, at_peak(op));
  const Ps from = std::max(op.started, shown_until_), now = services_.now();
  if (now > from) {  // pipelined ops overlap; the track shows each from the end of the one before
    track_.interval(from, now, label(op));
    (kind_ == Kind::gemm ? services_.statistics.gemm_busy : services_.statistics.math_busy) += now - from;
    shown_until_ = now;
  }
  if (Usage* own = usage()) own->busy(std::min(from, now), now, 0, 1);
  ++(kind_ == Kind::gemm ? services_.statistics.gemm_ops : services_.statistics.math_ops);
  log_op(services_, op, kind_ == Kind::gemm ? "gemm" : "math");
  sink_.completed(op);
  advance();
}

std::uint64_t ComputeEngine::label(const Op& op) const {
  switch (op.kind) {
    case OpKind::math:
      return 1 + static_cast<std::uint64_t>(op.math);
    case OpKind::reduce:
      return 1 + kMathOps + static_cast<std::uint64_t>(op.reduce);
    case OpKind::softmax:
      return 1 + kMathOps + kReductions;
    default:
      return 1;
  }
}

}  // namespace kernbench::pe
