#pragma once
#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sc_main/explore/sweep/sweep_file.h"

namespace kernbench::sweep {

enum class Status : std::uint8_t {
  ok,
  failed,     ///< by itself: an error, a crash, a limit
  lost,       ///< ended from outside; runs again
  infeasible  ///< a constraint refuses it; never in the store
};
const char* to_string(Status status);

/// How a point ended: a row of the store.
struct Record {
  std::string key;
  Status status = Status::lost;
  int exit_code = 0;
  std::string error;
  nlohmann::ordered_json result;  ///< of `run --json`, without config, command and host; null without
  double wall_s = 0, cpu_s = 0;
  double model_cpu_s = 0;  ///< of elaboration and simulation alone; not stored
  std::uint64_t peak_rss_bytes = 0;
  std::string finished;  ///< UTC, "2026-01-31T12:00:00Z"
  int attempt = 1;

  nlohmann::ordered_json json() const;  ///< a line of a worker's result file
  static std::optional<Record> from_json(const nlohmann::ordered_json& json);
};

/// What the store says of a point beside its record.
struct PointIdentity {
  std::string key, workload, command, config_hash;
  std::string config;  ///< JSON text; empty: could not be resolved
};

/// Numbers of a result by name: sim_time_ps, energy_pj, those of the last row ("time_ns", "utilisation.gemm") and, with
/// several rows, of each ("row0.time_ns").
std::map<std::string, double> metrics_of(const nlohmann::ordered_json& result);

/// The results of sweeps: one SQLite file, one row per point; docs/sweep.md describes the tables.
///
/// Every change is one transaction, so a process that ends at any moment leaves it whole; others may read meanwhile.
/// Only one process of a sweep opens it. Everything throws OutputError when the file cannot be used.
class Store {
 public:
  enum class Mode { write, read };
  Store(const std::string& path, Mode mode);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// For tables of others, in the same file.
  SQLite::Database& database() { return database_; }
  const std::string& path() const { return path_; }

  /// Notes the sweep; forgets its list of points if its file or the program has changed. `kind`: "sweep" or "search".
  void begin(const SweepFile& file, const std::string& kind, const std::string& base_command);
  /// Lists a point of the sweep.
  void list(const std::string& sweep, std::size_t position, const std::string& key,
            const nlohmann::ordered_json& coordinates, const nlohmann::ordered_json& settings);

  std::optional<Status> status(const std::string& key);
  /// Status, exit code, error and result; no host figures.
  std::optional<Record> find(const std::string& key);
  std::map<std::string, double> metrics(const std::string& key);
  /// Records how a point ended, replacing what was there; `also` writes what belongs to it in the same transaction.
  void add(const PointIdentity& point, const Record& record, const std::function<void()>& also = {});
  /// Everything that `work` writes is one transaction. Not nested.
  void in_one_step(const std::function<void()>& work);
  /// NaN: the point has no such value.
  void set_objectives(const std::string& sweep, std::size_t position, const std::vector<Objective>& objectives,
                      const std::vector<double>& values);

  /// Rows of a sweep in order, for export: axis values, status, metrics, objectives. `sweep` empty: the only one.
  /// Throws UsageError if there is none of that name.
  std::string csv(const std::string& sweep);
  nlohmann::ordered_json json(const std::string& sweep);
  std::vector<std::string> sweeps();

 private:
  std::string path_;
  Mode mode_;
  SQLite::Database database_;
};

}  // namespace kernbench::sweep
