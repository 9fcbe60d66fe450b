#pragma once
#include <cstdint>
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

#include "models/hbm/hbm_config.h"
#include "tlm/machine/ids.h"
#include "tlm/machine/run_options.h"
#include "tlm/observe/observer.h"
#include "tlm/sim/event_queue.h"

namespace kernbench {

class Usage;

/// The HBM stack of one cube. port[i] serves the slice of PE i: pseudo channels [i*n, (i+1)*n), interleaved every
/// `interleave_bytes`. TLM-2.0 base protocol: nb_transport (queues, backpressure by a late END_REQ), b_transport
/// (annotated delay, no wait), transport_dbg (returns 0 without data). Addresses are encoded PhysicalAddress values.
/// Reads are answered when their last burst has arrived, writes when they are queued; contents change in the order in
/// which requests are taken. Timing: ChannelTiming, and `controller_latency` after it; with the fast grade a decision
/// takes up to four bursts of a row. Events: docs/hbm.md.
class Hbm : public sc_core::sc_module {
 public:
  Hbm(const sc_core::sc_module_name& name, const HbmConfig& config, CubeCoord cube, std::uint32_t slices,
      const RunOptions& options, EventQueue& queue, Observer* observer);
  ~Hbm() override;
  std::vector<std::unique_ptr<tlm::tlm_target_socket<>>> port;  ///< by slice

  struct Stats {
    std::uint64_t row_hits = 0, row_closed = 0, row_conflicts = 0;  ///< bursts, by state of their bank
    std::uint64_t activates = 0;                                    ///< of a row that a refresh closed too soon, again
    std::uint64_t reads = 0, writes = 0;                            ///< bursts
    std::uint64_t bytes = 0;                                        ///< of requests
    std::uint64_t refreshes = 0, bank_refreshes = 0;                ///< commands; banks refreshed by them
    std::uint64_t forwarded = 0, merged = 0;                        ///< bursts that the write queue answered
    std::uint64_t active_channels = 0;                              ///< used at least once
    Ps busy = 0;                                                    ///< data buses, summed over pseudo channels
  };
  Stats stats();
  Stats channel_stats(unsigned channel);  ///< of one channel; `bytes` are those of its bursts
  /// Books what the data buses do; a unit is a pseudo channel. `unit`: below usages().
  void observe_usage(unsigned unit, Usage* usage);
  /// Channels; or slices, where the pseudo channels of a slice go in step.
  unsigned usages() const;
  bool by_slice() const;
  unsigned pseudo_channels_of_usage() const;
  /// Evaluates every channel up to the present instant, for statistics and observers: idle ones lag behind.
  void flush();
  /// At the end of a simulation: issues what still waits in the write queues. Returns the end of the last data.
  Ps drain();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench
