#include "sc_main/validate/noc_tables.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <sstream>
#include <tuple>

#include "sc_main/validate/noc_mesh.h"

namespace kernbench::validate {
namespace {
/// Not stated by the tables of single figures: long enough that the window's edges weigh less than 0.1%.
constexpr std::uint64_t kSteadyWarmup = 2'000, kSteadyWindow = 40'000;
/// Packets of each run that looks for the smallest latency.
constexpr std::uint64_t kCalibrationPackets = 4'000;

unsigned to_unsigned(const std::string& text) { return static_cast<unsigned>(std::stoul(text)); }

}  // namespace

Group credit_loop_group(const Table& table, const Request& request) {
  table.require({"num_vcs", "vc_buf_size_flits", "packet_flits", kAccepted});
  BareMeshConfig mesh;
  set_shape(mesh, table);
  set_traffic(mesh, table, "traffic");
  mesh.fast = request.fast;
  mesh.load = std::stod(table.matches("offered load ([0-9.]+) flit", "'offered load'").front()[0]);
  mesh.warmup = kSteadyWarmup;
  mesh.window = kSteadyWindow;
  mesh.drain = 0;
  Group group;
  group.name = table.name();
  std::vector<std::pair<std::string, double>> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    mesh.vcs = static_cast<unsigned>(table.integer(i, "num_vcs"));
    mesh.vc_depth = static_cast<unsigned>(table.integer(i, "vc_buf_size_flits"));
    mesh.packet_flits = static_cast<unsigned>(table.integer(i, "packet_flits"));
    if (request.sample && i % 7 != 3) continue;
    rows.emplace_back(fmt::format("{}/vc={},buf={},flits={}", table.name(), mesh.vcs, mesh.vc_depth, mesh.packet_flits),
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
  BareMeshConfig mesh;
  set_shape(mesh, table);
  const std::vector<std::string> traffic =
      table.matches("([a-z_]+) traffic at ([0-9.]+) flits", "'PATTERN traffic at LOAD flits'").front();
  mesh.pattern = pattern_of(traffic[0]);
  mesh.load = std::stod(traffic[1]);
  mesh.fast = request.fast;
  mesh.warmup = 0;
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
    const std::uint64_t flits = table.integer(i, "packet_flits"), links = table.integer(i, "links");
    if (flits == 0) table.fail(i, "packet_flits", "give at least 1");
    const auto [at, fresh] = run_of.try_emplace(static_cast<unsigned>(flits), group.runs.size());
    if (fresh) {
      mesh.packet_flits = at->first;
      mesh.window = static_cast<std::uint64_t>(static_cast<double>(kCalibrationPackets * flits) /
                                               (mesh.load * mesh.cols * mesh.rows));
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
  BareMeshConfig mesh;
  mesh.vcs = static_cast<unsigned>(table.integer_parameter("num_vcs"));
  mesh.vc_depth = static_cast<unsigned>(table.integer_parameter("vc_buf_size"));
  mesh.packet_flits = to_unsigned(table.matches("(\\d+)-flit packets", "'N-flit packets'").front()[0]);
  mesh.fast = request.fast;
  std::map<std::string, std::pair<unsigned, unsigned>> windows;  // warm-up and window by mesh
  for (const auto& found : table.matches("(\\d+x\\d+): (\\d+)(?: warm-up)? \\+ (\\d+)", "run lengths 'KxK: A + B'"))
    windows[found[0]] = {to_unsigned(found[1]), to_unsigned(found[2])};

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
    const auto window = windows.find(size);
    if (window == windows.end()) table.fail(i, "mesh", "give a mesh whose run lengths the comment lines state");
    mesh.cols = to_unsigned(size.substr(0, size.find('x')));
    mesh.rows = to_unsigned(size.substr(size.find('x') + 1));
    std::tie(mesh.warmup, mesh.window) = window->second;
    mesh.pattern = pattern_of(table.text(i, "traffic"));
    mesh.load = table.number(i, kLoad);
    double sum = 0;
    for (unsigned seed = 1; seed <= kSeeds; ++seed) sum += table.number(i, fmt::format("latency_seed{}", seed));
    const double relative = table.number(i, "load_over_saturation");
    rows.push_back({fmt::format("{}/{}_{},load={:g}", table.name(), size, mesh.pattern, mesh.load), sum / kSeeds,
                    relative <= kJudgedUpTo + 1e-9});
    for (mesh.seed = 1; mesh.seed <= kSeeds; ++mesh.seed) group.runs.push_back(mesh_run(mesh));
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
bool apply_variant(BareMeshConfig& mesh, const std::string& variant) {
  std::istringstream words(variant);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) continue;  // "baseline"
    const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    if (key == "alloc_iters") continue;  // never reaches the reference's allocators: one iteration, as here
    if (key == "seed") continue;         // every row is run with the same seeds
    if (key == "hold_switch_for_packet")
      mesh.hold = value != "0";
    else if (key == "routing_delay")
      mesh.routing_delay = to_unsigned(value);
    else if (key == "credit_delay")
      mesh.credit_delay = 1 + to_unsigned(value);
    else if (key == "vc_buf_size")
      mesh.vc_depth = to_unsigned(value);
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
  BareMeshConfig base;
  const auto shape =
      table.matches("(\\d+)x(\\d+) mesh, ([a-z]+), (\\d+)-flit packets", "'KxK mesh, PATTERN, N-flit'").front();
  base.cols = to_unsigned(shape[0]);
  base.rows = to_unsigned(shape[1]);
  base.pattern = pattern_of(shape[2]);
  base.packet_flits = to_unsigned(shape[3]);
  base.vc_depth = static_cast<unsigned>(table.integer_parameter("vc_buf_size"));
  const auto lengths =
      table.matches("(\\d+) cycles warm-up, (\\d+) measured", "'N cycles warm-up, N measured'").front();
  base.warmup = to_unsigned(lengths[0]);
  base.window = to_unsigned(lengths[1]);
  base.fast = request.fast;

  std::vector<SensitivityRow> rows;
  Group group;
  group.name = table.name();
  for (std::size_t i = 0; i < table.rows(); ++i) {
    BareMeshConfig mesh = base;
    mesh.vcs = static_cast<unsigned>(table.integer(i, "num_vcs"));
    mesh.load = table.number(i, kLoad);
    const std::string& variant = table.text(i, "variant");
    SensitivityRow row;
    row.name = fmt::format("{}/vc={},{},load={:g}", table.name(), mesh.vcs, variant, mesh.load);
    row.load = mesh.load;
    row.latency = table.number(i, kLatency);
    row.accepted = table.number(i, kAccepted);
    if (apply_variant(mesh, variant)) {
      row.first_run = group.runs.size();
      for (mesh.seed = 1; mesh.seed <= kSeeds; ++mesh.seed) group.runs.push_back(mesh_run(mesh));
    }
    rows.push_back(std::move(row));
  }
  group.verdict = case_by_case(rows.size(), [rows, fast = request.fast](std::size_t i, const auto& figures) {
    return report_sensitivity(rows[i], figures, fast);
  });
  return group;
}

}  // namespace kernbench::validate
