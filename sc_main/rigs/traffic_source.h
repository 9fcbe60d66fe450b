#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "sc_main/rigs/traffic_pattern.h"

namespace kernbench {

/// When each node of a mesh creates packets: one Bernoulli trial per node and cycle.
///
/// The trials of all nodes, cycle after cycle, are one sequence of independent trials; the gap to the next success is
/// drawn from its geometric distribution, so that cycles without packets cost nothing.
class BernoulliArrivals {
 public:
  struct Arrival {
    std::uint64_t cycle = 0;
    unsigned node = 0;
  };
  /// REQUIRES: 0 < probability <= 1.
  BernoulliArrivals(unsigned nodes, double probability, std::uint64_t seed)
      : nodes_(nodes), log_failure_(std::log1p(-probability)), random_(seed, kStream) {}

  /// Arrivals in order of (cycle, node).
  Arrival next() {
    trial_ += gap();
    const Arrival arrival{trial_ / nodes_, static_cast<unsigned>(trial_ % nodes_)};
    ++trial_;
    return arrival;
  }

 private:
  static constexpr std::uint64_t kStream = 1;  // of the seed's generators; destinations use 0
  /// Failures before the next success. log_failure_ is -infinity for certain success.
  std::uint64_t gap() { return static_cast<std::uint64_t>(std::log(random_.unit()) / log_failure_); }

  const std::uint64_t nodes_;
  const double log_failure_;
  std::uint64_t trial_ = 0;
  Random random_;
};

/// What is counted of the packets of a mesh, in cycles. Packets created from `begin` to before `end` are measured;
/// throughput is what happens in that time.
class TrafficMeter {
 public:
  TrafficMeter(std::uint64_t begin, std::uint64_t end) : begin_(begin), end_(end) {}

  bool in_window(std::uint64_t cycle) const { return cycle >= begin_ && cycle < end_; }
  void created(std::uint64_t cycle) { measured_ += in_window(cycle) ? 1 : 0; }
  void injected(std::uint64_t cycle) { injected_ += in_window(cycle) ? 1 : 0; }
  /// A packet that was created at `created` and whose head left the source queue at `left` has arrived at `tail`.
  void arrived(std::uint64_t created, std::uint64_t left, std::uint64_t tail, unsigned links) {
    if (frozen_) return;
    ++packets_;
    accepted_ += in_window(tail) ? 1 : 0;
    if (!in_window(created)) return;
    ++arrived_;
    const std::uint64_t latency = tail - created;
    latency_sum_ += latency;
    network_sum_ += tail - left;
    links_sum_ += links;
    if (latency >= histogram_.size()) histogram_.resize(std::max<std::size_t>(latency + 1, 2 * histogram_.size()));
    ++histogram_[latency];
    if (links >= least_.size()) least_.resize(links + 1, std::numeric_limits<std::uint64_t>::max());
    least_[links] = std::min(least_[links], latency);
  }

  /// The run is over: what still arrives does not count.
  void freeze() { frozen_ = true; }

  std::uint64_t measured() const { return measured_; }
  std::uint64_t arrived_count() const { return arrived_; }
  std::uint64_t packets() const { return packets_; }
  std::uint64_t injected_count() const { return injected_; }
  std::uint64_t accepted_count() const { return accepted_; }
  double mean_latency() const { return mean(latency_sum_); }
  double mean_network_latency() const { return mean(network_sum_); }
  double mean_links() const { return mean(links_sum_); }
  /// Least latency that at least `fraction` of the measured packets do not exceed.
  double percentile(double fraction) const {
    const double wanted = fraction * static_cast<double>(arrived_);
    std::uint64_t sum = 0;
    for (std::size_t latency = 0; latency < histogram_.size(); ++latency) {
      sum += histogram_[latency];
      if (sum > 0 && static_cast<double>(sum) >= wanted) return static_cast<double>(latency);
    }
    return 0;
  }
  /// By links; 0: no such packet.
  std::vector<double> least_latency() const {
    std::vector<double> all;
    for (const std::uint64_t least : least_)
      all.push_back(least == std::numeric_limits<std::uint64_t>::max() ? 0 : static_cast<double>(least));
    return all;
  }

 private:
  double mean(std::uint64_t sum) const {
    return arrived_ == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(arrived_);
  }

  const std::uint64_t begin_, end_;
  bool frozen_ = false;
  std::uint64_t measured_ = 0, arrived_ = 0, packets_ = 0, injected_ = 0, accepted_ = 0;
  std::uint64_t latency_sum_ = 0, network_sum_ = 0, links_sum_ = 0;
  std::vector<std::uint64_t> histogram_;
  std::vector<std::uint64_t> least_;
};

}  // namespace kernbench
