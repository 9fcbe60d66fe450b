#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace kernbench {

/// Where `json` departs from sc_main/results.schema.json; empty if nowhere.
std::string schema_errors(const nlohmann::ordered_json& json);

}  // namespace kernbench
