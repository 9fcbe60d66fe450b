#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "sc_main/workloads/chakra/groups.h"
#include "sc_main/workloads/chakra/program.h"
#include "tests/support/test_folder.h"
#include "tests/workloads/chakra_writer.h"

namespace kernbench::chakra {
namespace {

/// Traces of two ranks and more in a folder of the test's own.
class ChakraProgram : public ::testing::Test {
 protected:
  std::string prefix() const { return folder_.file("t"); }
  Program make(const std::vector<TraceWriter>& ranks) {
    write_traces(prefix(), ranks);
    return make();
  }
  Program make() {
    problems_ = {};
    std::vector<RankTrace> traces = read_traces(prefix(), problems_);
    if (options_.ranks == 1) options_.ranks = static_cast<int>(traces.size());
    if (options_.dimensions.empty()) options_.dimensions = {options_.ranks};
    return make_program(std::move(traces), options_, problems_);
  }
  /// What is wrong with them, the folder left out.
  std::string wrong(const std::vector<TraceWriter>& ranks) {
    make(ranks);
    return text(problems_.str());
  }
  std::string text(std::string text) const {
    const std::string folder = folder_.path().string() + "/";
    for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder)) {
      text.erase(at, folder.size());
    }
    return text;
  }

  TestFolder folder_;
  Problems problems_;
  ProgramOptions options_;
};

