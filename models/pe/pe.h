#pragma once
#include <memory>
#include <systemc>
#include <tlm>

#include "models/pe/ipcq/queue_statistics.h"
#include "models/pe/pe_config.h"
#include "models/pe/pe_statistics.h"
#include "tlm/ext/payload_pool.h"
#include "tlm/machine/machine_map.h"
#include "tlm/machine/run_options.h"
#include "tlm/observe/observer.h"
#include "tlm/observe/wait_for.h"
#include "tlm/sim/event_queue.h"

namespace kernbench {

class PageTable;     // tlm/ext/page_table.h: shared by the PEs of a SIP
class RaceDetector;  // models/pe/cpu/race_detector.h: the same
class StackPool;     // models/pe/cpu/stack_pool.h: shared by the PEs of a machine
class UsageBook;

/// A processing element: PE_CPU, DMA read and write, GEMM and math engines, TCM, MMU and IPCQ unit, as parts.
/// Takes commands (arm, start, sfr_write, ...) as packets at `in`; injects at `out`. TCM is reachable over `in` too
/// (nb_transport, b_transport and transport_dbg). `stacks` null: this PE keeps stacks of its own. `races` null:
/// nobody looks for races. See docs/pe.md.
class Pe : public sc_core::sc_module, public Explainer {
 public:
  Pe(const sc_core::sc_module_name& name, const PeConfig& config, PeCoord coord, const MachineMap& map,
     PageTable& pages, PayloadPool& pool, const RunOptions& options, EventQueue& queue, Observer* observer,
     StackPool* stacks = nullptr, RaceDetector* races = nullptr);
  ~Pe() override;

  tlm::tlm_initiator_socket<> out{"out"};
  tlm::tlm_target_socket<> in{"in"};

  void explain(std::vector<Blocked>& blocked) const override;
  std::vector<QueueStatistics> ipcq_statistics() const;  ///< by queue pair, in order of installation
  PeStatistics statistics() const;
  /// From now on its parts book what they do in usages of `book`.
  void observe_usage(UsageBook& book);
  const PeUsages& usages() const;
  /// Ports of TCM, and what the engines stream.
  enum class TcmPart { read, write, stream };
  const TcmTraffic& tcm_traffic(TcmPart part) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench
