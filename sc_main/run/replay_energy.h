#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/replay_options.h"
#include "topology/machine/energy.h"

namespace kernbench {

/// The work of a SIP as counters of Replay, and what repeats would have added, as rows of the energy.
class ReplayEnergy final : public ReplayCounters {
 public:
  ReplayEnergy(topology::Machine& machine, const topology::Plan& plan) : machine_(machine), plan_(plan) {}
  void read(int sip, std::vector<double>& into) override;
  /// Adds what repeats would have done to `rows`. `counts`: Runtime::replay_counts.
  void add(const std::vector<double>& counts, std::vector<topology::EnergyRow>& rows) const;

 private:
  struct Counter {
    std::string component, operation, unit;
  };
  topology::Machine& machine_;
  const topology::Plan& plan_;
  std::vector<Counter> counters_;  // two numbers each: count, pJ
  std::map<std::pair<std::string, std::string>, std::size_t> places_;
};

/// By SIP: equal numbers where cubes, PEs and what joins them are equal (ReplayOptions::alike).
std::vector<std::uint32_t> alike_sips(const topology::Plan& plan);

}  // namespace kernbench
