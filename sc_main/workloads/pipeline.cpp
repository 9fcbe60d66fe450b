#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "runtime/pipeline/run/run.h"
#include "runtime/pipeline/run/slices.h"
#include "sc_main/check/numerics.h"
#include "sc_main/workloads/placement_option.h"
#include "sc_main/workloads/workload.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"
#include "tlm/config/refusals.h"
#include "waves/output_file.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

/// A compiler's pipeline: slots, graphs, weights, exchanges (docs/pipeline.md).
class PipelineWorkload final : public Workload {
 public:
  std::string name() const override { return "pipeline"; }
  std::string help() const override { return "a parallelised model as a compiler hands it over (docs/pipeline.md)"; }
  std::string example() const override {
    return "kernbench run pipeline --file docs/examples/pipeline/all_kinds.yaml --topology minimal --set "
           "system.sips.count=2";
  }
  void add_options(po::options_description& options) override;
  void check_options() const override;
  std::vector<std::string> files() const override;
  std::vector<std::string> outputs() const override {
    return outputs_.empty() ? std::vector<std::string>() : std::vector<std::string>{outputs_};
  }
  Report run(Session& session) override;

 private:
  pipeline::RunSettings settings(Session& session, const pipeline::Pipeline& pipeline) const;
  std::map<std::string, DPPolicy> placements() const;
  Report report(const pipeline::Pipeline& pipeline, const pipeline::Checked& checked,
                const pipeline::RunOutcome& outcome) const;
  void refuse_outputs_without_data() const;
  void check_outputs(const Session& session, const pipeline::Pipeline& pipeline, const pipeline::RunOutcome& outcome,
                     Report& report) const;

  std::string file_, f8_, inputs_, outputs_, expect_, algorithm_, order_, gemm_placement_;
  std::vector<std::string> places_;
  double host_flops_ = 0, host_bandwidth_ = 0, host_link_ = 0;
  int warmup_ = 1, iterations_ = 1, requests_ = 1;
  bool include_load_ = false;
};

void PipelineWorkload::add_options(po::options_description& options) {
  const pipeline::HostModel host;
  auto add = options.add_options();
  add("file", po::value(&file_)->default_value(""), "the pipeline, JSON or YAML");
  add("inputs", po::value(&inputs_)->default_value(""),
      "safetensors with the whole model's inputs (default: seeded values, integers 0)");
  add("outputs", po::value(&outputs_)->default_value(""), "writes the whole model's outputs there, as safetensors");
  add("expect", po::value(&expect_)->default_value(""), "safetensors to compare the outputs with");
  add("f8", po::value(&f8_)->default_value("e4m3"), "what f8 means: e4m3 or e5m2");
  add("place", po::value(&places_)->value_name("TENSOR:POLICY")->composing(),
      "how a tensor of the pipeline spreads over its SIP: TENSOR:cube=SPLIT,pe=SPLIT[,cubes=N][,pes=N]; repeatable");
  add("gemm-placement", po::value(&gemm_placement_),
      "of weights and results of GEMMs: cube=SPLIT,pe=SPLIT[,cubes=N][,pes=N] (default: that of tp_transformer in a "
      "document with self-attention, otherwise that of tp_mlp)");
  add("order", po::value(&order_)->default_value("flow"),
      "of a slot's supertasks: flow (what is ready, exchanges in one order for all), document (as they stand there)");
  add("algorithm", po::value(&algorithm_),
      "of exchanges: entry of ccl.yaml, or auto (default: that of ccl.yaml, or auto)");
  add("host-flops", po::value(&host_flops_)->default_value(host.flops_per_s / 1e9),
      "arithmetic of a cpu slot, GFLOP/s");
  add("host-bandwidth", po::value(&host_bandwidth_)->default_value(host.bytes_per_s / 1e9), "its memory, GB/s");
  add("host-link", po::value(&host_link_)->default_value(host.link_bytes_per_s / 1e9), "between it and a SIP, GB/s");
  add("include-load", po::bool_switch(&include_load_),
      "adds the loading of constants and inputs to the latency; they take time with --host-io timed");
  add("requests", po::value(&requests_)->default_value(1),
      "of a pass: stages on different slots overlap; gives throughput and latency");
  add("warmup,w", po::value(&warmup_)->default_value(1), "passes before those that are timed");
  add("iters,n", po::value(&iterations_)->default_value(1), "timed passes; the latency is their mean");
}

void PipelineWorkload::check_options() const {
  Refusals refusals;
  constexpr int kMost = 1'000'000;
  if (file_.empty()) refusals.add("pipeline needs --file FILE, the document");
  refusals.check_integer("-w", warmup_, 0, kMost);
  refusals.check_integer("-n", iterations_, 1, kMost);
  refusals.check_integer("--requests", requests_, 1, kMost);
  refusals.check_name("--f8", f8_, {"e4m3", "e5m2"});
  refusals.check_name("--order", order_, {"flow", "document"});
  for (const auto& [option, value] :
       {std::pair("--host-flops", host_flops_), std::pair("--host-bandwidth", host_bandwidth_),
        std::pair("--host-link", host_link_)}) {
    if (!(value > 0 && value < 1e9))
      refusals.add(fmt::format("{} is {}; give a number above 0 and below 10^9", option, value));
  }
  refusals.from([this] { placements(); });
  if (!gemm_placement_.empty()) refusals.from([this] { parse_placement("--gemm-placement", gemm_placement_); });
  refusals.throw_if_any();
}

std::map<std::string, DPPolicy> PipelineWorkload::placements() const {
  std::map<std::string, DPPolicy> placements;
  for (const std::string& place : places_) {
    const std::size_t colon = place.rfind(':');
    if (colon == std::string::npos)
      throw std::invalid_argument(fmt::format("--place is {}; give TENSOR:POLICY", quote(place)));
    placements[place.substr(0, colon)] = parse_placement("--place", place.substr(colon + 1));
  }
  return placements;
}

std::vector<std::string> PipelineWorkload::files() const {
  std::vector<std::string> files{file_};
  // Its weights decide the result, too. What cannot be read is refused by the run.
  Problems ignored;
  pipeline::Pipeline document;
  try {
    document = pipeline::read_pipeline(load_config(file_, &ignored), {}, ignored);
  } catch (const ConfigError&) {
  }
  const std::set<std::string> weights = pipeline::weight_paths(file_, document);
  files.insert(files.end(), weights.begin(), weights.end());
  for (const std::string& file : {inputs_, expect_}) {
    if (!file.empty()) files.push_back(file);
  }
  std::vector<std::string> placements{gemm_placement_};
  for (const std::string& place : places_) placements.push_back(place.substr(place.rfind(':') + 1));
  const std::vector<std::string> named = named_files(placements, {algorithm_});
  files.insert(files.end(), named.begin(), named.end());
  return files;
}

pipeline::RunSettings PipelineWorkload::settings(Session& session, const pipeline::Pipeline& pipeline) const {
  pipeline::RunSettings settings;
  settings.warmup = warmup_;
  settings.iterations = iterations_;
  settings.requests = requests_;
  settings.host.flops_per_s = host_flops_ * 1e9;
  settings.host.bytes_per_s = host_bandwidth_ * 1e9;
  settings.host.link_bytes_per_s = host_link_ * 1e9;
  settings.seed = session.options().seed;
  settings.data = session.options().run.data;
  settings.timed_host_io = session.options().run.timed_host_io;
  settings.group.algorithm = algorithm_;
  settings.group.ccl_file = session.options().ccl_file;
  settings.group.install_at_once = false;
  settings.own_groups = order_ == "document";
  if (!inputs_.empty()) {
    settings.inputs = pipeline::cut_inputs(pipeline, pipeline::Safetensors(inputs_), inputs_);
    return settings;
  }
  // Parts of one whole tensor are parts of the same values.
  pipeline::HostTensors wholes;
  for (const pipeline::WholeTensor& whole : pipeline.metadata.tensors.inputs) {
    pipeline::HostTensor& made = wholes[whole.name];
    made.dtype = whole.dtype.value;
    for (const std::uint64_t size : whole.shape.value) made.shape.push_back(static_cast<std::int64_t>(size));
    made.bytes.assign(static_cast<std::size_t>(made.count()) * size_of(made.dtype), 0);
    if (is_float(made.dtype))
      made.bytes = Pattern(session.options().seed, made.dtype, Pattern::Range::unit)
                       .bytes(whole.idx.value, static_cast<std::size_t>(made.count()));
  }
  settings.inputs = pipeline::cut_inputs(pipeline, wholes);
  return settings;
}

