#pragma once
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/replay_options.h"
#include "sc_main/run/arguments.h"
#include "sc_main/run/exit_code.h"
#include "tlm/base/time.h"
#include "tlm/machine/fidelity.h"
#include "tlm/machine/machine_map.h"
#include "topology/machine/energy.h"

namespace kernbench {

/// What the host spent on a run.
class HostClock {
 public:
  HostClock();
  nlohmann::ordered_json json() const;  ///< wall_s, cpu_s, peak_rss_bytes, start

 private:
  std::time_t start_;
  double begin_s_;
};

/// Everything that `run --json` writes but the host block; sc_main/results.schema.json describes it.
struct RunResult {
  Arguments command;              ///< reproduces the run together with `config`
  nlohmann::ordered_json config;  ///< the resolved machine
  std::string config_hash;
  nlohmann::ordered_json ccl;                                       ///< text of --ccl FILE; null without
  nlohmann::ordered_json files = nlohmann::ordered_json::object();  ///< hashes of those that are named only
  nlohmann::ordered_json tuned;  ///< times of collectives that ship for this machine, as below `tuned:`; null: none
  std::uint64_t seed = 0;
  std::string workload;
  Fidelity fidelity;
  bool data = true;
  const MachineMap* map = nullptr;
  Ps sim_time = 0;
  std::vector<topology::EnergyRow> energy;
  std::optional<ReplayReport> replay;  ///< nothing: all was simulated
  nlohmann::ordered_json results;
  nlohmann::ordered_json critical_path;  ///< docs/critical_path.md; null: not asked for
  nlohmann::ordered_json explanation;    ///< docs/look.md, "Explain"; null: not asked for
  nlohmann::ordered_json statistics;     ///< docs/statistics.md; null: not asked for
  nlohmann::ordered_json what_if;        ///< of --what-if; null without
};
/// As `run --json` writes it.
nlohmann::ordered_json to_json(const RunResult& result, const HostClock& host);
/// The same without configuration, command and host: as a store of sweeps keeps it.
nlohmann::ordered_json point_json(const RunResult& result);

/// A result file that `run --from` reads.
struct EarlierRun {
  Arguments command;  ///< from its workload on
  nlohmann::ordered_json config;
  nlohmann::ordered_json ccl, tuned;  ///< text, or null
  nlohmann::ordered_json files;       ///< hash by name
  std::string version;                ///< that wrote it
};
/// Contents of a file; throws OutputError.
std::string read_file(const std::string& path);
/// The whole of a result file. `name`: how messages call it, such as "--from 'a.json'". Throws as read_result().
nlohmann::ordered_json read_result_json(const std::string& path, const std::string& name);
/// The same of a result that is to be looked at: it has rows. Throws UsageError also where `results` is empty, as a
/// plug-in may leave it: `run --from` takes such a file.
nlohmann::ordered_json read_rows_json(const std::string& path, const std::string& name);
/// What `use` makes of result files, which anybody may have changed. Throws UsageError where they hold what `run` does
/// not write. `names`: of the files, in quotes.
template <class Use>
auto with_results(const std::string& names, const Use& use) {
  try {
    return use();
  } catch (const nlohmann::ordered_json::exception&) {
    throw UsageError(names + " holds a value of a type that 'kernbench run' does not write, or lacks one",
                     "give a file as 'kernbench run ... --json FILE' wrote it");
  }
}
/// Throws UsageError if the file is no result of `run`, OutputError if it cannot be read.
EarlierRun read_result(const std::string& path);

}  // namespace kernbench
