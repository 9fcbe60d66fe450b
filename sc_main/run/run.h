#pragma once
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sc_main/run/arguments.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/file_identity.h"
#include "sc_main/run/interrupt.h"
#include "sc_main/run/options.h"
#include "sc_main/run/result_file.h"
#include "sc_main/workloads/plugin.h"
#include "sc_main/workloads/workload.h"
#include "topology/plan/plan.h"
#include "topology/spec/resolve.h"

namespace kernbench {

class OutputFile;
class Simulation;

/// A run from its command line to its result: `kernbench run`, and each point of a sweep.
class Run {
 public:
  /// Parses and checks what follows `run`. Throws UsageError, ConfigError, OutputError.
  explicit Run(Arguments arguments);

  /// The machine that the command line names, or the one of the earlier run. Throws ConfigError.
  topology::Resolved resolve() const;

  /// Elaborates and runs to the end; writes the outputs that the command line asks for, results to standard output.
  /// Once per process. Throws what the run ends with, RunEnded and OutputError among it.
  ExitCode execute();

  /// The same on a machine that is resolved already, with no output but what it returns.
  struct Finished {
    nlohmann::ordered_json json;  ///< point_json()
    bool wrong = false;           ///< the workload's own check failed
  };
  Finished execute_silently(const topology::Resolved& resolved);

  /// Everything of execute() up to the simulation, which is left out: builds the machine, and the workload checks its
  /// options. Once per process. Throws what the run would be refused with.
  void check(const topology::Resolved& resolved);

  /// Writes the page of --report from the result, as --json has it. Called by execute(), if --report is given.
  using Render = std::function<std::string(const nlohmann::ordered_json& result, const topology::Plan& plan)>;
  void render_with(Render render) { render_ = std::move(render); }
  /// Stands in the result of execute() and of --json.
  void attach_what_if(nlohmann::ordered_json what_if) { result_.what_if = std::move(what_if); }
  /// What decides the result, as `--from` would hold it: follows `run`.
  Arguments reproducible() const { return {result_.command.begin() + 1, result_.command.end()}; }
  const std::string& workload() const { return result_.workload; }
  const CommonOptions& common() const { return common_; }
  /// Throws UsageError if one of `outputs` is one of `inputs`, another file that the run reads, or another output.
  void refuse_overwriting(std::vector<std::string> inputs, const NamedFiles& outputs) const;
  /// What decides the result beside the command and the resolved machine: text of ccl.yaml, tuned times that ship (once
  /// the machine is planned), hashes of files, plug-ins among them.
  std::vector<std::string> inputs() const;

 private:
  /// Name by which messages call the machine.
  const std::string& machine_name() const { return earlier_ ? common_.from : machine_.topology; }
  /// Hashes the files that the run reads by name; those that are not there are refused by what reads them.
  void hash_files();
  /// Those given now have to be those of the earlier run, wherever they are.
  void compare_plugins(const Arguments& before) const;
  /// Throws UsageError if one is not what it was in the earlier run and `given` does not name it again.
  void compare_files(const Arguments& given) const;
  /// The same of a pinned layout.
  void compare_layout(const topology::SystemSpec& spec) const;
  /// `files`: are removed if the process is ended.
  Report simulate(const topology::Resolved& resolved, const topology::Plan& plan, const Interrupt& interrupt,
                  const std::vector<const OutputFile*>& files);
  bool may_replay() const;
  void say_more(Simulation& simulation) const;
  void publish(const Report& report, const topology::Plan& plan, OutputFile* json, OutputFile* page);

  HostClock host_;
  std::unique_ptr<Workload> workload_;
  std::string plugin_;  // that it came with; empty: it is the tool's
  MachineOptions machine_;
  CommonOptions common_;
  std::optional<EarlierRun> earlier_;
  RunResult result_;
  std::string races_;  // what --debug found, in words
  bool only_check_ = false;
  bool shows_table_ = false;  ///< on standard output
  Render render_;
};

/// Takes the workload's name out of the arguments: the first one, or wherever a workload is named; where none is, the
/// first word that is no option nor what may be the value of one. Empty: there is no such word.
std::string take_workload(const WorkloadCatalogue& catalogue, Arguments& arguments);
/// The tool's workloads and those of the plug-ins that the arguments name. Throws std::invalid_argument.
WorkloadCatalogue catalogue_of(const Arguments& arguments);

}  // namespace kernbench
