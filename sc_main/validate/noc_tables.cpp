#include "sc_main/validate/noc_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>
#include <tuple>

#include "sc_main/rigs/traffic_pattern.h"

namespace kernbench::validate {
namespace {
/// Not stated by the tables of single figures: long enough that the window's edges weigh less than 0.1%.
constexpr std::uint64_t kSteadyWarmup = 2'000, kSteadyWindow = 40'000;
/// Packets of each run that looks for the smallest latency.
constexpr std::uint64_t kCalibrationPackets = 4'000;

unsigned to_unsigned(const std::string& text) { return static_cast<unsigned>(std::stoul(text)); }

/// The reference simulator's pattern names and lists, as ours: "hotspot({{0,3},{2,1}})" is "hotspot(0:2,3:1)".
std::string pattern_of(const std::string& traffic) {
  static const std::map<std::string, std::string> kNames = {{"bitcomp", "bit_complement"}, {"bitrev", "bit_reverse"}};
  if (const auto known = kNames.find(traffic); known != kNames.end()) return known->second;
  if (traffic.rfind("hotspot(", 0) != 0) return traffic;
  std::vector<std::vector<std::string>> lists(1);
  std::string item;
  for (const char c : traffic.substr(8)) {
    if (c == '{') {
      if (!lists.back().empty()) lists.emplace_back();
    } else if (c == ',' || c == '}' || c == ')') {
      if (!item.empty()) lists.back().push_back(std::move(item));
      item.clear();
    } else {
      item += c;
    }
  }
  std::string out;
  for (std::size_t i = 0; i < lists.front().size(); ++i) {
    out += (i == 0 ? "" : ",") + lists.front()[i];
    if (lists.size() > 1 && i < lists[1].size()) out += ":" + lists[1][i];
  }
  return "hotspot(" + out + ")";
}

void set_traffic(BareMeshConfig& mesh, const Table& table, const std::string& key) {
  mesh.pattern = pattern_of(table.parameter(key));
  try {
    TrafficPattern(mesh.pattern, mesh.cols, mesh.rows);
  } catch (const std::invalid_argument&) {
    table.fail_parameter(key, "give a pattern of 'kernbench run noc_traffic --help' for this mesh");
  }
}

/// A setting of the reference that the model has in one form only.
void expect(const Table& table, const std::string& key, const std::string& value) {
  const auto found = table.find_parameter(key);
  if (found && *found != value) table.fail_parameter(key, fmt::format("the model has {}={} only", key, value));
}

void set_shape(BareMeshConfig& mesh, const Table& table) {
  expect(table, "topology", "mesh");
  expect(table, "routing_function", "dim_order");
  const std::uint64_t k = table.integer_parameter("k");
  const std::uint64_t n = table.find_parameter("n") ? table.integer_parameter("n") : 2;
  if (k < 1 || k > 64) table.fail_parameter("k", "give 1 to 64");
  if (n != 1 && n != 2) table.fail_parameter("n", "give 1 or 2");
  mesh.cols = static_cast<unsigned>(k);
  mesh.rows = n == 2 ? mesh.cols : 1;
}

std::vector<double> with_all(std::vector<double> first, const std::vector<double>& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}
}  // namespace

BareMeshConfig mesh_of(const Table& table) {
  BareMeshConfig mesh;
  set_shape(mesh, table);
  set_traffic(mesh, table, "traffic");
  expect(table, "router", "iq");
  expect(table, "speculative", "0");
  expect(table, "wait_for_tail_credit", "0");
  expect(table, "injection_process", "bernoulli");
  const auto count = [&](const char* key, unsigned least) {
    const std::uint64_t value = table.integer_parameter(key);
    if (value < least || value > 100'000'000) table.fail_parameter(key, fmt::format("give at least {}", least));
    return static_cast<unsigned>(value);
  };
  mesh.packet_flits = count("packet_size", 1);
  mesh.vcs = count("num_vcs", 1);
  mesh.vc_depth = count("vc_buf_size", 1);
  mesh.hold = count("hold_switch_for_packet", 0) != 0;
  mesh.routing_delay = count("routing_delay", 0);
  mesh.vc_alloc_delay = count("vc_alloc_delay", 1);
  mesh.sw_alloc_delay = count("sw_alloc_delay", 1);
  mesh.switch_delay = count("st_prepare_delay", 0) + count("st_final_delay", 1);
  mesh.credit_delay = 1 + count("credit_delay", 0);  // and one cycle on the wire
  const std::uint64_t period = count("sample_period", 1);
  mesh.warmup = period * count("warmup_periods", 0);
  mesh.window = period * count("measured_periods", 1);
  return mesh;
}

std::function<Figures()> mesh_run(const BareMeshConfig& config) {
  return [config] {
    const BareMeshResult result = run_bare_mesh(config);
    return with_all({result.latency, result.accepted}, result.least_latency);
  };
}

MeshFigures::MeshFigures(const Figures& figures) : latency(figures.at(0)), accepted(figures.at(1)) {}

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
    const Figures& all = figures[row.run];
    const double measured = 2 + row.links < all.size() ? all[2 + row.links] : 0;
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
    return judge(rows[i].name, kLatency, rows[i].reference, sum / kSeeds, limit,
                 rows[i].judged ? "" : "above 0.8 of saturation, where seeds decide");
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
