#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "models/pe/compute/gemm_array.h"
#include "runtime/placement_units.h"
#include "sc_main/workloads/chakra/groups.h"
#include "sc_main/workloads/chakra/walk.h"
#include "sc_main/workloads/collective_case.h"
#include "sc_main/workloads/placement_option.h"
#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/start_collective.h"
#include "sc_main/workloads/workload.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"
#include "tlm/config/refusals.h"
#include "tlm/config/units.h"
#include "topology/plan/plan.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;
using chakra::Communication;
using chakra::Node;

double ns(Ps time) { return static_cast<double>(time) / 1e3; }

/// Execution traces as programs: rank i of the trace is SIP i.
class ChakraWorkload final : public Workload {
 public:
  std::string name() const override { return "chakra"; }
  std::string help() const override {
    return "MLCommons Chakra execution traces: collectives and transfers on the machine, computing as time";
  }
  std::string example() const override {
    return "kernbench run chakra --workload-configuration docs/examples/chakra/training_step --topology minimal "
           "--set system.sips.count=4";
  }
  void add_options(po::options_description& options) override;
  std::vector<std::string> files() const override;
  void check_options() const override;
  Report run(Session& session) override;

 private:
  ReduceOp reduce_op() const;
  chakra::Program read(const Session& session) const;
  chakra::ComputeRates rates(const Session& session) const;
  Json summary(const Session& session, const chakra::Walk& walk) const;
  void report_ranks(const chakra::Walk& walk, Report& report) const;
  void report_communications(const Session& session, const chakra::Walk& walk, Report& report) const;
  void report_nodes(const chakra::Walk& walk, Report& report) const;

  std::string prefix_, groups_, dtype_, redop_, placement_, algorithm_, compute_, eager_;
  int warmup_ = 1, check_ = 1;
};

void ChakraWorkload::add_options(po::options_description& options) {
  auto add = options.add_options();
  add("workload-configuration", po::value(&prefix_)->default_value(""),
      "PREFIX of the files PREFIX.<rank>.et, as ASTRA-sim takes it");
  add("comm-group-configuration", po::value(&groups_)->default_value(""),
      "JSON file of process groups: {\"1\": [0, 1]}");
  add("compute", po::value(&compute_)->default_value("auto"),
      "how long computing takes: roofline (num_ops, tensor_size and the machine's rates), recorded (the trace's own "
      "times), auto (roofline where there is num_ops)");
  add("eager", po::value(&eager_)->default_value("4M"),
      "largest send that goes before its receive is ready, as libraries buffer it; 0: none");
  add("dtype,d", po::value(&dtype_)->default_value("f16"), "what is moved; traces say bytes only");
  add("op,o", po::value(&redop_)->default_value("sum"), "of all reductions: sum, max, min");
  add("placement", po::value(&placement_)->default_value("cube=column_wise,pe=column_wise"),
      "how a rank's tensors spread over its SIP: cube=SPLIT,pe=SPLIT[,cubes=N][,pes=N]");
  add("algorithm", po::value(&algorithm_), "entry of ccl.yaml, or auto (default: that of ccl.yaml, or auto)");
  add("warmup,w", po::value(&warmup_)->default_value(1),
      "1: each kind of communication runs once before, so that its queues are there; 0: not");
  add("check,c", po::value(&check_)->default_value(1)->implicit_value(1),
      "compare every element with the host: 0 or 1");
}

std::vector<std::string> ChakraWorkload::files() const {
  std::vector<std::string> files = prefix_.empty() ? std::vector<std::string>() : chakra::trace_files(prefix_);
  if (!groups_.empty()) files.push_back(groups_);
  const std::vector<std::string> others = named_files({placement_}, {algorithm_});
  files.insert(files.end(), others.begin(), others.end());
  return files;
}

void ChakraWorkload::check_options() const {
  Refusals refusals;
  refusals.check_flag("-w", warmup_);
  refusals.check_flag("-c", check_);
  std::optional<DType> dtype;
  refusals.from([&] { dtype = parse_dtype_option(dtype_); });
  refusals.check_name("--op", redop_, {"sum", "max", "min"});
  if (dtype == DType::boolean && redop_ == "sum")
    refusals.add("--op sum is not defined for bool; give max (or) or min (and)");
  refusals.from([this] { parse_size("--eager", eager_); });
  refusals.from([this] { parse_placement("--placement", placement_); });
  refusals.check_name("--compute", compute_, {"auto", "roofline", "recorded"});
  if (prefix_.empty()) {
    refusals.add(
        "chakra needs --workload-configuration PREFIX, what the files of all ranks begin with: PREFIX.0.et, "
        "PREFIX.1.et, ...");
  }
  refusals.throw_if_any();
}

ReduceOp ChakraWorkload::reduce_op() const {
  return redop_ == "sum" ? ReduceOp::sum : redop_ == "max" ? ReduceOp::max : ReduceOp::min;
}

