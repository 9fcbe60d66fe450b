#pragma once
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/VariadicBind.h>
#include <fmt/format.h>

#include <string>

#include "tlm/config/json_text.h"
#include "waves/output_file.h"

namespace kernbench::sweep {

/// `read` of what a store holds as JSON. Throws OutputError that names the store and whose it is where that is no JSON
/// or has not the shape that is written: a store is a file that anybody may have changed.
template <class F>
auto stored(const std::string& store, const std::string& whose, const F& read) {
  try {
    return read();
  } catch (const JsonError& error) {
    throw OutputError(fmt::format("cannot read '{}': what it has of {} {}", store, whose, error.what()));
  } catch (const nlohmann::ordered_json::exception&) {
    throw OutputError(fmt::format("cannot read '{}': what it has of {} is not what kernbench writes", store, whose));
  }
}

/// Runs a statement that gives no rows, with these values in its places.
template <class... Values>
void execute(SQLite::Database& database, const std::string& sql, const Values&... values) {
  SQLite::Statement statement(database, sql);
  SQLite::bind(statement, values...);
  statement.exec();
}

}  // namespace kernbench::sweep
