#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sc_main/process/pool.h"
#include "tlm/config/refusals.h"

namespace kernbench::sweep {

enum class Status : std::uint8_t {
  ok,
  failed,     ///< by itself: an error, a crash, a limit
  lost,       ///< ended from outside; runs again
  infeasible  ///< a constraint refuses it; never in the store
};
const char* to_string(Status status);
/// Lost: what is none of them.
Status status_of(const std::string& text);

/// How a point stands whose run ended by itself with an exit code. What a computer lacked says nothing of the point.
Status status_of_exit(int exit_code);

/// How a point ended: a row of the store.
struct Record {
  std::string key;
  Status status = Status::lost;
  int exit_code = 0;
  std::string error;
  std::vector<Refusal> refusals;  ///< the error, one by one, of a process here that said it; not stored
  nlohmann::ordered_json result;  ///< of `run --json`, without config, command and host; null without
  double wall_s = 0, cpu_s = 0;
  double model_cpu_s = 0;  ///< of elaboration and simulation alone; not stored
  std::uint64_t peak_rss_bytes = 0;
  std::string finished;  ///< UTC, "2026-01-31T12:00:00Z"
  int attempt = 1;

  nlohmann::ordered_json json() const;  ///< a line of a worker's result file
  static std::optional<Record> from_json(const nlohmann::ordered_json& json);
};

/// Numbers of a result by name: sim_time_ps, energy_pj, those of the last row ("time_ns", "utilisation.gemm") and, with
/// several rows, of each ("row0.time_ns").
std::map<std::string, double> metrics_of(const nlohmann::ordered_json& result);

/// The record of a point whose process ended so; `limits` for the texts.
Record record_of(const std::string& key, const process::Ending& ending, const process::Limits& limits);
/// The record of a point that cannot start.
Record refused_record(const std::string& key, int exit_code, const std::string& error);

}  // namespace kernbench::sweep
