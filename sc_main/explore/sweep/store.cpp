#include "sc_main/explore/sweep/store.h"

#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "sc_main/explore/sweep/stored_json.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/file_identity.h"
#include "sc_main/run/version.h"
#include "waves/output_file.h"

namespace kernbench::sweep {
namespace {
constexpr int kApplicationId = 0x4b425253;  ///< "KBRS", in the file's header
constexpr int kSchemaVersion = 1;
constexpr int kBusyMs = 30'000;  ///< how long another writer is waited for

/// Takes the right to write with the first statement: a reader that becomes a writer would not wait for another one.
constexpr SQLite::TransactionBehavior kAtOnce = SQLite::TransactionBehavior::IMMEDIATE;

constexpr const char* kSchema = R"(
CREATE TABLE points (
  key TEXT PRIMARY KEY NOT NULL, status TEXT NOT NULL CHECK (status IN ('ok', 'failed', 'lost')),
  exit_code INTEGER NOT NULL, error TEXT, version TEXT NOT NULL, build TEXT NOT NULL, workload TEXT NOT NULL,
  command TEXT NOT NULL, config_hash TEXT, result TEXT, wall_s REAL NOT NULL, cpu_s REAL NOT NULL,
  peak_rss_bytes INTEGER NOT NULL, finished TEXT NOT NULL, attempt INTEGER NOT NULL) STRICT;
CREATE TABLE configs (hash TEXT PRIMARY KEY NOT NULL, config TEXT NOT NULL) STRICT;
CREATE TABLE metrics (
  key TEXT NOT NULL, name TEXT NOT NULL, value REAL NOT NULL, PRIMARY KEY (key, name)) STRICT, WITHOUT ROWID;
CREATE TABLE sweeps (
  name TEXT PRIMARY KEY NOT NULL, kind TEXT NOT NULL, file TEXT NOT NULL, text TEXT NOT NULL, method TEXT NOT NULL,
  seed INTEGER NOT NULL, version TEXT NOT NULL, build TEXT NOT NULL, base TEXT NOT NULL, axes TEXT NOT NULL,
  objectives TEXT NOT NULL) STRICT;
CREATE TABLE sweep_points (
  sweep TEXT NOT NULL, position INTEGER NOT NULL, key TEXT NOT NULL, coordinates TEXT NOT NULL, settings TEXT NOT NULL,
  PRIMARY KEY (sweep, position)) STRICT, WITHOUT ROWID;
CREATE INDEX sweep_points_by_key ON sweep_points (key);
CREATE TABLE objective_values (
  sweep TEXT NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL, value REAL NOT NULL,
  PRIMARY KEY (sweep, position, name)) STRICT, WITHOUT ROWID;
)";

[[noreturn]] void fail(const std::string& path, const char* doing, const SQLite::Exception& error) {
  // SQLite has no words of its own for a file that may not grow.
  const bool no_room = error.getExtendedErrorCode() == SQLITE_IOERR_WRITE;
  throw OutputError(fmt::format("cannot {} '{}': {}{}", doing, path, error.what(),
                                no_room ? " (is the disk full, or a limit of file sizes reached?)" : ""));
}

SQLite::Database open(const std::string& path, Store::Mode mode) {
  std::error_code ignored;
  const bool there = std::filesystem::exists(path, ignored);
  if (mode == Store::Mode::read && !there) throw OutputError(fmt::format("cannot read '{}': no such file", path));
  if (std::filesystem::is_directory(path, ignored))
    throw OutputError(fmt::format("cannot write '{}': it is a folder", path));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!there && !folder.empty() && !std::filesystem::is_directory(folder, ignored))
    throw OutputError(fmt::format("cannot write '{}': there is no folder '{}'", path, folder.string()));
  try {
    return SQLite::Database(
        path, mode == Store::Mode::read ? SQLite::OPEN_READONLY : SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE,
        kBusyMs);
  } catch (const SQLite::Exception& error) {
    fail(path, mode == Store::Mode::read ? "read" : "write", error);
  }
}

