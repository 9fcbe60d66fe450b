#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "models/io/pcie_link.h"
#include "sc_main/rigs/link_bench.h"
#include "sc_main/rigs/pcie_bench.h"
#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/workload.h"
#include "tlm/config/nearest.h"
#include "tlm/config/refusals.h"
#include "tlm/ext/message.h"
#include "topology/machine/machine.h"
#include "topology/plan/plan.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

/// One UCIe connection and one inter-SIP link of the machine's configuration, each by itself between two ports, under a
/// sweep of message size and offered load; the rule of the host link under the same; and the machine's own host link,
/// by copies between host and HBM.
class Link final : public Workload {
 public:
  std::string name() const override { return "link"; }
  std::string help() const override {
    return "UCIe, inter-SIP and PCIe: latency and bandwidth by size and offered load, beside their closed forms";
  }
  std::string example() const override { return "kernbench run link -b 64 -e 4K -f 4 --loads 0,0.5,1"; }
  void add_options(po::options_description& options) override {
    auto add = options.add_options();
    add("minbytes,b", po::value(&sizes_.least)->default_value("64"), "smallest message");
    add("maxbytes,e", po::value(&sizes_.most)->default_value("64K"), "largest message");
    add("stepfactor,f", po::value(&sizes_.factor)->default_value(4), "factor from size to size");
    add("stepbytes,i", po::value(&sizes_.step), "bytes from size to size, instead of a factor");
    add("loads", po::value(&loads_)->default_value("0,0.5,0.9,1"),
        "offered loads, of the link's payload rate; 0: one message at a time, 1: as many as it takes");
    add("kind", po::value(&kind_)->default_value("all"), "ucie, inter_sip, pcie or all");
    add("messages,n", po::value(&messages_)->default_value(10000),
        "messages measured at each point; of long ones some 16 MiB in all, 200 at least");
  }

  void check_options() const override {
    Refusals refusals;
    refusals.from([&] {
      const auto sizes = sizes_.sizes();
      if (sizes.back() > (std::uint64_t{16} << 20)) refusals.add("-b and -e: give sizes from 1 B to 16 MiB");
    });
    refusals.from([this] { parse_loads(loads_); });
    const std::vector<std::string> kinds = {"all", "ucie", "inter_sip", "pcie"};
    if (std::find(kinds.begin(), kinds.end(), kind_) == kinds.end())
      refusals.add(fmt::format("--kind is '{}'; give ucie, inter_sip, pcie or all", kind_));
    if (messages_ < 10 || messages_ > 1'000'000) refusals.add(fmt::format("-n is {}; give 10 to 1000000", messages_));
    refusals.throw_if_any();
  }

