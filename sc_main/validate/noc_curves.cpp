#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "sc_main/validate/noc_mesh.h"
#include "sc_main/validate/noc_tables.h"

namespace kernbench::validate {
namespace {
constexpr const char* kPacketRate = "injection_rate_packets_per_node_per_cycle";
constexpr const char* kSaturation = "saturation_load_flits_per_node_per_cycle";

struct Row {
  double load = 0, latency = 0, accepted = 0;
  Stated stated_load{};
  bool saturated = false, stable = false;
};

/// What a latency-load table says; its runs are seeds x rows.
struct Curve {
  std::string name;
  StatedMesh mesh;
  std::vector<Row> rows;
  double zero_load = 0;
  std::optional<double> saturation;
  double capacity = 1;
  NocLimits limits = kAccurateNoc;
  bool fast = false, sample = false;
  unsigned seeds = kSeeds;

  double judged_up_to() const { return kJudgedUpTo * saturation.value_or(capacity) * (1 + 1e-9); }  ///< load
};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Load where the latency is `threshold`: logarithm of the latency linear in the load between the rows around it; none
/// if it stays below. `latencies` by row, in order of the load.
std::optional<double> crossing(const std::vector<Row>& rows, const std::vector<double>& latencies, double threshold) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (latencies[i] < threshold) continue;
    if (i == 0) return rows[0].load;
    const double below = std::log(latencies[i - 1]), above = std::log(latencies[i]);
    return rows[i - 1].load + (rows[i].load - rows[i - 1].load) * (std::log(threshold) - below) / (above - below);
  }
  return std::nullopt;
}

std::string row_name(const Curve& curve, const Row& row) { return fmt::format("{}/load={:g}", curve.name, row.load); }

/// Latencies are never compared in saturated rows, where they grow with the length of the run.
void judge_latency(const Curve& curve, const Row& row, double measured, std::vector<Case>& cases) {
  if (row.saturated) return;
  const bool settled = row.stable && row.load <= curve.judged_up_to();
  cases.push_back(
      judge(row_name(curve, row), kLatency, row.latency, measured, curve.limits.latency, settled ? "" : kNotJudged));
}

void judge_accepted(const Curve& curve, const Row& row, double measured, std::vector<Case>& cases) {
  if (!row.saturated) return;
  cases.push_back(judge(row_name(curve, row), kAccepted, row.accepted, measured, curve.limits.accepted,
                        curve.fast ? "grade fast has no limit" : ""));
}

void judge_saturation(const Curve& curve, const std::vector<std::vector<double>>& by_seed, std::vector<Case>& cases) {
  std::vector<double> loads;
  loads.reserve(by_seed.size());
  for (const std::vector<double>& latencies : by_seed) {
    // A seed that never reaches the threshold saturates beyond the table.
    loads.push_back(crossing(curve.rows, latencies, 3 * curve.zero_load).value_or(2 * curve.rows.back().load));
  }
  const double measured = median(loads);
  const std::string name = curve.name + "/saturation";
  const BareMeshConfig& mesh = curve.mesh.config;
  const bool long_held = mesh.hold && mesh.packet_flits > mesh.vc_depth && mesh.vcs > 1;
  const double limit = long_held ? curve.limits.long_packets_held_saturation : curve.limits.saturation;
  if (curve.saturation) {
    cases.push_back(judge(name, kSaturation, *curve.saturation, measured, limit));
  } else {
    const double highest = curve.rows.back().load;
    // The reference does not saturate in this table: nor may the model, up to the highest load.
    cases.push_back(judge(name, kSaturation, highest, std::min(measured, highest), limit));
  }
}

std::string title_of(const BareMeshConfig& mesh) {
  return fmt::format("{} x {} mesh, {}, {} flits, {} VCs x {} flits{}", mesh.cols, mesh.rows, mesh.pattern,
                     mesh.packet_flits, mesh.vcs, mesh.vc_depth, mesh.hold ? ", hold" : "");
}

