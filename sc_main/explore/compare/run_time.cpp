#include "sc_main/explore/compare/run_time.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>
#include <vector>

#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"

namespace kernbench::compare {
namespace {
using Json = nlohmann::ordered_json;

std::string text_at(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Keys that name what a row measures, as the workloads write them (sc_main/results.schema.json); not how: a run of
/// another data type or placement is compared with it.
constexpr std::array kNaming{
    "phase",   "layer",   "part", "row",      "name", "case",         "how",
    "variant", "pattern", "link", "distance", "peer", "comm_type",    "bytes",
    "m",       "n",       "k",    "id",       "rank", "offered_load", "load_flits_per_node_per_cycle"};
}  // namespace

TimeOf parse_time_of(const std::string& name) {
  if (name == "rows") return TimeOf::rows;
  if (name == "run") return TimeOf::run;
  throw std::invalid_argument(fmt::format("--measure is {}; give 'rows' or 'run'", quote(name)));
}

const char* time_key(const Json& row) {
  for (const char* key : {"time_ns", "latency_ns"}) {
    const auto found = row.find(key);
    if (found != row.end() && found->is_number()) return key;
  }
  return nullptr;
}

bool is_set_up(const Json& row) { return text_at(row, "layer") == "set-up"; }

bool is_total(const Json& row) {
  const std::string op = text_at(row, "op");
  return (op == "tp_mlp" && text_at(row, "layer") == "mlp") ||
         (op == "tp_transformer" && text_at(row, "layer") == "all") ||
         (op == "chakra" && text_at(row, "part") == "trace") || (op == "pipeline" && text_at(row, "row") == "pipeline");
}

RunTime time_of(const Json& result, TimeOf of) {
  const RunTime whole{result.value("sim_time_ps", 0.0) / 1e3, "sim_time_ps, the whole run"};
  const auto rows = result.find("results");
  if (of == TimeOf::run || rows == result.end() || !rows->is_array()) return whole;
  std::vector<const Json*> timed, totals;
  for (const Json& row : *rows) {
    if (!row.is_object() || time_key(row) == nullptr || is_set_up(row)) continue;
    timed.push_back(&row);
    if (is_total(row)) totals.push_back(&row);
  }
  const std::vector<const Json*>& counted = totals.empty() ? timed : totals;
  RunTime time;
  for (const Json* row : counted) time.ns += (*row)[time_key(*row)].get<double>();
  if (counted.empty() || time.ns <= 0) return whole;
  const char* key = time_key(*counted.front());
  const std::string first = row_name(*counted.front());
  time.of = counted.size() == 1 ? fmt::format("{} of {}", key, first)
                                : fmt::format("{} of {} rows added up, {} the first", key, counted.size(), first);
  return time;
}

std::string row_name(const Json& row) {
  std::string name = text_at(row, "op");
  for (const char* key : kNaming) {
    const auto found = row.find(key);
    if (found == row.end() || found->is_null() || found->is_array()) continue;
    const bool size = std::string(key) == "bytes";
    const std::string value = found->is_string() ? found->get<std::string>() : json_text(*found);
    const bool plain = size || found->is_string();
    name +=
        fmt::format("{}{}{}{}", name.empty() ? "" : ", ", plain ? "" : std::string(key) + " ", value, size ? " B" : "");
  }
  return name;
}

}  // namespace kernbench::compare