  bool may_replay() const override { return false; }
  Report run(Session& session) override {
    const auto sizes = sizes_.sizes();
    const auto loads = parse_loads(loads_);
    topology::Machine& machine = *session.options().machine;
    const topology::SystemSpec& spec = session.options().plan->spec;
    Dispatcher& dispatcher = machine.dispatcher();
    std::vector<LinkLoad> points;
    for (const std::uint64_t bytes : sizes) {
      for (const double load : loads) points.push_back({bytes, load, count_of(bytes), session.options().seed});
    }
    Report report;
    report.text =
        "# link: messages over one UCIe connection, one inter-SIP link, and the host link: one direction by itself\n"
        "# under load (pcie_wire), and copies between host and HBM, one at a time (pcie_h2d, pcie_d2h; pcie: of "
        "nothing)\n"
        "# latency: mean of a message, first byte at the near port to last byte behind the far one (pcie: of the "
        "copy, or until it has arrived)\n"
        "# wire: of a packet, from its first byte on the wire to its last byte checked at the far end\n"
        "# expected: closed form; at loads between 0 and 1 of an M/D/1 queue, where bit errors are rare\n";
    report.text += fmt::format("#{:>10} {:>10} {:>6} {:>9} {:>13} {:>13} {:>10} {:>10} {:>9}\n", "link", "bytes",
                               "load", "wire (ns)", "latency (ns)", "expected (ns)", "GB/s", "expected", "fraction");
    std::unique_ptr<LinkBench> ucie, inter_sip;
    if (wants("ucie")) {
      ucie = std::make_unique<LinkBench>("link_bench_ucie", spec.cube.ucie.link(), spec.cube.noc, dispatcher.queue(0),
                                         dispatcher.queue(0), machine.pool());
      ucie->start(points);
    }
    if (wants("inter_sip") && session.map().sips > 1) {
      // Both ends on one clock: those of two SIPs may be further apart than this one wire.
      inter_sip = std::make_unique<LinkBench>("link_bench_sip", spec.links.link, spec.sip.io.crossbar,
                                              dispatcher.queue(0), dispatcher.queue(0), machine.pool());
      inter_sip->start(points);
    } else if (kind_ == "inter_sip") {
      throw std::invalid_argument("--kind is 'inter_sip', but the machine has one SIP");
    }
    std::string pcie_text;
    Json pcie_rows = Json::array();
    session.run(1, [&](Context& ctx) {
      if (wants("pcie")) measure_pcie(ctx, spec.sip.io.pcie, sizes, pcie_rows, pcie_text);
    });
    if (ucie) add_rows("ucie", *ucie, spec.cube.ucie.link(), spec.cube.noc, report);
    if (inter_sip) add_rows("inter_sip", *inter_sip, spec.links.link, spec.sip.io.crossbar, report);
    std::string explained;
    if (ucie) explained += explain("ucie", spec.cube.ucie.link(), spec.cube.noc, sizes, kUcieKeys);
    if (inter_sip) explained += explain("inter_sip", spec.links.link, spec.sip.io.crossbar, sizes, kInterSipKeys);
    if (wants("pcie")) explained += explain_pcie(spec.sip.io.pcie, sizes);
    if (wants("pcie")) {
      const PcieConfig& pcie = spec.sip.io.pcie;
      for (LinkLoad load : points) {
        if (load.load <= 0) continue;
        load.messages = messages_;  // long ones cost no more than short ones
        add_row("pcie_wire", measure_pcie_direction(pcie, load), pcie_capacity_gbps(pcie, load.bytes),
                load.load < 1 ? pcie_loaded_ns(pcie, load.bytes, load.load) : std::nullopt, report);
      }
      report.text += pcie_text;
      for (Json& row : pcie_rows) report.results.push_back(std::move(row));
    }
    if (session.options().explain) report.text += explained;
    return report;
  }

 private:
  bool wants(const char* kind) const { return kind_ == "all" || kind_ == kind; }

  /// Fewer of long messages: about 16 MiB in all, but at least 200.
  unsigned count_of(std::uint64_t bytes) const {
    return std::min<unsigned>(messages_, std::max<unsigned>(200, static_cast<unsigned>((16U << 20) / bytes)));
  }

  static std::vector<double> parse_loads(const std::string& text) {
    std::vector<double> loads;
    for (const std::string& one : split(text, ',')) {
      std::size_t used = 0;
      double load = -1;
      try {
        load = std::stod(one, &used);
      } catch (const std::exception&) {
        used = 0;
      }
      if (one.empty() || used != one.size() || !(load >= 0 && load <= 1))
        throw std::invalid_argument(fmt::format("--loads is '{}'; give numbers from 0 to 1, such as 0,0.5,1", text));
      loads.push_back(load);
    }
    return loads;
  }

  /// The closed form of latencies knows no retries: fewer than one in a hundred messages has one.
  static bool seldom_errs(const LinkConfig& link, std::uint64_t bytes) {
    return 8.0 * static_cast<double>(bytes) * static_cast<double>(link.bit_errors) < 1e18 / 100;
  }
  static void add_rows(const char* kind, const LinkBench& bench, const LinkConfig& link, const NocConfig& noc,
                       Report& report) {
    for (const LinkPoint& point : bench.points()) {
      const LinkLoad& sent = point.sent;
      add_row(kind, point, LinkBench::capacity_gbps(link, noc, sent.bytes),
              sent.load < 1 && seldom_errs(link, sent.bytes)
                  ? std::optional(LinkBench::loaded_ns(link, noc, sent.bytes, sent.load))
                  : std::nullopt,
              report);
    }
    const WireStats& stats = bench.wire().stats();
    report.text +=
        fmt::format("# {}: {} packets, {} flits, {} raw bytes, {} replays, {:.1f} nJ\n", kind, stats.packets,
                    stats.flits, stats.raw_bytes, stats.replays, static_cast<double>(bench.wire().energy_aj()) / 1e9);
  }

  static constexpr const char* kUcieKeys =
      "wire: cube.ucie.lanes, lane_rate, width, flit, header_size, bit_errors; network: cube.noc.clock, flit_size; "
      "credits: cube.ucie.buffer_packets; flight: cube.ucie.latency_per_side";
  static constexpr const char* kInterSipKeys =
      "wire: system.links.lanes, lane_rate, efficiency, flit_size, header_size, bit_errors; network: "
      "sip.io.crossbar.clock, flit_size; credits: system.links.buffer_packets; flight: system.links.serdes, "
      "propagation";

  /// What a rate is limited by and a latency is made of, by closed forms.
  static std::string explain(const char* kind, const LinkConfig& link, const NocConfig& noc,
                             const std::vector<std::uint64_t>& sizes, const char* keys) {
    std::string text = fmt::format("# {}: most GB/s by each, and an idle message's latency (ns)\n", kind);
    text += fmt::format("#{:>10} {:>10} {:>10} {:>10} {:>10} {:>13} {:>9} {:>9} {:>9}\n", "bytes", "wire", "network",
                        "credits", "least", "latency", "wire", "flight", "ends");
    for (const std::uint64_t bytes : sizes) {
      const LinkBench::Rates rates = LinkBench::rates_gbps(link, noc, bytes);
      const char* const least = rates.least() == rates.wire      ? "wire"
                                : rates.least() == rates.network ? "network"
                                                                 : "credits";
      const double all = LinkBench::zero_load_ns(link, noc, bytes), wire = LinkBench::wire_ns(link, bytes),
                   flight = static_cast<double>(link.latency) / 1e3;
      text += fmt::format("#{:>10} {:>10.2f} {:>10.2f} {:>10.2f} {:>10} {:>13.1f} {:>9.1f} {:>9.1f} {:>9.1f}\n", bytes,
                          rates.wire, rates.network, rates.credits, least, all, wire, flight, all - wire - flight);
    }
    return text + fmt::format("# governed by, {}; ends: flits into and out of the networks, checks\n", keys);
  }
  static std::string explain_pcie(const PcieConfig& pcie, const std::vector<std::uint64_t>& sizes) {
    std::string text = "# pcie: a copy (ns), on the link alone\n";
    text +=
        fmt::format("#{:>10} {:>13} {:>13} {:>13} {:>13}\n", "bytes", "to device", "from device", "its wire", "flight");
    for (const std::uint64_t bytes : sizes) {
      text += fmt::format("#{:>10} {:>13.1f} {:>13.1f} {:>13.1f} {:>13.1f}\n", bytes, pcie_ns(pcie, true, bytes),
                          pcie_ns(pcie, false, bytes), pcie_wire_ns(pcie, bytes),
                          2 * static_cast<double>(pcie.latency) / 1e3);
    }
    return text +
           "# governed by, wire: sip.io.pcie.generation, lanes, tlp_payload, tlp_overhead; flight: "
           "sip.io.pcie.latency; besides: doorbell, and a descriptor and a completion of 64 B each\n";
  }

  /// One load. No `latency`: there is no closed form of it, such as at a load of 1.
  static void add_row(const char* kind, const LinkPoint& point, double capacity, std::optional<double> latency,
                      Report& report) {
    const LinkLoad& sent = point.sent;
    Json row;
    row["op"] = "link";
    row["link"] = kind;
    row["bytes"] = sent.bytes;
    row["offered_load"] = sent.load;
    row["messages"] = sent.messages;
    row["latency_ns"] = point.mean_ns;
    row["max_latency_ns"] = point.most_ns;
    if (point.wire_ns > 0) row["wire_latency_ns"] = point.wire_ns;
    row["expected_latency_ns"] = latency ? Json(*latency) : Json();
    row["gbps"] = point.gbps;
    row["expected_gbps"] = capacity;
    row["fraction"] = point.gbps / capacity;
    report.text +=
        fmt::format(" {:>10} {:>10} {:>6.2f} {:>9} {:>13.1f} {:>13} {:>10.2f} {:>10.2f} {:>9.4f}\n", kind, sent.bytes,
                    sent.load, point.wire_ns > 0 ? fmt::format("{:.2f}", point.wire_ns) : "-", point.mean_ns,
                    latency ? fmt::format("{:.1f}", *latency) : "-", point.gbps, capacity, point.gbps / capacity);
    report.results.push_back(std::move(row));
  }