void PipelineWorkload::refuse_outputs_without_data() const {
  Refusals refusals;
  for (const auto& [option, file] : {std::pair("--outputs", outputs_), std::pair("--expect", expect_)}) {
    if (!file.empty())
      refusals.add(fmt::format("{} {} with --data off: there are no outputs", option, quote(file)),
                   "leave one of both out");
  }
  refusals.throw_if_any();
}

Report PipelineWorkload::run(Session& session) {
  if (!session.options().run.data) refuse_outputs_without_data();
  Problems problems, warnings;
  pipeline::ReadOptions read;
  read.f8 = f8_ == "e5m2" ? DType::f8e5m2 : DType::f8e4m3;
  const ConfigNode root = load_config(file_, &problems);
  const pipeline::Pipeline document = pipeline::read_pipeline(root, read, problems);
  pipeline::CheckOptions check;
  check.folder = std::filesystem::path(file_).parent_path().string();
  check.sips = session.map().sips;
  check.cubes = session.map().cubes_per_sip();
  check.pes = session.map().pes_per_cube;
  const pipeline::Checked checked = pipeline::check_pipeline(document, check, problems, warnings);
  problems.throw_if_any();
  if (!warnings.empty()) std::fputs((printable(pipeline::warning_text(warnings)) + "\n").c_str(), stderr);
  pipeline::PlanOptions plan;
  plan.folder = check.folder;
  plan.placements = placements();
  if (!gemm_placement_.empty()) plan.gemm = parse_placement("--gemm-placement", gemm_placement_);
  plan.document_order = order_ == "document";
  pipeline::RunSettings set = settings(session, document);
  // Before the simulation, whose result would be lost.
  if (!expect_.empty()) pipeline::check_expected(document, pipeline::Safetensors(expect_), expect_);
  session.runtime().init_process_group(set.group);
  pipeline::PipelineRun run(document, checked, pipeline::make_slot_plans(document, checked, plan), std::move(set),
                            session.map().sips);
  try {
    session.run(run.ranks(), [&run](Context& context) { run.rank_program(context); });
  } catch (const Deadlock& deadlock) {
    throw Deadlock(deadlock.what() + ("\n" + run.standing()));
  }
  Report made = report(document, checked, run.outcome());
  check_outputs(session, document, run.outcome(), made);
  return made;
}

