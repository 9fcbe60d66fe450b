#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <stdexcept>

#include "models/pe/gemm_array.h"
#include "runtime/placement_units.h"
#include "sc_main/workloads/numerics.h"
#include "sc_main/workloads/refusals.h"
#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/workload.h"
#include "tlm/kernel/tl.h"
#include "topology/machine.h"
#include "topology/plan.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::f16;
};

/// c = a b on the host: sums in f64 of the operands as they stand in memory.
Comparison compare(const GemmShape& p, const std::vector<double>& a, const std::vector<double>& b,
                   const std::vector<double>& c) {
  Comparison comparison;
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      double sum = 0, magnitude = 0;
      for (std::int64_t l = 0; l < p.k; ++l) {
        const double product = a[static_cast<std::size_t>(i * p.k + l)] * b[static_cast<std::size_t>(l * p.n + j)];
        sum += product;
        magnitude += std::abs(product);
      }
      comparison.add(c[static_cast<std::size_t>(i * p.n + j)], sum, gemm_tolerance(p.dtype, p.k, sum, magnitude));
    }
  }
  return comparison;
}

/// Multiply-accumulates per second of one PE at its best; 0 where the configuration is not known.
double peak_macs(const Session& session, DType dtype) {
  if (session.options().plan == nullptr) return 0;
  return pe::peak_macs_per_second(session.options().plan->spec.cube.pe.gemm, dtype);
}

/// Sums over the PEs that took part. A kernel that is one composite uses each engine for one stage.
PeStatistics statistics_of(const Session& session, const std::vector<PeCoord>& pes) {
  PeStatistics sum;
  if (session.options().machine == nullptr) return sum;
  for (const PeCoord pe : pes) {
    const PeStatistics one = session.options().machine->pe(pe).statistics();
    sum.dma_read_busy += one.dma_read_busy;
    sum.gemm_busy += one.gemm_busy;
    sum.math_busy += one.math_busy;
    sum.dma_write_busy += one.dma_write_busy;
    sum.dma_read_bytes += one.dma_read_bytes;
    sum.dma_write_bytes += one.dma_write_bytes;
  }
  return sum;
}

/// The workload's kernels: operands, result, and the whole problem.
using GemmKernel = void (*)(Va a, Va b, Va c, GemmShape p, Tl& tl);

void composite_kernel(Va a, Va b, Va c, GemmShape p, Tl& tl) {
  tl.composite_gemm({a, b, c, p.m, p.n, p.k, p.dtype, 0, 0, 0, {}});
}

void dot_kernel(Va a, Va b, Va c, GemmShape p, Tl& tl) {
  tl.store(c, tl.dot(tl.load(a, {p.m, p.k}, p.dtype), tl.load(b, {p.k, p.n}, p.dtype)));
}

/// Each PE its own shard of c.
void shard_kernel(Va a, Va b, Va c, GemmShape p, Tl& tl) {
  const ShardView a_tile = tl.shard(a), b_tile = tl.shard(b), c_tile = tl.shard(c);
  tl.composite_gemm({a_tile.va, b_tile.va, c_tile.va, c_tile.rows, c_tile.cols, p.k, p.dtype, 0, 0, 0, {}});
}

struct Outcome {
  Ps start = 0, end = 0;
  Comparison comparison;
  PeStatistics before, after;  // sums over the PEs
};

class GemmBase : public Workload {
 public:
  void add_options(po::options_description& options) override {
    auto add = options.add_options();
    add("m", po::value(&problem_.m)->default_value(preset().m), "rows of A and C");
    add("n", po::value(&problem_.n)->default_value(preset().n), "columns of B and C");
    add("k", po::value(&problem_.k)->default_value(preset().k), "columns of A, rows of B");
    add("dtype,d", po::value(&dtype_)->default_value("f16"), "f16, bf16, f32, f8e4m3, f8e5m2");
    add("check,c", po::value(&check_)->default_value(1)->implicit_value(1),
        "compare every element with the host: 0 or 1");
  }
  void check_options() const override {
    Refusals refusals;
    refusals.from([this] { type(); });
    for (const auto& [name, value] :
         {std::pair("--m", problem_.m), std::pair("--n", problem_.n), std::pair("--k", problem_.k)})
      refusals.check_integer(name, value, 1, 1 << 20);
    refusals.check_flag("-c", check_);
    refusals.throw_if_any();
  }

