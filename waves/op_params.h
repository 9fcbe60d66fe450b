#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "tlm/observe/observer.h"

namespace kernbench {

/// `params` of a record, as both forms of the op log hold them.
nlohmann::ordered_json params_json(const OpRecord& record);
/// On one line; bytes that are no UTF-8 are replaced.
std::string json_line(const nlohmann::ordered_json& json);

}  // namespace kernbench
