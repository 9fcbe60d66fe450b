#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>

#include "runtime/placement_units.h"
#include "sc_main/workloads/dma_listener.h"
#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/workload.h"
#include "tlm/kernel/tl.h"
#include "tlm/machine/names.h"
#include "topology/plan/paths.h"
#include "topology/plan/plan.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

/// Edges that the data of several flows take, to say how much of the machine they use. An edge's name is free text; one
/// name is one edge.
class EdgeShares {
 public:
  /// `paths`: of `plan`. Both outlive it.
  EdgeShares(const topology::Plan& plan, const topology::Paths& paths) : plan_(plan), paths_(paths) {}

  /// Data of a read by `pe` out of the slice of `owner`: slice, networks, TCM.
  void add_read(PeCoord pe, PeCoord owner) {
    Flow flow;
    use_slice(flow, owner);
    use_path(flow, names::hbm_port(owner), names::pe(pe));
    use(flow, names::pe(pe) + " TCM", plan_.map.rates(pe).tcm.bytes_per_second());
    flows_.push_back(std::move(flow));
  }
  /// Data of a host copy to or from the slice of `owner`, over the SIP's PCIE_EP.
  void add_host_copy(std::uint16_t sip, PeCoord owner, bool to_device) {
    const std::string endpoint = plan_.map.name(plan_.map.pcie_ep(sip)), slice = names::hbm_port(owner);
    Flow flow;
    use(flow, endpoint + " host", plan_.spec.sip.io.pcie.bytes_per_second);
    use_path(flow, to_device ? endpoint : slice, to_device ? slice : endpoint);
    use_slice(flow, owner);
    flows_.push_back(std::move(flow));
  }

  /// Narrowest edge of the first flow, in bytes per second.
  double narrowest() const {
    double least = std::numeric_limits<double>::infinity();
    for (const std::string& edge : flows_.front()) least = std::min(least, edges_.at(edge).bytes_per_second);
    return least;
  }
  /// Sum over the flows of each one's fair share (rate / flows on it) of the edge where that is least: where most flows
  /// share it. Equal flows cannot be faster together.
  double fair_sum() const {
    double sum = 0;
    for (const Flow& flow : flows_) {
      double share = std::numeric_limits<double>::infinity();
      for (const std::string& name : flow) {
        const Edge& edge = edges_.at(name);
        share = std::min(share, edge.bytes_per_second / edge.flows);
      }
      sum += share;
    }
    return sum;
  }

 private:
  using Flow = std::vector<std::string>;
  struct Edge {
    double bytes_per_second = 0;
    std::uint32_t flows = 0;
  };

  void use(Flow& flow, const std::string& edge, std::uint64_t bytes_per_second) {
    if (bytes_per_second == 0) return;  // without a limit of its own
    Edge& entry = edges_[edge];
    entry.bytes_per_second = static_cast<double>(bytes_per_second);
    ++entry.flows;
    flow.push_back(edge);
  }
  void use_path(Flow& flow, const std::string& from, const std::string& to) {
    const topology::Graph& graph = paths_.graph();
    const std::vector<std::string> way = paths_.find_path(from, to);
    for (std::size_t i = 0; i + 1 < way.size(); ++i) {
      const topology::GraphEdge* edge = graph.edge(graph.find(way[i]), graph.find(way[i + 1]));
      sc_assert(edge != nullptr);
      use(flow, way[i] + ">" + way[i + 1], edge->bytes_per_second);
    }
  }
  void use_slice(Flow& flow, PeCoord owner) {
    use(flow, names::hbm_port(owner) + " slice", plan_.map.rates(owner).hbm_slice.bytes_per_second());
  }

  const topology::Plan& plan_;
  const topology::Paths& paths_;
  std::vector<Flow> flows_;
  std::map<std::string, Edge> edges_;
};

/// Issuers that each read `bytes` out of a PE's HBM slice: all of them `target`'s, or each its own.
struct Case {
  std::string name;
  std::vector<PeCoord> issuers;
  std::optional<PeCoord> target;

  PeCoord target_of(PeCoord issuer) const { return target.value_or(issuer); }
};

/// What one case came to.
struct ProbeMeasurement {
  double ns = 0;     ///< first start to last end
  double op_ns = 0;  ///< of the op (host copies: message) whose time is broken down
  Breakdown spent{};
};

DPPolicy one_slice_each() { return DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise); }

/// `target`: what every issuer loads; 0: each its own slice.
void probe_kernel(Va base, Va target, std::int64_t count, Tl& tl) {
  tl.load(target == 0 ? tl.shard(base).va : target, {1, count}, DType::i8);
}

