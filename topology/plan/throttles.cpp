#include "topology/plan/throttles.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "models/noc/virtual_channel.h"
#include "tlm/config/units.h"
#include "tlm/machine/names.h"
#include "topology/plan/plan.h"
#include "topology/spec/overrides.h"

namespace kernbench::topology {
namespace {

/// Of a switch with more ports than that, packets for different ports wait for each other (docs/links.md, A switch).
constexpr std::size_t kPortsThatMeet = 4;
/// Its ports want so many tenths of a link's rate: measured there.
constexpr std::uint64_t kTenthsOfMeetingPorts = 14;

bool between_sips(const LinkEnd& end) { return end.kind->between_sips; }

/// A clock of at least `hz` as people write it, with four digits: what is given as the hint says is enough.
std::string clock_from(std::uint64_t hz) {
  constexpr std::uint64_t kGiga = 1'000'000'000;
  std::uint64_t step = 1;
  while (hz / step >= 10'000) step *= 10;
  const std::uint64_t enough = (hz + step - 1) / step * step;
  if (enough < kGiga) return format_quantity(enough, Dimension::frequency);
  return fmt::format("{:g} GHz", static_cast<double>(enough) / kGiga);
}

class ThrottleSearch {
 public:
  explicit ThrottleSearch(const Plan& plan) : plan_(plan) {}

  std::vector<Throttle> run() {
    for (const bool outer : {true, false}) {
      for (const LinkEnd& end : plan_.ends) {
        if (between_sips(end) != outer) continue;
        const LinkEnd& peer = plan_.ends[end.peer];
        look_at_room(end, peer);
        look_at_port(end);
        if (!outer && &end < &peer) look_at_ends(end, peer);
      }
    }
    look_at_bursts();
    look_at_pcie();
    look_at_outstanding();
    for (const Network& network : plan_.networks) look_at_buffers(network);
    return std::move(found_);
  }

 private:
  void add(std::string key, std::string text, std::string hint) {
    const auto known = [&](const Throttle& other) { return other.key == key && other.text == text; };
    if (std::none_of(found_.begin(), found_.end(), known))
      found_.push_back({std::move(key), std::move(text), std::move(hint)});
  }

  bool of_io_chiplet(const LinkEnd& end) const { return plan_.networks[end.network].kind == NetworkKind::io; }
  bool odd(const Network& network) const {
    return network.kind == NetworkKind::cube && plan_.spec.cubes.count({network.sip, network.cube}) != 0;
  }
  /// A key as messages name it, and the place that leads to it.
  struct Named {
    std::string name, place;
  };
  Named of_link(const LinkEnd& end, const char* key) const {
    return named(plan_.networks[end.network], end.kind->key(key));
  }
  std::string section_of(const LinkEnd& end) const {
    return named(plan_.networks[end.network], end.kind->section).name;
  }
  Named of_network(const Network& network, const char* key) const {
    const char* section = network.kind == NetworkKind::cube ? "cube.noc"
                          : network.kind == NetworkKind::io ? "sip.io.crossbar"
                                                            : "system.links.switch";
    return named(network, fmt::format("{}.{}", section, key));
  }
  static Named overridden(const std::string& key, const std::string& name) {
    return {fmt::format("{} of {}", key, name), override_key(name)};
  }
  Named named(const Network& network, std::string key) const {
    if (odd(network) && key.rfind("cube.", 0) == 0) return overridden(key, names::cube({network.sip, network.cube}));
    return {key, key};
  }

  /// What leaves `end` and waits for room at `peer`.
  void look_at_room(const LinkEnd& end, const LinkEnd& peer) {
    const std::uint32_t wanted = packets_to_cover(end, peer), has = peer.link.buffer_packets;
    if (has >= wanted) return;
    const Named key = of_link(peer, "buffer_packets");
    const double loop = static_cast<double>(has) * kMaxPacketBytes / static_cast<double>(round_trip(end, peer)) * 1e12;
    add(key.place,
        fmt::format("{} is {}, less than {} over a round trip of {}: about {} reach the far end", key.name, has,
                    format_rate(end.link.rate().bytes_per_second()), format_time(round_trip(end, peer)),
                    format_rate(static_cast<std::uint64_t>(loop))),
        fmt::format("give at least {}", wanted));
  }

  /// Of the network that `end` belongs to.
  void look_at_port(const LinkEnd& end) {
    const Network& network = plan_.networks[end.network];
    const std::uint64_t port = port_payload_rate(*network.noc), link = end.link.payload_rate().bytes_per_second();
    const bool many = network.kind == NetworkKind::fabric && network.crossbar->ports.size() > kPortsThatMeet;
    const std::uint64_t wanted = many ? link / 10 * kTenthsOfMeetingPorts : link;
    if (port >= wanted) return;
    constexpr std::uint64_t kMostHz = 100'000'000'000;  // of topology.yaml: there is nothing better to be had
    if (network.noc->clock_hz >= kMostHz && network.noc->flit_bytes >= kMaxPacketBytes) return;
    const Named key = of_network(network, "clock");
    const std::uint64_t flits = FlitCounter(network.noc->flit_bytes)(kMaxPacketBytes);
    const std::uint64_t clock = (wanted * flits + kMaxPacketBytes - 1) / kMaxPacketBytes;
    const char* why = port < link ? "less than a link of {} brings, {}"
                                  : "little more than a link of {} brings, {}: packets for different ports wait for "
                                    "each other, and of what all bring to all about two thirds pass";
    add(key.place,
        fmt::format("{} is {}: with flits of {} a port passes {}, {}", key.name,
                    format_quantity(network.noc->clock_hz, Dimension::frequency),
                    format_quantity(network.noc->flit_bytes, Dimension::bytes), format_rate(port),
                    fmt::format(fmt::runtime(why), between_sips(end) ? end.kind->section : "UCIe", format_rate(link))),
        fmt::format("give at least {}, or larger flits", clock_from(clock)));
  }

  void look_at_ends(const LinkEnd& a, const LinkEnd& b) {
    const UcieConfig &here = ucie_of(a), &there = ucie_of(b);
    const std::uint64_t rate = here.link().rate().bytes_per_second(), other = there.link().rate().bytes_per_second();
    if (rate == other) return;
    const LinkEnd& slow = rate < other ? a : b;
    const LinkEnd& fast = rate < other ? b : a;
    add(of_link(slow, "lane_rate").place,
        fmt::format("{} gives {} a connection, and {} at its other end {}: they are trained to the lower rate",
                    section_of(slow), format_rate(std::min(rate, other)), section_of(fast),
                    format_rate(std::max(rate, other))),
        fmt::format("give both the same lanes, lane_rate, width and flit"));
  }
  const UcieConfig& ucie_of(const LinkEnd& end) const {
    const Network& network = plan_.networks[end.network];
    return of_io_chiplet(end) ? plan_.spec.sip.io.ucie : plan_.spec.cube_at({network.sip, network.cube}).ucie;
  }

  /// The data buses of HBM take a burst as soon as the one before has gone.
  void look_at_bursts() {
    look_at_bursts(plan_.spec.cube.hbm, [](const char* key) { return Named{key, key}; });
    for (const auto& [at, cube] : plan_.spec.cubes)
      look_at_bursts(cube.hbm, [&at = at](const char* key) { return overridden(key, names::cube(at)); });
  }
  template <class Name>
  void look_at_bursts(const HbmConfig& hbm, const Name& name) {
    if (!hbm.queues_cover_units()) {
      const Named queue = name("cube.hbm.queue_depth");
      add(queue.place,
          fmt::format("{} is {}: a queue holds less than two units of {} ({}), and what waits for a full one holds up "
                      "what is for the others",
                      queue.name, hbm.queue_depth, name("cube.hbm.interleave").name,
                      format_quantity(hbm.interleave_bytes, Dimension::bytes)),
          fmt::format("give at least {}, or a shorter interleave", 2 * hbm.interleave_bytes / hbm.burst_bytes));
    }
    if (hbm.least_burst_interval() <= hbm.burst_ck) return;
    const Named bursts = name("cube.hbm.burst_cycles");
    const std::string what = fmt::format("{} is {}", bursts.name, hbm.burst_ck);
    if (hbm.timing.t_ccd_s >= hbm.pseudo_channels) {
      add(name("cube.hbm.timing.t_ccd_s").place,
          fmt::format("{}, but timing.t_ccd_s is {}: a data bus is used for {} of {} cycles", what, hbm.timing.t_ccd_s,
                      hbm.burst_ck, hbm.timing.t_ccd_s),
          fmt::format("give a t_ccd_s of at most {}", hbm.burst_ck));
    } else {
      add(name("cube.hbm.pseudo_channels").place,
          fmt::format("{}, but {} pseudo channels share a command bus, one column command a cycle: a data bus is used "
                      "for {} of {} cycles",
                      what, hbm.pseudo_channels, hbm.burst_ck, hbm.pseudo_channels),
          fmt::format("give at most {} pseudo channels to a channel, and more channels", hbm.burst_ck));
    }
  }

  /// Credits go one per TLP of payload and overhead, and come back two latencies after it began.
  void look_at_pcie() {
    const PcieConfig& pcie = plan_.spec.sip.io.pcie;
    const Ps trip = 2 * pcie.latency,
             one = Rate(pcie.bytes_per_second).time_for(pcie.tlp_payload_bytes + pcie.tlp_overhead_bytes);
    const std::uint64_t wanted = (trip + one - 1) / one;
    if (pcie.credits >= wanted) return;
    add("sip.io.pcie.credits",
        fmt::format("sip.io.pcie.credits is {}, less than {} over a round trip of {}", pcie.credits,
                    format_rate(pcie.bytes_per_second), format_time(trip)),
        fmt::format("give at least {}", wanted));
  }

  /// What of reads is under way at once covers the way to a slice and back: of the first PE, of each that differs, and
  /// of the host.
  void look_at_outstanding() {
    const MachineMap& map = plan_.map;
    const std::vector<PeCoord> pes = map.pes(0);
    if (pes.empty() || !map.packet_latency) return;
    std::set<PeCoord> some{pes.front()};
    for (const auto& [at, odd] : plan_.spec.pes) some.insert(at);
    for (const PeCoord at : some) look_at_pe(at);
    const PcieConfig& pcie = plan_.spec.sip.io.pcie;
    look_at_reads({"sip.io.pcie.outstanding", "sip.io.pcie.outstanding"}, map.pcie_ep(0), Rate(pcie.bytes_per_second),
                  pes.front(), pcie.outstanding, kMaxPacketBytes);
  }
  void look_at_pe(PeCoord at) {
    const DmaConfig& dma = plan_.spec.pe_at(at).dma;
    const auto key = [&](const char* name) {
      return plan_.spec.pes.count(at) != 0 ? overridden(name, names::pe(at)) : Named{name, name};
    };
    const auto rates = plan_.map.rates(at);
    const auto slower = [](Rate a, Rate b) { return a.bytes_per_second() < b.bytes_per_second() ? a : b; };
    const Rate brought = slower(rates.hbm_slice, rates.port);
    if (rates.tcm.bytes_per_second() < brought.bytes_per_second()) {
      add(key("pe.tcm.bandwidth").place,
          fmt::format("{} is {}, less than a slice of HBM brings, {}", key("pe.tcm.bandwidth").name,
                      format_rate(rates.tcm.bytes_per_second()), format_rate(brought.bytes_per_second())),
          fmt::format("give at least {}", format_rate(brought.bytes_per_second())));
    }
    look_at_reads(key("pe.dma.outstanding"), plan_.map.pe(at), slower(brought, rates.tcm), at, dma.outstanding,
                  dma.burst_bytes);
  }
  /// Of `outstanding` reads of so many bytes from `owner`'s slice.
  void look_at_reads(const Named& key, NodeId from, Rate rate, PeCoord owner, std::uint64_t outstanding,
                     std::uint32_t bytes) {
    const MachineMap& map = plan_.map;
    const NodeId slice = map.hbm_port(owner);
    constexpr std::uint32_t kLeast = 16;  // of a request, or the least packet
    const Ps trip = map.packet_latency(from, slice, kLeast) + map.packet_latency(slice, from, bytes) +
                    map.rates(owner).engines.hbm_hit;
    const Ps one = rate.time_for(bytes);
    const std::uint64_t wanted = (trip + one - 1) / one;
    if (outstanding >= wanted) return;
    add(key.place,
        fmt::format("{} is {}, less than {} over a round trip of {} to a slice of HBM", key.name, outstanding,
                    format_rate(rate.bytes_per_second()), format_time(trip)),
        fmt::format("give at least {}", wanted));
  }

  void look_at_buffers(const Network& network) {
    const NocConfig& noc = *network.noc;
    if (buffers_cover_credits(network)) return;
    const std::uint32_t wanted = credit_cycles(network);
    const Named key = of_network(network, "vc_depth");
    add(key.place,
        fmt::format("{} is {}, but a credit is back after {} cycles: a flow gets {} of {} cycles of a port", key.name,
                    noc.vc_depth_flits, wanted, noc.vc_depth_flits, wanted),
        fmt::format("give at least {}", wanted));
  }

  const Plan& plan_;
  std::vector<Throttle> found_;
};

}  // namespace

std::vector<Throttle> throttles(const Plan& plan) { return ThrottleSearch(plan).run(); }

}  // namespace kernbench::topology
