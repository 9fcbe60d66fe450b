#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sc_main/explore/sweep/evaluator.h"
#include "sc_main/explore/sweep/progress_view.h"
#include "sc_main/run/options.h"

namespace kernbench {

/// Options that `sweep` and `search` share: where points run, and what one of them may use.
struct ExecutionOptions {
  std::string executor = "local", tool, time_limit, memory_limit;
  std::vector<std::string> hosts, sbatch;
  unsigned jobs = 0, tasks = 16;
  bool retry_failed = false;

  void add_to(po::options_description_easy_init& add);
  /// Throws UsageError on options that do not go together.
  void check() const;
  /// Limits of the command line win over those of the file. Throws UsageError.
  void limit(sweep::Limits& limits) const;
  /// `store`: path of the result store; Slurm's files lie beside it.
  std::unique_ptr<sweep::Executor> make(const std::string& store, const sweep::Limits& limits) const;
};

/// Prints points that did not end well above a progress bar, with the command that reproduces them.
std::function<void(const std::string& command, const sweep::Record&)> say_failures(sweep::ProgressView& view);

/// Where results go if nobody says: beside the sweep file.
std::string usual_store(const std::string& file);

}  // namespace kernbench