chakra::Program ChakraWorkload::read(const Session& session) const {
  const MachineMap& map = session.map();
  chakra::ProgramOptions options;
  options.ranks = map.sips;
  options.dimensions = map.sip_w > 0 ? std::vector<int>{map.sip_w, map.sip_h} : std::vector<int>{map.sips};
  options.dtype = parse_dtype_option(dtype_);
  options.eager_bytes = parse_size("--eager", eager_);
  if (!groups_.empty()) options.groups = chakra::read_groups(groups_);
  Problems problems;
  std::vector<chakra::RankTrace> traces = chakra::read_traces(prefix_, problems);
  chakra::Program program = chakra::make_program(std::move(traces), options, problems);
  problems.throw_if_any();
  return program;
}

chakra::ComputeRates ChakraWorkload::rates(const Session& session) const {
  chakra::ComputeRates rates;
  rates.rule = compute_ == "recorded"   ? chakra::ComputeRule::recorded
               : compute_ == "roofline" ? chakra::ComputeRule::roofline
                                        : chakra::ComputeRule::automatic;
  const MachineMap& map = session.map();
  const auto& gemm = session.options().plan->spec.cube.pe.gemm;
  for (const PeCoord pe : map.pes(0)) {
    rates.operations_per_second += 2 * pe::peak_macs_per_second(gemm, parse_dtype_option(dtype_));
    rates.bytes_per_second += static_cast<double>(map.rates(pe).hbm_slice.bytes_per_second());
  }
  return rates;
}

Report ChakraWorkload::run(Session& session) {
  if (session.options().run.scheduling != SchedulingKind::concurrent) {
    throw std::invalid_argument("chakra runs with --scheduling concurrent only: in rounds no rank computes on its own");
  }
  chakra::WalkOptions options;
  options.dtype = parse_dtype_option(dtype_);
  options.reduce_op = reduce_op();
  options.policy = parse_placement("--placement", placement_);
  options.group = {algorithm_, session.options().ccl_file, Scope::sip, {}};
  options.group.install_at_once = false;  // as in CollectiveWorkload::run
  options.rates = rates(session);
  options.warm_up = warmup_ == 1;
  options.check = check_ == 1 && session.options().run.data;
  options.data = makes_copies(session);
  options.reads = check_ == 1 && makes_copies(session);
  options.seed = session.options().seed;
  if (ProcessGroup::world_size(options.group, *ccl::Registry::of(options.group.ccl_file))) {
    throw std::invalid_argument("chakra: world_size in ccl.yaml makes ranks PEs; ranks of a trace are SIPs");
  }
  chakra::Walk walk(read(session), options, placement_units(session.map()));
  session.runtime().init_process_group(options.group);
  run_collectives(session, session.map().sips, [&](Context& ctx) { walk.run(ctx); });
  walk.compare();

  Report report;
  report.results.push_back(summary(session, walk));
  const Json whole = report.results.front();
  const chakra::Program& program = walk.program();
  report.text = fmt::format(
      "# chakra {} on {} ({}): {} nodes, {} communications; {} of {}, {}, seed {}\n"
      "# computing: {}; at most {:.1f} TFLOP/s and {:.1f} GB/s of a SIP, one node at a time\n"
      "# rank i is SIP i; communications begin when all that take part are ready, sends of up to {} when the sender "
      "is; one at a time on a rank\n",
      prefix_, counted(session.map().sips, "SIP"), to_string(session.map().sip_topology),
      whole["nodes"].get<std::uint64_t>(), program.communications.size(), redop_, dtype_, to_string(options.policy),
      options.seed, compute_, options.rates.operations_per_second / 1e12, options.rates.bytes_per_second / 1e9,
      readable_bytes(parse_size("--eager", eager_)));
  if (const auto timeless = whole["nodes_without_time"].get<std::uint64_t>(); timeless > 0)
    report.text += fmt::format("# {} nodes had no time\n", timeless);
  report_ranks(walk, report);
  report_communications(session, walk, report);
  report_nodes(walk, report);
  const std::uint64_t wrong = walk.mismatches();
  report.wrong = wrong > 0;
  report.text += fmt::format("# whole trace: {:.3f} us\n# Out of bounds values : {} {}\n",
                             whole["time_ns"].get<double>() / 1e3, wrong,
                             !options.check ? "NOT CHECKED"
                             : wrong == 0   ? "OK"
                                            : "FAILED");
  return report;
}

Json ChakraWorkload::summary(const Session& session, const chakra::Walk& walk) const {
  std::uint64_t nodes = 0, timeless = 0;
  Ps end = 0;
  for (std::size_t rank = 0; rank < walk.program().traces.size(); ++rank) {
    nodes += walk.program().traces[rank].nodes.size();
    timeless += walk.rank(rank).timeless;
    end = std::max(end, walk.rank(rank).end);
  }
  Json row;
  row["op"] = name();
  row["part"] = "trace";
  row["trace"] = prefix_;
  row["schema_version"] = walk.program().traces.front().version;
  row["topology"] = to_string(session.map().sip_topology);
  row["ranks"] = walk.program().traces.size();
  row["nodes"] = nodes;
  row["communications"] = walk.program().communications.size();
  row["nodes_without_time"] = timeless;
  row["dtype"] = dtype_;
  row["compute"] = compute_;
  row["time_ns"] = ns(end);
  row["check"] = !walk.options().check ? "skipped" : walk.mismatches() == 0 ? "ok" : "wrong";
  row["mismatches"] = walk.options().check ? Json(walk.mismatches()) : Json();
  return row;
}

