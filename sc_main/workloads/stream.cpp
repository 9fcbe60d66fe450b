#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/host_memory.h"
#include "runtime/placement_units.h"
#include "runtime/tool_work.h"
#include "sc_main/check/numerics.h"
#include "sc_main/rigs/bare_stream.h"
#include "sc_main/workloads/dma_listener.h"
#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/workload.h"
#include "tlm/config/refusals.h"
#include "tlm/kernel/tl.h"
#include "topology/machine/machine.h"
#include "topology/plan/plan.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

constexpr float kScale = 3;  ///< triad: c = a + kScale b

/// A kernel: arrays that it reads and writes.
struct Traffic {
  const char* name;
  int reads, writes;
};
constexpr Traffic kTraffic[] = {{"read", 1, 0}, {"write", 0, 1}, {"copy", 1, 1}, {"triad", 2, 1}};

/// Arrays that a kernel reads and writes; elements of each array on a PE, and of a block.
struct StreamCall {
  std::int64_t count, per_block;
  int reads, writes;
};
void stream_kernel(Va a, Va b, Va c, StreamCall call, Tl& tl) {
  const Va own_a = tl.shard(a).va, own_b = tl.shard(b).va, own_c = tl.shard(c).va;
  const Shape shape{1, call.per_block};
  const Tile constant = tl.fill(shape, DType::f32, call.reads == 0 ? 1 : kScale);
  for (std::int64_t i = 0; i < call.count; i += call.per_block) {
    const Va at = static_cast<Va>(i) * 4;
    Tile value = constant;
    if (call.reads > 0) value = tl.load(own_a + at, shape, DType::f32);
    if (call.reads > 1) value = value + tl.load(own_b + at, shape, DType::f32) * constant;
    if (call.writes > 0) tl.store(own_c + at, value);
  }
}

/// One element after the other, each waited for.
void chase_kernel(Va a, Va, Va, std::int64_t loads, std::int64_t stride, Tl& tl) {
  const Va own = tl.shard(a).va;
  for (std::int64_t i = 0; i < loads; ++i) tl.wait(tl.load(own + static_cast<Va>(i * stride) * 4, {1, 1}, DType::f32));
}

