#pragma once
#include <string>

#include "sc_main/explore/sweep/store.h"
#include "sc_main/process/pool.h"

namespace kernbench::sweep {

/// The record of a point whose process ended so; `limits` for the texts.
Record record_of(const std::string& key, const process::Ending& ending, const process::Limits& limits);
/// The record of a point that is not run.
Record refused_record(const std::string& key, int exit_code, const std::string& error);

}  // namespace kernbench::sweep