/// Predefined traffic on an idle machine; of a few runs the fastest. Times and breakdowns are measured: of the DMA op
/// that ended last, by its last burst; of host copies, by the message.
class Probe final : public Workload {
 public:
  std::string name() const override { return "probe"; }
  std::string help() const override {
    return "host to device, device to host, PE DMA near and far, hotspots: latency breakdown, utilisation";
  }
  std::string example() const override { return "kernbench run probe --bytes 16K"; }
  void add_options(po::options_description& options) override {
    options.add_options()("bytes", po::value(&bytes_)->default_value("16K"), "bytes that each issuer moves");
  }
  Observer* observer() override { return &listener_; }
  void check_options() const override { parse_size("--bytes", bytes_); }

  bool may_replay() const override { return false; }
  Report run(Session& session) override {
    const std::uint64_t bytes = parse_size("--bytes", bytes_);
    if (bytes < 256 || bytes % 256 != 0 || bytes > session.map().tcm.bytes / 8) {
      throw std::invalid_argument(fmt::format("--bytes is '{}'; give a multiple of 256 up to an eighth of TCM, {}",
                                              bytes_, readable_bytes(session.map().tcm.bytes / 8)));
    }
    const topology::Plan& plan = *session.options().plan;
    const topology::Paths paths(plan);
    Report report;
    report.text = fmt::format(
        "# probe: {} per issuer; single: of the narrowest edge on the first issuer's way; aggr: of the sum of fair "
        "shares\n# breakdown in ns of the DMA op (host copy: message) that ended last\n"
        "#{:>26} {:>7} {:>11} {:>9} {:>6} {:>6} | {:>9} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>10}\n",
        readable_bytes(bytes), "case", "issuers", "time (ns)", "GB/s", "single", "aggr", "op (ns)", "setup", "mesh",
        "ucie", "fabric", "wire", "hbm", "contention");
    session.run(1, [&](Context& ctx) { rank_program(ctx, plan, paths, bytes, report); });
    return report;
  }

 private:
  static constexpr int kRuns = 4;             ///< of a case, to have one without a refresh in its way
  static constexpr Va kWindow = Va{1} << 46;  ///< beyond what tensors are given; shows the slice on the other SIP

  void rank_program(Context& ctx, const topology::Plan& plan, const topology::Paths& paths, std::uint64_t bytes,
                    Report& report) {
    const MachineMap& map = ctx.map();
    const Shape shape{1, static_cast<std::int64_t>(bytes * map.cubes_per_sip()) * map.pes_per_cube};
    const Tensor tensor = ctx.zeros(shape, DType::i8, one_slice_each(), "probe");
    const PeCoord first = pes_of(placement_units(map), 0).front();
    const PhysicalAddress home = tensor.pa(shard_of(tensor, first));
    const auto host_row = [&](const char* name, const Handle& copy, bool to_device) {
      ctx.wait(copy);
      EdgeShares edges(plan, paths);
      edges.add_host_copy(0, first, to_device);
      const double ns = static_cast<double>(copy.completed() - copy.submitted()) / 1e3;
      add_row(name, names::pe(first), 1, bytes, {ns, ns, copy.message().spent}, edges, report);
    };
    host_row("h2d", ctx.submit(MemoryWriteMessage{home, std::vector<std::uint8_t>(bytes)}), true);
    host_row("d2h", ctx.submit(MemoryReadMessage{home, {}, bytes}), false);

    Tensor remote;
    if (map.has(opposite(first))) {
      ctx.set_device(1);
      remote = ctx.zeros(shape, DType::i8, one_slice_each(), "probe_remote");
      ctx.set_device(0);
      ctx.wait(ctx.submit(MmuMapMessage{{{kWindow, bytes, remote.pa(shard_of(remote, opposite(first))), {}}}}));
    }
    for (const Case& c : cases(map)) {
      EdgeShares edges(plan, paths);
      for (const PeCoord issuer : c.issuers) edges.add_read(issuer, c.target_of(issuer));
      add_row(c.name, c.target ? names::pe(*c.target) : "each its own", c.issuers.size(), bytes,
              measure(ctx, tensor, c, bytes), edges, report);
    }
    if (remote) ctx.wait(ctx.submit(MmuUnmapMessage{kWindow, bytes}));
  }

  /// The same cube and PE on SIP 1.
  static PeCoord opposite(PeCoord pe) { return {1, pe.cube, pe.pe}; }

  static std::size_t shard_of(const Tensor& tensor, PeCoord pe) {
    for (std::size_t i = 0; i < tensor.shards().size(); ++i) {
      const ShardSpec& shard = tensor.shards()[i];
      if (shard.cube == pe.cube && shard.pe == pe.pe) return i;
    }
    throw std::invalid_argument(fmt::format("{} has no part of tensor '{}'", names::pe(pe), tensor.name()));
  }

