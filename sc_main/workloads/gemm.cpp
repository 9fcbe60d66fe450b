#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "models/pe/compute/gemm_array.h"
#include "runtime/tool_work.h"
#include "runtime/tp/gemm_planner.h"
#include "runtime/tp/linear.h"
#include "runtime/tp/own_shard.h"
#include "sc_main/check/gemm_check.h"
#include "sc_main/check/numerics.h"
#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/workload.h"
#include "tlm/config/nearest.h"
#include "tlm/config/refusals.h"
#include "tlm/kernel/tl.h"
#include "topology/machine/machine.h"
#include "topology/plan/plan.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

/// Operations per second of one PE at its best: of its array or of its math engine, whichever does more; 0 where the
/// configuration is not known.
double peak_operations(const Session& session, DType dtype) {
  if (session.options().plan == nullptr) return 0;
  const PeEngines& e = session.options().plan->map.engines;
  return std::max(2 * pe::peak_macs_per_second(session.options().plan->spec.cube.pe.gemm, dtype),
                  static_cast<double>(e.math_lanes) * static_cast<double>(e.math_hz));
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

struct Outcome {
  std::vector<Ps> times;  // of the kernels, a launch each
  std::size_t pes = 0;
  std::vector<std::uint8_t> result;  // as it stood in memory
  Comparison comparison;
  PeStatistics before, after;  // sums over the PEs

  double mean_ns() const {
    return static_cast<double>(std::accumulate(times.begin(), times.end(), Ps{0})) / static_cast<double>(times.size()) /
           1e3;
  }
};

constexpr std::int64_t kLongCheck = std::int64_t{1} << 32;  // multiply-adds: about a second of the host

class GemmBase : public Workload {
 public:
  void add_options(po::options_description& options) override {
    auto add = options.add_options();
    add("m", po::value(&problem_.m)->default_value(preset().m), "rows of A and C");
    add("n", po::value(&problem_.n)->default_value(preset().n), "columns of B and C");
    add("k", po::value(&problem_.k)->default_value(preset().k), "columns of A, rows of B");
    add("dtype,d", po::value(&dtype_)->default_value("f16"), "f16, bf16, f32, f64, f8e4m3 or f8e5m2");
    add("iters", po::value(&iterations_)->default_value(1),
        "launches, one after the other; times are their mean: of short ones a refresh more or less counts");
    add("check,c", po::value(&check_)->default_value(1)->implicit_value(1),
        "compare every element with the host: 0 or 1");
  }
  void check_options() const override {
    Refusals refusals;
    refusals.from([this] { type(); });
    for (const auto& [name, value] :
         {std::pair("--m", problem_.m), std::pair("--n", problem_.n), std::pair("--k", problem_.k)})
      refusals.check_integer(name, value, 1, 1 << 20);
    refusals.check_integer("--iters", iterations_, 1, kMostIterations);
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

  /// How the operands of a variant lie.
  struct Policies {
    DPPolicy a, b, c;
  };

  /// Makes the operands and runs `launch` on the calling rank, as often as is asked for.
  Outcome run_variant(Context& ctx, const Session& session, const Policies& policies,
                      const std::function<Handle(const Tensor& a, const Tensor& b, const Tensor& c)>& launch) {
    const GemmShape& p = problem_;
    const bool data = makes_copies(session);
    const auto make = [&](std::uint64_t stream, Shape shape, const DPPolicy& policy, const char* tensor) {
      Tensor made = ctx.empty(shape, p.dtype, policy, tensor);  // before the host has to hold what the device cannot
      const ToolWork filling(ctx);
      if (data) made.write_bytes(operand(session, stream, shape.count()));
      return made;
    };
    const Tensor a = make(1, {p.m, p.k}, policies.a, "a"), b = make(2, {p.k, p.n}, policies.b, "b");
    const Tensor c = ctx.zeros({p.m, p.n}, p.dtype, policies.c, "c");
    std::vector<PeCoord> targets;
    for (const ShardSpec& shard : c.shards()) {
      if (shard.region.empty()) continue;
      targets.push_back({static_cast<std::uint16_t>(shard.sip), static_cast<std::uint16_t>(shard.cube),
                         static_cast<std::uint16_t>(shard.pe)});
    }
    const PeStatistics before = statistics_of(session, targets);
    Outcome outcome;
    for (int i = 0; i < iterations_; ++i) {
      const Handle handle = launch(a, b, c);
      outcome.times.push_back(handle.kernel_end() - handle.kernel_start());
    }
    outcome.pes = targets.size();
    outcome.before = before;
    outcome.after = statistics_of(session, targets);
    const ToolWork reading(ctx);
    if (check_ == 1 && makes_copies(session)) outcome.result = c.bytes_to_host();
    return outcome;
  }

  std::vector<std::uint8_t> operand(const Session& session, std::uint64_t stream, std::int64_t count) const {
    return Pattern(session.options().seed, problem_.dtype, Pattern::Range::unit)
        .bytes(stream, static_cast<std::size_t>(count));
  }

  /// What ran, until it is checked: that is for after the simulation, where nothing waits for it.
  struct Ran {
    std::string variant;
    Outcome outcome;
    std::optional<tp::GemmPlan> plan;  ///< of a GEMM that was planned
  };
  std::vector<Ran> ran_;

  void check(const Session& session) {
    if (!checks(session)) return;
    const GemmShape& p = problem_;
    if (session.options().tell && p.m * p.n * p.k >= kLongCheck) {  // the times are not lost if somebody ends the check
      for (const Ran& one : ran_) {
        session.options().tell(
            fmt::format("# {}: {:.1f} ns; its result is checked now\n", one.variant, one.outcome.mean_ns()));
      }
    }
    const std::vector<std::uint8_t> a = operand(session, 1, p.m * p.k), b = operand(session, 2, p.k * p.n);
    for (Ran& one : ran_) {
      one.outcome.comparison = check_gemm(p, a, b, one.outcome.result);
      one.outcome.result = {};
    }
  }

  bool checks(const Session& session) const { return check_ == 1 && session.options().run.data; }

  /// `plan`: of a GEMM that was planned.
  void add_row(const Session& session, const std::string& variant, const Outcome& outcome, Report& report,
               const tp::GemmPlan* plan = nullptr) const {
    const GemmShape& p = problem_;
    const std::size_t pes = outcome.pes;
    const double ns = outcome.mean_ns();
    const double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    const double peak = peak_operations(session, p.dtype) * static_cast<double>(pes) / 1e9;  // flop per ns
    const double fraction = peak > 0 && ns > 0 ? flops / ns / peak : 0;
    Json row;
    row["op"] = "gemm";
    row["variant"] = variant;
    row["m"] = p.m;
    row["n"] = p.n;
    row["k"] = p.k;
    row["dtype"] = to_string(p.dtype);
    row["pes"] = pes;
    row["iterations"] = outcome.times.size();
    row["time_ns"] = ns;
    row["tflops"] = ns > 0 ? flops / ns / 1e3 : 0;
    row["fraction_of_peak"] = peak > 0 ? Json(fraction) : Json();
    add_stages(outcome, ns, row);
    row["check"] = !checks(session) ? "skipped" : outcome.comparison.mismatches == 0 ? "ok" : "wrong";
    row["mismatches"] = checks(session) ? Json(outcome.comparison.mismatches) : Json();
    row["max_abs_err"] = checks(session) ? Json(outcome.comparison.max_abs_error) : Json();
    std::string bound = fmt::format(" {:>12} {:>6}  {}", "-", "-", "-");
    if (plan != nullptr) bound = add_bound(*plan, outcome, row);
    const Json& stages = row["utilisation"];
    report.text += fmt::format(
        " {:>10} {:>7} {:>7} {:>7} {:>8} {:>5} {:>12.1f} {:>9.3f} {:>6} {:>5.2f} {:>5.2f} {:>5.2f} {:>5.2f} {:>8}{}\n",
        variant, p.m, p.n, p.k, to_string(p.dtype), pes, ns, row["tflops"].get<double>(),
        peak > 0 ? fmt::format("{:.3f}", fraction) : "-", stages["dma_in"].get<double>(), stages["gemm"].get<double>(),
        stages["epilogue"].get<double>(), stages["dma_out"].get<double>(), row["check"].get<std::string>(), bound);
    report.wrong = report.wrong || (checks(session) && outcome.comparison.mismatches > 0);
    report.results.push_back(std::move(row));
  }

  /// The mapping, its estimate, the bound and the share reached, into the row; the text of the last columns.
  static std::string add_bound(const tp::GemmPlan& plan, const Outcome& outcome, Json& row) {
    const Ps least = *std::min_element(outcome.times.begin(), outcome.times.end());
    if (least < plan.bound.time) {
      throw std::logic_error(fmt::format("the GEMM took {:.3f} ns, less than its bound of {:.3f} ns",
                                         static_cast<double>(least) / 1e3, static_cast<double>(plan.bound.time) / 1e3));
    }
    const double share = least > 0 ? static_cast<double>(plan.bound.time) / 1e3 / outcome.mean_ns() : 0;
    row["mapping"] = plan.best.mapping.str();
    row["estimate_ns"] = static_cast<double>(plan.best.estimate.time) / 1e3;
    row["estimate_binds"] = plan.best.estimate.binds();
    row["bound_ns"] = static_cast<double>(plan.bound.time) / 1e3;
    row["bound_binds"] = plan.bound.binds();
    row["bound_share"] = share;
    return fmt::format(" {:>12.1f} {:>6.3f}  {}", row["bound_ns"].get<double>(), share, plan.bound.binds());
  }

  /// How busy the engines were while the kernels ran, mean over the PEs, and what the DMA moved in each.
  static void add_stages(const Outcome& outcome, double ns, Json& row) {
    const auto launches = static_cast<double>(outcome.times.size()), pes = static_cast<double>(outcome.pes);
    const auto busy = [&](Ps PeStatistics::*time) {
      const auto sum = static_cast<double>(outcome.after.*time - outcome.before.*time) / 1e3;
      return ns > 0 ? sum / (ns * launches * pes) : 0;
    };
    row["utilisation"] = {{"dma_in", busy(&PeStatistics::dma_read_busy)},
                          {"gemm", busy(&PeStatistics::gemm_busy)},
                          {"epilogue", busy(&PeStatistics::math_busy)},
                          {"dma_out", busy(&PeStatistics::dma_write_busy)}};
    const std::uint64_t read = outcome.after.dma_read_bytes - outcome.before.dma_read_bytes;
    const std::uint64_t written = outcome.after.dma_write_bytes - outcome.before.dma_write_bytes;
    row["dma_bytes"] = (read + written) / outcome.times.size();
    row["dma_gbps"] = ns > 0 ? static_cast<double>(read + written) / ns / launches / pes : 0;
  }

  static std::string header() {
    return fmt::format(
        "#{:>10} {:>7} {:>7} {:>7} {:>8} {:>5} {:>12} {:>9} {:>6} {:>5} {:>5} {:>5} {:>5} {:>8} {:>12} {:>6}  {}\n",
        "variant", "m", "n", "k", "type", "PEs", "time (ns)", "TFLOP/s", "peak", "in", "gemm", "epil", "out", "check",
        "bound (ns)", "share", "bound by");
  }

  GemmShape problem_;
  std::string dtype_;
  int check_ = 1, iterations_ = 1;
};

class GemmSinglePe final : public GemmBase {
 public:
  std::string name() const override { return "gemm_single_pe"; }
  std::string help() const override { return "one GEMM on one PE: streamed as a composite, and from TCM with dot"; }
  std::string example() const override { return "kernbench run gemm_single_pe --m 32 --n 32 --k 128"; }

  bool may_replay() const override { return false; }
  Report run(Session& session) override {
    problem_.dtype = type();
    Report report;
    report.text = "# gemm_single_pe on sip0.cube0.pe0: operands and result in its own HBM slice\n" + header();
    session.run(1, [&](Context& ctx) {
      const DPPolicy one = DPPolicy().cubes(1).pes(1);
      const auto variant = [&](const char* name, const std::string& launch, GemmKernel kernel) {
        const auto run = [&](const Tensor& a, const Tensor& b, const Tensor& c) {
          return ctx.launch(launch, kernel, a, b, c, problem_);
        };
        ran_.push_back({name, run_variant(ctx, session, {one, one, one}, run), {}});
      };
      variant("composite", "gemm_composite", composite_kernel);
      variant("dot", "gemm_dot", dot_kernel);
    });
    check(session);
    for (const Ran& one : ran_) add_row(session, one.variant, one.outcome, report);
    return report;
  }

 private:
  GemmShape preset() const override { return {32, 32, 128, DType::f16}; }
};

class Gemm final : public GemmBase {
 public:
  std::string name() const override { return "gemm"; }
  std::string help() const override {
    return "a GEMM over all PEs of one SIP, in the mapping that the planner chooses";
  }
  std::string example() const override { return "kernbench run gemm --m 128 --n 1024 --k 1024 --explain --data off"; }

  void add_options(po::options_description& options) override {
    GemmBase::add_options(options);
    auto add = options.add_options();
    add("mapping", po::value(&mappings_)->multitoken()->composing(),
        "auto (default), stream, passed, split, ring, vector or lanes, also with tiles, as --explain prints them, or a "
        "YAML file of that form; a row for each");
    add("operands", po::value(&operands_)->default_value("column"),
        "how they lie: column (a column-parallel layer: A copied to every PE, columns of B and C over all PEs), row (a "
        "row-parallel one: columns of A over all PEs, too) or grid (rows of A and C over cubes, columns of B and C "
        "over the PEs of a cube), packed (as column, but rows of B and C over the PEs of a cube) or packed-row (as "
        "packed, and so is A), rows (as packed, but rows of A over cubes and its columns over the PEs of a cube), or "
        "as layers have many rows: over-cubes (as rows, and C lies as A does) and over-cubes-row (as rows, and each PE "
        "has whole rows of C)");
  }

  void check_options() const override {
    Refusals refusals;
    refusals.from([this] { GemmBase::check_options(); });
    refusals.from([this] { policies(); });
    for (const std::string& mapping : mappings_) {
      refusals.from([&] { mapping_text(mapping); });
    }
    refusals.throw_if_any();
  }

  std::vector<std::string> files() const override {
    std::vector<std::string> names;
    for (const std::string& mapping : mappings_) {
      if (names_file(mapping)) names.push_back(mapping);
    }
    return names;
  }

  bool may_replay() const override { return false; }
  Report run(Session& session) override {
    problem_.dtype = type();
    Report report;
    report.text = fmt::format("# gemm on sip0, operands: {}\n", operands_) + header();
    std::vector<std::string> mappings = mappings_;
    if (mappings.empty()) mappings.push_back("auto");
    session.run(1, [&](Context& ctx) {
      for (const std::string& mapping : mappings) {
        tp::GemmPlan plan;
        const auto run = [&](const Tensor& a, const Tensor& b, const Tensor& c) {
          const tp::GemmOperands operands{a, b, Tensor(), c, Activation::none};
          plan = tp::plan_gemm(ctx.map(), "gemm", operands, mapping_text(mapping));
          if (tp::talks(plan)) ctx.prepare_cube_queues(c.sip());
          const Handle handle = tp::gemm(ctx, "gemm", operands, plan);
          ctx.wait(handle);
          return handle;
        };
        Outcome outcome = run_variant(ctx, session, policies(), run);
        ran_.push_back({to_string(plan.best.mapping.kind), std::move(outcome), std::move(plan)});
      }
    });
    check(session);
    for (const Ran& one : ran_) {
      add_row(session, one.variant, one.outcome, report, &*one.plan);
      if (session.options().explain) add_explanation(*one.plan, report);
    }
    return report;
  }

 private:
  GemmShape preset() const override { return {512, 512, 512, DType::f16}; }

  /// "auto", or the text of a mapping, which may stand in a file. Throws std::invalid_argument or ConfigError.
  static std::string mapping_text(const std::string& option) {
    if (option == "auto") return option;
    return (names_file(option) ? tp::load_gemm_mapping(option) : tp::parse_gemm_mapping(option)).str();
  }

  /// Throws std::invalid_argument.
  Policies policies() const {
    const DPPolicy columns = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise);
    if (operands_ == "column") return {DPPolicy(), columns, columns};
    if (operands_ == "row") return {columns, columns, columns};
    const DPPolicy rows = DPPolicy().cube(CubeSplit::row_wise);
    if (operands_ == "grid") return {rows, DPPolicy().pe(PeSplit::column_wise), rows.pe(PeSplit::column_wise)};
    const DPPolicy packed = tp::LinearPlacement::packed();
    if (operands_ == "packed") return {DPPolicy(), packed, packed};
    if (operands_ == "packed-row") return {packed, packed, packed};
    if (operands_ == "rows") return {rows.pe(PeSplit::column_wise), packed, packed};
    const DPPolicy over_cubes = rows.pe(PeSplit::column_wise);
    if (operands_ == "over-cubes") return {over_cubes, packed, over_cubes};
    if (operands_ == "over-cubes-row") return {over_cubes, packed, rows.pe(PeSplit::row_wise)};
    throw std::invalid_argument(fmt::format(
        "--operands is '{}'; give column, row, grid, packed, packed-row, rows, over-cubes or over-cubes-row",
        operands_));
  }

  static std::string commented(const std::string& lines) {
    std::string text;
    std::istringstream in(lines);
    for (std::string line; std::getline(in, line);) text += "#   " + line + "\n";
    return text;
  }

  static void add_explanation(const tp::GemmPlan& plan, Report& report) {
    report.text += fmt::format("# {}\n# {}\n", plan.best.mapping.str(), plan.best.mapping.loops());
    const auto us = [](Ps time) { return static_cast<double>(time) / 1e6; };
    const auto part = [&](const char* text, Ps time) {
      return time > 0 ? fmt::format(fmt::runtime(text), us(time)) : std::string();
    };
    report.text += fmt::format(
        "# bound {:.2f} us: the longest of array {:.2f}, HBM {:.2f} and UCIe {:.2f}, and latency {:.2f}{}{}\n",
        us(plan.bound.time), us(plan.bound.array), us(plan.bound.memory), us(plan.bound.ucie), us(plan.bound.latency),
        part(", of it {:.2f} until the first of a is there", plan.bound.spread),
        part(", {:.2f} for partial sums", plan.bound.sums));
    Json& explain = report.results.back()["explain"];
    explain["loops"] = plan.best.mapping.loops();
    explain["mapping"] = plan.best.mapping.yaml();
    explain["bound"] = {{"array_ns", static_cast<double>(plan.bound.array) / 1e3},
                        {"hbm_ns", static_cast<double>(plan.bound.memory) / 1e3},
                        {"ucie_ns", static_cast<double>(plan.bound.ucie) / 1e3},
                        {"latency_ns", static_cast<double>(plan.bound.latency) / 1e3},
                        {"first_operands_ns", static_cast<double>(plan.bound.spread) / 1e3},
                        {"partial_sums_ns", static_cast<double>(plan.bound.sums) / 1e3}};
    report.text += "# as a file for --mapping:\n" + commented(plan.best.mapping.yaml());
    for (const tp::GemmCandidate& one : plan.considered) {
      const tp::GemmEstimate& e = one.estimate;
      report.text += fmt::format(
          "# estimate {:.2f} us, bound by {}: array {:.2f}, HBM {:.2f}, PE port {:.2f}, UCIe {:.2f}, dispatch {:.2f}, "
          "and latency {:.2f}: {}\n",
          us(e.time), e.binds(), us(e.array), us(e.memory), us(e.port), us(e.cut), us(e.dispatch), us(e.latency),
          one.mapping.str());
      explain["considered"].push_back({{"mapping", one.mapping.str()},
                                       {"estimate_ns", static_cast<double>(e.time) / 1e3},
                                       {"binds", e.binds()},
                                       {"array_ns", static_cast<double>(e.array) / 1e3},
                                       {"hbm_ns", static_cast<double>(e.memory) / 1e3},
                                       {"port_ns", static_cast<double>(e.port) / 1e3},
                                       {"ucie_ns", static_cast<double>(e.cut) / 1e3},
                                       {"dispatch_ns", static_cast<double>(e.dispatch) / 1e3},
                                       {"latency_ns", static_cast<double>(e.latency) / 1e3}});
    }
  }

  std::vector<std::string> mappings_;
  std::string operands_;
};

}  // namespace

std::unique_ptr<Workload> make_gemm_single_pe() { return std::make_unique<GemmSinglePe>(); }
std::unique_ptr<Workload> make_gemm() { return std::make_unique<Gemm>(); }

}  // namespace kernbench
