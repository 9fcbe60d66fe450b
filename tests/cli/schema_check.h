#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace kernbench {

/// Where `json` departs from a schema in sc_main; empty if nowhere.
std::string schema_errors(const nlohmann::ordered_json& json, const std::string& schema = "results.schema.json");

}  // namespace kernbench