void ChakraWorkload::report_ranks(const chakra::Walk& walk, Report& report) const {
  report.text += fmt::format("#\n#{:>5} {:>8} {:>14} {:>14} {:>26}\n", "rank", "nodes", "time (us)", "computing (us)",
                             "exposed communication (us)");
  for (std::size_t rank = 0; rank < walk.program().traces.size(); ++rank) {
    const chakra::RankTimes& times = walk.rank(rank);
    Json row;
    row["op"] = name();
    row["part"] = "rank";
    row["rank"] = rank;
    row["nodes"] = times.nodes.size();
    row["time_ns"] = ns(times.end);
    row["compute_ns"] = ns(times.computing);
    row["exposed_communication_ns"] = ns(times.end - times.computing);
    report.text += fmt::format(" {:>5} {:>8} {:>14.3f} {:>14.3f} {:>26.3f}\n", rank, times.nodes.size(),
                               ns(times.end) / 1e3, ns(times.computing) / 1e3, ns(times.end - times.computing) / 1e3);
    report.results.push_back(std::move(row));
  }
}

void ChakraWorkload::report_communications(const Session&, const chakra::Walk& walk, Report& report) const {
  constexpr std::size_t kShown = 50;
  const auto& list = walk.program().communications;
  report.text +=
      fmt::format("#\n#{:>15} {:>12} {:>12} {:>12} {:>10} {:>8} {:>7}  {:<22} {}\n", "communication", "size (B)",
                  "begins (us)", "ends (us)", "time (us)", "algbw", "#wrong", "algorithm", "ranks: name");
  for (std::size_t c = 0; c < list.size(); ++c) {
    const Communication& each = list[c];
    const chakra::CommunicationResult& result = walk.communication(c);
    const Node& sample = walk.node_of(c, 0);
    const double time = ns(result.end - result.begin);
    const double algbw = time > 0 ? static_cast<double>(each.bytes) / time : 0;
    Json row;
    row["op"] = name();
    row["part"] = "communication";
    row["comm_type"] = to_string(each.op);
    row["name"] = sample.name;
    row["bytes"] = each.bytes;
    row["ranks"] = each.ranks;
    std::vector<std::uint64_t> ids;
    for (std::size_t m = 0; m < each.ranks.size(); ++m) ids.push_back(walk.node_of(c, m).id);
    row["ids"] = ids;
    row["algorithm"] = result.algorithm;
    row["begin_ns"] = ns(result.begin);
    row["end_ns"] = ns(result.end);
    row["time_ns"] = time;
    row["algbw_gbps"] = algbw;
    row["check"] = !walk.options().check ? "skipped" : result.comparison.mismatches == 0 ? "ok" : "wrong";
    row["mismatches"] = walk.options().check ? Json(result.comparison.mismatches) : Json();
    if (c < kShown) {
      report.text +=
          fmt::format(" {:>15} {:>12} {:>12.3f} {:>12.3f} {:>10.3f} {:>8.3f} {:>7}  {:<22} {}: {}\n",
                      to_string(each.op), each.bytes, ns(result.begin) / 1e3, ns(result.end) / 1e3, time / 1e3, algbw,
                      walk.options().check ? std::to_string(result.comparison.mismatches) : "N/A", result.algorithm,
                      each.group == 0 && !each.transfer() ? "all" : fmt::format("{}", fmt::join(each.ranks, ",")),
                      printable(sample.name));
    }
    report.results.push_back(std::move(row));
  }
  if (list.size() > kShown) {
    report.text += fmt::format("# ... and {} more; --json has all, and every node\n", list.size() - kShown);
  }
}

void ChakraWorkload::report_nodes(const chakra::Walk& walk, Report& report) const {
  for (std::size_t rank = 0; rank < walk.program().traces.size(); ++rank) {
    const chakra::RankTrace& trace = walk.program().traces[rank];
    for (std::size_t place = 0; place < trace.nodes.size(); ++place) {
      const chakra::NodeTimes& times = walk.rank(rank).nodes[place];
      Json row;
      row["op"] = name();
      row["part"] = "node";
      row["rank"] = rank;
      row["id"] = trace.nodes[place].id;
      row["name"] = trace.nodes[place].name;
      row["type"] = chakra::to_string(trace.nodes[place].kind);
      row["ready_ns"] = ns(times.ready);
      row["begin_ns"] = ns(times.begin);
      row["end_ns"] = ns(times.end);
      row["time_ns"] = ns(times.end - times.begin);
      report.results.push_back(std::move(row));
    }
  }
}

}  // namespace

std::unique_ptr<Workload> make_chakra() { return std::make_unique<ChakraWorkload>(); }

}  // namespace kernbench
