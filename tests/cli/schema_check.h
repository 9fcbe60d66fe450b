#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace kernbench {

/// The whole of `text`; `is_discarded()` where it is not one JSON document. Here rather than in every test: the parser
/// is slow to compile.
nlohmann::ordered_json json_of(const std::string& text);

/// Where `json` departs from a schema, a path from the root of the tree; empty if nowhere.
std::string errors_by_schema(const nlohmann::ordered_json& json, const std::string& path);
/// The same of one in sc_main.
std::string schema_errors(const nlohmann::ordered_json& json, const std::string& schema = "results.schema.json");

}  // namespace kernbench
