#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "sc_main/explore/sweep/cluster_executors.h"
#include "sc_main/explore/sweep/points.h"
#include "sc_main/explore/sweep/remote_plan.h"
#include "sc_main/process/program.h"
#include "tlm/config/json_text.h"
#include "waves/output_file.h"

namespace kernbench::sweep {
namespace {
namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLook{250};  ///< at the result files
constexpr int kLooksPerQueue = 6;                ///< asking slurmctld is dearer
constexpr int kQuietLooks = 8;                   ///< files of a network file system may be seen late

/// New lines of all result files under a folder.
class ResultFiles {
 public:
  explicit ResultFiles(std::string folder) : folder_(std::move(folder)) {}
  void read(Merge& merge) {
    std::error_code ignored;
    std::vector<std::string> paths;
    for (const auto& entry : fs::recursive_directory_iterator(folder_, ignored)) {
      if (entry.path().extension() == ".jsonl") paths.push_back(entry.path().string());
    }
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) read_file(path, merge);
  }

 private:
  void read_file(const std::string& path, Merge& merge) {
    std::streamoff& from = read_[path];
    std::ifstream file(path, std::ios::binary);
    file.seekg(from);
    std::string line;
    while (std::getline(file, line)) {
      if (file.eof()) return;  // not whole yet
      from += static_cast<std::streamoff>(line.size()) + 1;
      merge.add(line);
    }
  }
  std::string folder_;
  std::map<std::string, std::streamoff> read_;
};

/// Largest number of tasks that an array may have here.
std::size_t most_tasks() {
  std::istringstream lines(process::output_of({"scontrol", "show", "config"}));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    if (line.rfind("MaxArraySize", 0) == 0 && equals != std::string::npos)
      return std::max(1UL, std::strtoul(line.c_str() + equals + 1, nullptr, 10));
  }
  return 1000;
}
}  // namespace

std::string SlurmExecutor::job_name() const {
  const std::string path = fs::absolute(options_.folder).lexically_normal().string();
  return fmt::format("kernbench-{:016x}", static_cast<std::uint64_t>(XXH3_64bits(path.data(), path.size())));
}

bool SlurmExecutor::queued() const {
  // A task that Slurm holds, as after a launch that failed, would wait for ever.
  std::istringstream reasons(process::output_of({"squeue", "-h", "-n", job_name(), "-o", "%r"}));
  for (std::string reason; std::getline(reasons, reason);) {
    std::transform(reason.begin(), reason.end(), reason.begin(), [](unsigned char c) { return std::tolower(c); });
    if (reason.find("held") == std::string::npos) return true;
  }
  return false;
}

void SlurmExecutor::cancel() const { process::run_program({"scancel", "--name=" + job_name()}); }

void SlurmExecutor::submit_round(int round, const std::vector<Task*>& missing) {
  // Unique also after a sweep that was ended: its files may still be written.
  const fs::path folder = fs::absolute(options_.folder) / fmt::format("round-{}-{}", ::getpid(), round);
  std::error_code error;
  fs::create_directories(folder / "results", error);
  if (!error) fs::create_directories(folder / "log", error);
  if (error) throw OutputError(fmt::format("cannot write '{}': {}", folder.string(), error.message()));
  const auto shards = shards_of(missing, std::min(options_.tasks, most_tasks()));
  for (std::size_t i = 0; i < shards.size(); ++i)
    write_file((folder / fmt::format("shard-{}.json", i)).string(),
               json_text(plan_of_tasks(shards[i], limits_)) + "\n");
  const std::string place = shell_quoted(folder.string());
  write_file(
      (folder / "job.sh").string(),
      fmt::format("#!/bin/sh\n"
                  "cd {} || exit 7\n"
                  "exec {} sweep --worker {}/shard-$SLURM_ARRAY_TASK_ID.json --jobs ${{SLURM_CPUS_ON_NODE:-1}} \\\n"
                  "  --results {}/results/$SLURM_ARRAY_TASK_ID.${{SLURM_RESTART_COUNT:-0}}.$(hostname).$$.jsonl\n",
                  shell_quoted(fs::current_path().string()), shell_quoted(process::own_path()), place, place));
  std::vector<std::string> words{"sbatch",
                                 "--parsable",
                                 "--requeue",
                                 "--open-mode=append",
                                 "--job-name=" + job_name(),
                                 fmt::format("--array=0-{}", shards.size() - 1),
                                 "--output=" + (folder / "log" / "%a.log").string()};
  words.insert(words.end(), options_.sbatch.begin(), options_.sbatch.end());
  words.push_back((folder / "job.sh").string());
  process::output_of(words);
}

void SlurmExecutor::run(const Next& next, const Done& done, const Tick& tick, const std::atomic<bool>& stop) {
  const std::vector<std::unique_ptr<Task>> tasks = tasks_for_workers(next);
  Merge merge(tasks, done);
  ResultFiles files(options_.folder);
  if (fs::exists(options_.folder)) {  // of a sweep that was ended
    cancel();
    files.read(merge);
  }
  for (int round = 0; round < kAttempts && !merge.complete(); ++round) {
    if (round > 0) cancel();
    submit_round(round, merge.missing());
    int quiet = 0;
    for (int look = 1; !merge.complete() && quiet < kQuietLooks; ++look) {
      if (stop.load(std::memory_order_relaxed)) {
        cancel();
        throw Interrupted();
      }
      std::this_thread::sleep_for(kLook);
      files.read(merge);
      tick(merge.open());
      if (quiet > 0 || look % kLooksPerQueue == 0) quiet = queued() ? 0 : quiet + 1;
    }
  }
  merge.give_up(fmt::format("not finished by {} job arrays; logs: {}", kAttempts, options_.folder));
  cancel();  // what Slurm may still run a second time
  std::error_code ignored;
  fs::remove_all(options_.folder, ignored);
}

}  // namespace kernbench::sweep
