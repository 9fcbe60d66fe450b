#pragma once
#include <nlohmann/json_fwd.hpp>

#include "sc_main/run/arguments.h"

namespace kernbench {
class Run;
namespace topology {
struct Resolved;
}

/// The whole tool: parses, runs, reports errors on standard error. Returns the process's exit code; throws nothing.
int run_tool(int argc, const char* const* argv);

// The commands. Each takes what follows its name and returns an exit code; errors are thrown.
int run_command(const Arguments& arguments);
int topology_command(const Arguments& arguments);
int list_command(const Arguments& arguments);
int validate_command(const Arguments& arguments);
int sweep_command(const Arguments& arguments);
int search_command(const Arguments& arguments);
int diff_command(const Arguments& arguments);
int what_if_command(const Arguments& arguments);
int report_command(const Arguments& arguments);
int tune_command(const Arguments& arguments);
int pipeline_command(const Arguments& arguments);
int bench_command(const Arguments& arguments);

/// What `run --what-if` tries on `resolved`, the machine of `run`, before that itself runs. Throws as
/// compare::what_if(), and RunEnded when it is interrupted.
nlohmann::ordered_json try_what_if(const Run& run, const topology::Resolved& resolved);

}  // namespace kernbench
