#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace kernbench::compare {

/// What differs between two results of `run --json`: settings, configuration by dotted key, results row by row, layers
/// and their kernels, energy, and resources where both files have statistics. Rows belong together by what they measure
/// (op, size, layer); equals among them by their order. docs/cli.md describes the object.
nlohmann::ordered_json diff(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b);

/// For a terminal. `a` and `b`: how to call the two.
std::string diff_text(const nlohmann::ordered_json& diff, const std::string& a, const std::string& b);

}  // namespace kernbench::compare