  static std::vector<Case> cases(const MachineMap& map) {
    const std::vector<PeCoord> sip = pes_of(placement_units(map), 0);
    const PeCoord first = sip.front();
    const auto way = [&](PeCoord pe) { return map.packet_latency(map.pe(first), map.hbm_port(pe), kMaxPacketBytes); };
    const auto farthest = [&](const std::vector<PeCoord>& pes) {  // of several the last
      return *std::max_element(pes.rbegin(), pes.rend(), [&](PeCoord a, PeCoord b) { return way(a) < way(b); });
    };
    const PeCoord last = farthest(sip);
    std::vector<PeCoord> cube;
    for (const PeCoord pe : sip) {
      if (pe.cube == first.cube) cube.push_back(pe);
    }
    const PeCoord next{0, static_cast<std::uint16_t>(first.cube + 1), first.pe};  // to the east
    const bool has_next =
        first.cube % map.cube_w + 1 < map.cube_w && std::find(sip.begin(), sip.end(), next) != sip.end();

    std::vector<Case> all = {{"own_slice", {first}, first}};
    if (cube.size() > 1) all.push_back({"same_cube_farthest_pe", {first}, farthest(cube)});
    if (has_next) all.push_back({"next_cube", {first}, next});
    if (last.cube != first.cube) all.push_back({"farthest_cube", {first}, last});
    if (map.has(opposite(first))) all.push_back({"other_sip", {first}, opposite(first)});
    for (std::size_t n = 1; n <= 3 && n < cube.size(); ++n) {
      all.push_back({fmt::format("neighbours_to_one_slice_{}", n),
                     {cube.begin() + 1, cube.begin() + 1 + static_cast<std::ptrdiff_t>(n)},
                     first});
    }
    if (cube.size() > 1) all.push_back({"cube_to_one_slice", cube, first});
    if (has_next && cube.size() > 1) all.push_back({"cube_to_next_cube", cube, next});
    if (sip.size() > 1) all.push_back({"sip_own_slices", sip, {}});
    if (last.cube != first.cube) all.push_back({"sip_to_one_slice", sip, first});
    return all;
  }

  ProbeMeasurement measure(Context& ctx, const Tensor& tensor, const Case& c, std::uint64_t bytes) {
    const Va base = tensor.va();
    Va target = 0;
    if (c.target)
      target = c.target->sip == 0 ? base + tensor.shards()[shard_of(tensor, *c.target)].offset_bytes : kWindow;
    const auto count = static_cast<std::int64_t>(bytes);
    const LaunchOptions on{c.issuers};
    ProbeMeasurement best;
    for (int i = 0; i < kRuns; ++i) {
      listener_.clear();
      const Handle handle = ctx.launch("probe", on, probe_kernel, tensor, target, count);
      sc_assert(listener_.ops() == c.issuers.size());
      const double ns = static_cast<double>(handle.kernel_end() - handle.kernel_start()) / 1e3;
      if (i == 0 || ns < best.ns) best = {ns, static_cast<double>(listener_.last()) / 1e3, listener_.last_spent()};
    }
    return best;
  }

  static void add_row(const std::string& name, const std::string& target, std::size_t issuers, std::uint64_t bytes,
                      const ProbeMeasurement& measured, const EdgeShares& edges, Report& report) {
    const double gbps = static_cast<double>(bytes) * static_cast<double>(issuers) / measured.ns;
    const double single = gbps * 1e9 / edges.narrowest(), aggregate = gbps * 1e9 / edges.fair_sum();
    Json row;
    row["op"] = "probe";
    row["case"] = name;
    row["target"] = target;
    row["issuers"] = issuers;
    row["bytes"] = bytes;
    row["time_ns"] = measured.ns;
    row["gbps"] = gbps;
    row["single_utilisation"] = single;
    row["aggregate_utilisation"] = aggregate;
    row["op_time_ns"] = measured.op_ns;
    constexpr std::array<const char*, kDelays> kKeys = {"setup_ns", "mesh_ns", "ucie_ns",      "fabric_ns",
                                                        "wire_ns",  "hbm_ns",  "contention_ns"};  // by Delay
    Json parts;
    report.text += fmt::format(" {:>26} {:>7} {:>11.1f} {:>9.2f} {:>6.3f} {:>6.3f} | {:>9.1f}", name, issuers,
                               measured.ns, gbps, single, aggregate, measured.op_ns);
    for (std::size_t i = 0; i < kKeys.size(); ++i) {
      const double ns = static_cast<double>(measured.spent[i]) / 1e3;
      parts[kKeys[i]] = ns;
      report.text += fmt::format(" {:>{}.1f}", ns, i + 1 == kKeys.size() ? 10 : 7);
    }
    row["breakdown"] = std::move(parts);
    report.text += "\n";
    report.results.push_back(std::move(row));
  }

  std::string bytes_;
  DmaListener listener_;
};

}  // namespace

std::unique_ptr<Workload> make_probe() { return std::make_unique<Probe>(); }

}  // namespace kernbench
