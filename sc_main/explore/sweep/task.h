#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sc_main/explore/sweep/points.h"
#include "sc_main/explore/sweep/store.h"
#include "sc_main/run/run.h"
#include "tlm/config/refusals.h"

namespace kernbench::sweep {

/// Everything that it takes to run a point, here or elsewhere.
struct Task {
  PointIdentity identity;
  Arguments arguments;  ///< what follows `run`, but for the machine
  std::unique_ptr<Run> run;
  std::string inputs;  ///< inputs_of the run
  std::unique_ptr<topology::Resolved> resolved;
  std::string refusal;            ///< the point cannot even start: bad values; empty: it can
  std::vector<Refusal> refusals;  ///< the same, one by one
  int refusal_code = 0;
  int attempt = 0;

  void refuse();  ///< for what is being caught
};

/// Hash over the contents of all files that a run reads besides its machine.
std::string inputs_of(const Run& run);

/// Resolves a point's machine and names the point: the key is a hash over the program, the workload, the options that
/// decide the result, the resolved machine, and the contents of the files that are named.
std::unique_ptr<Task> make_task(const SweepFile& file, const PointMaker& maker, const Point& point);

/// Runs a task in this process and says how it ended, for Record: {"exit_code", "error", "refusals", "result"}. Once
/// per process.
std::string run_task(Task& task);
/// The same up to the simulation, which is left out: says whether the task would be refused.
std::string check_task(Task& task);

/// Does `work`, which may set "result" and returns whether the workload found wrong data, and says how it ended.
std::string answer_of(const std::function<bool(nlohmann::ordered_json& answer)>& work);

}  // namespace kernbench::sweep
