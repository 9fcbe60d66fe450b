#include "sc_main/rigs/pcie_bench.h"

#include <algorithm>
#include <cmath>

#include "models/io/pcie_link.h"

namespace kernbench {
namespace {

constexpr double kPsPerNsF = 1000;

double tlps_of(const PcieConfig& config, std::uint64_t bytes) {
  return static_cast<double>(
      std::max<std::uint64_t>((bytes + config.tlp_payload_bytes - 1) / config.tlp_payload_bytes, 1));
}
double ns_for(const PcieConfig& config, double raw_bytes) {
  return 1e9 * raw_bytes / static_cast<double>(config.bytes_per_second);
}
double full_tlp_ns(const PcieConfig& config) {
  return ns_for(config, config.tlp_payload_bytes + config.tlp_overhead_bytes);
}
/// From one returned credit to the next.
double paced_ns(const PcieConfig& config) {
  return (2 * static_cast<double>(config.latency) / kPsPerNsF + full_tlp_ns(config)) / config.credits;
}
double on_wire_ns(const PcieConfig& config, std::uint64_t bytes) {
  return ns_for(config, static_cast<double>(bytes) + tlps_of(config, bytes) * config.tlp_overhead_bytes);
}

}  // namespace

LinkPoint measure_pcie_direction(const PcieConfig& config, const LinkLoad& load) {
  PcieDirection link(config);
  IntervalNumbers numbers(load.seed);
  const double mean_ps =
      kPsPerNsF * static_cast<double>(load.bytes) / (pcie_capacity_gbps(config, load.bytes) * load.load);
  const unsigned warm_up = load.messages / 10;
  double next = 0, sum = 0;
  Ps first = 0, most = 0, before = 0;
  PcieDirection::Slot slot;
  for (unsigned i = 0; i < warm_up + load.messages; ++i) {
    if (load.load < 1) next += mean_ps * -std::log(numbers.uniform());
    const Ps at = load.load < 1 ? static_cast<Ps>(next) : before;
    slot = link.take(at, load.bytes);
    before = slot.begin;
    if (i < warm_up) {
      first = slot.arrival;
      continue;
    }
    sum += static_cast<double>(slot.arrival - at);
    most = std::max(most, slot.arrival - at);
  }
  LinkPoint point;
  point.sent = load;
  point.mean_ns = sum / load.messages / kPsPerNsF;
  point.most_ns = static_cast<double>(most) / kPsPerNsF;
  point.gbps = static_cast<double>(load.bytes) * load.messages * kPsPerNsF / static_cast<double>(slot.arrival - first);
  return point;
}

double pcie_wire_ns(const PcieConfig& config, std::uint64_t bytes) {
  const double tlps = tlps_of(config, bytes), own = on_wire_ns(config, bytes);
  if (tlps <= config.credits) return own;
  return std::max(own, (tlps - config.credits) * paced_ns(config) + full_tlp_ns(config));
}

double pcie_capacity_gbps(const PcieConfig& config, std::uint64_t bytes) {
  return static_cast<double>(bytes) / std::max(on_wire_ns(config, bytes), tlps_of(config, bytes) * paced_ns(config));
}

std::optional<double> pcie_loaded_ns(const PcieConfig& config, std::uint64_t bytes, double load) {
  if (on_wire_ns(config, bytes) < tlps_of(config, bytes) * paced_ns(config)) return std::nullopt;
  const double service = static_cast<double>(bytes) / pcie_capacity_gbps(config, bytes);
  return pcie_wire_ns(config, bytes) + static_cast<double>(config.latency) / kPsPerNsF +
         load * service / (2 * (1 - load));
}

}  // namespace kernbench
