#include "sc_main/run/result_file.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

#include "sc_main/process/cpu_time.h"
#include "sc_main/run/fidelity_option.h"
#include "sc_main/run/version.h"
#include "tlm/config/bounded_text.h"
#include "tlm/config/json_text.h"
#include "waves/output_file.h"

namespace kernbench {
namespace {
constexpr std::size_t kMostBytes = std::size_t{1} << 30;  ///< of any file that is read whole

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

nlohmann::ordered_json bands(const Fidelity& fidelity) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ErrorBand& band : error_bands(fidelity)) {
    nlohmann::ordered_json entry{{"part", to_string(band.part)},
                                 {"grade", to_string(band.grade)},
                                 {"measure", band.measure},
                                 {"max_error_percent", band.percent}};
    list.push_back(std::move(entry));
  }
  return list;
}
}  // namespace

HostClock::HostClock() : start_(std::time(nullptr)), begin_s_(now_s()) {}

nlohmann::ordered_json HostClock::json() const {
  const rusage usage = process::own_usage();
  return {{"wall_s", now_s() - begin_s_},
          {"cpu_s", process::cpu_s(usage)},
          {"peak_rss_bytes", std::uint64_t{1024} * static_cast<std::uint64_t>(usage.ru_maxrss)},
          {"start", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(start_))}};
}

namespace {
void add_outcome(const RunResult& result, nlohmann::ordered_json& json) {
  std::uint64_t pes = 0;
  for (std::uint16_t sip = 0; sip < result.map->sips; ++sip) pes += result.map->pes(sip).size();
  json["config_hash"] = result.config_hash;
  json["ccl"] = result.ccl;
  json["tuned"] = result.tuned;
  json["files"] = result.files;
  json["seed"] = result.seed;
  json["workload"] = result.workload;
  json["fidelity"] = to_string(result.fidelity);
  json["fidelity_errors"] = bands(result.fidelity);
  json["data"] = result.data;
  json["machine"] = {{"sips", result.map->sips},
                     {"cubes", std::uint64_t{result.map->sips} * result.map->cubes_per_sip()},
                     {"pes", pes}};
  json["sim_time_ps"] = result.sim_time;
  json["energy_pj"] = topology::total_pj(result.energy);
  json["energy"] = nlohmann::ordered_json::array();
  for (const topology::EnergyRow& row : result.energy) {
    nlohmann::ordered_json operations = nlohmann::ordered_json::array();
    for (const topology::EnergyOperation& done : row.operations) {
      operations.push_back({{"operation", done.operation},
                            {"unit", done.unit},
                            {"count", done.count},
                            {"pj_each", done.dynamic_pj / done.count},
                            {"dynamic_pj", done.dynamic_pj}});
    }
    json["energy"].push_back({{"component", row.component},
                              {"dynamic_pj", row.dynamic_pj},
                              {"static_pj", row.static_pj},
                              {"operations", std::move(operations)}});
  }
  if (result.replay) {
    const ReplayReport& replay = *result.replay;
    json["replay"] = {{"launches", replay.launches},
                      {"collectives", replay.collectives},
                      {"repeated_launches", replay.repeated_launches},
                      {"repeated_collectives", replay.repeated_collectives},
                      {"repeated_mappings", replay.repeated_mappings},
                      {"shared", replay.shared},
                      {"kinds", replay.kinds},
                      {"repeated_time_share", replay.time > 0 ? replay.repeated / replay.time : 0},
                      {"samples", replay.samples},
                      {"difference", replay.all},
                      {"largest_difference", replay.largest},
                      {"largest_difference_of", replay.largest_of},
                      {"refused_kinds", replay.refused},
                      {"disturbed", replay.disturbed}};
  }
  json["results"] = result.results;
  if (!result.explanation.is_null()) json["explain"] = {{"launches", result.explanation}};
  if (!result.critical_path.is_null()) json["critical_path"] = result.critical_path;
  if (!result.statistics.is_null()) json["statistics"] = result.statistics;
  if (!result.what_if.is_null()) json["what_if"] = result.what_if;
}
}  // namespace

nlohmann::ordered_json to_json(const RunResult& result, const HostClock& host) {
  nlohmann::ordered_json json{{"version", kVersion}, {"command", result.command}, {"config", result.config}};
  add_outcome(result, json);
  json["host"] = host.json();
  return json;
}

nlohmann::ordered_json point_json(const RunResult& result) {
  nlohmann::ordered_json json;
  json["version"] = kVersion;
  add_outcome(result, json);
  return json;
}

std::string read_file(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (in && in.peek() == std::ifstream::traits_type::eof() && !in.bad()) return {};  // << of nothing would be an error
  // A folder opens, but cannot be read.
  const bool opened = static_cast<bool>(in);
  std::optional<std::string> text = bounded_text(in, kMostBytes);
  if (!opened || in.bad() || text == "")
    throw OutputError(fmt::format("cannot read '{}': {}", path, std::strerror(errno == 0 ? EISDIR : errno)));
  if (!text) throw OutputError(fmt::format("cannot read '{}': it is larger than {} GiB", path, kMostBytes >> 30));
  return std::move(*text);
}

namespace {
constexpr const char* kResultHint = "give a file that 'kernbench run ... --json FILE' wrote";
}  // namespace

nlohmann::ordered_json read_result_json(const std::string& path, const std::string& name) {
  const std::string text = read_file(path);
  if (text.empty()) throw UsageError(fmt::format("{} is not a result file (empty)", name), kResultHint);
  nlohmann::ordered_json json;
  try {
    json = parse_json(text);
  } catch (const JsonError& error) {
    throw UsageError(fmt::format("{} {}", name, error.what()), kResultHint);
  }
  const auto command = json.is_object() ? json.find("command") : json.end();
  const bool usable = json.is_object() && command != json.end() && command->is_array() && command->size() >= 2 &&
                      (*command)[0] == "run" && json.contains("config") && json["config"].is_object() &&
                      json.contains("results") && json["results"].is_array();
  if (!usable) throw UsageError(fmt::format("{} is no result of 'kernbench run'", name), kResultHint);
  for (std::size_t i = 1; i < command->size(); ++i) {
    if (!(*command)[i].is_string())
      throw UsageError(fmt::format("{}: 'command' holds something other than text", name), kResultHint);
  }
  return json;
}

nlohmann::ordered_json read_rows_json(const std::string& path, const std::string& name) {
  nlohmann::ordered_json json = read_result_json(path, name);
  if (json["results"].empty())
    throw UsageError(fmt::format("{} has nothing to look at: 'results' is empty", name),
                     "give the result of a run that has rows");
  return json;
}

EarlierRun read_result(const std::string& path) {
  const std::string name = fmt::format("--from '{}'", path);
  const nlohmann::ordered_json json = read_result_json(path, name);
  EarlierRun run;
  run.config = json["config"];
  run.ccl = json.value("ccl", nlohmann::ordered_json());
  run.tuned = json.value("tuned", nlohmann::ordered_json());
  const auto version = json.find("version");
  run.version = version != json.end() && version->is_string() ? version->get<std::string>() : "unknown";
  run.files = json.value("files", nlohmann::ordered_json::object());
  const bool texts = run.files.is_object() &&
                     std::all_of(run.files.begin(), run.files.end(), [](const auto& hash) { return hash.is_string(); });
  if (!texts) throw UsageError(fmt::format("{}: 'files' holds something other than hashes", name), kResultHint);
  for (std::size_t i = 1; i < json["command"].size(); ++i) run.command.push_back(json["command"][i].get<std::string>());
  return run;
}

}  // namespace kernbench