/// Every PE works on its own HBM slice, block by block; all PEs of SIP 0 at once. Bytes count what is read and written.
/// With --pattern instead: a synthetic stream on one channel of cube.hbm, beside the machine, which stays idle.
class Stream final : public Workload {
 public:
  std::string name() const override { return "stream"; }
  std::string help() const override {
    return "HBM bandwidth (read, write, copy, triad on all PEs) and latency; synthetic streams on one channel";
  }
  std::string example() const override { return "kernbench run stream --bytes 64K"; }
  void add_options(po::options_description& options) override {
    auto add = options.add_options();
    add("bytes", po::value(&bytes_)->default_value("256K"), "bytes of each array on each PE");
    add("block", po::value(&block_)->default_value("16K"), "bytes of one load or store");
    add("pattern", po::value(&pattern_),
        "a stream on one channel instead: seq, rand, stride_BYTES, rand_hit, rowconf_Nbank_bgfirst, "
        "rowconf_Nbank_samebg, bankpar_kK, triad; device, scheduler, page policy and refresh are those of cube.hbm");
    add("scope", po::value(&scope_)->default_value("pc"), "pc: one pseudo channel, ch: all of the channel");
    add("mapping", po::value(&mapping_),
        "address fields, most significant first, e.g. RoBaBgCo, RoBaCoBgPc; default: bank groups interleaved");
    add("request", po::value(&stream_.request_bytes)->default_value(32), "bytes of a request");
    add("mix-reads", po::value(&stream_.reads)->default_value(1), "reads of each cycle of the mix");
    add("mix-writes", po::value(&stream_.writes)->default_value(0), "writes that follow them");
    add("queue", po::value(&stream_.queue)->default_value(32), "bursts in each queue of the channel");
    add("requests", po::value(&stream_.requests)->default_value(50'000), "requests of the stream");
    add("arrivals", po::value(&arrivals_)->default_value("saturate"),
        "saturate; closed: --outstanding in flight; fixed or poisson: --load");
    add("outstanding", po::value(&stream_.outstanding)->default_value(1), "requests in flight of a closed loop");
    add("load", po::value(&stream_.load)->default_value(0.5), "offered bytes, as a fraction of the peak");
    add("paced", po::bool_switch(&stream_.paced), "at most one request per clock");
  }
  Observer* observer() override { return &listener_; }
  void check_options() const override {
    Refusals refusals;
    std::optional<std::uint64_t> bytes, block;
    refusals.from([&] { bytes = parse_size("--bytes", bytes_); });
    refusals.from([&] { block = parse_size("--block", block_); });
    if (bytes && block) block = std::min(*bytes, *block);
    if (pattern_.empty() && bytes && block && (*block == 0 || *block % 4 != 0 || *bytes % *block != 0)) {
      refusals.add(fmt::format("--bytes {} and --block {}: give a block of whole 4 B elements that divides the bytes",
                               bytes_, block_));
    }
    if (scope_ != "pc" && scope_ != "ch") refusals.add(fmt::format("--scope is '{}'", scope_), "give pc or ch");
    refusals.from([this] { arrivals(); });
    refusals.throw_if_any();
  }

  bool may_replay() const override { return false; }
  Report run(Session& session) override {
    if (!pattern_.empty()) return run_pattern(session);
    const std::uint64_t bytes = parse_size("--bytes", bytes_), block = std::min(parse_size("--block", block_), bytes);
    Report report;
    report.text = fmt::format(
        "# stream on all PEs of sip0, each in its own HBM slice, blocks of {}; latency: mean of a load or store\n"
        "#{:>9} {:>12} {:>12} {:>10} {:>7} {:>12} {:>10} {:>10} {:>10} {:>8}\n",
        readable_bytes(block), "pattern", "bytes", "time (ns)", "GB/s", "peak", "latency (ns)", "row hits", "closed",
        "conflicts", "check");
    session.run(1, [&](Context& ctx) { rank_program(ctx, session, bytes, block, report); });
    return report;
  }

 private:
  /// Throws Refused.
  BareStreamConfig::Arrivals arrivals() const {
    using Arrivals = BareStreamConfig::Arrivals;
    constexpr std::pair<const char*, Arrivals> kArrivals[] = {{"saturate", Arrivals::saturate},
                                                              {"closed", Arrivals::closed_loop},
                                                              {"fixed", Arrivals::fixed},
                                                              {"poisson", Arrivals::poisson}};
    for (const auto& [name, value] : kArrivals) {
      if (arrivals_ == name) return value;
    }
    throw Refused({{fmt::format("--arrivals is '{}'", arrivals_), "give saturate, closed, fixed or poisson"}});
  }

  BareStreamConfig stream_config(const Session& session) const {
    BareStreamConfig c = stream_;
    c.hbm = session.options().plan->spec.cube_at({0, 0}).hbm;
    c.pseudo_channels = scope_ == "pc" ? 1 : c.hbm.pseudo_channels;
    c.rows = static_cast<std::uint32_t>(c.hbm.bytes / (std::uint64_t{c.hbm.total_pseudo_channels()} * c.hbm.stack_ids *
                                                       c.hbm.bank_groups * c.hbm.banks_per_group * c.hbm.row_bytes));
    c.pattern = pattern_;
    c.mapping = mapping_;
    c.arrivals = arrivals();
    c.seed = session.options().seed;
    c.fast = session.options().run.fidelity.hbm == Grade::fast;
    return c;
  }

  Report run_pattern(Session& session) {
    const BareStreamConfig c = stream_config(session);
    BareStream stream(c, session.options().machine->dispatcher().queue(0));
    session.run(1, [](Context&) {});
    const BareStreamResult r = stream.result();
    Report report;
    report.text = fmt::format(
        "# stream {} on one channel of {}, scope {}, {} requests of {} B; latency of a read from acceptance to its "
        "data\n"
        "#{:>19} {:>12} {:>12} {:>9} {:>7} {:>9} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9}\n"
        " {:>19} {:>12} {:>12.1f} {:>9.3f} {:>7.4f} {:>9.2f} {:>8.2f} {:>8.2f} {:>8.2f} {:>9} {:>9} {:>9}\n",
        c.pattern, c.hbm.generation, scope_, c.requests, c.request_bytes, "pattern", "bytes", "time (ns)", "GB/s",
        "peak", "mean (ns)", "p50", "p95", "p99", "row hits", "closed", "conflicts", c.pattern, r.bytes, r.ns, r.gbps,
        r.fraction_of_peak, r.mean_ns, r.p50_ns, r.p95_ns, r.p99_ns, r.row_hits, r.row_closed, r.row_conflicts);
    const bool reads = c.reads > 0;
    const auto latency = [&](double ns) { return reads ? Json(ns) : Json(); };
    report.results.push_back({{"op", "stream"},
                              {"pattern", c.pattern},
                              {"bytes", r.bytes},
                              {"time_ns", r.ns},
                              {"gbps", r.gbps},
                              {"fraction_of_peak", r.fraction_of_peak},
                              {"avg_latency_ns", latency(r.mean_ns)},
                              {"row_hits", r.row_hits},
                              {"row_closed", r.row_closed},
                              {"row_conflicts", r.row_conflicts},
                              {"check", "skipped"},
                              {"mismatches", Json()},
                              {"scope", scope_},
                              {"clocks", r.clocks},
                              {"p50_latency_ns", latency(r.p50_ns)},
                              {"p95_latency_ns", latency(r.p95_ns)},
                              {"p99_latency_ns", latency(r.p99_ns)},
                              {"avg_latency_from_arrival_ns", latency(r.mean_from_arrival_ns)},
                              {"refreshes", r.refreshes}});
    return report;
  }

  struct Arrays {
    Tensor a, b, c;
    std::vector<float> host_a, host_b;  ///< what was put into a and b
  };
  /// What a kernel did to the machine.
  struct Cost {
    double ns = 0;
    double mean_op_ns = 0;  ///< of its loads and stores
    Hbm::Stats rows;        ///< of the cubes of SIP 0
  };

  void rank_program(Context& ctx, const Session& session, std::uint64_t bytes, std::uint64_t block, Report& report) {
    const auto count = static_cast<std::int64_t>(bytes / 4), per_block = static_cast<std::int64_t>(block / 4);
    const Arrays arrays = make_arrays(ctx, session, count);
    const std::vector<PeCoord> pes = pes_of(placement_units(ctx.map()), 0);
    const double peak =
        static_cast<double>(ctx.map().hbm_slice.peak.bytes_per_second()) / 1e9 * static_cast<double>(pes.size());
    for (const Traffic& traffic : kTraffic) {
      const Cost cost = run_timed(ctx, session, traffic.name, {}, stream_kernel, arrays,
                                  StreamCall{count, per_block, traffic.reads, traffic.writes});
      const std::uint64_t moved = bytes * static_cast<std::uint64_t>(traffic.reads + traffic.writes) * pes.size();
      add_row(traffic.name, moved, cost, static_cast<double>(moved) / cost.ns / peak,
              check(ctx, session, arrays, traffic), report);
    }
    // One element after the other on one PE, each waited for, 4 KiB apart.
    constexpr std::int64_t kLoads = 64;
    const std::int64_t stride = std::max<std::int64_t>(std::min<std::int64_t>(1024, count / kLoads), 1);
    const std::int64_t loads = std::min(kLoads, (count + stride - 1) / stride);
    Cost cost = run_timed(ctx, session, "latency", {{pes.front()}}, chase_kernel, arrays, loads, stride);
    cost.mean_op_ns = cost.ns / static_cast<double>(loads);  // with dispatch and wait
    add_row("latency", static_cast<std::uint64_t>(loads) * 4, cost, {}, {}, report);
  }

  /// The host has a, b and for a moment one more array, and the modelled memory three. Throws HostShortage.
  static void require_room(const Session& session, std::uint64_t array) {
    const std::uint64_t bytes = (session.options().run.data ? 6 : 3) * array;
    if (bytes < kLargeHostMemory) return;
    require_host_memory(bytes, fmt::format("stream with three arrays of {} B over all PEs", array),
                        "--data off needs none of it, a smaller --bytes less");
  }

  /// a and b hold values that differ from element to element; c is zero.
  static Arrays make_arrays(Context& ctx, const Session& session, std::int64_t count_per_pe) {
    const DPPolicy split = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise);
    const auto pes = static_cast<std::int64_t>(pes_of(placement_units(ctx.map()), 0).size());
    const Shape shape{1, count_per_pe * pes};
    Arrays arrays;
    if (!makes_copies(session)) {
      arrays.a = ctx.empty(shape, DType::f32, split, "a");
      arrays.b = ctx.empty(shape, DType::f32, split, "b");
    } else {
      const ToolWork filling(ctx);
      const Pattern pattern(session.options().seed, DType::f32, Pattern::Range::unit);
      const auto make = [&](std::uint64_t stream, const char* name, std::vector<float>& host) {
        Tensor tensor = ctx.empty(shape, DType::f32, split, name);  // before the host has to hold its contents
        if (stream == 1) require_room(session, static_cast<std::uint64_t>(shape.count()) * 4);
        const std::vector<std::uint8_t> data = pattern.bytes(stream, static_cast<std::size_t>(shape.count()));
        host.resize(data.size() / sizeof(float));
        std::memcpy(host.data(), data.data(), data.size());
        tensor.write_bytes(data);
        return tensor;
      };
      arrays.a = make(1, "a", arrays.host_a);
      arrays.b = make(2, "b", arrays.host_b);
    }
    arrays.c = ctx.zeros(shape, DType::f32, split, "c");
    return arrays;
  }

  template <class Kernel, class... Args>
  Cost run_timed(Context& ctx, const Session& session, const char* name, const LaunchOptions& on, Kernel kernel,
                 const Arrays& arrays, const Args&... arguments) {
    const Hbm::Stats before = row_stats(ctx.map(), session);
    listener_.clear();
    const Handle handle = ctx.launch(name, on, kernel, arrays.a, arrays.b, arrays.c, arguments...);
    Cost cost;
    cost.ns = static_cast<double>(handle.kernel_end() - handle.kernel_start()) / 1e3;
    cost.mean_op_ns = static_cast<double>(listener_.total()) / static_cast<double>(listener_.ops()) / 1e3;
    cost.rows = row_stats(ctx.map(), session);
    cost.rows.row_hits -= before.row_hits;
    cost.rows.row_closed -= before.row_closed;
    cost.rows.row_conflicts -= before.row_conflicts;
    return cost;
  }

  static Hbm::Stats row_stats(const MachineMap& map, const Session& session) {
    Hbm::Stats sum;
    for (std::uint16_t cube = 0; cube < map.cubes_per_sip(); ++cube) {
      const Hbm::Stats stats = session.options().machine->hbm({0, cube}).stats();
      sum.row_hits += stats.row_hits;
      sum.row_closed += stats.row_closed;
      sum.row_conflicts += stats.row_conflicts;
    }
    return sum;
  }

  /// Elements of c that are not what the kernel had to write, to the bit; nothing if it wrote none, or with data off.
  static std::optional<std::uint64_t> check(Context& ctx, const Session& session, const Arrays& arrays,
                                            const Traffic& traffic) {
    if (traffic.writes == 0 || !makes_copies(session)) return {};
    const ToolWork checking(ctx);
    const std::vector<std::uint8_t> bytes = arrays.c.bytes_to_host();
    if (!session.options().run.data) return {};
    std::uint64_t mismatches = 0;
    for (std::size_t i = 0; i < arrays.host_a.size(); ++i) {
      float got = 0;
      std::memcpy(&got, bytes.data() + i * sizeof got, sizeof got);
      const float scaled = arrays.host_b[i] * kScale;  // rounded on its own, as on the machine
      const float expected = traffic.reads == 0 ? 1 : traffic.reads == 1 ? arrays.host_a[i] : arrays.host_a[i] + scaled;
      if (got != expected) ++mismatches;
    }
    return mismatches;
  }

  static void add_row(const std::string& pattern, std::uint64_t bytes, const Cost& cost, std::optional<double> fraction,
                      std::optional<std::uint64_t> mismatches, Report& report) {
    const double gbps = static_cast<double>(bytes) / cost.ns;
    Json row;
    row["op"] = "stream";
    row["pattern"] = pattern;
    row["bytes"] = bytes;
    row["time_ns"] = cost.ns;
    row["gbps"] = gbps;
    row["fraction_of_peak"] = fraction ? Json(*fraction) : Json();
    row["avg_latency_ns"] = cost.mean_op_ns;
    row["row_hits"] = cost.rows.row_hits;
    row["row_closed"] = cost.rows.row_closed;
    row["row_conflicts"] = cost.rows.row_conflicts;
    row["check"] = !mismatches ? "skipped" : *mismatches == 0 ? "ok" : "wrong";
    row["mismatches"] = mismatches ? Json(*mismatches) : Json();
    report.text +=
        fmt::format(" {:>9} {:>12} {:>12.1f} {:>10.1f} {:>7} {:>12.1f} {:>10} {:>10} {:>10} {:>8}\n", pattern, bytes,
                    cost.ns, gbps, fraction ? fmt::format("{:.3f}", *fraction) : "-", cost.mean_op_ns,
                    cost.rows.row_hits, cost.rows.row_closed, cost.rows.row_conflicts, row["check"].get<std::string>());
    report.wrong = report.wrong || mismatches.value_or(0) > 0;
    report.results.push_back(std::move(row));
  }

  std::string bytes_, block_, pattern_, scope_, mapping_, arrivals_;
  BareStreamConfig stream_;  ///< what the options of --pattern set
  DmaListener listener_;
};

}  // namespace

std::unique_ptr<Workload> make_stream() { return std::make_unique<Stream>(); }

}  // namespace kernbench
