#include "sc_main/validate/noc_mesh.h"

#include <fmt/format.h>

#include <map>

namespace kernbench::validate {
namespace {
/// No table states a larger integer: sums and products of them fit.
constexpr std::uint64_t kMostStated = 100'000'000;

/// A setting of the reference that the model has in one form only.
void expect(const Table& table, const std::string& key, const std::string& value) {
  const auto found = table.find_parameter(key);
  if (found && found->text != value) throw problem(*found, fmt::format("the model has {}={} only", key, value));
}

std::vector<double> with_all(std::vector<double> first, const std::vector<double>& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

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
}  // namespace

void StatedMesh::take(const char* member, unsigned BareMeshConfig::*into, const Stated& value, unsigned more) {
  config.*into = static_cast<unsigned>(integer(value, kMostStated)) + more;
  places[member] = value.where;
}

void StatedMesh::take_pattern(const Stated& traffic) {
  config.pattern = pattern_of(traffic.text);
  places["pattern"] = traffic.where;
}

void StatedMesh::take_load(const Stated& load) {
  config.load = number(load);
  places["load"] = load.where;
}

void StatedMesh::take_window(const Stated& warmup, const Stated& window, std::uint64_t cycles_of_one) {
  config.warmup = cycles_of_one * integer(warmup, kMostStated);
  config.window = cycles_of_one * integer(window, kMostStated);
  places["window"] = window.where;
}

void StatedMesh::check() const {
  Problems problems;
  for (const BareMeshFault& fault : faults(config)) {
    const auto place = places.find(fault.member);
    problems.add(place == places.end() ? Location{} : place->second, fault.text, fault.hint);
  }
  problems.throw_if_any();
}

void set_shape(StatedMesh& mesh, const Table& table) {
  expect(table, "topology", "mesh");
  expect(table, "routing_function", "dim_order");
  mesh.take("cols", &BareMeshConfig::cols, table.parameter("k"));
  const auto n = table.find_parameter("n");
  if (n && n->text != "1" && n->text != "2") throw problem(*n, "give 1 or 2");
  mesh.config.rows = n && n->text == "1" ? 1 : mesh.config.cols;
}

StatedMesh mesh_of(const Table& table) {
  StatedMesh mesh;
  set_shape(mesh, table);
  mesh.take_pattern(table.parameter("traffic"));
  expect(table, "router", "iq");
  expect(table, "speculative", "0");
  expect(table, "wait_for_tail_credit", "0");
  expect(table, "injection_process", "bernoulli");
  const auto stated = [&](const char* key) { return integer(table.parameter(key), kMostStated); };
  mesh.take("packet_flits", &BareMeshConfig::packet_flits, table.parameter("packet_size"));
  mesh.take("vcs", &BareMeshConfig::vcs, table.parameter("num_vcs"));
  mesh.take("vc_depth", &BareMeshConfig::vc_depth, table.parameter("vc_buf_size"));
  mesh.config.hold = stated("hold_switch_for_packet") != 0;
  mesh.take("delays", &BareMeshConfig::vc_alloc_delay, table.parameter("vc_alloc_delay"));
  mesh.take("delays", &BareMeshConfig::sw_alloc_delay, table.parameter("sw_alloc_delay"));
  mesh.take("delays", &BareMeshConfig::switch_delay, table.parameter("st_final_delay"),
            static_cast<unsigned>(stated("st_prepare_delay")));
  // And one cycle on the wire.
  mesh.take("delays", &BareMeshConfig::credit_delay, table.parameter("credit_delay"), 1);
  mesh.take("delays", &BareMeshConfig::routing_delay, table.parameter("routing_delay"));
  mesh.take_window(table.parameter("warmup_periods"), table.parameter("measured_periods"), stated("sample_period"));
  return mesh;
}

std::function<Figures()> mesh_run(const StatedMesh& mesh) {
  mesh.check();
  return [config = mesh.config] {
    const BareMeshResult result = run_bare_mesh(config);
    return with_all({result.latency, result.accepted}, result.least_latency);
  };
}

MeshFigures::MeshFigures(const Figures& figures)
    : latency(figures.at(0)), accepted(figures.at(1)), least_latency(figures.begin() + 2, figures.end()) {}

}  // namespace kernbench::validate
