#include <fmt/format.h>
#include <pwd.h>

#include <optional>
#include <thread>

#include "tests/sweep/kill_case.h"

namespace kernbench::sweep {
namespace {

bool there(const std::string& program) {
  return std::system(("command -v " + program + " > /dev/null 2>&1").c_str()) == 0;
}

/// A slurmctld and three slurmd on this machine, in a folder of their own; nothing of the system is touched.
class PrivateSlurm {
 public:
  PrivateSlurm() {
    std::string folder = (std::filesystem::temp_directory_path() / "kbslurm-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) std::abort();
    folder_ = folder;
    const int port = 20'000 + static_cast<int>(::getpid() % 2'500) * 5;
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    const std::string user = ::getpwuid(::geteuid())->pw_name;
    for (const char* part : {"state", "spool", "log"}) std::filesystem::create_directories(folder + "/" + part);
    std::ofstream(folder + "/slurm.conf") << fmt::format(
        "ClusterName=kbtest\nSlurmctldHost={0}(127.0.0.1)\nSlurmctldPort={1}\nAuthType=auth/none\nCredType=cred/none\n"
        "AuthInfo=cred_expire=5\nSlurmUser={2}\nSlurmdUser={2}\nSlurmdParameters=config_overrides\nSlurmdTimeout=6\n"
        "StateSaveLocation={3}/state\nSlurmdSpoolDir={3}/spool/%n\nSlurmctldPidFile={3}/ctld.pid\n"
        "SlurmdPidFile={3}/slurmd-%n.pid\nSlurmctldLogFile={3}/log/ctld.log\nSlurmdLogFile={3}/log/slurmd-%n.log\n"
        "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/"
        "none\nMpiDefault=none\n"
        "SwitchType=switch/none\nSchedulerType=sched/backfill\nSelectType=select/cons_tres\n"
        "SelectTypeParameters=CR_Core\nReturnToService=2\nMailProg=/bin/true\n"
        "SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1\n"
        "NodeName=n[0-2] NodeHostname={0} NodeAddr=127.0.0.1 Port=[{4}-{5}] CPUs=1 State=UNKNOWN\n"
        "PartitionName=local Nodes=n[0-2] Default=YES MaxTime=INFINITE State=UP\n",
        host, port, user, folder, port + 1, port + 3);
    ::setenv("SLURM_CONF", (folder + "/slurm.conf").c_str(), 1);
    shell("slurmctld");
    for (int node = 0; node < 3; ++node) {
      if (start_node(node) != 0 && refusal_.empty())
        refusal_ = last_line(fmt::format("{}/log/slurmd-n{}.log", folder, node));
    }
  }
  ~PrivateSlurm() {
    shell("scancel --user=$(id -un)");
    for (const char* file : {"slurmd-n0.pid", "slurmd-n1.pid", "slurmd-n2.pid", "ctld.pid"})
      shell("kill $(cat " + folder_ + "/" + file + ")");
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  PrivateSlurm(const PrivateSlurm&) = delete;
  PrivateSlurm& operator=(const PrivateSlurm&) = delete;

  /// Why slurmd does not start on this machine (it wants cgroups, for one); empty: it did.
  const std::string& refusal() const { return refusal_; }
  bool ready() const {
    for (int i = 0; i < 150; ++i) {
      if (shell("test \"$(sinfo -h -o '%T %D')\" = 'idle 3'") == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    return false;
  }
  int start_node(int node) const {
    return shell(fmt::format("mkdir -p {0}/spool/n{1}; slurmd -N n{1}", folder_, node));
  }
  /// The node's daemon and what runs under it vanish, as when its power fails.
  void lose_node(int node) const {
    shell(fmt::format("kill -9 $(cat {0}/slurmd-n{1}.pid)", folder_, node));
    const std::string name = fmt::format("SLURMD_NODENAME=n{}", node), ours = "SLURM_CONF=" + folder_ + "/slurm.conf";
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "environ", std::ios::binary);
      const std::string environment(std::istreambuf_iterator<char>(file), {});
      if (environment.find(name + '\0') == std::string::npos || environment.find(ours + '\0') == std::string::npos)
        continue;
      ::kill(static_cast<pid_t>(std::stoi(entry.path().filename().string())), SIGKILL);
    }
    shell(fmt::format("scontrol update NodeName=n{} State=DOWN Reason=lost", node));
  }

 private:
  static int shell(const std::string& command) {
    return std::system(("{ " + command + "; } > /dev/null 2>&1").c_str());
  }
  static std::string last_line(const std::string& path) {
    std::ifstream file(path);
    std::string line, last = "it left no log";
    while (std::getline(file, line)) last = line;
    return last;
  }
  std::string folder_, refusal_;
};

class ClusterSweep : public ::testing::Test {
 protected:
  void prepare(int points, int ms) {
    std::ofstream(tool_.file("s.yaml")) << plain_sweep(points, ms);
    ASSERT_EQ(tool_({"sweep", "s.yaml", "--store", "local.sqlite"}).code, 0);
  }
  /// Points that the store has so far.
  int rows() const {
    try {
      return count_of(tool_.file("s.sqlite"), "SELECT count(*) FROM points");
    } catch (const SQLite::Exception&) {
      return 0;
    }
  }
  std::string expected() const { return content_of(tool_.file("local.sqlite")); }
  Tool tool_;
};

class SlurmSweep : public ClusterSweep {
 protected:
  void SetUp() override {
    if (!there("slurmctld") || !there("slurmd"))
      GTEST_SKIP() << "NOT TESTED: slurmctld and slurmd (package slurm-wlm) are missing";
    slurm_.emplace();
    if (!slurm_->refusal().empty()) GTEST_SKIP() << "NOT TESTED: slurmd does not start here: " << slurm_->refusal();
    ASSERT_TRUE(slurm_->ready());
  }
  std::optional<PrivateSlurm> slurm_;
};

TEST_F(SlurmSweep, GivesTheRowsOfALocalOne) {
  prepare(30, 5);
  const Outcome outcome = tool_({"sweep", "s.yaml", "--executor", "slurm", "--tasks", "4"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(content_of(tool_.file("s.sqlite")), expected());
  EXPECT_FALSE(std::filesystem::exists(tool_.file("s.sqlite.slurm")));
}

TEST_F(SlurmSweep, LosesNothingAndDoublesNothingWhenANodeIsLost) {
  prepare(60, 100);
  const pid_t process =
      start_tool(tool_.folder().path().string(), {"sweep", "s.yaml", "--executor", "slurm", "--tasks", "6"});
  // In the middle: some points are there, others are not.
  for (int i = 0; i < 300 && rows() < 5; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const int before = rows();
  EXPECT_GE(before, 5);
  EXPECT_LT(before, 60);
  slurm_->lose_node(1);
  int status = 0;
  ::waitpid(process, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(count_of(tool_.file("s.sqlite"), "SELECT count(*) FROM points"), 60);
  EXPECT_EQ(content_of(tool_.file("s.sqlite")), expected());
}

TEST_F(SlurmSweep, GoesOnWhenTheSweepItselfWasKilled) {
  prepare(40, 50);
  const pid_t process =
      start_tool(tool_.folder().path().string(), {"sweep", "s.yaml", "--executor", "slurm", "--tasks", "4"});
  for (int i = 0; i < 300 && rows() < 3; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_GE(rows(), 3);
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  const Outcome outcome = tool_({"sweep", "s.yaml", "--executor", "slurm", "--tasks", "4"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(content_of(tool_.file("s.sqlite")), expected());
}

/// Searches through an executor and on this machine alone, which is to come to the same.
void compare_searches(const Tool& tool, std::vector<std::string> through) {
  std::ofstream(tool.file("s.yaml")) << plain_sweep(100) << "  - {name: rate_gbps, goal: maximize}\n";
  const auto search = [&tool](const std::string& store, const std::vector<std::string>& more) {
    std::vector<std::string> words{"search", "s.yaml", "--points", "24", "--population", "8"};
    words.insert(words.end(), {"--store", store, "--json", store + ".json"});
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = tool(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read(tool.file(store + ".json"));
  };
  const std::string alone = search("alone.sqlite", {}), found = search("through.sqlite", through);
  EXPECT_NE(alone, "");
  EXPECT_EQ(found, alone);
  EXPECT_EQ(content_of(tool.file("through.sqlite")), content_of(tool.file("alone.sqlite")));
}

TEST_F(SlurmSweep, TakesASearchTheWayOfALocalOne) { compare_searches(tool_, {"--executor", "slurm", "--tasks", "3"}); }

TEST_F(ClusterSweep, ThroughParallelASearchTakesTheWayOfALocalOne) {
  if (!there("parallel")) GTEST_SKIP() << "NOT TESTED: GNU parallel (package parallel) is missing";
  compare_searches(tool_, {"--executor", "parallel"});
}

TEST_F(ClusterSweep, AWorkerRefusesThePlanOfAnotherBuild) {
  std::ofstream(tool_.file("plan.json")) << R"({"version": "0.1.0", "build": "another", "points": [], "configs": {}})";
  const Outcome outcome = tool_({"sweep", "--worker", "plan.json", "--results", "-"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "kernbench: error: this kernbench is another build than the one that made the plan\n"
            "  hint: install the same program on every machine\n");
}

TEST_F(ClusterSweep, AnExecutorWhoseProgramIsMissingIsAnErrorOfTheEnvironment) {
  std::ofstream(tool_.file("s.yaml")) << plain_sweep(1);
  const Outcome outcome =
      tool_.shell(std::string("PATH=/nowhere '") + KERNBENCH_BINARY + "' sweep s.yaml --executor parallel");
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(outcome.err, "kernbench: error: cannot run 'parallel': No such file or directory\n");
}

TEST_F(ClusterSweep, ThroughParallelGivesTheRowsOfALocalOne) {
  if (!there("parallel")) GTEST_SKIP() << "NOT TESTED: GNU parallel (package parallel) is missing";
  prepare(30, 2);
  const Outcome outcome = tool_({"sweep", "s.yaml", "--executor", "parallel", "--host", ":", "--tasks", "4"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(content_of(tool_.file("s.sqlite")), expected());
}

TEST_F(ClusterSweep, FailingPointsAreTheSameEverywhere) {
  if (!there("parallel")) GTEST_SKIP() << "NOT TESTED: GNU parallel (package parallel) is missing";
  std::ofstream(tool_.file("s.yaml")) << "workload: gemm_single_pe\ntopology: minimal\noptions: {fidelity: fast}\n"
                                         "axes: {cube.hbm.channels: [1, 2, 3], m: [16, 0]}\n";
  EXPECT_EQ(tool_({"sweep", "s.yaml", "--store", "local.sqlite"}).code, 6);
  EXPECT_EQ(tool_({"sweep", "s.yaml", "--executor", "parallel"}).code, 6);
  EXPECT_EQ(content_of(tool_.file("s.sqlite")), expected());
}

}  // namespace
}  // namespace kernbench::sweep