TEST_F(ChakraProgram, MatchesCollectivesByTheirOrderAndTransfersByTheirEnds) {
  const Program program =
      make({TraceWriter()
                .collective(10, kAllReduce, 64)
                .compute(11, 5, {10})
                .send(12, 1, 32, {11})
                .collective(13, kAllGather, 16, {12}),
            TraceWriter().collective(3, kAllReduce, 64).receive(4, 0, 32).collective(9, kAllGather, 16, {3, 4})});
  EXPECT_EQ(problems_.str(), "");
  ASSERT_EQ(program.communications.size(), 3U);
  EXPECT_EQ(program.communications[0].op, CollectiveOp::all_reduce);
  EXPECT_EQ(program.communications[0].elements, 32);  // f16
  EXPECT_EQ(program.communications[1].op, CollectiveOp::send_recv);
  EXPECT_EQ(program.communications[1].ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(program.communications[1].nodes, (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(program.communications[2].op, CollectiveOp::all_gather);
  EXPECT_EQ(program.communication_of[0], (std::vector<std::size_t>{0, Program::kNone, 1, 2}));
  EXPECT_EQ(program.waits[1], (std::vector<std::size_t>{0, 0, 2}));
}

TEST_F(ChakraProgram, TakesEveryOperationAndCutsWhatARankPutsInIntoBlocks) {
  TraceWriter rank;
  std::uint64_t id = 0;
  for (const int type : {kAllReduce, kReduce, kAllGather, kGather, kScatter, kBroadcast, kAllToAll, kReduceScatter,
                         kReduceScatterBlock}) {
    rank.collective(++id, type, 48);
  }
  rank.add(++id, "barrier", kCollective).with("comm_type", kBarrier);
  const Program program = make({rank, rank, rank});
  EXPECT_EQ(problems_.str(), "");
  std::vector<std::pair<CollectiveOp, std::int64_t>> found;
  for (const Communication& each : program.communications) found.emplace_back(each.op, each.elements);
  using Op = CollectiveOp;
  EXPECT_THAT(found, ::testing::ElementsAre(std::pair(Op::all_reduce, 24), std::pair(Op::reduce, 24),
                                            std::pair(Op::all_gather, 24), std::pair(Op::gather, 24),
                                            std::pair(Op::scatter, 8), std::pair(Op::broadcast, 24),
                                            std::pair(Op::all_to_all, 8), std::pair(Op::reduce_scatter, 8),
                                            std::pair(Op::reduce_scatter, 8), std::pair(Op::barrier, 1)));
}

TEST_F(ChakraProgram, GroupsAreThoseOfTheFileTheMetadataOrTheInvolvedDimensions) {
  options_.ranks = 4;
  options_.dimensions = {2, 2};
  options_.groups = {{"1", {0, 1}}, {"2", {3, 2}}};
  std::vector<TraceWriter> ranks(4);
  for (int rank = 0; rank < 4; ++rank) {
    TraceWriter& trace = ranks[static_cast<std::size_t>(rank)];
    trace.add(0, "groups", kMetadata);
    trace.node().mutable_inputs()->set_values(
        R"(['[{"pg_name": "7", "ranks": [0, 2]}, {"pg_name": "8", "ranks": [1, 3]}, {"pg_name": "9", "ranks": []}]'])");
    trace.collective(1, kAllReduce, 8).with("pg_name", rank < 2 ? "1" : "2");
    trace.collective(2, kAllReduce, 8, {1}).with("pg_name", rank % 2 == 0 ? "7" : "8");
    trace.collective(3, kAllReduce, 8, {2}).with("pg_name", "9");
    trace.collective(4, kAllReduce, 8, {3}).with_flags("involved_dim", {false, true});
    trace.collective(5, kAllReduce, 8, {4}).with_flags("involved_dim", {true, true, true});
  }
  const Program program = make(ranks);
  EXPECT_EQ(problems_.str(), "");
  std::vector<std::vector<int>> found;
  for (const Communication& each : program.communications) found.push_back(each.ranks);
  const std::vector<int> all{0, 1, 2, 3};
  EXPECT_THAT(found, ::testing::UnorderedElementsAre(std::vector<int>{0, 1}, std::vector<int>{3, 2},
                                                     std::vector<int>{0, 2}, std::vector<int>{1, 3}, all,
                                                     std::vector<int>{0, 2}, std::vector<int>{1, 3}, all));
}

// Each begins with what the first rank has and the second lacks.
TEST_F(ChakraProgram, RefusesCollectivesThatDifferAndSaysWhere) {
  EXPECT_EQ(wrong({TraceWriter().collective(1, kAllReduce, 64), TraceWriter().collective(4, kAllGather, 64)}),
            "t.1.et: error: node 4 'collective' is all_gather of 64 B, and node 1 'collective' of " +
                folder_.file("t.0.et").substr(folder_.path().string().size() + 1) +
                " is all_reduce of 64 B\n  hint: both are collective 0 of the group of all ranks");
  EXPECT_EQ(wrong({TraceWriter().collective(1, kAllReduce, 64), TraceWriter().collective(1, kAllReduce, 32)}),
            "t.1.et: error: node 1 'collective' is all_reduce of 32 B, and node 1 'collective' of t.0.et is all_reduce "
            "of 64 B\n  hint: both are collective 0 of the group of all ranks");
  EXPECT_EQ(wrong({TraceWriter().collective(1, kAllReduce, 64).collective(2, kAllReduce, 64),
                   TraceWriter().collective(1, kAllReduce, 64)}),
            "t.0.et: error: node 2 'collective' is collective 1 of the group of all ranks, of which rank 1 has 1");
}

TEST_F(ChakraProgram, RefusesSendsWithoutReceivesAndTheOtherWayRound) {
  EXPECT_EQ(wrong({TraceWriter().send(1, 1, 64).send(2, 1, 64), TraceWriter().receive(1, 0, 64).receive(2, 0, 32)}),
            "t.1.et: error: node 2 'recv' receives 32 B, and node 2 'send' of t.0.et sends 64 B");
  EXPECT_EQ(wrong({TraceWriter().send(1, 1, 64).with("comm_tag", 3), TraceWriter().receive(5, 0, 64)}),
            "t.1.et: error: node 5 'recv' has no send on rank 0 (tag 0)\n"
            "t.0.et: error: node 1 'send' has no receive on rank 1 (tag 3)");
  EXPECT_EQ(wrong({TraceWriter().send(1, 0, 64), TraceWriter().receive(1, 2, 64)}),
            "t.0.et: error: node 1 'send' sends to rank 0\n  hint: give another rank, 0 to 1\n"
            "t.1.et: error: node 1 'recv' receives from rank 2\n  hint: give another rank, 0 to 1");
}

TEST_F(ChakraProgram, RefusesNodesThatWaitForThemselvesOrForNothing) {
  const TraceWriter right = TraceWriter().compute(1, 1);
  EXPECT_EQ(wrong({TraceWriter().compute(1, 1, {3}).compute(2, 1, {1}).compute(3, 1, {2}), right}),
            "t.0.et: error: node 1 'compute' waits for itself: 1 after 3 after 2 after 1");
  EXPECT_EQ(wrong({right, TraceWriter().compute(1, 1, {9}).compute(2, 1, {8})}),
            "t.1.et: error: node 1 'compute' depends on node 9, which there is not\n"
            "t.1.et: error: node 2 'compute' depends on node 8, which there is not");
}

// Every rank sends first and receives when that is done: nobody is ready to receive.
TEST_F(ChakraProgram, RefusesRanksThatWaitForEachOther) {
  EXPECT_EQ(
      wrong({TraceWriter().send(1, 1, 64).receive(2, 1, 64, {1}), TraceWriter().send(1, 0, 64).receive(2, 0, 64, {1})}),
      "t.0.et: error: node 1 'send' can never begin: transfer (nodes 1 of rank 0, 2 of rank 1) after transfer "
      "(nodes 1 of rank 1, 2 of rank 0) after the first\n"
      "  hint: a collective, and a send above --eager, begins when all that take part are ready");
  EXPECT_EQ(wrong({TraceWriter().send(1, 1, 64).receive(2, 1, 64), TraceWriter().send(1, 0, 64).receive(2, 0, 64)}),
            "");
}

// A send that is buffered waits for nobody, so its rank goes on to its receive; not one that is larger.
TEST_F(ChakraProgram, RanksThatAllSendFirstRunUpToTheEagerSize) {
  const auto exchange = [](std::uint64_t bytes) {
    return std::vector<TraceWriter>{TraceWriter().send(1, 1, bytes).receive(2, 1, bytes, {1}),
                                    TraceWriter().send(1, 0, bytes).receive(2, 0, bytes, {1})};
  };
  options_.eager_bytes = 64;
  EXPECT_EQ(wrong(exchange(64)), "");
  EXPECT_THAT(wrong(exchange(66)), ::testing::HasSubstr("can never begin"));
  // A receive still waits for its send.
  EXPECT_THAT(
      wrong({TraceWriter().receive(2, 1, 64).send(1, 1, 64, {2}), TraceWriter().receive(2, 0, 64).send(1, 0, 64, {2})}),
      ::testing::HasSubstr("can never begin"));
}

TEST_F(ChakraProgram, ListsAllNodesThatCannotRunInOnePass) {
  TraceWriter first;
  first.add(1, "load", kMemLoad).add(2, "odd", 42);
  first.add(3, "no size", kCollective, {1}).with("comm_type", kAllReduce);
  first.collective(4, kAllReduce, 0);
  first.collective(5, 10, 8);
  first.add(6, "nowhere", kSend).with("comm_size", 8);
  first.collective(7, kAllReduce, 8).with("involved_dim", 1);
  first.add(8, "ops", kCompute).with("num_ops", "many");
  first.compute(8, 1);
  const TraceWriter second = TraceWriter().compute(1, 1, {5});
  const std::string kinds =
      "\n  hint: what runs here: COMP_NODE, COMM_SEND_NODE, COMM_RECV_NODE, COMM_COLL_NODE, METADATA_NODE";
  EXPECT_EQ(wrong({first, second}),
            "t.0.et: error: node 1 'load' is a MEM_LOAD_NODE" + kinds + "\nt.0.et: error: node 2 'odd' has type 42" +
                kinds +
                "\nt.0.et: error: node 3 'no size' has no attribute comm_size"
                "\nt.0.et: error: node 4 'collective' has comm_size 0\n  hint: give the bytes that the rank puts in"
                "\nt.0.et: error: node 5 'collective' has comm_type 10\n  hint: give an integer from 0 to 9"
                "\nt.0.et: error: node 6 'nowhere' has no attribute comm_dst\n  hint: give the other rank: its inputs "
                "do not name it either"
                "\nt.0.et: error: node 7 'collective' has an involved_dim that is no list of booleans"
                "\nt.0.et: error: node 8 'ops' has num_ops of another type than an integer"
                "\n  hint: give an integer from 0 to 9007199254740992"
                "\nt.0.et: error: node 8 'compute': its id stands here twice"
                "\nt.1.et: error: node 1 'compute' depends on node 5, which there is not");
}

TEST_F(ChakraProgram, RefusesGroupsThatCannotBe) {
  options_.groups = {{"1", {0, 5}}, {"2", {1}}};
  const auto of = [](const char* group) { return TraceWriter().collective(1, kAllReduce, 8).with("pg_name", group); };
  EXPECT_EQ(wrong({of("1"), TraceWriter()}),
            "t.0.et: error: node 1 'collective' is of group '1', which holds rank 5\n  hint: there are ranks 0 to 1");
  EXPECT_EQ(wrong({of("2"), TraceWriter()}),
            "t.0.et: error: node 1 'collective' is of group '2', which does not hold rank 0");
  EXPECT_EQ(wrong({of("3"), TraceWriter()}),
            "t.0.et: error: node 1 'collective' is of group '3', which nobody defines\n  hint: groups: 1, 2");
  EXPECT_EQ(wrong({of("0"), of("0")}), "") << "ASTRA-sim's name for all ranks";
  EXPECT_EQ(
      wrong({TraceWriter().collective(1, kAllReduce, 8).with_flags("involved_dim", {true, false}), TraceWriter()}),
      "t.0.et: error: node 1 'collective' has an involved_dim of 2 dimensions, and the machine's SIPs have 1");
}

TEST_F(ChakraProgram, SizesAreWholeElementsAndBlocks) {
  const auto of = [](int type, int bytes) { return TraceWriter().collective(1, type, bytes); };
  EXPECT_EQ(wrong({of(kAllReduce, 7), of(kAllReduce, 7)}),
            "t.0.et: error: node 1 'collective' moves 7 B, which are no whole number of f16\n"
            "  hint: --dtype says what is moved");
  EXPECT_EQ(wrong({of(kReduceScatter, 6), of(kReduceScatter, 6)}),
            "t.0.et: error: node 1 'collective' moves 6 B, which are no whole number of f16 for each of 2 ranks\n"
            "  hint: --dtype says what is moved");
  options_.dtype = DType::i8;
  EXPECT_EQ(wrong({of(kAllReduce, 7), of(kAllReduce, 7)}), "");
}

TEST_F(ChakraProgram, RefusesATraceOfAnotherNumberOfRanks) {
  options_.ranks = 4;
  EXPECT_EQ(wrong({TraceWriter(), TraceWriter()}),
            "t.1.et: error: the trace is of 2 ranks, the machine has 4 SIPs\n  hint: try --set system.sips.count=2");
}

TEST_F(ChakraProgram, RefusesFilesThatAreNoTraces) {
  const std::string good = TraceWriter().compute(1, 1).bytes(),
                    hint = "\n  hint: a Chakra execution trace (.et, protobuf) is expected";
  const auto reading = [&](const std::string& bytes) {
    write_file(folder_.file("t.0.et"), bytes);
    make();
    return text(problems_.str());
  };
  EXPECT_EQ(reading(good), "");
  EXPECT_EQ(reading(""), "t.0.et: error: byte 0: the file is empty" + hint);
  EXPECT_EQ(reading(good.substr(0, good.size() - 3)),
            "t.0.et: error: byte 8: a message of 15 B begins, and 12 B are left" + hint);
  EXPECT_EQ(reading(good.substr(8)), "t.0.et: error: byte 0: a message of 15 B is no GlobalMetadata" + hint);
  EXPECT_EQ(reading(TraceWriter().add(1, "", kCompute).bytes().substr(8)),
            "t.0.et: error: byte 0: the first message is no GlobalMetadata" + hint);
  EXPECT_EQ(reading(good.substr(0, 8) + "\x03"
                                        "abc"),
            "t.0.et: error: byte 8: a message of 3 B is no Node" + hint);
}

TEST_F(ChakraProgram, RefusesMissingFilesByName) {
  const auto thrown = [&](const auto& f) -> std::string {
    try {
      f();
    } catch (const ConfigError& error) {
      return text(error.what());
    }
    return "nothing";
  };
  EXPECT_EQ(
      thrown([&] { make(); }),
      "t.0.et: error: there is no such file\n  hint: --workload-configuration is what the files of all ranks begin "
      "with: PREFIX.0.et, PREFIX.1.et, ...");
  write_file(folder_.file("t.2.et"), TraceWriter().bytes());
  write_file(folder_.file("t.0.et"), TraceWriter().bytes());
  EXPECT_EQ(thrown([&] { make(); }), "t.1.et: error: there is no such file, but one of rank 2");
  const std::string groups = folder_.file("groups.json");
  const auto reading = [&](const std::string& json) {
    write_file(groups, json);
    return thrown([&] { read_groups(groups); });
  };
  const std::string hint = "\n  hint: expected as in {\"1\": [0, 1], \"2\": [2, 3]}";
  EXPECT_EQ(reading("{\"1\": [0, 1]}"), "nothing");
  EXPECT_EQ(reading("[0]"), "groups.json: error: no JSON object" + hint);
  EXPECT_EQ(reading("{\"1\": 0}"), "groups.json: error: group '1' is no list of ranks" + hint);
  EXPECT_EQ(reading("{\"1\": [0.5]}"), "groups.json: error: group '1' holds '0.5'" + hint);
  EXPECT_EQ(reading("{\"1\": [4294967296, -1], \"2\": []}"),
            "groups.json: error: group '1' holds '4294967296'" + hint + "\ngroups.json: error: group '1' holds '-1'" +
                hint + "\ngroups.json: error: group '2' is no list of ranks" + hint);
  std::filesystem::create_directory(folder_.file("d.json"));
  EXPECT_EQ(thrown([&] { read_groups(folder_.file("d.json")); }), "d.json: error: is a directory");
  EXPECT_EQ(thrown([&] { read_groups(folder_.file("none.json")); }),
            "none.json: error: cannot be read: No such file or directory");
  EXPECT_EQ(reading("{\n  \"1\": [0,, 1]\n}"), "groups.json:2:11: error: not valid JSON" + hint);
  EXPECT_EQ(reading("{\"1\": [1e400]}"), "groups.json: error: not valid JSON" + hint);
  EXPECT_EQ(reading(""), "groups.json:1:1: error: not valid JSON" + hint);
}

}  // namespace
}  // namespace kernbench::chakra
