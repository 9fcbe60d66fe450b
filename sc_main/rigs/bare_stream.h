#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/hbm/channel_gaps.h"
#include "tlm/sim/event_queue.h"

namespace kernbench {

/// One HBM channel of the project's Hbm module under a synthetic stream, sent to its socket in bursts of the device.
struct BareStreamConfig {
  HbmConfig hbm;                 ///< device and controller; channels, queue_depth, mapping and bytes are replaced
  unsigned pseudo_channels = 1;  ///< that the stream uses
  std::uint32_t rows = 16'384;   ///< of a bank
  std::string pattern = "seq";   ///< StreamPattern
  std::string mapping;           ///< fields, most significant first; empty: as RoSiBaCoBg
  std::uint32_t request_bytes = 32;
  unsigned reads = 1, writes = 0;  ///< of a cycle of the mix: request i is a write when i mod (reads + writes) >= reads
  unsigned queue = 32;             ///< bursts in each queue of the channel
  std::uint64_t requests = 50'000;

  enum class Arrivals { saturate, closed_loop, fixed, poisson } arrivals = Arrivals::saturate;
  unsigned outstanding = 1;  ///< closed loop: requests in flight
  double load = 0.5;         ///< fixed, poisson: bytes offered, as a fraction of the peak of the pseudo channels in use
  std::uint64_t seed = 1;    ///< poisson
  /// Instead of a pattern: bursts at given places and times, in order of time.
  struct Step {
    Ps time = 0;
    BurstPlace place;
    bool write = false;
  };
  std::vector<Step> script;
  bool paced = false;  ///< at most one request per CK, as a port that takes one at a time
  bool fast = false;   ///< grade
};

struct BareStreamResult {
  double ns = 0;      ///< from 0 to the end of the last data
  double clocks = 0;  ///< the same in CK
  std::uint64_t bursts = 0, bytes = 0;
  double gbps = 0, fraction_of_peak = 0;
  /// Reads, ns: acceptance into the queue to the last data; `from_arrival` counts waiting outside a full queue, too.
  double mean_ns = 0, p50_ns = 0, p95_ns = 0, p99_ns = 0, mean_from_arrival_ns = 0;
  std::uint64_t row_hits = 0, row_closed = 0, row_conflicts = 0, refreshes = 0;
  std::vector<double> script_ns;  ///< latency of each step of a script; of a write: until it is acknowledged
  double cpu_s = 0;               ///< user time of the stream itself
};

/// Builds the module, before elaboration; the stream starts with the events of `queue`. Throws std::invalid_argument
/// for what cannot be built.
class BareStream {
 public:
  BareStream(const BareStreamConfig& config, EventQueue& queue);
  ~BareStream();
  /// Once the queue has run empty.
  BareStreamResult result();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Both, and the elaboration between them: once per process.
BareStreamResult run_bare_stream(const BareStreamConfig& config);

}  // namespace kernbench
