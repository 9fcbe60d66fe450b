#include "models/pe/compute_engine.h"

#include "models/pe/compute_timing.h"
#include "models/pe/execute.h"
#include "models/pe/kernel_context.h"
#include "models/pe/op_record.h"

namespace kernbench::pe {

namespace {
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
      lanes_(services.config.cpu.kernel_contexts,
             kind == Kind::gemm ? services.config.gemm.queue_depth : services.config.math.queue_depth) {
  if (services.observer != nullptr) {
    track_ = Track(services, kind == Kind::gemm ? "gemm" : "math", TrackKind::state, labels(kind));
  }
}

bool ComputeEngine::full(const Op& op) const { return lanes_.full(op, op.context->index); }

void ComputeEngine::enqueue(Op& op) {
  lanes_.push(op, op.context->index);
  advance();
}

void ComputeEngine::advance() {
  if (busy_) return;
  Op* op = lanes_.pop_ready();
  if (op == nullptr) return;
  busy_ = true;
  op->started = services_.now();
  if (services_.options.data) execute(*op, services_.tcm);
  const std::uint64_t cycles = cycles_of(services_.config, *op);
  const Ps end = cycles == 0 ? services_.now() : clock_.after(services_.now(), cycles);
  services_.queue.at(end, [this, op] { finish(*op); });
  sink_.room();
}

void ComputeEngine::finish(Op& op) {
  busy_ = false;
  track_.interval(op.started, services_.now(), label(op));
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