/// `plot` has file, y axis, and the series of reference and model, both still without points. `saturated`: those rows
/// too.
Plot plot_of(const Curve& curve, Plot plot, double Row::*figure, const std::vector<double>& measured, bool saturated) {
  plot.title = title_of(curve.mesh.config);
  plot.x_label = "offered load [flits per node and cycle]";
  for (std::size_t i = 0; i < curve.rows.size(); ++i) {
    const Row& row = curve.rows[i];
    if (row.saturated && !saturated) continue;
    plot.series[0].points.emplace_back(row.load, row.*figure);
    plot.series[1].points.emplace_back(row.load, measured[i]);
  }
  return plot;
}

/// `figures`: by row, then by seed.
Judged verdict_of(const Curve& curve, const std::vector<Figures>& figures) {
  Judged judged;
  std::vector<std::vector<double>> by_seed(curve.seeds);
  std::vector<double> latencies, accepted;
  for (std::size_t r = 0; r < curve.rows.size(); ++r) {
    std::vector<double> latency_of, accepted_of;
    for (unsigned seed = 0; seed < curve.seeds; ++seed) {
      const MeshFigures one(figures[r * curve.seeds + seed]);
      latency_of.push_back(one.latency);
      accepted_of.push_back(one.accepted);
      by_seed[seed].push_back(one.latency);
    }
    latencies.push_back(mean(latency_of));
    accepted.push_back(mean(accepted_of));
    judge_latency(curve, curve.rows[r], latencies.back(), judged.cases);
    judge_accepted(curve, curve.rows[r], accepted.back(), judged.cases);
  }
  if (!curve.sample) judge_saturation(curve, by_seed, judged.cases);
  Plot latency{curve.name, {},
               {},         "mean packet latency [cycles]",
               true,       {{"latency, reference", {}, true}, {"latency, measured", {}}}};
  Plot throughput{curve.name + "_accepted",
                  {},
                  {},
                  "accepted [flits per node and cycle]",
                  false,
                  {{"reference", {}, true, 1}, {"measured", {}, false, 1}}};
  judged.plots = {plot_of(curve, std::move(latency), &Row::latency, latencies, false),
                  plot_of(curve, std::move(throughput), &Row::accepted, accepted, true)};
  return judged;
}

std::vector<Row> curve_rows(const Table& table) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row;
    row.stated_load = table.cell(i, kLoad);
    row.load = number(row.stated_load);
    row.latency = table.number(i, kLatency);
    row.accepted = table.number(i, kAccepted);
    const std::string& state = table.text(i, "state");
    if (state != "stable" && state != "past_knee" && state != "saturated")
      table.fail(i, "state", "give stable, past_knee or saturated");
    row.saturated = state == "saturated";
    row.stable = state == "stable";
    if (!rows.empty() && row.load <= rows.back().load) table.fail(i, kLoad, "loads rise from row to row");
    rows.push_back(row);
  }
  return rows;
}
}  // namespace

Group latency_load_group(const Table& table, const Request& request) {
  table.require({kLoad, kPacketRate, kAccepted, kLatency, "state"});
  const auto curve = std::make_shared<Curve>();
  curve->name = table.name();
  curve->mesh = mesh_of(table);
  curve->mesh.config.fast = request.fast;
  curve->rows = curve_rows(table);
  curve->zero_load = number(table.parameter("zero_load_latency_cycles"));
  curve->capacity = number(table.parameter("ideal_capacity_flits_per_node_per_cycle"));
  if (const Stated saturation = table.parameter(kSaturation); saturation.text != "none")
    curve->saturation = number(saturation);
  curve->fast = request.fast;
  curve->limits = request.fast ? kFastNoc : kAccurateNoc;
  if (request.sample) {  // what a CI run can afford: the rows whose latency is judged, fewer seeds
    curve->sample = true;
    curve->seeds = 2;
    const auto above = [highest = curve->judged_up_to()](const Row& row) { return row.load > highest; };
    curve->rows.erase(std::remove_if(curve->rows.begin(), curve->rows.end(), above), curve->rows.end());
  }

  Group group;
  group.name = table.name();
  for (const Row& row : curve->rows) {
    for (unsigned seed = 1; seed <= curve->seeds; ++seed) {
      StatedMesh mesh = curve->mesh;
      mesh.take_load(row.stated_load);
      mesh.config.seed = seed;
      group.runs.push_back(mesh_run(mesh));
    }
  }
  group.verdict = [curve](const std::vector<Figures>& figures) { return verdict_of(*curve, figures); };
  return group;
}

}  // namespace kernbench::validate
