#pragma once
#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sc_main/explore/compare/run_time.h"
#include "sc_main/explore/sweep/evaluator.h"
#include "sc_main/run/arguments.h"

namespace kernbench::compare {

/// What is run again, and how.
struct WhatIf {
  Arguments arguments;              ///< what follows `run`, without outputs; names the run in every process
  nlohmann::ordered_json config;    ///< its resolved machine
  nlohmann::ordered_json recorded;  ///< its result, to be met by the run without a change; null: it is yet to run
  std::string name;                 ///< of the machine, for messages

  TimeOf measure = TimeOf::rows;
  std::vector<std::string> keys;                         ///< globs over the keys, "cube.ucie.*"; empty: all
  bool all_keys = false;                                 ///< also those of parts that change nothing as a whole
  bool pairs = false;                                    ///< of the best keys
  unsigned jobs = 0;                                     ///< 0: one per core
  std::function<void(const sweep::Progress&)> progress;  ///< may be empty
};

/// Runs it again, then with each part and each value of its machine twice as good, in processes of their own. A value
/// that makes no legal machine is noted as refused, a run that fails as failed; neither stops the others.
///
/// Keys are tried where their part as a whole changes the time. They are ranked by the time saved; equal times share a
/// rank. A clock that paces its block stands behind a value of that block that saves nine tenths of what it saves.
/// Returns the block `what_if` of sc_main/results.schema.json. Throws sweep::Interrupted; what the run itself throws if
/// it fails without a change.
nlohmann::ordered_json what_if(const WhatIf& run, const std::atomic<bool>& stop);

/// Runs that failed: their number decides the exit code.
std::size_t failures(const nlohmann::ordered_json& what_if);
/// The table for a terminal.
std::string text_of(const nlohmann::ordered_json& what_if);

}  // namespace kernbench::compare
