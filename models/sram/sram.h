#pragma once
#include <cstdint>
#include <memory>
#include <systemc>
#include <tlm>

#include "models/sram/sram_config.h"
#include "tlm/machine/run_options.h"
#include "tlm/observe/observer.h"
#include "tlm/sim/event_queue.h"

namespace kernbench {

class Usage;

/// TLM-2.0 base protocol as Hbm. A request holds its bank for bytes / (rate / banks) and answers `latency` later
/// (SramTiming); a slot of the queue is held until the bank is done. Addresses are encoded PhysicalAddress values of
/// kind sram, of any cube.
class Sram : public sc_core::sc_module {
 public:
  Sram(const sc_core::sc_module_name& name, const SramConfig& config, const RunOptions& options, EventQueue& queue,
       Observer* observer);
  ~Sram() override;
  tlm::tlm_target_socket<> port{"port"};

  /// Books what its banks do; a unit is a bank.
  void observe_usage(Usage* usage);
  struct Served {
    std::uint64_t requests = 0, bytes = 0;
    Ps busy = 0;  ///< of all banks together
  };
  const Served& served() const;
  std::uint64_t bytes_moved() const;  ///< read and written since the start of the run

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench
