#pragma once
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <string>

namespace kernbench::sweep {

/// All rows of a store as text, without what differs from run to run: wall time, CPU time, memory, date, attempts.
inline std::string content_of(const std::string& path) {
  SQLite::Database database(path, SQLite::OPEN_READONLY);
  std::string text;
  for (const char* query : {"SELECT key, status, exit_code, error, version, build, workload, command, config_hash, "
                            "result FROM points ORDER "
                            "BY key",
                            "SELECT * FROM configs ORDER BY hash", "SELECT * FROM metrics ORDER BY key, name",
                            "SELECT * FROM sweeps ORDER BY name", "SELECT * FROM sweep_points ORDER BY sweep, position",
                            "SELECT * FROM objective_values ORDER BY sweep, position, name"}) {
    SQLite::Statement statement(database, query);
    while (statement.executeStep()) {
      for (int i = 0; i < statement.getColumnCount(); ++i) text += statement.getColumn(i).getString() + "|";
      text += "\n";
    }
    text += "--\n";
  }
  return text;
}

/// A figure of a store.
inline int count_of(const std::string& path, const std::string& query) {
  SQLite::Database database(path, SQLite::OPEN_READONLY);
  return database.execAndGet(query).getInt();
}

}  // namespace kernbench::sweep
