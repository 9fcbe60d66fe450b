#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "topology/statistics.h"

namespace kernbench {

/// The object of docs/statistics.md.
nlohmann::ordered_json to_json(const topology::RunStatistics& statistics);

/// It as a file: a line per resource.
std::string statistics_text(const nlohmann::ordered_json& statistics);

}  // namespace kernbench
