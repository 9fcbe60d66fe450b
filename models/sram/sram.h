#pragma once
#include <cstdint>
#include <memory>
#include <systemc>
#include <tlm>

#include "tlm/machine/run_options.h"
#include "tlm/observe/observer.h"
#include "tlm/sim/event_queue.h"

namespace kernbench {

/// A cube's shared SRAM. Source of the figures: topology presets.
struct SramConfig {
  std::uint64_t bytes = 32u << 20;
  std::uint32_t banks = 16;
  std::uint32_t bank_interleave_bytes = 256;
  std::uint64_t bytes_per_second = 512'000'000'000;  ///< all banks together
  Ps latency = 2'000;                                ///< access time of a bank
  std::uint32_t queue_depth = 32;                    ///< requests
};

/// TLM-2.0 base protocol as Hbm. A request holds its bank for bytes / (rate / banks) and answers `latency` later.
class Sram : public sc_core::sc_module {
 public:
  Sram(const sc_core::sc_module_name& name, const SramConfig& config, const RunOptions& options, EventQueue& queue,
       Observer* observer);
  ~Sram() override;
  tlm::tlm_target_socket<> port{"port"};

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench
