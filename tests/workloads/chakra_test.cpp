#include <gmock/gmock.h>

#include <fstream>

#include "tests/workloads/chakra_writer.h"
#include "tests/workloads/one_step.h"
#include "tests/workloads/tool_json.h"

namespace kernbench::chakra {
namespace {

using Json = nlohmann::ordered_json;

/// `kernbench run chakra` on four SIPs of one cube, with traces of its own.
class ChakraTool : public ::testing::Test {
 protected:
  std::vector<std::string> command(const std::vector<TraceWriter>& ranks, std::vector<std::string> more = {}) const {
    write_traces(tool_.file("t"), ranks);
    std::vector<std::string> list = command_of("t", ranks.size());
    list.insert(list.end(), more.begin(), more.end());
    return list;
  }
  std::vector<Json> rows(const std::vector<TraceWriter>& ranks, const std::string& part,
                         const std::vector<std::string>& more = {}) const {
    std::vector<Json> found;
    for (const Json& row : rows_of(tool_, command(ranks, more))) {
      if (row["part"] == part) found.push_back(row);
    }
    return found;
  }
  const Tool tool_;
};

TraceWriter every_collective() {
  TraceWriter rank;
  std::uint64_t id = 0;
  for (const int type : {kAllReduce, kReduce, kAllGather, kGather, kScatter, kBroadcast, kAllToAll, kReduceScatter}) {
    rank.collective(id + 1, type, 4096, id == 0 ? std::vector<std::uint64_t>{} : std::vector<std::uint64_t>{id});
    ++id;
  }
  rank.add(id + 1, "barrier", kCollective, {id}).with("comm_type", kBarrier);
  return rank;
}

TEST_F(ChakraTool, RunsEveryCollectiveAndChecksEveryElement) {
  const auto found = rows(std::vector<TraceWriter>(4, every_collective()), "communication");
  ASSERT_EQ(found.size(), 9U);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i]["check"], "ok") << found[i];
    EXPECT_GT(found[i]["time_ns"].get<double>(), 0) << found[i];
    if (i > 0) {
      EXPECT_GE(found[i]["begin_ns"], found[i - 1]["end_ns"]) << "each waits for the one before";
    }
  }
}

TEST_F(ChakraTool, TransfersCrossWhereBothEndsAreReady) {
  std::vector<TraceWriter> ring(4);
  for (int rank = 0; rank < 4; ++rank) {
    ring[static_cast<std::size_t>(rank)].send(1, (rank + 1) % 4, 8192).receive(2, (rank + 3) % 4, 8192);
    ring[static_cast<std::size_t>(rank)].send(3, (rank + 1) % 4, 8192, {2}).receive(4, (rank + 3) % 4, 8192, {2});
  }
  const auto found = rows(ring, "communication");
  ASSERT_EQ(found.size(), 8U);
  for (const Json& row : found) EXPECT_EQ(row["check"], "ok") << row;
}

TEST_F(ChakraTool, ComputesOneNodeAtATimeBesideCommunication) {
  // 3 us and 5 us one after the other, 4 us on the host at once; the all_reduce hides behind them.
  const auto one = [] {
    TraceWriter rank;
    rank.compute(1, 3).compute(2, 5).compute(3, 4);
    rank.with_flag("is_cpu_op", true);
    return rank.collective(4, kAllReduce, 1024).compute(5, 2, {1, 2, 3, 4});
  };
  const auto ranks = rows({one(), one()}, "rank");
  ASSERT_EQ(ranks.size(), 2U);
  for (const Json& row : ranks) {
    EXPECT_EQ(row["compute_ns"], 10'000);
    EXPECT_EQ(row["time_ns"], 10'000);
    EXPECT_EQ(row["exposed_communication_ns"], 0);
  }
  const auto nodes = rows({one(), one()}, "node");
  ASSERT_EQ(nodes.size(), 10U);
  EXPECT_EQ(nodes[1]["ready_ns"], 0);
  EXPECT_EQ(nodes[1]["begin_ns"], 3'000);
  EXPECT_EQ(nodes[2]["end_ns"], 4'000);
  EXPECT_EQ(nodes[4]["begin_ns"], 8'000);
}

/// As today's converter of PyTorch traces writes them: a CPU node for the metadata, and the host's call beside a
/// collective. The call's 3 us are the host's; a second call has no time.
TEST_F(ChakraTool, TheHostsCallsAreTimeOfTheHost) {
  const auto one = [] {
    TraceWriter rank;
    rank.add(1, "[pytorch] meta", kMetadata).with_flag("is_cpu_op", true);
    rank.add(2, "nccl:all_reduce", kCollective, {1}).with_flag("is_cpu_op", true);
    rank.node().set_duration_micros(3);
    rank.add(3, "record_param_comms", kSend, {2}).with_flag("is_cpu_op", true);
    return rank.collective(4, kAllReduce, 1024, {3});
  };
  const auto nodes = rows({one(), one()}, "node");
  ASSERT_EQ(nodes.size(), 8U);
  EXPECT_EQ(nodes[1]["end_ns"], 3'000);
  EXPECT_EQ(nodes[2]["end_ns"], 3'000);
  EXPECT_EQ(nodes[3]["ready_ns"], 3'000);
  const Outcome outcome = tool_(command({one(), one()}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("# 2 nodes had no time\n"), std::string::npos) << outcome.out;
}

/// Rank 0 sends to the rank opposite, with which no link joins it; then all reduce.
TEST_F(ChakraTool, TransfersNeedNoNeighboursWhateverTheAlgorithm) {
  const std::vector<std::string> torus{"--set", "system.sips.topology=torus_2d"};
  const std::vector<std::string> mesh{"--set", "system.sips.topology=mesh_2d_no_wrap"};
  const std::vector<std::string> square{"--set", "system.sips.w=2", "--set", "system.sips.h=2"};
  struct Run {
    const char* algorithm;
    std::size_t opposite;
    std::vector<std::string> machine;
  };
  for (const Run& run : {Run{"ring", 2, {}}, Run{"one_tree", 2, {}}, Run{"torus_2d", 3, torus}, Run{"mesh_2d", 3, mesh},
                         Run{"ring_allreduce", 2, {}}, Run{"lrab_hierarchical_allreduce", 2, {}}}) {
    std::vector<TraceWriter> ranks(4);
    ranks[0].send(1, static_cast<int>(run.opposite), 8192).collective(2, kAllReduce, 4096, {1});
    ranks[run.opposite].receive(1, 0, 8192).collective(2, kAllReduce, 4096, {1});
    for (std::size_t other = 1; other < 4; ++other) {
      if (other != run.opposite) ranks[other].collective(2, kAllReduce, 4096);
    }
    std::vector<std::string> options{"--algorithm", run.algorithm};
    options.insert(options.end(), run.machine.begin(), run.machine.end());
    if (!run.machine.empty()) options.insert(options.end(), square.begin(), square.end());
    const auto found = rows(ranks, "communication", options);
    ASSERT_EQ(found.size(), 2U) << run.algorithm;
    for (const Json& row : found) EXPECT_EQ(row["check"], "ok") << run.algorithm << row;
  }
}

/// Ranks may add in different orders: their sums are exact.
TEST_F(ChakraTool, SumsInWhateverOrderAreRight) {
  std::ofstream(tool_.file("one_step.xml")) << one_step_all_reduce(4);
  std::vector<TraceWriter> ranks(4);
  for (TraceWriter& rank : ranks) rank.collective(1, kAllReduce, 4096);
  for (const char* dtype : {"f16", "f32", "f64"}) {
    const auto found = rows(ranks, "communication", {"--algorithm", "one_step.xml", "--dtype", dtype});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0]["check"], "ok") << dtype << found[0];
  }
}

/// Both send, and then receive, the second after 50 us of computing.
TEST_F(ChakraTool, RanksThatAllSendFirstExchangeUpToTheEagerSize) {
  const std::vector<TraceWriter> ranks{TraceWriter().send(1, 1, 8192).receive(2, 1, 8192, {1}),
                                       TraceWriter().send(1, 0, 8192).compute(2, 50, {1}).receive(3, 0, 8192, {2})};
  for (const Json& row : rows(ranks, "communication")) EXPECT_EQ(row["check"], "ok") << row;
  const auto nodes = rows(ranks, "node");
  ASSERT_EQ(nodes.size(), 5U);
  EXPECT_LT(nodes[0]["end_ns"], 50'000) << "its receiver computes still";
  EXPECT_EQ(nodes[4]["begin_ns"], nodes[3]["end_ns"]);
  EXPECT_EQ(nodes[4]["time_ns"], 0) << "what it waits for has come long ago";
  EXPECT_EQ(tool_(command(ranks, {"--eager", "8K"})).code, 0);
  const Outcome refused = tool_(command(ranks, {"--eager", "8190"}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("can never begin"), std::string::npos) << refused.err;
  const Outcome never = tool_(command(ranks, {"--eager", "0"}));
  EXPECT_EQ(never.code, 2);
  EXPECT_NE(never.err.find("can never begin"), std::string::npos) << never.err;
}

TEST_F(ChakraTool, RooflineTakesTheLongerOfComputingAndMoving) {
  TraceWriter rank;
  rank.add(1, "moves", kCompute).with("num_ops", 1).with("tensor_size", 1 << 20);
  rank.add(2, "computes", kCompute, {1}).with("num_ops", 1LL << 32).with("tensor_size", 1);
  rank.node().set_duration_micros(77);
  const auto trace = rows({rank, rank}, "trace");
  const auto modelled = rows({rank, rank}, "node"), recorded = rows({rank, rank}, "node", {"--compute", "recorded"});
  EXPECT_EQ(recorded[0]["time_ns"], 0);
  EXPECT_EQ(recorded[1]["time_ns"], 77'000);
  // Twice the num_ops take twice as long; so do twice the bytes.
  TraceWriter twice;
  twice.add(1, "moves", kCompute).with("num_ops", 1).with("tensor_size", 2 << 20);
  twice.add(2, "computes", kCompute, {1}).with("num_ops", 1LL << 33).with("tensor_size", 1);
  const auto longer = rows({twice, twice}, "node");
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_GT(modelled[i]["time_ns"].get<double>(), 1);
    EXPECT_NEAR(longer[i]["time_ns"].get<double>(), 2 * modelled[i]["time_ns"].get<double>(), 0.002);
  }
  EXPECT_EQ(trace[0]["nodes_without_time"], 0);
}

TEST_F(ChakraTool, GroupsRunBesideEachOtherAndOverlap) {
  std::ofstream(tool_.file("groups.json")) << R"({"1": [0, 1], "2": [2, 3], "3": [1, 2]})";
  std::vector<TraceWriter> ranks(4);
  for (int rank = 0; rank < 4; ++rank) {
    TraceWriter& trace = ranks[static_cast<std::size_t>(rank)];
    trace.collective(1, kAllReduce, 2048).with("pg_name", rank < 2 ? "1" : "2");
    if (rank == 1 || rank == 2) trace.collective(2, kAllGather, 2048).with("pg_name", "3");
    trace.collective(3, kReduceScatter, 4096, {1});
  }
  const auto found = rows(ranks, "communication", {"--comm-group-configuration", "groups.json"});
  ASSERT_EQ(found.size(), 4U);
  for (const Json& row : found) EXPECT_EQ(row["check"], "ok") << row;
}

TEST_F(ChakraTool, TakesTheSameTimeWithoutDataAndFromRunToRun) {
  const std::vector<TraceWriter> ranks(2, every_collective());
  const auto with = rows(ranks, "node"), again = rows(ranks, "node"), without = rows(ranks, "node", {"--data", "off"});
  ASSERT_EQ(with.size(), 18U);
  EXPECT_EQ(with, again);
  EXPECT_EQ(with, without);
  EXPECT_EQ(rows(ranks, "trace", {"--data", "off"})[0]["check"], "skipped");
}

TEST_F(ChakraTool, TakesTheSameTimeWithoutDataWhereTheHostsCopiesTakeTime) {
  const std::vector<TraceWriter> ranks(2, every_collective());
  const auto time = [&](const std::string& data) {
    const Outcome outcome = tool_(command(ranks, {"--host-io", "timed", "--data", data, "--json", "-"}));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json_of(outcome.out)["sim_time_ps"];
  };
  EXPECT_EQ(time("off"), time("on"));
}

TEST_F(ChakraTool, BrokenTracesEndWithExitCode2AndAllThatIsWrong) {
  const Outcome outcome = tool_(command(
      {TraceWriter().collective(1, kAllReduce, 64).send(2, 1, 64), TraceWriter().collective(7, kAllGather, 64)}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(
      outcome.err,
      "t.1.et: error: node 7 'collective' is all_gather of 64 B, and node 1 'collective' of t.0.et is all_reduce of "
      "64 B\n  hint: both are collective 0 of the group of all ranks\n"
      "t.0.et: error: node 2 'send' has no receive on rank 1 (tag 0)\n");
}

/// Simulated time is a 64-bit number of picoseconds.
TEST_F(ChakraTool, ATimeThatCannotBeSimulatedIsRefused) {
  const std::uint64_t most = 1'000'000'000'000;
  EXPECT_EQ(tool_(command({TraceWriter().compute(1, most)})).code, 0);
  const Outcome outcome = tool_(command({TraceWriter().compute(1, most + 1)}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "t.0.et: error: node 1 'compute' has duration_micros 1000000000001\n"
            "  hint: give an integer from 0 to 1000000000000\n");
}

TEST_F(ChakraTool, AGroupIsGivenOnce) {
  std::ofstream(tool_.file("groups.json")) << R"({"1": [0, 1], "2": [0], "1": [1, 0]})";
  const Outcome outcome = tool_(
      command(std::vector<TraceWriter>(2, TraceWriter().compute(1, 1)), {"--comm-group-configuration", "groups.json"}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("groups.json: error: group '1' is given twice\n"));
}

/// The reader's library has words of its own for it.
TEST_F(ChakraTool, ANameThatIsNoTextIsOneErrorWithItsPlace) {
  const Outcome outcome = tool_(command({TraceWriter().add(1, "\xff", kCompute), TraceWriter().compute(1, 1)}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.rfind("t.0.et: error: byte 8: a message of ", 0), 0U) << outcome.err;
}

TEST_F(ChakraTool, RefusesOptionsThatCannotBe) {
  const std::vector<TraceWriter> ranks(2, TraceWriter().compute(1, 1));
  const auto refused = [&](const std::vector<std::string>& more) {
    const Outcome outcome = tool_(command(ranks, more));
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  EXPECT_EQ(refused({"--compute", "roof"}), "kernbench: error: --compute is 'roof'; did you mean 'roofline'?\n");
  EXPECT_EQ(refused({"--scheduling", "rounds"}),
            "kernbench: error: chakra runs with --scheduling concurrent only: in rounds no rank computes on its own\n");
  EXPECT_EQ(refused({"-w", "2"}), "kernbench: error: -w is 2; give 0 or 1\n");
  const Outcome without = tool_({"run", "chakra", "--topology", "minimal"});
  EXPECT_EQ(without.code, 2);
  EXPECT_EQ(without.err,
            "kernbench: error: chakra needs --workload-configuration PREFIX, what the files of all ranks begin with: "
            "PREFIX.0.et, PREFIX.1.et, ...\n");
}

// The trace that ships: forward, gradients that are reduced while the next layer computes, a step.
TEST_F(ChakraTool, TheExampleRuns) {
  const auto found = rows_of(tool_, {"run", "chakra", "--workload-configuration",
                                     std::string(KERNBENCH_SOURCE_DIR) + "/docs/examples/chakra/training_step",
                                     "--topology", "minimal", "--set", "system.sips.count=4"});
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0]["check"], "ok");
  EXPECT_EQ(found[0]["ranks"], 4);
  EXPECT_GT(found[0]["communications"].get<int>(), 3);
}

}  // namespace
}  // namespace kernbench::chakra
