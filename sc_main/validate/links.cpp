#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <systemc>

#include "models/io/pcie_link.h"
#include "models/ucie/ucie_config.h"
#include "sc_main/rigs/link_bench.h"
#include "sc_main/validate/validate.h"
#include "tlm/sim/dispatcher.h"

// Wires and the host link against closed forms, which are worked out from the configuration alone: latency of a message
// on an idle link, payload rate of a full one, with bit errors the rate that replays leave.

namespace kernbench::validate {

namespace {

constexpr double kLimit = 0.01;               // spec: links and GEMM
constexpr std::uint32_t kManyPlaces = 8'192;  // at the receiver, for packets of a byte
const std::vector<std::uint64_t> kSizes = {1, 64, 256, 1000, 4096, 65'536};

/// A wire and the network at both its ends.
struct WireCase {
  std::string name;
  LinkConfig link;
  NocConfig noc;
  bool two_sips = false;
};

std::vector<LinkPoint> measure(const WireCase& wire, const std::vector<LinkLoad>& loads) {
  Dispatcher dispatcher("dispatcher", 2);
  PayloadPool pool;
  EventQueue &here = dispatcher.queue(0), &there = dispatcher.queue(wire.two_sips ? 1 : 0);
  LinkBench bench("bench", wire.link, wire.noc, here, there, pool);
  bench.start(loads);
  sc_core::sc_start();
  return bench.points();
}

/// Latency on the idle wire and rate of the full one, by size.
Group closed_forms(const WireCase& wire, bool sample) {
  Group group;
  group.name = wire.name;
  std::vector<std::uint64_t> sizes = kSizes;
  if (sample) sizes = {64, 4096};
  group.runs.push_back([wire, sizes] {
    std::vector<LinkLoad> loads;
    for (const std::uint64_t bytes : sizes) {
      const unsigned full =
          std::max<unsigned>(200, static_cast<unsigned>(std::min<std::uint64_t>(2'000'000 / bytes, 4'000)));
      loads.push_back({bytes, 0, 20, 1});
      loads.push_back({bytes, 1, full, 1});
    }
    Figures figures;
    for (const LinkPoint& point : measure(wire, loads)) {
      figures.push_back(point.mean_ns);
      figures.push_back(point.gbps);
    }
    return figures;
  });
  group.verdict = [wire, sizes](const std::vector<Figures>& figures) {
    Judged judged;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::string name = fmt::format("{}/bytes={}", wire.name, sizes[i]);
      // A message that needs more places than there are waits for their credits: no idle wire.
      if (sizes[i] <= std::uint64_t{wire.link.buffer_packets} * kMaxPacketBytes) {
        judged.cases.push_back(judge(name, "idle_latency_ns", LinkBench::zero_load_ns(wire.link, wire.noc, sizes[i]),
                                     figures[0].at(4 * i), kLimit));
      }
      judged.cases.push_back(judge(name, "payload_gbps", LinkBench::capacity_gbps(wire.link, wire.noc, sizes[i]),
                                   figures[0].at(4 * i + 3), kLimit));
    }
    return judged;
  };
  return group;
}

/// Rate under bit errors: the mean of several sequences of errors.
Group with_errors(WireCase wire, std::uint64_t errors_per_billion, bool sample) {
  wire.link.bit_errors = BitErrors::kPerBits / 1'000'000'000 * errors_per_billion;
  wire.name += fmt::format("_errors_{}e-9", errors_per_billion);
  Group group;
  group.name = wire.name;
  const unsigned seeds = sample ? 2 : 8, messages = sample ? 20'000 : 100'000;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    group.runs.push_back([wire, seed, messages] {
      WireCase one = wire;
      one.link.error_seed = seed;
      return Figures{measure(one, {{256, 1, messages, 1}}).front().gbps};
    });
  }
  group.verdict = [wire](const std::vector<Figures>& figures) {
    double sum = 0;
    for (const Figures& one : figures) sum += one.at(0);
    Judged judged;
    judged.cases.push_back(judge(wire.name + "/bytes=256", "payload_gbps",
                                 LinkBench::capacity_gbps(wire.link, wire.noc, 256),
                                 sum / static_cast<double>(figures.size()), kLimit));
    return judged;
  };
  return group;
}

/// The host link as a resource: TLPs, and the limit of its credits.
Group host_link(const std::string& name, const PcieConfig& config) {
  Group group;
  group.name = name;
  group.runs.push_back([config] {
    Figures figures;
    for (const std::uint64_t bytes : kSizes) {
      figures.push_back(static_cast<double>(PcieDirection(config).take(0, bytes).arrival) / 1e3);
    }
    PcieDirection stream(config);  // TLP by TLP
    constexpr unsigned kTlps = 20'000;
    PcieDirection::Slot slot;
    for (unsigned i = 0; i < kTlps; ++i) slot = stream.take(slot.end, config.tlp_payload_bytes);
    figures.push_back(static_cast<double>(kTlps) * config.tlp_payload_bytes * 1e3 / static_cast<double>(slot.end));
    return figures;
  });
  group.verdict = [name, config](const std::vector<Figures>& figures) {
    Judged judged;
    const double rate = static_cast<double>(config.bytes_per_second) / 1e9;  // bytes per ns
    const double latency = static_cast<double>(config.latency) / 1e3;
    const double full = config.tlp_payload_bytes + config.tlp_overhead_bytes;
    const double each = std::max(full / rate, (2 * latency + full / rate) / config.credits);  // ns between TLPs
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      const std::uint64_t tlps = (kSizes[i] + config.tlp_payload_bytes - 1) / config.tlp_payload_bytes;
      const double wire = static_cast<double>(kSizes[i] + tlps * config.tlp_overhead_bytes) / rate;
      const double paced = tlps > config.credits ? static_cast<double>(tlps - config.credits) * each + full / rate : 0;
      judged.cases.push_back(judge(fmt::format("{}/bytes={}", name, kSizes[i]), "one_way_ns",
                                   std::max(wire, paced) + latency, figures[0].at(i), kLimit));
    }
    judged.cases.push_back(
        judge(name + "/stream", "payload_gbps", config.tlp_payload_bytes / each, figures[0].at(kSizes.size()), kLimit));
    return judged;
  };
  return group;
}

WireCase ucie(const std::string& name, UcieFlit flit, UcieWidth width = UcieWidth::full) {
  UcieConfig config;
  config.flit = flit;
  config.width = width;
  WireCase wire{name, config.link(), {}, false};
  wire.link.buffer_packets = kManyPlaces;
  return wire;
}

WireCase inter_sip(const std::string& name, std::uint32_t flit_bytes, std::uint64_t parts, std::uint64_t whole) {
  WireCase wire{name, {}, {}, true};
  wire.noc.vc_depth_flits = 32;
  wire.link.latency = 400'000;
  wire.link.payload_parts = parts;
  wire.link.raw_parts = whole;
  wire.link.flit_bytes = wire.link.check_bytes = flit_bytes;
  wire.link.header_bytes = flit_bytes == 0 ? 0 : 16;
  wire.link.buffer_packets = kManyPlaces;
  return wire;
}

}  // namespace

std::vector<Group> links_groups(const Request& request) {
  std::vector<Group> groups;
  const bool sample = request.sample;
  const WireCase standard = ucie("ucie_256B", UcieFlit::b256);
  groups.push_back(closed_forms(standard, sample));
  groups.push_back(closed_forms(ucie("ucie_68B", UcieFlit::b68), sample));
  groups.push_back(closed_forms(ucie("ucie_256B_latency_optimised", UcieFlit::b256_latency_optimised), sample));
  groups.push_back(closed_forms(ucie("ucie_raw", UcieFlit::raw), sample));
  groups.push_back(closed_forms(ucie("ucie_256B_half_width", UcieFlit::b256, UcieWidth::half), sample));
  groups.push_back(closed_forms(inter_sip("inter_sip", 0, 1, 1), sample));
  groups.push_back(closed_forms(inter_sip("inter_sip_64b66b", 0, 64, 66), sample));
  groups.push_back(closed_forms(inter_sip("inter_sip_flits", 256, 236, 256), sample));
  WireCase few = standard;
  few.name = "ucie_256B_few_places";
  few.link.buffer_packets = 8;  // a fifth of what the round trip needs
  groups.push_back(closed_forms(few, sample));
  groups.push_back(with_errors(standard, 1'000, sample));
  groups.push_back(with_errors(inter_sip("inter_sip_flits", 256, 236, 256), 100, sample));
  PcieConfig pcie;
  groups.push_back(host_link("pcie_5_x16", pcie));
  pcie.credits = 32;  // a fourth of what the round trip needs
  groups.push_back(host_link("pcie_5_x16_few_credits", pcie));
  pcie = {};
  pcie.bytes_per_second = 15'753'846'153;
  pcie.lanes = 4;
  groups.push_back(host_link("pcie_5_x4", pcie));
  return groups;
}

}  // namespace kernbench::validate
