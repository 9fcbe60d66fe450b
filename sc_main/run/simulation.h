#pragma once
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/runtime.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/interrupt.h"
#include "sc_main/run/launch_table.h"
#include "sc_main/run/options.h"
#include "sc_main/run/replay_causes.h"
#include "sc_main/run/replay_events.h"
#include "sc_main/run/replay_statistics.h"
#include "tlm/observe/cause.h"
#include "topology/machine/machine.h"
#include "topology/machine/statistics.h"
#include "topology/plan/plan.h"
#include "waves/observer_hub.h"
#include "waves/op_log.h"
#include "waves/output_file.h"
#include "waves/trace_writer.h"
#include "waves/vcd_writer.h"

namespace kernbench {

/// A machine, its host and its listeners; once per process.
class Simulation {
 public:
  /// Opens the outputs (OutputError) and elaborates. `listener`: of the workload; may be null. `replays`: work may be
  /// repeated. The arguments outlive it.
  Simulation(const topology::Plan& plan, const CommonOptions& options, const Interrupt& interrupt, Observer* listener,
             bool replays);
  ~Simulation();

  Runtime& runtime();
  topology::Machine& machine();
  Ps now();

  /// What work that is not simulated adds to (ReplayOptions::records).
  std::vector<ReplayRecord*> replay_records();

  /// A temporary file of the caller's that the watchdog has to remove.
  void owns(const std::string& temporary) { temporaries_.push_back(temporary); }

  /// Runs until nothing is left. Throws SpawnError, Deadlock, RunEnded.
  void run();

  /// A rank that was being ended, since another one has failed, has swallowed that. SystemC would abort: says the cause
  /// instead, and ends the process. Returns where no rank has failed.
  static void end_by_cause();

  /// Entries of --wave-filter that no signal has matched.
  std::vector<std::string> unmatched_filters() const;
  bool trace_is_empty() const { return trace_ && trace_->empty(); }

  /// What every part did; null without --stats, --stats-in-json and --report. After the run; `whole`: it came to its
  /// end. Throws std::logic_error if what has to hold of it does not.
  nlohmann::ordered_json statistics(bool whole, const std::vector<topology::EnergyRow>& energy);

  /// What the run's time was spent on, up to now(); null without --critical-path. Throws std::logic_error if its
  /// segments do not add up to the run.
  nlohmann::ordered_json critical_path();

  /// What the launches of each kernel did, and waited for; null without --explain or --report.
  nlohmann::ordered_json explanation() const;

  /// Closes the waves and the op log, whatever became of the run. Throws OutputError.
  void finish_outputs();

 private:
  struct Model;  // the SystemC side
  std::function<void(const std::string&)> end_at_once() const;
  std::vector<std::string> temporaries() const;
  std::vector<Stretch> stretches();
  void trace_rates(const topology::RunStatistics& known, const topology::ResourceUse& use);
  static Simulation* running_;

  const CommonOptions& options_;
  const Interrupt& interrupt_;
  std::vector<std::string> temporaries_;
  std::optional<VcdWriter> vcd_;
  std::unique_ptr<OpLog> oplog_;
  std::optional<TraceWriter> trace_;
  std::optional<LaunchTable> launches_;
  ObserverHub written_;                 ///< to the op log and the trace
  std::optional<ReplayEvents> events_;  ///< in front of it
  ObserverHub hub_;
  std::unique_ptr<CauseLog> causes_;  // before the model, whose parts point into it
  const topology::Plan& plan_;
  std::unique_ptr<Model> model_;
  std::optional<OutputFile> stats_;
  std::optional<topology::MachineUsage> usage_;
  std::optional<ReplayStatistics> repeated_;
  std::optional<ReplayCauses> repeated_causes_;
};

}  // namespace kernbench
