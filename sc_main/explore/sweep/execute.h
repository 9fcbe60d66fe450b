#pragma once
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/VariadicBind.h>

#include <string>

namespace kernbench::sweep {

/// Runs a statement that gives no rows, with these values in its places.
template <class... Values>
void execute(SQLite::Database& database, const std::string& sql, const Values&... values) {
  SQLite::Statement statement(database, sql);
  SQLite::bind(statement, values...);
  statement.exec();
}

}  // namespace kernbench::sweep