/// Runs `work` and makes an error of the database one of the environment.
template <class F>
auto guarded(const std::string& path, const char* doing, const F& work) {
  try {
    return work();
  } catch (const SQLite::Exception& error) {
    fail(path, doing, error);
  }
}

/// Several processes may write. The change to a log needs the file for an instant, and does not wait for it by itself.
void share(SQLite::Database& database) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kBusyMs);
  for (;;) {
    try {
      database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
      return;
    } catch (const SQLite::Exception& error) {
      if (error.getErrorCode() != SQLITE_BUSY || std::chrono::steady_clock::now() > end) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

/// Of a point. Throws JsonError where it cannot be that of a run.
nlohmann::ordered_json result_of(const std::string& text) {
  nlohmann::ordered_json result = parse_json(text);
  if (!result.is_object() || result.empty()) throw JsonError("is not what kernbench writes", 0);
  return result;
}

}  // namespace

Store::Store(const std::string& path, Mode mode) : path_(path), mode_(mode), database_(open(path, mode)) {
  try {
    // In this order: another process that makes the store meanwhile makes all of it in one step.
    const int tables = database_.execAndGet("SELECT count(*) FROM sqlite_master").getInt();
    const int id = database_.execAndGet("PRAGMA application_id").getInt();
    const int version = database_.execAndGet("PRAGMA user_version").getInt();
    if (id != kApplicationId && (tables > 0 || mode == Mode::read))
      throw UsageError(fmt::format("'{}' is no result store", path), "give a file that 'kernbench sweep' wrote");
    if (id == kApplicationId && version != kSchemaVersion)
      throw UsageError(fmt::format("'{}' is a result store of version {}, and this program reads version {}", path,
                                   version, kSchemaVersion),
                       "give another file");
    if (mode == Mode::read) return;
    share(database_);
    if (id == kApplicationId) return;
    SQLite::Transaction transaction(database_, kAtOnce);
    if (database_.execAndGet("PRAGMA application_id").getInt() == kApplicationId) return;  // another process was first
    database_.exec(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplicationId, kSchemaVersion));
    database_.exec(kSchema);
    transaction.commit();
  } catch (const SQLite::Exception& error) {
    if (error.getErrorCode() == SQLITE_NOTADB)
      throw UsageError(fmt::format("'{}' is no result store", path), "give a file that 'kernbench sweep' wrote");
    fail(path, mode == Mode::read ? "read" : "write", error);
  }
}

Store::~Store() {
  // One plain file when nobody else has it open: it can be copied, and read from a folder that cannot be written.
  if (mode_ == Mode::write) database_.tryExec("PRAGMA journal_mode = DELETE");
}

void Store::begin(const SweepFile& file, const std::string& kind, const std::string& base_command) {
  guarded(path_, "write", [&] {
    SQLite::Transaction transaction(database_, kAtOnce);
    SQLite::Statement same(database_, "SELECT 1 FROM sweeps WHERE name = ? AND kind = ? AND text = ? AND build = ?");
    SQLite::bind(same, file.name, kind, file.text, build_id());
    if (!same.executeStep()) {
      for (const char* table : {"sweep_points", "objective_values"}) {
        execute(database_, fmt::format("DELETE FROM {} WHERE sweep = ?", table), file.name);
      }
    }
    execute(database_, "INSERT OR REPLACE INTO sweeps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", file.name, kind,
            file.path, file.text, to_string(file.method), static_cast<std::int64_t>(file.seed), kVersion, build_id(),
            base_command, json_text(file.axes_json()), json_text(file.objectives_json()));
    transaction.commit();
  });
}

void Store::list(const std::string& sweep, std::size_t position, const std::string& key,
                 const nlohmann::ordered_json& coordinates, const nlohmann::ordered_json& settings) {
  guarded(path_, "write", [&] {
    // What another point left at this place is none of this one's.
    execute(database_,
            "DELETE FROM objective_values WHERE sweep = ?1 AND position = ?2 AND EXISTS (SELECT 1 FROM sweep_points "
            "WHERE sweep = ?1 AND position = ?2 AND key <> ?3)",
            sweep, static_cast<std::int64_t>(position), key);
    execute(database_, "INSERT OR REPLACE INTO sweep_points VALUES (?, ?, ?, ?, ?)", sweep,
            static_cast<std::int64_t>(position), key, json_text(coordinates), json_text(settings));
  });
}

std::map<std::string, std::size_t> Store::positions(const std::string& sweep) {
  return guarded(path_, "read", [&] {
    std::map<std::string, std::size_t> found;
    SQLite::Statement listed(database_, "SELECT position, coordinates FROM sweep_points WHERE sweep = ?");
    listed.bind(1, sweep);
    while (listed.executeStep())
      found[listed.getColumn(1).getString()] = static_cast<std::size_t>(listed.getColumn(0).getInt64());
    return found;
  });
}

std::optional<Record> Store::find(const std::string& key) {
  return guarded(path_, "read", [&]() -> std::optional<Record> {
    SQLite::Statement query(database_, "SELECT status, exit_code, error, result FROM points WHERE key = ?");
    query.bind(1, key);
    if (!query.executeStep()) return std::nullopt;
    Record record;
    record.key = key;
    record.status = status_of(query.getColumn(0).getString());
    record.exit_code = query.getColumn(1).getInt();
    record.error = query.getColumn(2).getString();
    if (!query.getColumn(3).isNull())
      record.result = stored(path_, "point " + key, [&] { return result_of(query.getColumn(3).getString()); });
    return record;
  });
}

void Store::add(const PointIdentity& point, const Record& record, const std::map<std::string, double>& metrics,
                const std::vector<ObjectiveValue>& objectives) {
  guarded(path_, "write", [&] {
    SQLite::Transaction transaction(database_, kAtOnce);
    execute(database_,
            "INSERT OR REPLACE INTO points VALUES (?, ?, ?, NULLIF(?, ''), ?, ?, ?, ?, NULLIF(?, ''), NULLIF(?, ''), "
            "?, ?, ?, ?, ?)",
            record.key, to_string(record.status), record.exit_code, record.error, kVersion, build_id(), point.workload,
            point.command, point.config_hash, record.result.is_null() ? std::string() : json_text(record.result),
            record.wall_s, record.cpu_s, static_cast<std::int64_t>(record.peak_rss_bytes), record.finished,
            record.attempt);
    if (!point.config_hash.empty()) {
      execute(database_, "INSERT OR IGNORE INTO configs VALUES (?, ?)", point.config_hash, point.config);
    }
    execute(database_, "DELETE FROM metrics WHERE key = ?", record.key);
    SQLite::Statement metric(database_, "INSERT INTO metrics VALUES (?, ?, ?)");
    for (const auto& [name, value] : metrics) {
      SQLite::bind(metric, record.key, name, value);
      metric.exec();
      metric.reset();
    }
    insert(objectives);
    transaction.commit();
  });
}

void Store::add(const std::vector<ObjectiveValue>& objectives) {
  guarded(path_, "write", [&] {
    SQLite::Transaction transaction(database_, kAtOnce);
    insert(objectives);
    transaction.commit();
  });
}

void Store::insert(const std::vector<ObjectiveValue>& objectives) {
  SQLite::Statement row(database_, "INSERT OR REPLACE INTO objective_values VALUES (?, ?, ?, ?)");
  for (const ObjectiveValue& objective : objectives) {
    SQLite::bind(row, objective.sweep, static_cast<std::int64_t>(objective.position), objective.objective,
                 objective.value);
    row.exec();
    row.reset();
  }
}

std::vector<std::string> Store::sweeps() {
  return guarded(path_, "read", [&] {
    std::vector<std::string> names;
    SQLite::Statement query(database_, "SELECT name FROM sweeps ORDER BY name");
    while (query.executeStep()) names.push_back(query.getColumn(0).getString());
    return names;
  });
}

}  // namespace kernbench::sweep
