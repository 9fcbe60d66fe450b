#pragma once
#include <memory>
#include <string>
#include <vector>

#include "models/pe/compute/composite.h"
#include "models/pe/compute/compute_engine.h"
#include "models/pe/cpu/kernel_context.h"
#include "models/pe/dma/dma_engine.h"
#include "models/pe/ipcq/ipcq.h"
#include "tlm/observe/wait_for.h"

namespace kernbench::pe {

/// Executes commands and kernels: owns the engines and up to `kernel_contexts` launches.
///
/// One thing at a time: a command takes `command`, the issue of an op `dispatch`; commands first, then the kernels in
/// turn. An op is issued when its dispatch ends and waits in its engine's queue from then on. A kernel is passed over
/// while it is at a wait or a fence, or its next op's queue is full. `start` needs no time of the CPU: the start time
/// was set with it and the kernel's first dispatch begins at that instant.
class PeCpu final : public OpSink, public TileSink {
 public:
  PeCpu(Services& services, StackPool* stacks);
  ~PeCpu() override;

  void command(const Command& command);
  Ipcq& ipcq() { return ipcq_; }
  const Ipcq& ipcq() const { return ipcq_; }
  void explain(std::vector<Blocked>& blocked) const;

  void completed(Op& op) override;
  void reads_done(Op& op) override;
  void room() override;
  void fault(Op& op, Fault::Kind kind, const char* component, const std::string& reason) override;
  bool tile_fits(const Op& tile) const override;
  void issue_tile(Op& tile) override;

 private:
  // Commands (pe_cpu_commands.cpp).
  void handle(const Command& command);
  void arm(Message& message);
  void arm_waiting();
  void left(std::uint32_t index, std::uint16_t stream);
  void record(std::uint32_t index, Message& message);
  void start(const Command& command);
  void sfr_write(const Command& command);
  void mmu_changed(const Command& command);
  void program(const Command& command);
  void abort(const Command& command);
  void answer(CommandKind kind, Message& message);
  KernelContext* context_of(const Message& message) const;

  // Issue (pe_cpu.cpp).
  void advance();
  bool may_issue(KernelContext& context);
  void dispatched(std::uint32_t index);
  void issue(std::unique_ptr<Op> op);
  void enter_hazards(Op& op);
  void stall(KernelContext& context, CpuWait why, const Op* op);
  void resume(KernelContext& context);
  void worked(Ps time, std::uint64_t state);
  bool fits(const Op& op) const;
  void enqueue(Op& op);
  void wake(const std::vector<Hazard*>& ready);
  void fenced(const KernelContext& context);
  void finish_if_done(KernelContext& context);
  void end_mark(KernelContext& context);
  void fail(KernelContext& context);
  void count_rings(const KernelContext& context) const;
  void abandon(KernelContext& context);
  void drop(Op& op);
  Composite& composite_of(const Op& op) { return *composites_[op.context->index]; }

  Services& services_;
  std::unique_ptr<StackPool> own_stacks_;
  StackPool* stacks_;
  DmaEngine dma_r_, dma_w_;
  ComputeEngine gemm_, math_;
  Ipcq ipcq_;
  std::vector<std::unique_ptr<Composite>> composites_;    // by context; made when first needed
  std::vector<std::unique_ptr<KernelContext>> contexts_;  // null: free
  std::vector<Command> commands_;                         // not handled yet, in order of arrival
  std::vector<Message*> waiting_arms_;                    // for a free context, in order of arrival
  std::vector<Message*> successors_;                      // armed; each gets the context of its stream
  std::uint32_t arm_packets_ = 0;                         // of the launch that arms: of a SIP one does at a time
  Programs programs_;
  std::uint64_t launches_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint32_t next_context_ = 0;
  bool busy_ = false;
  Cause cause_;  // of what it is at
  Track track_;
  std::vector<Track> kernel_tracks_, op_tracks_;  // by context
  std::vector<std::string> stall_texts_;          // by context, where op_tracks_ are wanted
};

}  // namespace kernbench::pe