 protected:
  virtual GemmShape preset() const = 0;

  /// Throws std::invalid_argument.
  DType type() const {
    const DType dtype = parse_dtype_option(dtype_);
    if (!is_float(dtype))
      throw std::invalid_argument(fmt::format("--dtype is '{}'; give a floating-point type", dtype_));
    return dtype;
  }

  /// Runs one variant on the calling rank.
  Outcome run_variant(Context& ctx, const Session& session, const std::string& name, GemmKernel kernel,
                      const DPPolicy& a_policy, const DPPolicy& b_policy, const DPPolicy& c_policy) {
    const GemmShape& p = problem_;
    const bool data = session.options().run.data;
    const Pattern pattern(session.options().seed, p.dtype, Pattern::Range::unit);
    const auto make = [&](std::uint64_t stream, Shape shape, const DPPolicy& policy, const char* tensor) {
      return data ? ctx.from_bytes(pattern.bytes(stream, static_cast<std::size_t>(shape.count())), shape, p.dtype,
                                   policy, tensor)
                  : ctx.empty(shape, p.dtype, policy, tensor);
    };
    const Tensor a = make(1, {p.m, p.k}, a_policy, "a"), b = make(2, {p.k, p.n}, b_policy, "b");
    const Tensor c = ctx.zeros({p.m, p.n}, p.dtype, c_policy, "c");
    LaunchOptions on;
    std::vector<PeCoord>& targets = on.targets;
    for (const ShardSpec& shard : c.shards()) {
      if (shard.region.empty()) continue;
      targets.push_back({static_cast<std::uint16_t>(shard.sip), static_cast<std::uint16_t>(shard.cube),
                         static_cast<std::uint16_t>(shard.pe)});
    }
    const PeStatistics before = statistics_of(session, targets);
    const Handle handle = ctx.launch(name, on, kernel, a, b, c, p);
    Outcome outcome{handle.kernel_start(), handle.kernel_end(), {}, before, statistics_of(session, targets)};
    if (checks(session)) outcome.comparison = compare(p, a.to_host(), b.to_host(), c.to_host());
    return outcome;
  }

  bool checks(const Session& session) const { return check_ == 1 && session.options().run.data; }

  void add_row(const Session& session, const std::string& variant, std::size_t pes, const Outcome& outcome,
               Report& report) const {
    const GemmShape& p = problem_;
    const double ns = static_cast<double>(outcome.end - outcome.start) / 1e3;
    const double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    const double peak = 2 * peak_macs(session, p.dtype) * static_cast<double>(pes) / 1e9;  // flop per ns
    const double fraction = peak > 0 && ns > 0 ? flops / ns / peak : 0;
    Json row;
    row["op"] = "gemm";
    row["variant"] = variant;
    row["m"] = p.m;
    row["n"] = p.n;
    row["k"] = p.k;
    row["dtype"] = to_string(p.dtype);
    row["pes"] = pes;
    row["time_ns"] = ns;
    row["tflops"] = ns > 0 ? flops / ns / 1e3 : 0;
    row["fraction_of_peak"] = peak > 0 ? Json(fraction) : Json();
    add_stages(outcome, pes, ns, row);
    row["check"] = !checks(session) ? "skipped" : outcome.comparison.mismatches == 0 ? "ok" : "wrong";
    row["mismatches"] = checks(session) ? Json(outcome.comparison.mismatches) : Json();
    row["max_abs_err"] = checks(session) ? Json(outcome.comparison.max_abs_error) : Json();
    const Json& stages = row["utilisation"];
    report.text += fmt::format(
        " {:>10} {:>7} {:>7} {:>7} {:>8} {:>5} {:>12.1f} {:>9.3f} {:>6} {:>5.2f} {:>5.2f} {:>5.2f} {:>5.2f} {:>8}\n",
        variant, p.m, p.n, p.k, to_string(p.dtype), pes, ns, row["tflops"].get<double>(),
        peak > 0 ? fmt::format("{:.3f}", fraction) : "-", stages["dma_in"].get<double>(), stages["gemm"].get<double>(),
        stages["epilogue"].get<double>(), stages["dma_out"].get<double>(), row["check"].get<std::string>());
    report.wrong = report.wrong || (checks(session) && outcome.comparison.mismatches > 0);
    report.results.push_back(std::move(row));
  }

