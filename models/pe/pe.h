#pragma once
#include <cstdint>
#include <memory>
#include <systemc>
#include <tlm>

#include "models/pe/pe_config.h"
#include "tlm/ext/payload_pool.h"
#include "tlm/machine/machine_map.h"
#include "tlm/machine/run_options.h"
#include "tlm/observe/observer.h"
#include "tlm/observe/wait_for.h"
#include "tlm/sim/event_queue.h"

namespace kernbench {

class PageTable;  // models/pe/page_table.h: shared by the PEs of a SIP

/// A processing element: PE_CPU, DMA read and write, GEMM and math engines, TCM, MMU and IPCQ unit, as parts.
/// Takes commands (arm, start, sfr_write, ...) as packets at `in`; injects at `out`. TCM is reachable over `in` too
/// (nb_transport and transport_dbg).
class Pe : public sc_core::sc_module, public Explainer {
 public:
  Pe(const sc_core::sc_module_name& name, const PeConfig& config, PeCoord coord, const MachineMap& map, PageTable& pages,
     PayloadPool& pool, const RunOptions& options, EventQueue& queue, Observer* observer);
  ~Pe() override;

  tlm::tlm_initiator_socket<> out{"out"};
  tlm::tlm_target_socket<> in{"in"};

  void explain(std::vector<Blocked>& blocked) const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench
