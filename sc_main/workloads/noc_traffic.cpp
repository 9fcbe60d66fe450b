#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sc_main/rigs/bare_mesh.h"
#include "sc_main/rigs/traffic_pattern.h"
#include "sc_main/workloads/workload.h"
#include "tlm/config/refusals.h"
#include "topology/machine/machine.h"

namespace kernbench {
namespace {
namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

/// As the reference tables of bench/reference/noc call it.
const char* state_of(const BareMeshResult& result) {
  constexpr double kKeepsUp = 0.98, kKnee = 3;
  if (result.accepted < kKeepsUp * result.offered) return "saturated";
  return result.latency < kKnee * result.zero_load ? "stable" : "past_knee";
}

/// Synthetic traffic on a mesh of its own, beside the machine of --topology, which stays idle: what `validate noc`
/// runs.
class NocTraffic final : public Workload {
 public:
  std::string name() const override { return "noc_traffic"; }
  std::string help() const override { return "synthetic traffic on a bare mesh of routers: latency and throughput"; }
  std::string example() const override {
    return "kernbench run noc_traffic --pattern uniform --load 0.1 0.2 0.3 --topology minimal";
  }
  void add_options(po::options_description& options) override {
    auto add = options.add_options();
    add("pattern", po::value(&mesh_.pattern)->default_value("uniform"),
        "uniform, transpose, neighbor, tornado, bit_complement, bit_reverse, shuffle, or hotspot(NODE:WEIGHT,...)");
    add("load", po::value(&loads_)->multitoken()->default_value({0.1}, "0.1"),
        "offered flits per node and cycle; several: one mesh each");
    add("cols", po::value(&mesh_.cols)->default_value(8), "routers in a row");
    add("rows", po::value(&mesh_.rows)->default_value(8), "rows of routers");
    add("flits", po::value(&mesh_.packet_flits)->default_value(8), "flits of a packet");
    add("vcs", po::value(&mesh_.vcs)->default_value(4), "virtual channels of an input");
    add("depth", po::value(&mesh_.vc_depth)->default_value(8), "buffer of a virtual channel, in flits");
    add("switch", po::value(&switch_)->default_value("interleave"),
        "interleave: virtual channels share a link flit by flit; hold: packet by packet");
    add("routing-delay", po::value(&mesh_.routing_delay)->default_value(0), "cycles");
    add("credit-delay", po::value(&mesh_.credit_delay)->default_value(2), "cycles from a freed flit to usable credit");
    add("warmup", po::value(&mesh_.warmup)->default_value(10'000), "cycles before packets are measured");
    add("window", po::value(&mesh_.window)->default_value(30'000), "cycles in which packets are measured");
    add("drain", po::value(&mesh_.drain)->default_value(8),
        "waits for measured packets at most this many times warm-up and window; 0: not at all");
  }

  void check_options() const override {
    Refusals refusals;
    if (switch_ != "interleave" && switch_ != "hold")
      refusals.add(fmt::format("--switch is '{}'", switch_), "give 'interleave' or 'hold'");
    if (loads_.empty()) refusals.add("--load is empty", "give flits per node and cycle, e.g. 0.1");
    BareMeshConfig mesh = mesh_;
    for (const double load : loads_) {
      mesh.load = load;
      refusals.from([&] { check(mesh); });
    }
    refusals.throw_if_any();
  }

  bool may_replay() const override { return false; }
  Report run(Session& session) override {
    const std::vector<BareMeshConfig> configs = this->configs(session);
    EventQueue& queue = session.options().machine->dispatcher().queue(0);
    std::vector<std::unique_ptr<BareMesh>> meshes;
    for (std::size_t i = 0; i < configs.size(); ++i)
      meshes.push_back(std::make_unique<BareMesh>(fmt::format("mesh{}", i).c_str(), configs[i], queue));
    session.run(1, [](Context&) {});

    Report report;
    report.text = fmt::format(
        "# noc_traffic: {} x {} mesh, {}, packets of {} flits, {} VCs of {} flits, {}\n"
        "# loads in flits per node and cycle, latencies in cycles of the router's clock\n"
        "#{:>9} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8} {:>10}  {}\n",
        mesh_.cols, mesh_.rows, mesh_.pattern, mesh_.packet_flits, mesh_.vcs, mesh_.vc_depth, switch_, "load",
        "offered", "accepted", "latency", "p50", "p95", "p99", "packets", "state");
    for (std::size_t i = 0; i < meshes.size(); ++i) add_row(configs[i], meshes[i]->result(), report);
    if (!session.options().explain) return report;
    for (std::size_t i = 0; i < meshes.size(); ++i) report.text += explained(configs[i], meshes[i]->result());
    report.text +=
        "# an empty mesh: by --flits, --routing-delay and the pattern's distances; waiting: by the load, --vcs, "
        "--depth, --credit-delay and --switch\n";
    return report;
  }

 private:
  std::vector<BareMeshConfig> configs(const Session& session) {
    mesh_.hold = switch_ == "hold";
    mesh_.seed = session.options().seed;
    mesh_.fast = session.options().run.fidelity.noc == Grade::fast;
    std::vector<BareMeshConfig> configs;
    for (const double load : loads_) {
      mesh_.load = load;
      configs.push_back(mesh_);
    }
    return configs;
  }

  /// What a packet's latency is made of, and what the pattern asks of the mesh.
  static std::string explained(const BareMeshConfig& config, const BareMeshResult& result) {
    const TrafficPattern::Busiest busiest = TrafficPattern(config.pattern, config.cols, config.rows).busiest();
    const bool by_node = busiest.node > busiest.link;
    const double most = by_node ? busiest.node : busiest.link;
    return fmt::format(
        "# load {:.4g}: {:.1f} cycles are {:.1f} of an empty mesh ({:.2f} links, {} flits) and {:.1f} of waiting; the "
        "busiest {} is asked for {:.0f}% of its cycles, for all of them at load {:.3f}\n",
        config.load, result.latency, result.zero_load, result.links, config.packet_flits,
        std::max(0.0, result.latency - result.zero_load), by_node ? "node's way out" : "link", 100 * config.load * most,
        1 / most);
  }

  static void add_row(const BareMeshConfig& config, const BareMeshResult& result, Report& report) {
    const char* const state = state_of(result);
    report.results.push_back({{"op", "noc_traffic"},
                              {"pattern", config.pattern},
                              {"cols", config.cols},
                              {"rows", config.rows},
                              {"packet_flits", config.packet_flits},
                              {"vcs", config.vcs},
                              {"vc_depth_flits", config.vc_depth},
                              {"switch", config.hold ? "hold" : "interleave"},
                              {"load_flits_per_node_per_cycle", config.load},
                              {"offered_flits_per_node_per_cycle", result.offered},
                              {"injected_flits_per_node_per_cycle", result.injected},
                              {"accepted_flits_per_node_per_cycle", result.accepted},
                              {"avg_packet_latency_cycles", result.latency},
                              {"p50_packet_latency_cycles", result.p50},
                              {"p95_packet_latency_cycles", result.p95},
                              {"p99_packet_latency_cycles", result.p99},
                              {"avg_network_latency_cycles", result.network_latency},
                              {"zero_load_latency_cycles", result.zero_load},
                              {"avg_links", result.links},
                              {"measured_packets", result.measured},
                              {"arrived_packets", result.arrived},
                              {"state", state}});
    report.text += fmt::format("{:>10.4g} {:>10.4f} {:>10.4f} {:>10.3f} {:>8.0f} {:>8.0f} {:>8.0f} {:>10}  {}\n",
                               config.load, result.offered, result.accepted, result.latency, result.p50, result.p95,
                               result.p99, result.measured, state);
  }

  BareMeshConfig mesh_;
  std::vector<double> loads_;
  std::string switch_;
};
}  // namespace

std::unique_ptr<Workload> make_noc_traffic() { return std::make_unique<NocTraffic>(); }

}  // namespace kernbench
