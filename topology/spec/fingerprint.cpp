#include "topology/spec/fingerprint.h"

#include <algorithm>

#include "tlm/config/json_text.h"
#include "topology/spec/resolve.h"

namespace kernbench::topology {
namespace {

/// Keys, wherever they stand. A pinned layout shows in the ways of packets, whatever its file is called.
bool moves_no_time(const std::string& key) {
  constexpr const char* kOthers[] = {"cube_mesh",       "gemm",   "pcie",        "m_cpu", "command",
                                     "kernel_contexts", "static", "static_power"};
  return key.find("energy") != std::string::npos ||
         std::find(std::begin(kOthers), std::end(kOthers), key) != std::end(kOthers);
}

nlohmann::ordered_json without(const nlohmann::ordered_json& config) {
  if (!config.is_structured()) return config;
  nlohmann::ordered_json rest = config.is_array() ? nlohmann::ordered_json::array() : nlohmann::ordered_json::object();
  for (const auto& [key, value] : config.items()) {
    if (config.is_object() && moves_no_time(key)) continue;
    nlohmann::ordered_json kept = without(value);
    if (kept.is_object() && kept.empty()) continue;
    if (config.is_array())
      rest.push_back(std::move(kept));
    else
      rest[key] = std::move(kept);
  }
  return rest;
}

}  // namespace

std::string fingerprint(const nlohmann::ordered_json& config) {
  return hash_of(json_text(without(config))).substr(0, 16);
}

}  // namespace kernbench::topology
