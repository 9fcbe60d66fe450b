#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "sc_main/explore/sweep/cluster_executors.h"
#include "sc_main/explore/sweep/remote_plan.h"
#include "sc_main/process/program.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"
#include "waves/output_file.h"

namespace kernbench::sweep {
namespace {
constexpr int kTickMs = 100;

/// GNU parallel under way; ended with the object.
class Parallel {
 public:
  Parallel(const std::vector<std::string>& words, const std::string& input) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw OutputError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    out_ = ends[0];
    const int in = ::memfd_create("plans", MFD_CLOEXEC);
    for (std::size_t at = 0; at < input.size();) {
      const ssize_t written = ::write(in, input.data() + at, input.size() - at);
      if (written <= 0) throw OutputError(fmt::format("cannot hold the plans: {}", std::strerror(errno)));
      at += static_cast<std::size_t>(written);
    }
    ::lseek(in, 0, SEEK_SET);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    std::vector<std::string> copies = words;
    std::vector<char*> argv;
    argv.reserve(copies.size() + 1);
    for (std::string& word : copies) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int failed = ::posix_spawnp(&process_, argv[0], &actions, &attributes, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    ::close(in);
    ::close(ends[1]);
    if (failed != 0) {
      ::close(out_);
      throw OutputError(fmt::format("cannot run '{}': {}", words.front(), std::strerror(failed)));
    }
  }
  ~Parallel() {
    ::close(out_);
    if (process_ <= 0) return;
    ::kill(-process_, SIGTERM);
    wait();
  }
  Parallel(const Parallel&) = delete;
  Parallel& operator=(const Parallel&) = delete;

  /// Reads what there is; whether there may be more.
  bool read(Merge& merge) {
    pollfd news{out_, POLLIN, 0};
    if (::poll(&news, 1, kTickMs) <= 0) return true;
    char buffer[65536];
    const ssize_t got = ::read(out_, buffer, sizeof buffer);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (got <= 0) return false;
    received_.append(buffer, static_cast<std::size_t>(got));
    for (std::size_t end = received_.find('\n'); end != std::string::npos; end = received_.find('\n')) {
      merge.add(received_.substr(0, end));
      received_.erase(0, end + 1);
    }
    return true;
  }
  void wait() {
    while (process_ > 0 && ::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
    process_ = 0;
  }

 private:
  pid_t process_ = 0;
  int out_ = -1;
  std::string received_;
};
}  // namespace

void SshExecutor::run_round(const std::vector<Task*>& missing, Merge& merge, const Tick& tick,
                            const std::atomic<bool>& stop) {
  const auto shards = shards_of(missing, options_.tasks);
  std::string input;
  std::size_t longest = 0;
  for (const auto& shard : shards) {
    const std::string line = json_text(plan_of_tasks(shard, limits_)) + "\n";
    longest = std::max(longest, line.size());
    input += line;
  }
  const std::string tool = options_.tool.empty() ? process::own_path() : options_.tool;
  std::vector<std::string> words{"parallel",      "--will-cite",
                                 "--no-notice",   "--pipe",
                                 "-N1",           "--recend",
                                 "\\n",           fmt::format("--block={}", longest + 1),
                                 "--line-buffer", "-j1",
                                 "--retries",     "3",
                                 "--workdir",     std::filesystem::current_path().string()};
  for (const std::string& host : options_.hosts) words.insert(words.end(), {"--sshlogin", host});
  words.insert(words.end(), {tool, "sweep", "--worker", "-", "--results", "-"});
  if (options_.jobs > 0) words.insert(words.end(), {"--jobs", std::to_string(options_.jobs)});
  Parallel parallel(words, input);
  while (parallel.read(merge)) {
    if (stop.load(std::memory_order_relaxed)) throw Interrupted();
    tick(merge.open());
  }
  parallel.wait();
}

void SshExecutor::run(const Next& next, const Done& done, const Tick& tick, const std::atomic<bool>& stop) {
  const std::vector<std::unique_ptr<Task>> tasks = tasks_for_workers(next);
  Merge merge(tasks, done);
  for (int round = 0; round < kAttempts && !merge.complete(); ++round) run_round(merge.missing(), merge, tick, stop);
  merge.give_up(fmt::format("not finished by {} attempts on {}", kAttempts, join(options_.hosts)));
}

}  // namespace kernbench::sweep
