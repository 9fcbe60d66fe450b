#include "models/pe/cpu/pe_cpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/pe/op_log.h"

namespace kernbench::pe {

namespace {
enum CpuState : std::uint64_t { kIdle, kDispatch, kCommand };
}  // namespace

PeCpu::PeCpu(Services& services, StackPool* stacks)
    : services_(services),
      stacks_(stacks),
      dma_r_(DmaEngine::Kind::read, services, *this),
      dma_w_(DmaEngine::Kind::write, services, *this),
      gemm_(ComputeEngine::Kind::gemm, services, *this),
      math_(ComputeEngine::Kind::math, services, *this),
      ipcq_(services, *this),
      composites_(services.config.cpu.kernel_contexts),
      contexts_(services.config.cpu.kernel_contexts) {
  if (services.observer == nullptr) return;
  track_ = Track(services, "cpu", TrackKind::state, {"idle", "dispatch", "command"});
  for (std::size_t i = 0; i < contexts_.size(); ++i) {
    kernel_tracks_.emplace_back(services, fmt::format("kernel{}", i), TrackKind::text);
    op_tracks_.emplace_back(services, fmt::format("op{}", i), TrackKind::text);
    stall_texts_.emplace_back();
  }
}

PeCpu::~PeCpu() {
  // Kernels in flight at the end of a run: their ops are not in the engines' ownership.
  for (const auto& context : contexts_) {
    if (context == nullptr) continue;
    for (Op* op : context->in_flight) delete op;
  }
}

// ---- The CPU's loop ----

void PeCpu::advance() {
  if (busy_) return;
  if (!commands_.empty()) {
    busy_ = true;
    cause_ = services_.cause();
    services_.queue.at(services_.now() + services_.config.cpu.command, [this] {
      busy_ = false;
      services_.follow(cause_);
      services_.spend(Spent::command, Services::Part::cpu);
      const Command command = commands_.front();
      commands_.erase(commands_.begin());
      worked(services_.config.cpu.command, kCommand);
      services_.queue.completed();
      handle(command);
      advance();
    });
    return;
  }
  const auto count = static_cast<std::uint32_t>(contexts_.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t index = (next_context_ + i) % count;
    if (contexts_[index] == nullptr || !may_issue(*contexts_[index])) continue;
    next_context_ = (index + 1) % count;
    busy_ = true;
    contexts_[index]->dispatching = true;
    cause_ = services_.cause();
    services_.queue.at(services_.now() + services_.config.cpu.dispatch, [this, index] { dispatched(index); });
    return;
  }
}

bool PeCpu::may_issue(KernelContext& context) {
  if (context.state != KernelContext::State::running || context.waits_for != 0 || context.at_fence) return false;
  const Op* op = context.recorder.front();
  if (op == nullptr) return false;
  if (fits(*op)) {
    resume(context);
    return true;
  }
  stall(context, CpuWait::full, op);
  return false;
}

void PeCpu::dispatched(std::uint32_t index) {
  services_.follow(cause_);
  services_.spend(Spent::dispatch, Services::Part::cpu);
  worked(services_.config.cpu.dispatch, kDispatch);
  KernelContext& context = *contexts_[index];
  context.dispatching = false;
  if (context.state == KernelContext::State::running) issue(context.recorder.pop());
  finish_if_done(context);
  busy_ = false;  // whatever the op sets free goes on when all of it is known
  advance();
}

void PeCpu::stall(KernelContext& context, CpuWait why, const Op* op) {
  if (context.stalled) return;
  context.stalled = why;
  context.stalled_op = op;
  context.stalled_since = services_.now();
  if (!op_tracks_.empty() && op_tracks_[context.index].wanted()) stall_texts_[context.index] = context.stalled_text();
}

void PeCpu::resume(KernelContext& context) {
  if (!context.stalled) return;
  if (!op_tracks_.empty() && op_tracks_[context.index].wanted()) {
    op_tracks_[context.index].interval(context.stalled_since, services_.now(), stall_texts_[context.index]);
  }
  if (Usage* usage = services_.usages.cpu) {
    usage->wait(context.stalled_since, services_.now(), static_cast<unsigned>(*context.stalled));
  }
  context.stalled.reset();
}

/// It has been at a command or a dispatch for `time`.
void PeCpu::worked(Ps time, std::uint64_t state) {
  const Ps now = services_.now();
  track_.interval(now - time, now, state);
  services_.statistics.cpu_busy += time;
  ++(state == kCommand ? services_.statistics.commands : services_.statistics.dispatches);
  if (services_.usages.cpu != nullptr) services_.usages.cpu->busy(now - time, now, 0, 1);
}

// ---- Issue ----

void PeCpu::issue(std::unique_ptr<Op> recorded) {
  Op& op = *recorded;
  KernelContext& context = *op.context;
  op.issued = services_.now();
  op.sequence = sequence_++;
  switch (op.kind) {
    case OpKind::wait:
      if (Op* target = context.find(op.target)) {
        target->async = false;
        context.waits_for = op.target;
        stall(context, CpuWait::op, target);
      }
      return;
    case OpKind::fence:
      context.at_fence = context.fence_would_wait();
      if (context.at_fence) {
        stall(context, CpuWait::fence, nullptr);
      } else {
        fenced(context);
      }
      return;
    case OpKind::mark:
      end_mark(context);
      context.mark = op.detail->text;
      context.marked = services_.now();
      return;
    case OpKind::fault:
      context.message.faults.push_back({Fault::Kind::kernel, names::pe(services_.coord), context.launch().kernel, "",
                                        op.detail->text, services_.now()});
      fail(context);
      return;
    default:
      break;
  }
  enter_hazards(op);
  context.enter(op);
  enqueue(*recorded.release());
}

void PeCpu::enter_hazards(Op& op) {
  using Space = Range::Space;
  Range ranges[8];
  std::size_t count = 0;
  for (std::size_t i = 0; i < op.inputs; ++i) {
    ranges[count++] = Range::of(Space::tcm, op.in[i].tcm, op.in[i].bytes(), false);
  }
  ranges[count++] = Range::of(Space::tcm, op.out.tcm, op.out.bytes(), true);
  const auto rows_at = [&](Va va, std::int64_t rows, std::int64_t cols, std::int64_t leading, DType dtype, bool write) {
    const std::uint64_t size = size_of(dtype);
    ranges[count++] =
        Range::strided(Space::va, va, static_cast<std::uint64_t>(cols) * size,
                       static_cast<std::uint64_t>(leading) * size, static_cast<std::uint64_t>(rows), write);
  };
  if (op.kind == OpKind::load || op.kind == OpKind::store) {
    const bool write = op.kind == OpKind::store;
    const TileRef& tile = write ? op.in[0] : op.out;
    ranges[count++] = Range::strided(Space::va, op.va, std::uint64_t{tile.cols} * size_of(tile.dtype), op.stride_bytes,
                                     tile.rows, write);
  } else if (op.kind == OpKind::gather && !op.detail->index.empty()) {
    const auto [least, most] = std::minmax_element(op.detail->index.begin(), op.detail->index.end());
    ranges[count++] = Range::strided(Space::va, op.va + static_cast<std::uint64_t>(*least) * op.stride_bytes,
                                     std::uint64_t{op.out.cols} * size_of(op.out.dtype), op.stride_bytes,
                                     static_cast<std::uint64_t>(*most - *least) + 1, false);
  } else if (op.kind == OpKind::composite) {
    const CompositeGemm& g = op.detail->gemm;
    ranges[count++] = Range::of(Space::tcm, op.detail->workspace.tcm, op.detail->workspace.bytes(), true);
    rows_at(g.a, g.m, g.k, g.lda, g.dtype, false);
    rows_at(g.b, g.k, g.n, g.ldb, g.dtype, false);
    rows_at(g.c, g.m, g.n, g.ldc, g.dtype, true);
    if (g.epilogue.bias != 0) rows_at(g.epilogue.bias, 1, g.n, g.n, g.dtype, false);
    if (g.epilogue.residual != 0) rows_at(g.epilogue.residual, g.m, g.n, g.ldc, g.dtype, false);
  }
  op.context->scoreboard.enter(op, ranges, count);
}

bool PeCpu::fits(const Op& op) const {
  switch (op.unit) {
    case Unit::dma_r:
      return !dma_r_.full(op);
    case Unit::dma_w:
      return !dma_w_.full(op);
    case Unit::gemm:
      return !gemm_.full(op);
    case Unit::math:
      return !math_.full(op);
    case Unit::composite: {
      const auto& composite = composites_[op.context->index];
      return composite == nullptr || !composite->full();
    }
    case Unit::ipcq_send:
    case Unit::ipcq_recv:
      return !ipcq_.full(op);
    case Unit::cpu:
      return true;
  }
  return true;
}

void PeCpu::enqueue(Op& op) {
  switch (op.unit) {
    case Unit::dma_r:
      dma_r_.enqueue(op);
      break;
    case Unit::dma_w:
      dma_w_.enqueue(op);
      break;
    case Unit::gemm:
      gemm_.enqueue(op);
      break;
    case Unit::math:
      math_.enqueue(op);
      break;
    case Unit::composite: {
      auto& composite = composites_[op.context->index];
      if (composite == nullptr) composite = std::make_unique<Composite>(services_, *this, *this);
      composite->enqueue(op);
      break;
    }
    case Unit::ipcq_send:
    case Unit::ipcq_recv:
      ipcq_.enqueue(op);
      break;
    case Unit::cpu:
      sc_assert(false);
  }
}

bool PeCpu::tile_fits(const Op& tile) const { return fits(tile); }

void PeCpu::issue_tile(Op& tile) {
  tile.issued = services_.now();
  tile.sequence = sequence_++;
  enqueue(tile);
}

// ---- What engines report ----

void PeCpu::wake(const std::vector<Hazard*>& ready) {
  for (Hazard* hazard : ready) {
    Op& op = *static_cast<Op*>(hazard);
    op.ready = services_.now();
    switch (op.unit) {
      case Unit::dma_r:
        dma_r_.advance();
        break;
      case Unit::dma_w:
        dma_w_.advance();
        break;
      case Unit::gemm:
        gemm_.advance();
        break;
      case Unit::math:
        math_.advance();
        break;
      case Unit::composite:
        composite_of(op).advance();
        break;
      case Unit::ipcq_send:
      case Unit::ipcq_recv:
        ipcq_.advance(op);
        break;
      case Unit::cpu:
        break;
    }
  }
}

void PeCpu::reads_done(Op& op) {
  std::vector<Hazard*> ready;
  if (op.composite != nullptr) {
    op.composite->tile_reads_done(op, ready);
  } else {
    op.context->scoreboard.release(op, Scoreboard::What::reads, ready);
  }
  wake(ready);
}

void PeCpu::completed(Op& op) {
  services_.queue.completed();
  std::vector<Hazard*> ready;
  if (op.composite != nullptr) {
    Composite& composite = *op.composite;
    composite.tile_completed(op, ready);
    wake(ready);
    composite.advance();
    return;
  }
  KernelContext& context = *op.context;
  context.scoreboard.release(op, Scoreboard::What::all, ready);
  context.leave(op);
  if (context.waits_for == op.id) {
    context.waits_for = 0;
    resume(context);
  }
  delete &op;
  if (context.at_fence && !context.fence_would_wait()) {
    context.at_fence = false;
    resume(context);
    fenced(context);
  }
  wake(ready);
  finish_if_done(context);
  advance();
}

void PeCpu::room() {
  for (const auto& composite : composites_) {
    if (composite != nullptr) composite->advance();
  }
  advance();
}

void PeCpu::fenced(const KernelContext& context) {
  if (services_.races != nullptr) services_.races->fenced(context.message, services_.coord);
}

// ---- The end of a kernel ----

void PeCpu::end_mark(KernelContext& context) {
  if (!context.mark.empty()) log_mark(services_, context.launch().kernel, context.mark, context.marked);
  context.mark.clear();
}

void PeCpu::finish_if_done(KernelContext& context) {
  if (context.dispatching || !context.in_flight.empty() || context.state == KernelContext::State::armed) return;
  if (context.waits_for != 0 || context.at_fence) return;
  const bool failed = context.state == KernelContext::State::failed;
  if (failed ? !context.abandoned : context.recorder.front() != nullptr) return;
  end_mark(context);
  LaunchMessage& launch = context.launch();
  launch.last_end = std::max(launch.last_end, services_.now());
  if (!kernel_tracks_.empty() && kernel_tracks_[context.index].wanted()) {
    kernel_tracks_[context.index].interval(context.started, services_.now(), launch.kernel);
  }
  log_kernel(services_, context.message, context.started);
  if (!failed) count_rings(context);
  answer(failed ? CommandKind::failed : CommandKind::done, context.message);
  if (services_.races != nullptr) {
    services_.races->ended(context.message, services_.coord);
    ipcq_.ended(context);
  }
  const std::uint64_t held = context.recorder.most_held();
  services_.statistics.tcm_held = std::max(services_.statistics.tcm_held, held);
  if (Usage* usage = services_.tcm.timing().writes().usage) usage->level(held, services_.now());
  const std::uint32_t index = context.index;
  const std::uint16_t stream = context.message.stream;
  contexts_[index] = nullptr;
  left(index, stream);
}

void PeCpu::count_rings(const KernelContext& context) const {
  LaunchMessage& launch = context.launch();
  for (const KernelContext::QueueCount& count : context.queues) {
    const QueuePair* pair = ipcq_.directions().find(launch.group, count.direction);
    if (pair == nullptr) continue;
    const NeighbourEntry& entry = pair->entry;
    if (count.sent > 0)
      launch.rings.push_back({entry.peer, entry.peer_ring, entry.self, count.direction, std::int64_t{count.sent}});
    if (count.received > 0)
      launch.rings.push_back({entry.self, entry.ring, entry.source, count.direction, -std::int64_t{count.received}});
  }
}

void PeCpu::fault(Op& op, Fault::Kind kind, const char* component, const std::string& reason) {
  op.aborted = true;
  KernelContext& context = *op.context;
  if (context.state == KernelContext::State::failed) return;
  context.message.faults.push_back({kind, names::pe_part(services_.coord, component), context.launch().kernel,
                                    text_of(op), reason, services_.now()});
  fail(context);
}

void PeCpu::fail(KernelContext& context) {
  context.state = KernelContext::State::failed;
  context.waits_for = 0;
  context.at_fence = false;
  context.stalled.reset();
  // Not from within whoever reports it.
  services_.queue.at(services_.now(), [this, &context] { abandon(context); });
}

/// Ends a failed kernel: nothing more of it is issued or started; what is under way comes to its end.
void PeCpu::abandon(KernelContext& context) {
  for (Op* op : context.in_flight) op->aborted = true;
  context.recorder.cancel();
  context.scoreboard.clear();
  std::vector<Op*> removed;
  dma_r_.remove(context, removed);
  dma_w_.remove(context, removed);
  gemm_.remove(context, removed);
  math_.remove(context, removed);
  ipcq_.abandon(context, removed);
  if (const auto& composite = composites_[context.index]) composite->abandon(context, removed);
  for (Op* op : removed) drop(*op);
  if (const auto& composite = composites_[context.index]) composite->advance();
  context.abandoned = true;
  // The engines go on with the other kernel's ops.
  dma_r_.advance();
  dma_w_.advance();
  gemm_.advance();
  math_.advance();
  finish_if_done(context);
  advance();
}

void PeCpu::drop(Op& op) {
  std::vector<Hazard*> nobody;
  if (op.composite != nullptr) {
    op.composite->tile_completed(op, nobody);
    return;
  }
  op.context->leave(op);
  delete &op;
}

// ---- For the deadlock report ----

void PeCpu::explain(std::vector<Blocked>& blocked) const {
  const std::size_t before = blocked.size();
  ipcq_.explain(blocked);
  for (const auto& context : contexts_) {
    if (context == nullptr) continue;
    if (context->ahead && context->state == KernelContext::State::armed) continue;  // what it waits for is in the list
    const std::string& kernel = context->launch().kernel;
    if (context->stalled == CpuWait::full) {
      // What the kernel would do next, such as receive, is not reached.
      for (std::size_t i = before; i < blocked.size(); ++i) {
        if (blocked[i].kernel == kernel && blocked[i].waits_for.rfind("credit of", 0) == 0)
          blocked[i].waits_for += fmt::format("; PE_CPU stands at {}, whose queue is full", context->stalled_text());
      }
    }
    const auto listed = [&](const Blocked& b) { return b.kernel == kernel; };
    if (std::any_of(blocked.begin() + static_cast<std::ptrdiff_t>(before), blocked.end(), listed)) continue;
    Blocked b;
    b.pe = services_.coord;
    b.kernel = kernel;
    b.since = context->stalled ? context->stalled_since : context->started;
    if (context->state == KernelContext::State::armed) {
      b.op = "(armed)";
      b.waits_for = "its start command";
    } else {
      b.op = context->stalled ? context->stalled_text() : "(issued to its end)";
      b.waits_for = context->in_flight.empty()
                        ? "nothing: an internal error"
                        : fmt::format("{} ops in flight, the first {}; {} reads and {} writes of memory unanswered",
                                      context->in_flight.size(), text_of(*context->in_flight.front()),
                                      dma_r_.outstanding(), dma_w_.outstanding());
    }
    blocked.push_back(b);
  }
}

}  // namespace kernbench::pe
