#pragma once
#include <optional>

#include "models/io/pcie_ep.h"
#include "sc_main/rigs/link_bench.h"

namespace kernbench {

/// One direction of the host link by itself, by its timing rule (PcieDirection): messages that follow each other under
/// an offered load above 0. Latency: until the last byte has arrived; at load 1, when a message always waits, from the
/// beginning of the one before it.
LinkPoint measure_pcie_direction(const PcieConfig& config, const LinkLoad& load);

// Closed forms, from the configuration alone.

/// Time in ns that a message needs the link for: its TLPs on the wire or, beyond the receiver's credits, one TLP per
/// round trip / credits.
double pcie_wire_ns(const PcieConfig& config, std::uint64_t bytes);
/// Payload rate in GB/s of messages of `bytes` that follow each other.
double pcie_capacity_gbps(const PcieConfig& config, std::uint64_t bytes);
/// Mean latency in ns at loads between 0 and 1: an M/D/1 queue before the idle link. None where credits limit the rate:
/// those that have come back meanwhile let a burst of messages pass.
std::optional<double> pcie_loaded_ns(const PcieConfig& config, std::uint64_t bytes, double load);

}  // namespace kernbench