  /// How busy the engines were while the kernel ran, mean over the PEs, and what the DMA moved.
  static void add_stages(const Outcome& outcome, std::size_t pes, double ns, Json& row) {
    const auto busy = [&](Ps PeStatistics::*time) {
      const auto sum = static_cast<double>(outcome.after.*time - outcome.before.*time) / 1e3;
      return ns > 0 ? sum / (ns * static_cast<double>(pes)) : 0;
    };
    row["utilisation"] = {{"dma_in", busy(&PeStatistics::dma_read_busy)},
                          {"gemm", busy(&PeStatistics::gemm_busy)},
                          {"epilogue", busy(&PeStatistics::math_busy)},
                          {"dma_out", busy(&PeStatistics::dma_write_busy)}};
    const std::uint64_t read = outcome.after.dma_read_bytes - outcome.before.dma_read_bytes;
    const std::uint64_t written = outcome.after.dma_write_bytes - outcome.before.dma_write_bytes;
    row["dma_bytes"] = read + written;
    row["dma_gbps"] = ns > 0 ? static_cast<double>(read + written) / ns / static_cast<double>(pes) : 0;
  }

  static std::string header() {
    return fmt::format("#{:>10} {:>7} {:>7} {:>7} {:>8} {:>5} {:>12} {:>9} {:>6} {:>5} {:>5} {:>5} {:>5} {:>8}\n",
                       "variant", "m", "n", "k", "type", "PEs", "time (ns)", "TFLOP/s", "peak", "in", "gemm", "epil",
                       "out", "check");
  }

  GemmShape problem_;
  std::string dtype_;
  int check_ = 1;
};

class GemmSinglePe final : public GemmBase {
 public:
  std::string name() const override { return "gemm_single_pe"; }
  std::string help() const override { return "one GEMM on one PE: streamed as a composite, and from TCM with dot"; }
  std::string example() const override { return "kernbench run gemm_single_pe --m 32 --n 32 --k 128"; }

  Report run(Session& session) override {
    problem_.dtype = type();
    Report report;
    report.text = "# gemm_single_pe on sip0.cube0.pe0: operands and result in its own HBM slice\n" + header();
    session.run(1, [&](Context& ctx) {
      const DPPolicy one = DPPolicy().cubes(1).pes(1);
      add_row(session, "composite", 1, run_variant(ctx, session, "gemm_composite", composite_kernel, one, one, one),
              report);
      add_row(session, "dot", 1, run_variant(ctx, session, "gemm_dot", dot_kernel, one, one, one), report);
    });
    return report;
  }

 private:
  GemmShape preset() const override { return {32, 32, 128, DType::f16}; }
};

class Gemm final : public GemmBase {
 public:
  std::string name() const override { return "gemm"; }
  std::string help() const override { return "a GEMM over all PEs of one SIP: rows over cubes, columns over PEs"; }
  std::string example() const override { return "kernbench run gemm --m 1024 --n 1024 --k 1024"; }

  Report run(Session& session) override {
    problem_.dtype = type();
    Report report;
    report.text =
        "# gemm on sip0: rows of A and C over cubes, columns of B and C over PEs, the rest copied\n" + header();
    session.run(1, [&](Context& ctx) {
      const DPPolicy a = DPPolicy().cube(CubeSplit::row_wise), b = DPPolicy().pe(PeSplit::column_wise);
      const DPPolicy c = a.pe(PeSplit::column_wise);
      const Outcome outcome = run_variant(ctx, session, "gemm", shard_kernel, a, b, c);
      add_row(session, "composite", pes_of(placement_units(ctx.map()), 0).size(), outcome, report);
    });
    return report;
  }

 private:
  GemmShape preset() const override { return {512, 512, 512, DType::f16}; }
};

}  // namespace

std::unique_ptr<Workload> make_gemm_single_pe() { return std::make_unique<GemmSinglePe>(); }
std::unique_ptr<Workload> make_gemm() { return std::make_unique<Gemm>(); }

}  // namespace kernbench
