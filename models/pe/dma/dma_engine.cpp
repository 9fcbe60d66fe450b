#include "models/pe/dma/dma_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/pe/cpu/kernel_context.h"
#include "models/pe/op_log.h"
#include "tlm/ext/train.h"

namespace kernbench::pe {

/// An op under way.
struct DmaEngine::Job final : ResponseHandler {
  Job(DmaEngine& engine, Op& op) : engine(engine), op(op), plan(op, longest()) {}
  /// Trains are made of full packets: smaller bursts travel alone. Four may be outstanding, so that they follow each
  /// other as their packets would; two where queues have long slots, too.
  std::uint32_t longest() const {
    const Services& services = engine.services_;
    const std::uint32_t burst = services.config.dma.burst_bytes;
    if (burst != kMaxPacketBytes) return burst;
    const std::uint32_t together = services.longest() > kMaxTrainBytes ? 2 : 4;
    std::uint32_t train = longest_access(services.longest());
    while (train > burst && train > services.config.dma.outstanding * burst / together) train /= 2;
    return train;
  }
  /// Each packet gives its place back when it is here, and the next train's packets take them one by one: that train
  /// goes now.
  void on_first_packet(tlm::tlm_generic_payload& payload) override {
    engine.outstanding_ -= packets_of(payload.get_data_length());
    engine.advance();
  }
  void on_response(tlm::tlm_generic_payload& payload, Packet& packet) override {
    engine.arrived(*this, payload, packet);
  }

