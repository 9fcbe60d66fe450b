#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/pipeline/evaluate.h"
#include "runtime/pipeline/run/plan.h"
#include "runtime/runtime.h"

namespace kernbench::pipeline {

/// What a cpu slot takes for its work: the longer of arithmetic and memory traffic. assumed: a server socket of 64
/// cores with AVX-512 at a tenth of its peak, eight channels of DDR5-4800, and a PCIe 5.0 x16 link to each SIP
struct HostModel {
  double flops_per_s = 5e11, bytes_per_s = 3e11, link_bytes_per_s = 5e10;
  Ps link_latency = 1'000'000;
  Ps time_of(const HostWork& work) const;
  Ps transfer(std::uint64_t bytes) const;  ///< over the link
};

struct RunSettings {
  int warmup = 1, iterations = 1;  ///< passes
  int requests = 1;  ///< of a pass: one follows the other on each slot, without waiting for the other slots
  HostModel host;
  bool data = true;                                      ///< off: no contents
  std::uint64_t seed = 1;                                ///< of the rows that computed indices stand for (look_ups.h)
  bool timed_host_io = false;                            ///< host copies take simulated time by themselves
  bool copies() const { return data || timed_host_io; }  ///< what the host writes changes contents or times
  ProcessGroupOptions group;                             ///< of the exchanges
  /// Each exchange has queues of its own, so that slots may come to exchanges of the same members in different orders.
  bool own_groups = false;
  std::map<std::string, HostTensor> inputs;  ///< by tensor of the pipeline, of every supertask of kind `input`
};

/// One supertask of the last request. Times from the begin of the pass.
struct TaskTime {
  const SuperTask* task = nullptr;
  Ps begin = 0, end = 0;
};

/// What a slot spends a pass with; the rest it idles.
struct SlotTimes {
  Ps computing = 0, communicating = 0;  ///< the latter with waiting for the other members of exchanges
};

/// What became of a run.
struct RunOutcome {
  std::vector<Ps> passes;  ///< that count: from the moment at which all slots begin to that at which the last one ends
  std::vector<std::vector<TaskTime>> slots;  ///< by slot of the document, in order
  std::vector<SlotTimes> busy;               ///< by slot, in the last pass, all requests together
  /// Of the last pass, by request: from the first slot's begin of it to the last one's end of it.
  std::vector<std::pair<Ps, Ps>> requests;
  Ps loading = 0;                             ///< of constants and inputs, on the slot that took longest
  std::map<std::string, HostTensor> outputs;  ///< by tensor of the pipeline
};

/// A pipeline on the machine. Ranks are the machine's SIPs, each of which drives the first slot on it, then a worker
/// for each cpu slot and for each further slot of a SIP.
class PipelineRun {
 public:
  /// The arguments outlive it.
  PipelineRun(const Pipeline& pipeline, const Checked& checked, std::vector<SlotPlan> plans, RunSettings settings,
              int sips);

  int ranks() const { return sips_ + own_workers_; }
  void rank_program(Context& context);        ///< every rank calls it
  RunOutcome& outcome() { return outcome_; }  ///< once all have returned
  /// Of a run that ended in the middle: the supertask that each slot is in, a line each. Slots that are in none wait
  /// for the others to end the pass.
  std::string standing() const;

 private:
  /// What goes between a cpu slot and another one, or among parts of a SIP, in one request.
  struct Transfer {
    Handle ready, taken;
    HostTensor data;
    std::vector<Tensor> parts;         ///< among parts of a SIP: what each member brings
    std::size_t came = 0, served = 0;  ///< members
  };
  class Worker;

  const Pipeline& pipeline_;
  const Checked& checked_;
  const std::vector<SlotPlan> plans_;
  const RunSettings settings_;
  const int sips_;
  int own_workers_ = 0;
  std::vector<int> rank_of_;                                   // by slot
  std::map<std::pair<int, std::string>, Transfer> transfers_;  // by request of all passes and group
  std::set<int> seen_requests_;                                // of all passes, of which a slot has ended
  std::vector<const SuperTask*> doing_;                        // by slot; null: none
  RunOutcome outcome_;
};

/// Supertasks that decide the latency, first to last: each begins when the one before it has ended, or waits for it as
/// a member of its exchange. Their times follow each other without a gap.
std::vector<TaskTime> critical_path(const Checked& checked, const RunOutcome& outcome);

}  // namespace kernbench::pipeline
