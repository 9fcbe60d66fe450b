#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace kernbench::compare {

/// Which time of a run counts: of what its rows measure, or of the whole simulation with set-up and warm-up.
enum class TimeOf : std::uint8_t { rows, run };

/// Throws std::invalid_argument for a name that is neither "rows" nor "run".
TimeOf parse_time_of(const std::string& name);

struct RunTime {
  double ns = 0;
  std::string of;  ///< in words: "time_ns of all_reduce"
};
/// `result`: what `run --json` writes. Of the rows the sum; a row that is the sum of others stands for them, and what
/// comes before the timed part is left out. Rows without a time: the whole run.
RunTime time_of(const nlohmann::ordered_json& result, TimeOf of);

/// The key of a row's time: time_ns, or latency_ns where a row has no time; null if it has neither.
const char* time_key(const nlohmann::ordered_json& row);
/// Whether the row comes before the timed part.
bool is_set_up(const nlohmann::ordered_json& row);
/// Whether the row is the sum of the others of its workload.
bool is_total(const nlohmann::ordered_json& row);
/// What tells a row from the others of its run: "all_reduce, 65536 B", "tp_mlp, fc1".
std::string row_name(const nlohmann::ordered_json& row);

}  // namespace kernbench::compare
