#include <SQLiteCpp/Statement.h>
#include <fmt/format.h>

#include <set>

#include "sc_main/explore/sweep/store.h"
#include "sc_main/explore/sweep/stored_json.h"
#include "sc_main/run/exit_code.h"
#include "tlm/config/nearest.h"
#include "waves/output_file.h"

namespace kernbench::sweep {
namespace {
using Json = nlohmann::ordered_json;

/// RFC 4180.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? std::string("\"\"") : std::string(1, c);
  return field + "\"";
}

Json text_or_null(const SQLite::Column& column) { return column.isNull() ? Json() : Json(column.getString()); }

Json numbers(SQLite::Database& database, const std::string& query, const std::string& first, std::int64_t second = -1) {
  Json json = Json::object();
  SQLite::Statement statement(database, query);
  statement.bind(1, first);
  if (second >= 0) statement.bind(2, second);
  while (statement.executeStep()) json[statement.getColumn(0).getString()] = statement.getColumn(1).getDouble();
  return json;
}

std::string text_of(const Json& value) {
  return value.is_null() ? std::string() : value.is_string() ? value.get<std::string>() : json_text(value);
}

std::string csv_of(const Json& all) {
  std::vector<std::string> axes, objectives;
  for (const Json& axis : all["axes"]) axes.push_back(axis.at("name"));
  for (const Json& objective : all["objectives"]) objectives.push_back(objective.at("name"));
  std::set<std::string> metrics;
  for (const Json& point : all["points"]) {
    for (const auto& [name, value] : point["metrics"].items()) metrics.insert(name);
  }
  // An axis or objective that is a metric, too, stands once.
  for (const std::string& axis : axes) metrics.erase(axis);
  for (const std::string& objective : objectives) metrics.erase(objective);
  std::string text = "position,status";
  for (const auto& names : {axes, objectives, std::vector<std::string>(metrics.begin(), metrics.end())}) {
    for (const std::string& name : names) text += "," + csv_field(name);
  }
  text += ",exit_code,error,key,command\n";
  for (const Json& point : all["points"]) {
    text += fmt::format("{},{}", point["position"].get<std::int64_t>(), point["status"].get<std::string>());
    for (const std::string& axis : axes) text += "," + csv_field(point["coordinates"].at(axis).at("label"));
    for (const std::string& name : objectives) text += "," + text_of(point["objectives"].value(name, Json()));
    for (const std::string& name : metrics) text += "," + text_of(point["metrics"].value(name, Json()));
    text += fmt::format(",{},{},{},{}\n", point["exit_code"].get<int>(), csv_field(text_of(point["error"])),
                        point["key"].get<std::string>(), csv_field(point["command"]));
  }
  return text;
}
}  // namespace

Json Store::json(const std::string& sweep) {
  const std::vector<std::string> names = sweeps();
  if (names.empty()) throw UsageError(fmt::format("'{}' holds no sweep", path_), "run 'kernbench sweep FILE' first");
  if (sweep.empty() && names.size() > 1)
    throw UsageError(fmt::format("'{}' holds {} sweeps", path_, names.size()),
                     "choose one with --name: " + join(names));
  const std::string name = sweep.empty() ? names.front() : sweep;
  try {
    SQLite::Statement head(
        database_, "SELECT kind, method, seed, version, build, base, axes, objectives FROM sweeps WHERE name = ?");
    head.bind(1, name);
    if (!head.executeStep())
      throw UsageError(fmt::format("'{}' holds no sweep {}", path_, quote(name)), suggest(name, names, "sweeps"));
    const auto sweep_json = [&](int column) {
      return stored(path_, "sweep " + quote(name), [&] { return parse_json(head.getColumn(column).getString()); });
    };
    Json json{{"name", name},
              {"kind", head.getColumn(0).getString()},
              {"method", head.getColumn(1).getString()},
              {"seed", head.getColumn(2).getInt64()},
              {"version", head.getColumn(3).getString()},
              {"build", head.getColumn(4).getString()},
              {"base", head.getColumn(5).getString()},
              {"axes", sweep_json(6)},
              {"objectives", sweep_json(7)},
              {"points", Json::array()},
              {"configs", Json::object()}};
    SQLite::Statement row(database_,
                          "SELECT s.position, s.key, s.coordinates, s.settings, p.status, p.exit_code, p.error, "
                          "p.command, p.config_hash, p.result, c.config FROM sweep_points s JOIN points p ON p.key = "
                          "s.key LEFT JOIN configs c ON c.hash = p.config_hash WHERE s.sweep = ? ORDER BY s.position");
    row.bind(1, name);
    while (row.executeStep()) {
      const std::string key = row.getColumn(1).getString();
      const std::int64_t position = row.getColumn(0).getInt64();
      const auto point_json = [&](int column) {
        return stored(path_, "point " + key, [&] { return parse_json(row.getColumn(column).getString()); });
      };
      Json point{{"position", position},
                 {"key", key},
                 {"status", row.getColumn(4).getString()},
                 {"exit_code", row.getColumn(5).getInt()},
                 {"error", text_or_null(row.getColumn(6))},
                 {"coordinates", point_json(2)},
                 {"settings", point_json(3)}};
      point["objectives"] =
          numbers(database_, "SELECT name, value FROM objective_values WHERE sweep = ? AND position = ? ORDER BY name",
                  name, position);
      point["metrics"] = numbers(database_, "SELECT name, value FROM metrics WHERE key = ? ORDER BY name", key);
      point["command"] = row.getColumn(7).getString();
      point["config_hash"] = text_or_null(row.getColumn(8));
      point["result"] = row.getColumn(9).isNull() ? Json() : point_json(9);
      if (!row.getColumn(8).isNull() && !row.getColumn(10).isNull())
        json["configs"][row.getColumn(8).getString()] = point_json(10);
      json["points"].push_back(std::move(point));
    }
    return json;
  } catch (const SQLite::Exception& error) {
    throw OutputError(fmt::format("cannot read '{}': {}", path_, error.what()));
  }
}

std::string Store::csv(const std::string& sweep) {
  const Json all = json(sweep);
  return stored(path_, "sweep " + quote(all["name"].get<std::string>()), [&] { return csv_of(all); });
}

}  // namespace kernbench::sweep
