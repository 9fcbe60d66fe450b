#pragma once
#include "models/pe/dma/burst_plan.h"
#include "models/pe/engine_queues.h"
#include "models/pe/services.h"
#include "models/pe/tracks.h"

namespace kernbench::pe {

/// The read or the write half of a PE's DMA.
///
/// Ops are taken in order; each costs `setup`, then its bursts are issued, at most `outstanding` in flight. The next op
/// begins while bursts of the one before are still under way. A TLB miss stops issue for the walk. A read's data pass
/// TCM's write port as they arrive; a write's pass its read port before they leave.
class DmaEngine {
 public:
  enum class Kind { read, write };
  DmaEngine(Kind kind, Services& services, OpSink& sink);
  ~DmaEngine();

  bool full(const Op& op) const;
  void enqueue(Op& op);
  void advance();  ///< an op may have become ready
  /// Takes out what is queued of a failed kernel. The op under way, once aborted, completes with its last response.
  void remove(const KernelContext& context, std::vector<Op*>& removed);
  /// Bursts in flight; for the deadlock report.
  std::uint32_t outstanding() const { return outstanding_; }

 private:
  struct Job;
  bool begin_job();
  bool next_burst();
  void leave();
  void inject(Job& job, const Burst& burst, Ps read);
  void end_of_bursts();
  enum class Then { go_on, leave };
  void pause_until(Ps time, Then then);
  void arrived(Job& job, tlm::tlm_generic_payload& payload, const Packet& packet);
  void complete_when_done(Job& job);
  void complete(Job& job);
  void link(Job& job);
  void unlink(Job& job);
  const char* component() const { return kind_ == Kind::read ? "dma_r" : "dma_w"; }
  /// Null: nobody wants what happens over time.
  Usage* usage() const { return kind_ == Kind::read ? services_.usages.dma_r : services_.usages.dma_w; }

  Services& services_;
  OpSink& sink_;
  const Kind kind_;
  EngineQueues queues_;
  Job* issuing_ = nullptr;  // whose bursts are being issued
  Job* all_ = nullptr;      // that one and those that wait for responses
  /// A burst of a write whose data have passed TCM's port.
  struct Leaving {
    Job* job;
    Burst burst;
    Ps read;
    Cause cause;
  };
  std::vector<Leaving> leaving_;  // in order; those whose data TCM's latency keeps
  Burst burst_;
  Ps read_ = 0;  // when TCM has read all of it; writes
  bool has_burst_ = false;
  bool paused_ = false;     // an event of ours will go on
  bool advancing_ = false;  // further up the stack
  std::uint32_t outstanding_ = 0;
  std::uint32_t jobs_ = 0;
  Ps busy_since_ = 0;
  Track track_;
  Cause cause_;  // of the pause
};

}  // namespace kernbench::pe
