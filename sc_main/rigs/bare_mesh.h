#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "tlm/sim/event_queue.h"

namespace kernbench {

/// A bare mesh under synthetic traffic: a node per router with an unbounded source queue and a perfect sink, one class
/// of packets of one size on all virtual channels. Times in cycles of the router's clock, sizes in flits.
struct BareMeshConfig {
  unsigned cols = 8, rows = 8;
  std::string pattern = "uniform";  ///< TrafficPattern
  unsigned packet_flits = 8;
  unsigned vcs = 4;       ///< virtual channels of each input
  unsigned vc_depth = 8;  ///< buffer of each, flits
  bool hold = false;      ///< a link that is granted to a packet stays with it until its tail
  unsigned routing_delay = 0, vc_alloc_delay = 1, sw_alloc_delay = 1, switch_delay = 1, link_delay = 1;  ///< cycles
  unsigned credit_delay = 2;  ///< cycles from a freed buffer to credit usable upstream: credit channel and processing
  bool fast = false;          ///< grade of the network

  double load = 0.1;  ///< flits per node and cycle; each node creates a packet in a cycle with probability load / flits
  std::uint64_t seed = 1;
  std::uint64_t warmup = 10'000, window = 30'000;  ///< cycles; packets created in the window are measured
  /// Runs on, with traffic, until every measured packet has arrived, for at most this many times warm-up and window; 0:
  /// ends with the window.
  unsigned drain = 8;
};

struct BareMeshResult {
  double offered = 0, injected = 0, accepted = 0;  ///< flits per node and cycle, in the window
  double latency = 0;                              ///< mean, cycles: creation to arrival of the last flit
  double network_latency = 0;               ///< mean, cycles: head leaves the source queue to arrival of the last flit
  double p50 = 0, p95 = 0, p99 = 0;         ///< cycles, of `latency`
  double links = 0;                         ///< mean, router to router
  double zero_load = 0;                     ///< latency without contention, mean over the pattern, cycles
  std::uint64_t measured = 0, arrived = 0;  ///< packets created in the window; those of them that arrived
  std::uint64_t packets = 0;                ///< delivered in the whole run
  std::uint64_t cycles = 0;                 ///< length of the run
  std::vector<double> least_latency;        ///< by links: smallest latency of a measured packet, cycles; 0: none
  double cpu_s = 0;                         ///< user time of the simulation without its elaboration
};

/// Why a mesh cannot be built.
struct BareMeshFault {
  const char* member;  ///< of BareMeshConfig: what is to be changed; "delays": of those in cycles
  std::string text, hint;
};
/// All that keeps a mesh from being built; empty: it can be.
std::vector<BareMeshFault> faults(const BareMeshConfig& config);
/// Throws std::invalid_argument if there are faults.
void check(const BareMeshConfig& config);

/// The mesh, built of the project's Router modules, its nodes and its traffic. Several may stand side by side.
///
/// The run ends by itself: traffic stops once every measured packet has arrived, and what waits in source queues is
/// dropped.
class BareMesh : public sc_core::sc_module {
 public:
  /// Throws as check().
  BareMesh(const sc_core::sc_module_name& name, const BareMeshConfig& config, EventQueue& queue);
  ~BareMesh() override;
  BareMeshResult result() const;  ///< after the simulation

 private:
  void start_of_simulation() override;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Builds a mesh alone and runs it. Once per process, before any other elaboration. Throws as check().
BareMeshResult run_bare_mesh(const BareMeshConfig& config);

}  // namespace kernbench
