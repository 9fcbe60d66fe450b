#pragma once
#include <string>
#include <vector>

#include "sc_main/explore/sweep/executor.h"

namespace kernbench::sweep {

class Merge;

/// A Slurm job array whose tasks carry many points each. Plans and results are files in a folder that all nodes see.
///
/// A task that Slurm runs twice writes two result files; the merge takes each point once. What is missing when the
/// array has ended goes into another one. A sweep that was ended takes up what its array has left behind when it is run
/// again.
class SlurmExecutor final : public Executor {
 public:
  struct Options {
    std::string folder;               ///< of plans and results; made, and removed at the end
    std::size_t tasks = 16;           ///< of the array
    std::vector<std::string> sbatch;  ///< more words for sbatch
  };
  SlurmExecutor(Options options, const Limits& limits) : options_(std::move(options)), limits_(limits) {}
  void run(const Next& next, const Done& done, const Tick& tick, const std::atomic<bool>& stop) override;

 private:
  void submit_round(int round, const std::vector<Task*>& missing);
  std::string job_name() const;
  bool queued() const;
  void cancel() const;

  Options options_;
  Limits limits_;
};

/// Hosts behind ssh, through GNU parallel: one worker per host, fed and read over pipes, so that nothing need be
/// shared.
class SshExecutor final : public Executor {
 public:
  struct Options {
    std::vector<std::string> hosts;  ///< as --sshlogin of parallel takes them; ":" is this machine
    std::string tool;                ///< path of kernbench there; empty: as here
    unsigned jobs = 0;               ///< points at a time on each host; 0: one per core there
    std::size_t tasks = 16;
  };
  SshExecutor(Options options, const Limits& limits) : options_(std::move(options)), limits_(limits) {}
  void run(const Next& next, const Done& done, const Tick& tick, const std::atomic<bool>& stop) override;

 private:
  void run_round(const std::vector<Task*>& missing, Merge& merge, const Tick& tick, const std::atomic<bool>& stop);
  Options options_;
  Limits limits_;
};

}  // namespace kernbench::sweep