  DmaEngine& engine;
  Op& op;
  BurstPlan plan;
  std::uint32_t pending = 0;  // responses to come
  std::uint32_t leaving = 0;  // of those, bursts that TCM's latency keeps
  bool all_issued = false;
  Ps first_burst = kNever;          // when it was injected
  std::array<Ps, kDelays> spent{};  // of the burst that ended last
  Ps last_write = 0;                // when TCM holds all that has arrived
  std::optional<MemoryKind> space;
  RaceDetector::Text text;  // --debug
  Job* next = nullptr;
  Job* previous = nullptr;
};

DmaEngine::DmaEngine(Kind kind, Services& services, OpSink& sink)
    : services_(services),
      sink_(sink),
      kind_(kind),
      queues_(services.config.cpu.kernel_contexts, services.config.dma.queue_depth) {
  if (services.observer != nullptr) {
    track_ = Track(services, component(), TrackKind::state, {"idle", kind == Kind::read ? "read" : "write"});
  }
}

DmaEngine::~DmaEngine() {
  while (all_ != nullptr) {
    Job* job = all_;
    all_ = job->next;
    delete job;
  }
}

bool DmaEngine::full(const Op& op) const { return queues_.full(op, op.context->index); }

void DmaEngine::enqueue(Op& op) {
  queues_.push(op, op.context->index);
  if (Usage* own = usage()) own->level(queues_.size(), services_.now());
  advance();
}

void DmaEngine::advance() {
  if (advancing_) return;
  advancing_ = true;
  while (!paused_ && (issuing_ == nullptr ? begin_job() : next_burst())) {
  }
  advancing_ = false;
}

void DmaEngine::pause_until(Ps time, Then then) {
  paused_ = true;
  cause_ = services_.cause();
  services_.queue.at(time, [this, then] {
    paused_ = false;
    services_.follow(cause_);
    services_.spend(then == Then::leave ? Spent::tcm : Spent::setup, then == Then::leave   ? Services::Part::tcm
                                                                     : kind_ == Kind::read ? Services::Part::dma_r
                                                                                           : Services::Part::dma_w);
    if (then == Then::leave) leave();
    advance();
  });
}

/// False if no op can begin.
bool DmaEngine::begin_job() {
  Op* op = queues_.pop_ready();
  if (op == nullptr) return false;
  op->started = services_.now();
  if (Usage* own = usage()) book_waits(*own, *op);
  if (jobs_++ == 0) busy_since_ = services_.now();
  issuing_ = new Job(*this, *op);
  link(*issuing_);
  if (services_.config.dma.setup > 0) pause_until(services_.now() + services_.config.dma.setup, Then::go_on);
  sink_.room();
  return true;
}

/// One step of the op whose bursts are being issued; false if it has to wait for a response.
bool DmaEngine::next_burst() {
  Job& job = *issuing_;
  if (job.op.aborted) {
    end_of_bursts();
    return true;
  }
  if (!has_burst_) {
    burst_.waited = false;
    const BurstPlan::Next next = job.plan.next(services_.mmu, burst_);
    if (next == BurstPlan::Next::fault) {
      sink_.fault(job.op, Fault::Kind::mmu, component(),
                  fmt::format("VA {:#x} is not mapped for {}", job.plan.fault_va(), names::pe(services_.coord)));
    }
    if (next != BurstPlan::Next::burst) {
      end_of_bursts();
      return true;
    }
    has_burst_ = true;
    if (burst_.walk > 0) {
      pause_until(services_.now() + burst_.walk, Then::go_on);
      return true;
    }
  }
  if (outstanding_ > 0 && outstanding_ + packets_of(burst_.bytes) > services_.config.dma.outstanding) {
    burst_.waited = true;
    return false;
  }
  if (kind_ == Kind::write) {
    read_ = services_.tcm.reserve_read(services_.now(), burst_.tcm, burst_.bytes, packets_of(burst_.bytes));
    const Ps ready = read_ - std::min(read_, services_.streamed(burst_.bytes));
    const Ps passed = ready - services_.config.tcm.latency;
    if (passed > services_.now()) {
      pause_until(passed, Then::leave);
      return true;
    }
  }
  leave();
  return true;
}

/// Issue goes on with the next burst. The data of this one, if it is a write's, have passed TCM's port and are here
/// `latency` later.
void DmaEngine::leave() {
  has_burst_ = false;
  Job& job = *issuing_;
  ++job.pending;
  outstanding_ += packets_of(burst_.bytes);
  const Ps latency = kind_ == Kind::write ? services_.config.tcm.latency : 0;
  if (latency == 0) return inject(job, burst_, read_);
  ++job.leaving;
  leaving_.push_back({&job, burst_, read_, services_.cause()});
  services_.queue.at(services_.now() + latency, [this] {
    const Leaving next = leaving_.front();
    leaving_.erase(leaving_.begin());
    services_.follow(next.cause);
    services_.spend(Spent::tcm, Services::Part::tcm);
    --next.job->leaving;
    inject(*next.job, next.burst, next.read);
    if (next.job->all_issued && next.job->leaving == 0) sink_.reads_done(next.job->op);
    advance();
  });
}

void DmaEngine::inject(Job& job, const Burst& burst, Ps read) {
  const NodeId node = services_.map.resolve(burst.at);
  if (node == kNoNode) {
    --job.pending;
    outstanding_ -= packets_of(burst.bytes);
    sink_.fault(job.op, Fault::Kind::bus, component(), fmt::format("there is no memory at {}", burst.at.str()));
    complete_when_done(job);
    return;
  }
  if (!job.space) job.space = burst.at.kind;
  if (services_.races != nullptr) {
    if (job.text == nullptr) job.text = std::make_shared<const std::string>(text_of(job.op));
    const KernelContext& context = *job.op.context;
    services_.check_races(context.message, context.launch().kernel, job.text, burst.at, burst.bytes,
                          kind_ == Kind::write);
  }
  const PacketKind kind = kind_ == Kind::read ? PacketKind::read : PacketKind::write;
  tlm::tlm_generic_payload& payload = services_.payload(kind, node, burst.at.encode(), burst.bytes);
  if (kind_ == Kind::write && services_.options.data) {
    services_.tcm.read(burst.tcm, payload.get_data_ptr(), burst.bytes);
  }
  Packet& packet = Packet::of(payload);
  packet.op = job.op.id;
  packet.user = static_cast<ResponseHandler*>(&job);
  packet.tag = burst.tcm;
  packet.one_by_one = burst.waited;
  if (kind_ == Kind::write && burst.bytes > kMaxPacketBytes) packet.complete = read;
  if (job.first_burst == kNever) job.first_burst = services_.now();
  (kind_ == Kind::read ? services_.statistics.dma_read_bytes : services_.statistics.dma_write_bytes) += burst.bytes;
  if (Usage* own = usage()) own->busy(services_.now(), services_.now(), burst.bytes, 0);
  services_.inject(payload);
}

void DmaEngine::end_of_bursts() {
  Job& job = *issuing_;
  issuing_ = nullptr;
  has_burst_ = false;
  job.all_issued = true;
  if (kind_ == Kind::write && job.leaving == 0) sink_.reads_done(job.op);
  complete_when_done(job);
}

void DmaEngine::arrived(Job& job, tlm::tlm_generic_payload& payload, const Packet& packet) {
  if (packet.complete == 0) outstanding_ -= packets_of(payload.get_data_length());
  --job.pending;
  services_.queue.completed();
  job.spent = packet.spent;
  if (payload.get_response_status() != tlm::TLM_OK_RESPONSE) {
    sink_.fault(job.op, Fault::Kind::bus, component(),
                fmt::format("{} at {} of {} B answered {}", kind_ == Kind::read ? "read" : "write",
                            PhysicalAddress::decode(payload.get_address()).str(), payload.get_data_length(),
                            payload.get_response_string()));
  } else if (kind_ == Kind::read) {
    const std::uint32_t bytes = payload.get_data_length();
    job.last_write =
        services_.tcm.reserve_write(services_.streaming_since(packet, bytes), packet.tag, bytes, packets_of(bytes));
    if (services_.options.data) services_.tcm.write(packet.tag, payload.get_data_ptr(), bytes);
  }
  complete_when_done(job);
  advance();
}

void DmaEngine::complete_when_done(Job& job) {
  if (!job.all_issued || job.pending > 0) return;
  Job* done = &job;
  job.op.cause = services_.cause();
  services_.queue.at(std::max(job.last_write, services_.now()), [this, done] { complete(*done); });
}

void DmaEngine::complete(Job& job) {
  Op& op = job.op;
  services_.follow(op.cause);
  services_.spend(Spent::tcm, Services::Part::tcm);
  PeStatistics& statistics = services_.statistics;
  ++(kind_ == Kind::read ? statistics.dma_reads : statistics.dma_writes);
  if (--jobs_ == 0) {
    track_.interval(busy_since_, services_.now(), 1);
    (kind_ == Kind::read ? statistics.dma_read_busy : statistics.dma_write_busy) += services_.now() - busy_since_;
  }
  if (Usage* own = usage()) own->busy(jobs_ == 0 ? busy_since_ : services_.now(), services_.now(), 0, 1);
  const Ps setup = job.first_burst == kNever ? 0 : job.first_burst - op.started;
  log_op(services_, op, component(), {job.space, std::nullopt, &job.spent, setup});
  unlink(job);
  delete &job;
  sink_.completed(op);
}

void DmaEngine::remove(const KernelContext& context, std::vector<Op*>& removed) { queues_.remove(context, removed); }

void DmaEngine::link(Job& job) {
  job.next = all_;
  if (all_ != nullptr) all_->previous = &job;
  all_ = &job;
}

void DmaEngine::unlink(Job& job) {
  (job.previous == nullptr ? all_ : job.previous->next) = job.next;
  if (job.next != nullptr) job.next->previous = job.previous;
}

}  // namespace kernbench::pe
