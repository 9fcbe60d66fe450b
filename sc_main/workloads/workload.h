#pragma once
#include <boost/program_options.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/runtime.h"
#include "tlm/machine/machine_map.h"
#include "tlm/machine/run_options.h"

namespace kernbench {

class Observer;

namespace topology {
struct EnergyRow;
struct Plan;
class Machine;
}  // namespace topology

/// What a workload leaves behind.
struct Report {
  nlohmann::ordered_json results =
      nlohmann::ordered_json::array();  ///< rows of the JSON's `results`; keys as in sc_main/results.schema.json
  std::string text;    ///< the table for a terminal; lines that start with # are comments, as in nccl-tests
  bool wrong = false;  ///< a check failed: exit code 1
};

/// One run as a workload sees it: a machine that is built and bound, a host that has not started yet.
class Session {
 public:
  /// What the command line says.
  struct Options {
    std::uint64_t seed = 1;                ///< --seed
    std::string ccl_file;                  ///< --ccl; empty: the built-in algorithms
    bool explain = false;                  ///< --explain
    bool only_checked = false;             ///< nothing will be simulated: Session::run does not return
    std::string topology;                  ///< preset or file, as it is to stand in results
    RunOptions run;                        ///< data, debug, recorder window
    const topology::Plan* plan = nullptr;  ///< configuration of the engines, for peak rates; edges of paths
    topology::Machine* machine = nullptr;  ///< statistics of its parts
    /// Energy since the start, `elapsed` ago; with what repeats would have taken.
    std::function<std::vector<topology::EnergyRow>(Ps elapsed)> energy;
    /// Shows lines at once: what is known before something that takes long. Null: nobody reads them.
    std::function<void(const std::string& text)> tell;
  };
  /// `simulate`: runs the kernel until nothing is left and throws what went wrong (SpawnError, deadlock, limits).
  Session(const MachineMap& map, Runtime& runtime, Options options, std::function<void()> simulate)
      : map_(map), runtime_(runtime), options_(std::move(options)), simulate_(std::move(simulate)) {}

  const MachineMap& map() const { return map_; }       ///< of the machine
  Runtime& runtime() { return runtime_; }              ///< the host
  const Options& options() const { return options_; }  ///< of the command line

  /// Runs `fn(context)` on `ranks` ranks, to the end of the simulation. Once per process.
  void run(int ranks, std::function<void(Context&)> fn) {
    runtime_.program(std::move(fn), ranks);
    simulate_();
  }

 private:
  const MachineMap& map_;
  Runtime& runtime_;
  Options options_;
  std::function<void()> simulate_;
};

/// Whether the host makes its copies: for their data, or for the time that they take. Times are those of a run with
/// data.
inline bool makes_copies(const Session& session) {
  return session.options().run.data || session.options().run.timed_host_io;
}

/// One workload: a file, and its name in CMakeLists.txt beside it.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::string name() const = 0;     ///< after `kernbench run`
  virtual std::string help() const = 0;     ///< one line
  virtual std::string example() const = 0;  ///< a command that works when pasted
  /// Options of its own, bound to members; run() sees them after boost::program_options::notify.
  virtual void add_options(boost::program_options::options_description& options) = 0;
  /// Refuses what no machine could serve (std::invalid_argument, or Refused with all that is wrong): before any is
  /// read.
  virtual void check_options() const {}
  /// Files that its options name, beside those that every run may name; results and sweeps keep their hashes.
  virtual std::vector<std::string> files() const { return {}; }
  /// Files that it writes itself.
  virtual std::vector<std::string> outputs() const { return {}; }
  /// Hears the ops of the machine, beside the listeners of the command line; null: the workload does not listen. Asked
  /// once, before the machine is built. Lives as long as the workload.
  virtual Observer* observer() { return nullptr; }
  /// Whether launches may be repeated instead of simulated (docs/replay.md): false where the workload reads what the
  /// machine counts, or hears its ops.
  virtual bool may_replay() const { return true; }
  /// How long work has to be for few occurrences of it to be simulated, and how few.
  virtual ReplayLong long_work() const { return {}; }
  /// Checks its options (std::invalid_argument: exit code 2), runs, reports.
  virtual Report run(Session& session) = 0;
};

/// Every workload, in the order of `kernbench list`. A new instance each time.
using WorkloadFactory = std::unique_ptr<Workload> (*)();
const std::vector<WorkloadFactory>& workloads();
/// Nothing if there is none of that name.
std::unique_ptr<Workload> find_workload(const std::string& name);

}  // namespace kernbench
