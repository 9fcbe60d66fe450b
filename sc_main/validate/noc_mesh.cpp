#include "sc_main/validate/noc_mesh.h"

#include <fmt/format.h>

#include <map>
#include <stdexcept>

#include "sc_main/rigs/traffic_pattern.h"

namespace kernbench::validate {
namespace {
/// A setting of the reference that the model has in one form only.
void expect(const Table& table, const std::string& key, const std::string& value) {
  const auto found = table.find_parameter(key);
  if (found && *found != value) table.fail_parameter(key, fmt::format("the model has {}={} only", key, value));
}

std::vector<double> with_all(std::vector<double> first, const std::vector<double>& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}
}  // namespace

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

MeshFigures::MeshFigures(const Figures& figures)
    : latency(figures.at(0)), accepted(figures.at(1)), least_latency(figures.begin() + 2, figures.end()) {}

}  // namespace kernbench::validate
