#pragma once
#include <SQLiteCpp/Database.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sc_main/explore/sweep/record.h"
#include "sc_main/explore/sweep/sweep_file.h"

namespace kernbench::sweep {

/// What the store says of a point beside its record.
struct PointIdentity {
  std::string key, workload, command, config_hash;
  std::string config;  ///< JSON text; empty: could not be resolved
};

/// What an objective of a sweep is at one of its points.
struct ObjectiveValue {
  std::string sweep;
  std::size_t position = 0;
  std::string objective;
  double value = 0;
};

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

  /// Places of the sweep's points by their coordinates (JSON text).
  std::map<std::string, std::size_t> positions(const std::string& sweep);
  /// Status, exit code, error and result; no host figures.
  std::optional<Record> find(const std::string& key);
  /// Records how a point ended, its metrics, and the objectives of all who are that point, replacing what was there.
  void add(const PointIdentity& point, const Record& record, const std::map<std::string, double>& metrics,
           const std::vector<ObjectiveValue>& objectives);
  void add(const std::vector<ObjectiveValue>& objectives);

  /// Rows of a sweep in order, for export: axis values, status, metrics, objectives. `sweep` empty: the only one.
  /// Throws UsageError if there is none of that name.
  std::string csv(const std::string& sweep);
  nlohmann::ordered_json json(const std::string& sweep);
  std::vector<std::string> sweeps();

 private:
  void insert(const std::vector<ObjectiveValue>& objectives);

  std::string path_;
  Mode mode_;
  SQLite::Database database_;
};

}  // namespace kernbench::sweep
