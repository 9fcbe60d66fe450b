#include "sc_main/validate/noc_tables.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <sstream>

#include "sc_main/validate/noc_mesh.h"

namespace kernbench::validate {
namespace {
/// Not stated by the tables of single figures: long enough that the window's edges weigh less than 0.1%.
constexpr std::uint64_t kSteadyWarmup = 2'000, kSteadyWindow = 40'000;
/// Packets of each run that looks for the smallest latency.
constexpr std::uint64_t kCalibrationPackets = 4'000;

}  // namespace

Group credit_loop_group(const Table& table, const Request& request) {
  table.require({"num_vcs", "vc_buf_size_flits", "packet_flits", kAccepted});
  StatedMesh mesh;
  set_shape(mesh, table);
  mesh.take_pattern(table.parameter("traffic"));
  mesh.take_load(table.matches("offered load ([0-9.]+) flit", "'offered load'").front()[0]);
  BareMeshConfig& config = mesh.config;
  config.fast = request.fast;
  config.warmup = kSteadyWarmup;
  config.window = kSteadyWindow;
  config.drain = 0;
  Group group;
  group.name = table.name();
  std::vector<std::pair<std::string, double>> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    mesh.take("vcs", &BareMeshConfig::vcs, table.cell(i, "num_vcs"));
    mesh.take("vc_depth", &BareMeshConfig::vc_depth, table.cell(i, "vc_buf_size_flits"));
    mesh.take("packet_flits", &BareMeshConfig::packet_flits, table.cell(i, "packet_flits"));
    if (request.sample && i % 7 != 3) continue;
    rows.emplace_back(
        fmt::format("{}/vc={},buf={},flits={}", table.name(), config.vcs, config.vc_depth, config.packet_flits),
        table.number(i, kAccepted));
    group.runs.push_back(mesh_run(mesh));
  }
  group.verdict = case_by_case(rows.size(), [rows, fast = request.fast](std::size_t i, const auto& figures) {
    const auto& [name, reference] = rows[i];
    return judge(name, kAccepted, reference, MeshFigures(figures[i]).accepted,
                 (fast ? kFastNoc : kAccurateNoc).accepted, fast ? "grade fast has no limit" : "");
  });
  return group;
}

Group zero_load_group(const Table& table, const Request& request) {
  table.require({"packet_flits", "links", "min_packet_latency_cycles"});
  StatedMesh mesh;
  set_shape(mesh, table);
  const std::vector<Stated> traffic =
      table.matches("([a-z_]+) traffic at ([0-9.]+) flits", "'PATTERN traffic at LOAD flits'").front();
  mesh.take_pattern(traffic[0]);
  mesh.take_load(traffic[1]);
  mesh.places["window"] = traffic[1].where;
  mesh.config.fast = request.fast;
  mesh.config.warmup = 0;
  std::map<unsigned, std::size_t> run_of;  // by packet size
  struct Row {
    std::string name;
    std::size_t run, links;
    double reference;
  };
  std::vector<Row> rows;
  Group group;
  group.name = table.name();
  for (std::size_t i = 0; i < table.rows(); ++i) {
    mesh.take("packet_flits", &BareMeshConfig::packet_flits, table.cell(i, "packet_flits"));
    const std::uint64_t flits = mesh.config.packet_flits, links = table.integer(i, "links");
    const auto [at, fresh] = run_of.try_emplace(mesh.config.packet_flits, group.runs.size());
    if (fresh) {
      mesh.check();
      const double per_cycle = mesh.config.load * mesh.config.cols * mesh.config.rows;
      mesh.config.window = static_cast<std::uint64_t>(static_cast<double>(kCalibrationPackets * flits) / per_cycle);
      group.runs.push_back(mesh_run(mesh));
    }
    rows.push_back({fmt::format("{}/flits={},links={}", table.name(), flits, links), at->second, links,
                    table.number(i, "min_packet_latency_cycles")});
  }
  group.verdict = case_by_case(rows.size(), [rows](std::size_t i, const auto& figures) {
    const Row& row = rows[i];
    const std::vector<double> least = MeshFigures(figures[row.run]).least_latency;
    const double measured = row.links < least.size() ? least[row.links] : 0;
    return judge(row.name, "min_packet_latency_cycles", row.reference, measured, 0);
  });
  return group;
}

Group seed_noise_group(const Table& table, const Request& request) {
  table.require({"mesh", "traffic", "load_over_saturation", kLoad, "latency_seed1"});
  StatedMesh mesh;
  const BareMeshConfig& config = mesh.config;
  mesh.take("vcs", &BareMeshConfig::vcs, table.parameter("num_vcs"));
  mesh.take("vc_depth", &BareMeshConfig::vc_depth, table.parameter("vc_buf_size"));
  mesh.take("packet_flits", &BareMeshConfig::packet_flits,
            table.matches("(\\d+)-flit packets", "'N-flit packets'").front()[0]);
  mesh.config.fast = request.fast;
  std::map<std::string, std::vector<Stated>> lengths;  // size, warm-up and window by mesh
  for (const auto& found :
       table.matches("(\\d+)x(\\d+): (\\d+)(?: warm-up)? \\+ (\\d+)", "'KxK: A + B', the lengths of runs,"))
    lengths[found[0].text + "x" + found[1].text] = found;

  struct Row {
    std::string name;
    double reference;
    bool judged;
  };
  std::vector<Row> rows;
  Group group;
  group.name = table.name();
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const std::string& size = table.text(i, "mesh");
    const auto run = lengths.find(size);
    if (run == lengths.end()) table.fail(i, "mesh", "give a mesh whose run lengths the comment lines state");
    mesh.take("rows", &BareMeshConfig::rows, run->second[1]);
    mesh.take("cols", &BareMeshConfig::cols, run->second[0]);
    mesh.take_window(run->second[2], run->second[3]);
    mesh.take_pattern(table.cell(i, "traffic"));
    mesh.take_load(table.cell(i, kLoad));
    double sum = 0;
    for (unsigned seed = 1; seed <= kSeeds; ++seed) sum += table.number(i, fmt::format("latency_seed{}", seed));
    const double relative = table.number(i, "load_over_saturation");
    rows.push_back({fmt::format("{}/{}_{},load={:g}", table.name(), size, config.pattern, config.load), sum / kSeeds,
                    relative <= kJudgedUpTo + 1e-9});
    for (mesh.config.seed = 1; config.seed <= kSeeds; ++mesh.config.seed) group.runs.push_back(mesh_run(mesh));
  }
  const double limit = (request.fast ? kFastNoc : kAccurateNoc).latency;
  group.verdict = case_by_case(rows.size(), [rows, limit](std::size_t i, const auto& figures) {
    double sum = 0;
    for (unsigned seed = 0; seed < kSeeds; ++seed) sum += MeshFigures(figures[i * kSeeds + seed]).latency;
    return judge(rows[i].name, kLatency, rows[i].reference, sum / kSeeds, limit, rows[i].judged ? "" : kNotJudged);
  });
  return group;
}

