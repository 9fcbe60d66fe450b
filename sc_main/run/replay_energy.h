#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/replay_options.h"
#include "topology/machine/energy.h"

namespace kernbench {

/// The work of SIPs as the energy counts it, and what repeats would have added.
class ReplayEnergy final : public ReplayRecord {
 public:
  ReplayEnergy(topology::Machine& machine, const topology::Plan& plan) : machine_(machine), plan_(plan) {}
  std::unique_ptr<Done> begin(const Batch& batch) override;
  void end(int sip, Done& done) override;
  void simulated(Work work, const Done& done, Ps from, bool afresh) override;
  void repeated(Work work, const Batch& batch, Ps begin, Ps end) override;
  /// Adds what repeats would have done to `rows`.
  void add(std::vector<topology::EnergyRow>& rows) const;

 private:
  struct Counter {
    std::string component, operation, unit;
  };
  using Counts = std::vector<double>;  // two of each counter: count, pJ
  struct Counted;
  struct Kind {
    Counts sums;
    std::uint64_t occurrences = 0, repeats = 0;
  };
  Counts read(int sip, bool links);

  topology::Machine& machine_;
  const topology::Plan& plan_;
  std::vector<Counter> counters_;
  std::map<std::pair<std::string, std::string>, std::size_t> places_;
  std::map<std::pair<std::size_t, std::size_t>, Kind> kinds_;  // by kind and part
};

/// By SIP: equal numbers where cubes, PEs and what joins them are equal (ReplayOptions::alike).
std::vector<std::uint32_t> alike_sips(const topology::Plan& plan);

}  // namespace kernbench