  // The host link. A copy of nothing is a round trip; what the machine behind the link adds is taken from one burst.

  void measure_pcie(Context& ctx, const PcieConfig& config, const std::vector<std::uint64_t>& sizes, Json& rows,
                    std::string& text) const {
    const std::uint64_t most = std::max<std::uint64_t>(sizes.back(), 256);
    const DPPolicy one = DPPolicy().cubes(1).pes(1);
    const Tensor tensor = ctx.zeros({1, static_cast<std::int64_t>(most)}, DType::i8, one, "link");
    const PhysicalAddress home = tensor.pa(0);
    const auto once = [&](bool write, std::uint64_t bytes) {
      const Handle handle = write ? ctx.submit(MemoryWriteMessage{home, std::vector<std::uint8_t>(bytes)})
                                  : ctx.submit(MemoryReadMessage{home, {}, bytes});
      ctx.wait(handle);
      return static_cast<double>(handle.completed() - handle.submitted()) / 1e3;
    };
    // Of a few runs the fastest: a refresh of the HBM is no matter of the link.
    const auto copy = [&](bool write, std::uint64_t bytes) {
      double least = once(write, bytes);
      for (int i = 1; i < 4; ++i) least = std::min(least, once(write, bytes));
      return least;
    };
    const auto add = [&](const char* kind, std::uint64_t bytes, double ns, double expected) {
      const double gbps = static_cast<double>(bytes) / ns, most_gbps = static_cast<double>(bytes) / expected;
      Json row;
      row["op"] = "link";
      row["link"] = kind;
      row["bytes"] = bytes;
      row["offered_load"] = 0;
      row["messages"] = 1;
      row["latency_ns"] = ns;
      row["max_latency_ns"] = ns;
      row["expected_latency_ns"] = expected;
      row["gbps"] = gbps;
      row["expected_gbps"] = most_gbps;
      row["fraction"] = bytes == 0 ? expected / ns : gbps / most_gbps;
      text += fmt::format(" {:>10} {:>10} {:>6.2f} {:>9} {:>13.1f} {:>13.1f} {:>10.2f} {:>10.2f} {:>9.4f}\n", kind,
                          bytes, 0.0, "-", ns, expected, gbps, most_gbps, expected / ns);
      rows.push_back(std::move(row));
    };
    add("pcie", 0, copy(true, 0), pcie_ns(config, true, 0));
    for (const bool write : {true, false}) {
      const double behind = copy(write, 256) - pcie_ns(config, write, 256);
      for (const std::uint64_t bytes : sizes)
        add(write ? "pcie_h2d" : "pcie_d2h", bytes, copy(write, bytes), pcie_ns(config, write, bytes) + behind);
    }
  }

  /// The link's share of a copy, in closed form: descriptor and data of a write, doorbell, data of a read, completion.
  static double pcie_ns(const PcieConfig& config, bool write, std::uint64_t bytes) {
    const auto wire = [&](std::uint64_t n) { return pcie_wire_ns(config, n); };
    const double latency = static_cast<double>(config.latency) / 1e3,
                 doorbell = static_cast<double>(config.doorbell) / 1e3;
    if (!write) return wire(kCommandBytes) + latency + doorbell + wire(bytes) + latency;
    const double data = wire(kCommandBytes + bytes);
    return std::max(data, wire(kCommandBytes) + doorbell) + latency + wire(0) + latency;
  }

  SizeRange sizes_;
  std::string loads_, kind_;
  unsigned messages_ = 10'000;
};

}  // namespace

std::unique_ptr<Workload> make_link() { return std::make_unique<Link>(); }

}  // namespace kernbench