namespace {
/// Applies the settings of a variant to the mesh; false: the model does not have one of them.
bool apply_variant(StatedMesh& mesh, const Stated& variant) {
  std::istringstream words(variant.text);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) continue;  // "baseline"
    const std::string key = word.substr(0, equals);
    const Stated value{fmt::format("'{}' is", key), word.substr(equals + 1), variant.where};
    if (key == "alloc_iters") continue;  // never reaches the reference's allocators: one iteration, as here
    if (key == "seed") continue;         // every row is run with the same seeds
    if (key == "hold_switch_for_packet")
      mesh.config.hold = value.text != "0";
    else if (key == "routing_delay")
      mesh.take("delays", &BareMeshConfig::routing_delay, value);
    else if (key == "credit_delay")
      mesh.take("delays", &BareMeshConfig::credit_delay, value, 1);
    else if (key == "vc_buf_size")
      mesh.take("vc_depth", &BareMeshConfig::vc_depth, value);
    else
      return false;
  }
  return true;
}

struct SensitivityRow {
  std::string name;
  double load = 0, latency = 0, accepted = 0;
  std::optional<std::size_t> first_run;  ///< of kSeeds; none: the model does not have this setting
};

/// One setting changed at a time, one seed: the specification sets no limit for this table. Those of the other tables
/// stand beside the figures for orientation.
Case report_sensitivity(const SensitivityRow& row, const std::vector<Figures>& figures, bool fast) {
  const NocLimits& limits = fast ? kFastNoc : kAccurateNoc;
  const bool saturated = row.accepted < 0.98 * row.load;
  const char* metric = saturated ? kAccepted : kLatency;
  const double reference = saturated ? row.accepted : row.latency, limit = saturated ? limits.accepted : limits.latency;
  if (!row.first_run)
    return judge(row.name, metric, reference, std::numeric_limits<double>::quiet_NaN(), limit,
                 "the model does not have this setting");
  double sum = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const MeshFigures found(figures[*row.first_run + seed]);
    sum += saturated ? found.accepted : found.latency;
  }
  return judge(row.name, metric, reference, sum / kSeeds, limit, "single settings, for which no limit is set");
}
}  // namespace

Group sensitivity_group(const Table& table, const Request& request) {
  table.require({"num_vcs", "variant", kLoad, kAccepted, kLatency});
  StatedMesh base;
  const auto shape =
      table.matches("(\\d+)x(\\d+) mesh, ([a-z]+), (\\d+)-flit packets", "'KxK mesh, PATTERN, N-flit packets'").front();
  base.take("rows", &BareMeshConfig::rows, shape[1]);
  base.take("cols", &BareMeshConfig::cols, shape[0]);
  base.take_pattern(shape[2]);
  base.take("packet_flits", &BareMeshConfig::packet_flits, shape[3]);
  base.take("vc_depth", &BareMeshConfig::vc_depth, table.parameter("vc_buf_size"));
  const auto lengths =
      table.matches("(\\d+) cycles warm-up, (\\d+) measured", "'N cycles warm-up, N measured'").front();
  base.take_window(lengths[0], lengths[1]);
  base.config.fast = request.fast;

  std::vector<SensitivityRow> rows;
  Group group;
  group.name = table.name();
  for (std::size_t i = 0; i < table.rows(); ++i) {
    StatedMesh mesh = base;
    mesh.take("vcs", &BareMeshConfig::vcs, table.cell(i, "num_vcs"));
    mesh.take_load(table.cell(i, kLoad));
    const Stated variant = table.cell(i, "variant");
    SensitivityRow row;
    row.load = mesh.config.load;
    row.name = fmt::format("{}/vc={},{},load={:g}", table.name(), mesh.config.vcs, variant.text, row.load);
    row.latency = table.number(i, kLatency);
    row.accepted = table.number(i, kAccepted);
    if (apply_variant(mesh, variant)) {
      row.first_run = group.runs.size();
      std::uint64_t& seed = mesh.config.seed;
      for (seed = 1; seed <= kSeeds; ++seed) group.runs.push_back(mesh_run(mesh));
    }
    rows.push_back(std::move(row));
  }
  group.verdict = case_by_case(rows.size(), [rows, fast = request.fast](std::size_t i, const auto& figures) {
    return report_sensitivity(rows[i], figures, fast);
  });
  return group;
}

}  // namespace kernbench::validate