Report PipelineWorkload::report(const pipeline::Pipeline& pipeline, const pipeline::Checked& checked,
                                const pipeline::RunOutcome& outcome) const {
  const auto ns = [](Ps time) { return static_cast<double>(time) / 1e3; };
  double pass = 0, latency = 0;
  for (const Ps time : outcome.passes) pass += ns(time) / static_cast<double>(outcome.passes.size());
  for (const auto& [begin, end] : outcome.requests)
    latency += ns(end - begin) / static_cast<double>(outcome.requests.size());
  if (requests_ == 1) latency = pass;
  if (include_load_) latency += ns(outcome.loading);
  const double per_second = pass > 0 ? requests_ / pass * 1e9 : 0;
  Report made;
  made.text = fmt::format(
      "# pipeline '{}': {} slots, {} supertasks; warm-up {}, iterations {}\n# latency {:.3f} ns{}, loading {:.3f} ns\n",
      pipeline.name.value, pipeline.devices.size(), pipeline.supertasks.size(), warmup_, iterations_, latency,
      include_load_ ? " with loading" : "", ns(outcome.loading));
  Json summary = {{"op", "pipeline"},
                  {"row", "pipeline"},
                  {"name", pipeline.name.value},
                  {"latency_ns", latency},
                  {"requests", requests_},
                  {"requests_per_s", per_second},
                  {"loading_ns", ns(outcome.loading)}};
  if (requests_ > 1)
    made.text += fmt::format("# {} requests in {:.3f} ns: {:.1f} per second; latency is their mean in the last pass\n",
                             requests_, pass, per_second);
  Json path = Json::array(), path_times = Json::array();
  std::string path_text;
  for (const pipeline::TaskTime& time : pipeline::critical_path(checked, outcome)) {
    path.push_back(time.task->name);
    path_times.push_back(ns(time.end - time.begin));
    path_text +=
        fmt::format("{}{} {:.3f}", path_text.empty() ? "" : " -> ", time.task->name, ns(time.end - time.begin));
  }
  summary["critical_path"] = path;
  summary["critical_path_ns"] = path_times;
  made.results.push_back(std::move(summary));
  made.text += fmt::format("# timeline of the last request, ns\n#{:>15} {:>15} {:>15} {:>14} {:>14} {:>14}\n", "slot",
                           "supertask", "kind", "begin", "end", "time");
  const double whole = outcome.passes.empty() ? 0 : ns(outcome.passes.back());
  std::string shares;
  for (std::size_t i = 0; i < outcome.slots.size(); ++i) {
    const std::string& slot = pipeline.devices[i].name;
    const double computing = ns(outcome.busy[i].computing), communicating = ns(outcome.busy[i].communicating);
    for (const pipeline::TaskTime& time : outcome.slots[i]) {
      const std::string kind = to_string(time.task->kind.value);
      made.text += fmt::format(" {:>15} {:>15} {:>15} {:>14.3f} {:>14.3f} {:>14.3f}\n", slot, time.task->name, kind,
                               ns(time.begin), ns(time.end), ns(time.end - time.begin));
      made.results.push_back({{"op", "pipeline"},
                              {"row", "supertask"},
                              {"slot", slot},
                              {"supertask", time.task->name},
                              {"kind", kind},
                              {"begin_ns", ns(time.begin)},
                              {"end_ns", ns(time.end)}});
    }
    const auto share = [whole](double time) { return whole > 0 ? time / whole : 0; };
    shares += fmt::format(" {:>15} {:>10.1f} {:>14.1f} {:>10.1f}\n", slot, 100 * share(computing),
                          100 * share(communicating), 100 * share(whole - computing - communicating));
    made.results.push_back({{"op", "pipeline"},
                            {"row", "slot"},
                            {"slot", slot},
                            {"computing", share(computing)},
                            {"communicating", share(communicating)}});
  }
  made.text += fmt::format("# share of the last pass, %\n#{:>15} {:>10} {:>14} {:>10}\n{}# critical path, ns: {}\n",
                           "slot", "computing", "communicating", "idle", shares, path_text);
  return made;
}

void PipelineWorkload::check_outputs(const Session& session, const pipeline::Pipeline& pipeline,
                                     const pipeline::RunOutcome& outcome, Report& report) const {
  Json& summary = report.results.front();
  const bool checked = session.options().run.data;
  std::uint64_t conflicts = 0;
  pipeline::HostTensors outputs;
  if (checked) outputs = pipeline::stitch_outputs(pipeline, outcome.outputs, conflicts);
  if (!outputs_.empty()) write_file(outputs_, pipeline::to_safetensors(outputs));
  pipeline::OutputDifference difference;
  const bool compares = checked && !expect_.empty();
  if (compares) difference = pipeline::compare_outputs(outputs, pipeline::Safetensors(expect_), expect_);
  report.wrong = checked && (conflicts > 0 || difference.mismatches > 0);
  summary["check"] = !checked ? "skipped" : report.wrong ? "wrong" : compares ? "ok" : "replicas";
  summary["replica_conflicts"] = conflicts;
  summary["mismatches"] = compares ? Json(difference.mismatches) : Json();
  summary["max_abs_err"] = compares ? Json(difference.max_abs_error) : Json();
  if (conflicts > 0) report.text += fmt::format("# {} elements of output parts that overlap differ\n", conflicts);
  if (compares)
    report.text += fmt::format("# outputs against {}: {} mismatches, largest error {:.3g}\n", quote(expect_),
                               difference.mismatches, difference.max_abs_error);
}

}  // namespace

std::unique_ptr<Workload> make_pipeline() { return std::make_unique<PipelineWorkload>(); }

}  // namespace kernbench
