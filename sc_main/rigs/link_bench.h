#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/link/link_config.h"
#include "models/link/wire.h"
#include "models/noc/noc_config.h"
#include "tlm/ext/payload_pool.h"
#include "tlm/sim/event_queue.h"
#include "tlm/sim/random.h"

namespace kernbench {

/// What is sent over a wire in one measurement: messages of `bytes`, cut into packets of at most 256 B.
struct LinkLoad {
  std::uint64_t bytes = 256;
  /// Of the wire's payload rate. 0: one message at a time; below 1: messages at exponential intervals; 1: as fast as
  /// the wire takes them.
  double load = 0;
  unsigned messages = 1000;  ///< measured, after a tenth of them that is not
  std::uint64_t seed = 1;    ///< of the intervals
};

/// Numbers of a load's intervals: uniform in (0, 1].
class IntervalNumbers {
 public:
  explicit IntervalNumbers(std::uint64_t seed) : state_(seed) {}
  double uniform() { return (static_cast<double>(next_splitmix64(state_) >> 11) + 1) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

struct LinkPoint {
  LinkLoad sent;
  /// Of a message: first byte at the near port to last byte at the first router behind the far one.
  double mean_ns = 0;
  double most_ns = 0;
  double wire_ns = 0;  ///< of a packet: first byte onto the wire to last byte checked at the far end; FDI to FDI
  double gbps = 0;     ///< payload
};

/// Two link ports back to back, without networks: a source that hands packets to one at the rate of its network, a sink
/// that takes them from the other at once. Measurements follow each other in one simulation.
class LinkBench {
 public:
  /// `name` is that of its modules. `here`, `there`: queues of the two ends; may be the same one.
  LinkBench(const std::string& name, const LinkConfig& link, const NocConfig& noc, EventQueue& here, EventQueue& there,
            PayloadPool& pool);
  ~LinkBench();

  /// Before the simulation starts. Loads are measured in order.
  void start(const std::vector<LinkLoad>& loads);
  /// After it: one point for each load.
  const std::vector<LinkPoint>& points() const;
  const Wire& wire() const;

  // Closed forms, from the configuration alone.

  /// Payload rates in GB/s that there can be of messages of `bytes`.
  struct Rates {
    double wire = 0;     ///< raw rate x efficiency x payload in packets x share of replays
    double network = 0;  ///< what the network behind it injects: one flit per cycle
    double credits = 0;  ///< receiver's places, each for a whole packet, however small, per round trip of a credit
    double least() const { return std::min({wire, network, credits}); }
  };
  static Rates rates_gbps(const LinkConfig& link, const NocConfig& noc, std::uint64_t bytes);
  static double capacity_gbps(const LinkConfig& link, const NocConfig& noc, std::uint64_t bytes) {
    return rates_gbps(link, noc, bytes).least();
  }
  /// For how long a message holds an idle wire, in ns.
  static double wire_ns(const LinkConfig& link, std::uint64_t bytes);
  /// Latency in ns of a message on an idle wire.
  static double zero_load_ns(const LinkConfig& link, const NocConfig& noc, std::uint64_t bytes);
  /// Mean latency in ns of messages at exponential intervals: an M/D/1 queue before the idle wire. Flits that begin
  /// with a packet only on an idle wire make it approximate.
  static double loaded_ns(const LinkConfig& link, const NocConfig& noc, std::uint64_t bytes, double load);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench
