#include "ccl/select/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "ccl/run/execute.h"
#include "ccl/schedule/plan.h"
#include "tests/ccl/fake_machine.h"
#include "tests/ccl/registry_text.h"
#include "tlm/config/problems.h"
#include "tlm/kernel/operations.h"

namespace kernbench::test {
namespace {
using ::testing::HasSubstr;

/// Two entries of one algorithm that serves all_reduce over SIPs, and what was measured of them.
std::string ccl_yaml(const MachineMap& map) {
  return "algorithms:\n"
         "  one: { module: kernbench.ccl.ring_allreduce }\n"
         "  two: { module: kernbench.ccl.ring_allreduce }\n"
         "tuned:\n"
         "  - machine: " +
         ccl::machine_key(map) +
         "\n"
         "    op: all_reduce\n"
         "    scope: sip\n"
         "    bytes: [1024, 16384, 65536]\n"
         "    time_ns: {one: [100, 1600, 2000], two: [400, 800, 0]}\n";
}

ccl::Group everybody(const MachineMap& map) {
  ccl::Group group;
  group.sips.resize(map.sips);
  std::iota(group.sips.begin(), group.sips.end(), std::uint16_t{0});
  return group;
}

/// Columns of f16 over all PEs of a SIP.
LaunchMessage::TensorArg over_all_pes(const MachineMap& map, std::int64_t cols) {
  LaunchMessage::TensorArg argument;
  argument.shape = {1, cols};
  const std::int64_t pes = map.pes_per_sip();
  for (std::int64_t i = 0; i < pes; ++i) {
    const std::int64_t first = cols * i / pes, n = cols * (i + 1) / pes - first;
    const PeCoord owner{0, static_cast<std::uint16_t>(i / map.pes_per_cube),
                        static_cast<std::uint16_t>(i % map.pes_per_cube)};
    argument.shards.push_back(
        {owner, static_cast<std::uint64_t>(2 * first), static_cast<std::uint64_t>(2 * n), 1, n, 0, first});
  }
  return argument;
}

/// A call of S = `bytes` as in nccl-tests, less what does not divide by the ranks, of f16 over all PEs.
ccl::CallTensors tensors_of(const MachineMap& map, CollectiveOp op, std::uint64_t bytes) {
  const std::int64_t cols = static_cast<std::int64_t>(bytes / 2) / map.sips * map.sips;
  const OperationFacts& facts = facts_of(op);
  CollectiveCall call;
  call.op = op;
  if (op == CollectiveOp::send_recv) {
    call.to = 1;
    call.from = map.sips - 1;
  }
  return {call, over_all_pes(map, facts.longer_out() ? cols / map.sips : cols),
          over_all_pes(map, facts.longer_in() ? cols / map.sips : cols), map.sips};
}

/// A chooser of its own for a group.
class LoneChooser {
 public:
  LoneChooser(const ccl::Registry& registry, const MachineMap& map, const ccl::Group& group, Scope scope = Scope::sip,
              const Parameters& parameters = {})
      : map_(map),
        queues_(std::make_shared<ccl::GroupQueues>(map, group, rings_)),
        calls_(std::make_shared<ccl::CallBinder>(map, queues_->group(), scope)),
        chooser_(registry, calls_, queues_, parameters) {}
  std::shared_ptr<const ccl::Choice> choose(const ccl::CallTensors& tensors, std::uint64_t bytes) {
    return chooser_.choose(*calls_->bind(tensors), bytes);
  }
  std::shared_ptr<const ccl::Choice> choose(CollectiveOp op, std::uint64_t bytes) {
    return choose(tensors_of(map_, op, bytes), bytes);
  }
  const std::shared_ptr<ccl::CallBinder>& calls() const { return calls_; }
  const std::shared_ptr<ccl::GroupQueues>& queues() const { return queues_; }
  ccl::RingNumbers& rings() { return rings_; }

 private:
  const MachineMap& map_;
  ccl::RingNumbers rings_;
  const std::shared_ptr<ccl::GroupQueues> queues_;
  const std::shared_ptr<ccl::CallBinder> calls_;
  ccl::Chooser chooser_;
};

TEST(Choice, TakesTheTunedTimesAndAPowerOfTheSizeBetweenThem) {
  const MachineMap map = make_map(SipTopology::ring_1d, 4, 0, 0, 1, 1, 1);
  const ccl::Registry registry = registry_of(ccl_yaml(map));
  const ccl::Group group = everybody(map);
  LoneChooser chooser(registry, map, group);
  const auto choose = [&](std::uint64_t bytes) { return *chooser.choose(CollectiveOp::all_reduce, bytes); };
  EXPECT_EQ(choose(1024).algorithm, "one");
  EXPECT_EQ(choose(16'384).algorithm, "two");
  // `one` grows with the size, `two` with its fourth root: 100 (n / 1024) and 400 (n / 1024)^(1/4) meet at 6502 B.
  EXPECT_EQ(choose(6000).algorithm, "one");
  EXPECT_EQ(choose(7000).algorithm, "two");
  EXPECT_NEAR(choose(4096).candidates[0].ns, 400, 1e-6);
  EXPECT_TRUE(choose(4096).candidates[0].measured);
  EXPECT_EQ(choose(4096).why, "all_reduce of 4096 B: tuned to take 400 ns, next two 566 ns");
  EXPECT_EQ(choose(65'536).algorithm, "one");  // `two` did not run there
  EXPECT_EQ(choose(40'000).algorithm, "one");  // nor is anything known between
}

/// A tensor of 1 x `cols` f16 with a shard of [first, first + n) on each of the first PEs of a SIP of two cubes of two.
LaunchMessage::TensorArg tensor(std::int64_t cols, const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges) {
  LaunchMessage::TensorArg argument;
  argument.shape = {1, cols};
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto [first, n] = ranges[i];
    const PeCoord owner{0, static_cast<std::uint16_t>(i / 2), static_cast<std::uint16_t>(i % 2)};
    argument.shards.push_back({owner, offset, static_cast<std::uint64_t>(2 * n), 1, n, 0, first});
    offset += static_cast<std::uint64_t>(2 * n);
  }
  return argument;
}

TEST(Choice, MeasuredTimesAreThoseOfTensorsOverAllPes) {
  const MachineMap map = make_map(SipTopology::ring_1d, 4, 0, 0, 2, 1, 2);
  const ccl::Registry registry = registry_of(ccl_yaml(map));
  const ccl::Group group = everybody(map);
  const auto measured = [&](const LaunchMessage::TensorArg& lies) {
    LoneChooser chooser(registry, map, group);
    CollectiveCall call;
    call.op = CollectiveOp::all_reduce;
    call.dtype = DType::f16;
    const ccl::CallTensors tensors{call, lies, lies, 4};
    const auto candidates = chooser.choose(tensors, 1024)->candidates;
    return std::any_of(candidates.begin(), candidates.end(), [](const auto& c) { return c.measured; });
  };
  EXPECT_TRUE(measured(tensor(512, {{0, 128}, {128, 128}, {256, 128}, {384, 128}})));
  EXPECT_TRUE(measured(tensor(3, {{0, 1}, {1, 1}, {2, 1}, {3, 0}}))) << "fewer elements than PEs";
  EXPECT_FALSE(measured(tensor(512, {{0, 256}, {256, 256}}))) << "one cube of two";
  EXPECT_FALSE(measured(tensor(512, {{0, 256}, {256, 256}, {0, 256}, {256, 256}}))) << "a copy in each cube";
  EXPECT_FALSE(measured(tensor(512, {{0, 512}, {0, 512}, {0, 512}, {0, 512}}))) << "a copy in each PE";
}

TEST(Choice, MeasuredTimesAreThoseOfTheParametersInTheFile) {
  const MachineMap map = make_map(SipTopology::ring_1d, 4, 0, 0, 1, 1, 1);
  const ccl::Registry registry = registry_of(ccl_yaml(map));
  const ccl::Group group = everybody(map);
  const auto measured = [&](const Parameters& parameters) {
    LoneChooser chooser(registry, map, group, Scope::sip, parameters);
    return chooser.choose(CollectiveOp::all_reduce, 1024)->candidates.front().measured;
  };
  EXPECT_TRUE(measured({}));
  EXPECT_FALSE(measured({{"chunk_bytes", 64}}));
}

/// Its author says 0: it is taken where there is nothing else.
TEST(Choice, APlanWithoutATimeIsNotKnown) {
  const MachineMap map = make_map(SipTopology::ring_1d, 4, 0, 0, 1, 1, 1);
  ccl::Group group = everybody(map);
  ccl::CallBinder calls(map, group, Scope::sip);
  const auto call = calls.bind(tensors_of(map, CollectiveOp::all_reduce, 1024));
  const ccl::AlgorithmEntry ring = ccl::Registry().load("ring");
  auto untimed = std::make_shared<ccl::Algorithm>(*ring.algorithm);
  untimed->plan = [](const ccl::PlanRequest& request) {
    ccl::Plan plan = ccl::plan_grid("untimed", request);
    plan.seconds = 0;
    return plan;
  };
  for (const auto& algorithm : {ring.algorithm, std::shared_ptr<const ccl::Algorithm>(untimed)}) {
    const ccl::GroupAlgorithm runs({"one", "./one.so", algorithm, ring.parameters}, calls);
    ccl::Candidate candidate;
    ccl::plan_times()->predict(runs, {*call, 1024}, candidate);
    EXPECT_EQ(candidate.known, algorithm != untimed);
    EXPECT_NE(candidate.plan.schedule, nullptr);
  }
}

TEST(Choice, OtherMachinesAndSizesAreNotTuned) {
  const MachineMap map = make_map(SipTopology::ring_1d, 4, 0, 0, 1, 1, 1),
                   other = make_map(SipTopology::ring_1d, 5, 0, 0, 1, 1, 1);
  const ccl::Registry registry = registry_of(ccl_yaml(map));
  const ccl::Group group = everybody(other);
  LoneChooser chooser(registry, other, group);
  EXPECT_FALSE(chooser.choose(CollectiveOp::all_reduce, 4096)->candidates[0].measured);
  const ccl::Group here = everybody(map);
  LoneChooser same(registry, map, here);
  EXPECT_FALSE(same.choose(CollectiveOp::all_reduce, 1 << 20)->candidates[0].measured);
}

TEST(Choice, AFingerprintTellsMachinesApart) {
  MachineMap map = make_map(SipTopology::ring_1d, 4, 0, 0, 1, 1, 1);
  const std::string unknown = ccl::machine_key(map);
  map.fingerprint = "0123456789abcdef";
  EXPECT_EQ(ccl::machine_key(map), unknown + "_rest_0123456789abcdef");
}

TEST(Choice, QueuesThatDoNotFitTheirMemoryAreRefused) {
  MachineMap map = make_map(SipTopology::ring_1d, 8, 0, 0, 1, 1, 1);
  ccl::Group group = everybody(map);
  group.queue = {4, 4096, MemoryKind::tcm};
  map.tcm.bytes = 3 * group.queue.ring_bytes();  // two neighbours fit, seven partners do not
  const ccl::Registry registry =
      registry_of("algorithms: { far: { module: kernbench.ccl.direct }, near: { module: kernbench.ccl.ring } }\n");
  LoneChooser chooser(registry, map, group);
  const ccl::Choice choice = *chooser.choose(CollectiveOp::all_gather, 4096);
  EXPECT_EQ(choice.algorithm, "near");
  EXPECT_THAT(choice.candidates[1].unfit,
              HasSubstr("7 IPCQ rings of 4 x 4096 B need 114688 B of TCM, which has 49152 B"));
}

/// Where estimates decide: 128 lanes of 8 pairs, 1 KiB each is one round of bundles, 128 KiB are 32 of a slot.
TEST(Choice, SeveralRoundsOfBundlesAreOnlyForThoseWhoHaveNothingElse) {
  const MachineMap map = make_map(SipTopology::fully_connected, 8, 0, 0, 4, 4, 8);
  const ccl::Registry all, alone = registry_of("algorithms: {f: {module: kernbench.ccl.funnel}}\n");
  const ccl::Group group = everybody(map);
  LoneChooser chooser(all, map, group);
  const auto unfit_of = [&](std::uint64_t bytes) {
    const ccl::Choice choice = *chooser.choose(CollectiveOp::reduce_scatter, bytes);
    const auto funnel = std::find_if(choice.candidates.begin(), choice.candidates.end(),
                                     [](const ccl::Candidate& c) { return c.name == "funnel"; });
    return funnel->unfit;
  };
  EXPECT_EQ(unfit_of(128 << 10), "");
  EXPECT_EQ(unfit_of(16 << 20), "sends bundles, which is for little data");
  LoneChooser only(alone, map, group);
  EXPECT_EQ(only.choose(CollectiveOp::reduce_scatter, 16 << 20)->algorithm, "f");
}

/// Columns over the PEs of a SIP of two cubes of two, `cols` f16 in all.
LaunchMessage::TensorArg columns_over(std::int64_t cols) {
  const std::int64_t part = cols / 4;
  return tensor(cols, {{0, part}, {part, part}, {2 * part, part}, {3 * part, part}});
}

/// One rank's 8 KiB go to each of three others: 1 us on the way, 4 ops of 2 ns, 2 and 4 ns of the queue's ends, and
/// what the busiest link or port takes for its bytes at 100 GB/s: those of one message, or of all that share it.
TEST(Choice, WhatRunsPeToPeTakesItsFarthestMessageAndItsBusiestLink) {
  MachineMap map = make_map(SipTopology::fully_connected, 4, 0, 0, 2, 1, 2);
  map.sip_links.push_back({0, 1, Rate(100'000'000'000), 1'000'000});
  const ccl::Registry registry = registry_of("algorithms: { straight: { module: kernbench.ccl.point_to_point } }\n");
  const auto expected = [&](SipTopology topology, std::int64_t cols) {
    map.sip_topology = topology;
    const ccl::Group group = everybody(map);
    CollectiveCall call;
    call.op = CollectiveOp::all_gather;
    call.dtype = DType::f16;
    const ccl::CallTensors tensors{call, columns_over(cols), columns_over(4 * cols), 4};
    return LoneChooser(registry, map, group)
        .choose(tensors, static_cast<std::uint64_t>(8 * cols))
        ->candidates.front()
        .ns;
  };
  constexpr double kAlone = 1000 + 4 * 2 + 2 + 4, kMessage = 2.0 * 4096 / 100;
  EXPECT_NEAR(expected(SipTopology::fully_connected, 4096), kAlone + kMessage, 1e-6);
  EXPECT_NEAR(expected(SipTopology::fully_connected, 8192), kAlone + 2 * kMessage, 1e-6);
  EXPECT_NEAR(expected(SipTopology::switch_star, 4096), kAlone + 3 * kMessage, 1e-6) << "a port has three messages";
  // At 10 GB/s: one column of cubes takes in what two other ranks bring, since it has their regions.
  for (std::uint16_t sip = 0; sip < 4; ++sip) map.cube_links.push_back({0, kIoChiplet, Rate(10'000'000'000), 0, sip});
  EXPECT_NEAR(expected(SipTopology::fully_connected, 4096), kAlone + 2 * 10 * kMessage, 1e-6);
}

/// One bound call for choosing and for all ranks, with one plan.
TEST(Choice, WhatIsPlannedToChooseIsWhatRuns) {
  const MachineMap map = make_map(SipTopology::ring_1d, 4, 0, 0, 2, 1, 2);
  const ccl::Registry registry;
  const ccl::Group group = everybody(map);
  LoneChooser chooser(registry, map, group);
  const std::shared_ptr<ccl::CallBinder>& calls = chooser.calls();
  CollectiveCall call;
  call.op = CollectiveOp::reduce;
  ccl::CallTensors tensors{call, columns_over(4096), columns_over(4096), 4};
  const std::shared_ptr<const ccl::Choice> choice = chooser.choose(tensors, 8192);
  const std::shared_ptr<ccl::BoundCall> bound = calls->bind(tensors);
  const std::shared_ptr<const ccl::Schedule> planned = bound->plan.schedule;
  ASSERT_NE(planned, nullptr);
  EXPECT_EQ(bound->algorithm, choice->algorithm);
  const ccl::Collective collective(choice->candidates.front().algorithm, chooser.queues(), calls, bound.get());
  for (int rank = 0; rank < 4; ++rank) {
    LaunchMessage::TensorArg in = tensors.in;  // in place on the root alone
    if (rank == 0) in.base = tensors.out.base = 0x1000;
    collective.bind({call, in, tensors.out, 4, rank}, *bound);
    EXPECT_EQ(calls->bind({call, in, tensors.out, 4, rank}), bound) << rank;
    EXPECT_EQ(bound->ready->schedule, planned) << rank;
  }
}

/// Each has tensors on its own PE, and so a bound call of its own, but the same choice and plan.
TEST(Choice, RanksThatArePesPlanOnce) {
  const MachineMap map = make_map(SipTopology::ring_1d, 2, 0, 0, 2, 1, 2);
  const ccl::Registry registry;
  ccl::Group group = everybody(map);
  group.pes = ccl::rank_pes(map, 8);
  group.sips.clear();
  for (const PeCoord& pe : group.pes) group.sips.push_back(pe.sip);
  LoneChooser chooser(registry, map, group);
  const std::shared_ptr<ccl::CallBinder>& calls = chooser.calls();
  CollectiveCall call;
  call.op = CollectiveOp::reduce;
  std::shared_ptr<const ccl::Choice> choice;
  std::shared_ptr<const ccl::Schedule> planned;
  for (int rank = 0; rank < 8; ++rank) {
    LaunchMessage::TensorArg data;
    data.shape = {1, 4096};
    data.shards.push_back({group.pes[static_cast<std::size_t>(rank)], 0, 8192, 1, 4096, 0, 0});
    const ccl::CallTensors tensors{call, data, data, 8, rank};
    const std::shared_ptr<const ccl::Choice> mine = chooser.choose(tensors, 8192);
    const std::shared_ptr<ccl::BoundCall> bound = calls->bind(tensors);
    ASSERT_NE(bound->plan.schedule, nullptr) << rank;
    if (rank == 0) {
      choice = mine;
      planned = bound->plan.schedule;
    }
    EXPECT_EQ(mine, choice) << rank;
    EXPECT_EQ(bound->plan.schedule, planned) << rank;
    EXPECT_EQ(bound->tensors.in.shards[0].owner, group.pes[static_cast<std::size_t>(rank)]) << rank;
  }
}

/// Else ranks that send in turn, such as the stages of a pipeline, would get new programs for every call.
TEST(Choice, TransfersOfManyPairsOfRanksAreAllKept) {
  constexpr int kRanks = 40;
  const MachineMap map = make_map(SipTopology::ring_1d, kRanks, 0, 0, 2, 1, 2);
  const ccl::Group group = everybody(map);
  ccl::CallBinder calls(map, group, Scope::sip);
  const auto bind = [&](int from) {
    CollectiveCall call;
    call.op = CollectiveOp::send_recv;
    call.to = (from + 1) % kRanks;
    return calls.bind({call, columns_over(4096), columns_over(4096), kRanks, from});
  };
  std::vector<std::shared_ptr<ccl::BoundCall>> first;
  for (int from = 0; from < kRanks; ++from) first.push_back(bind(from));
  for (int from = 0; from < kRanks; ++from) EXPECT_EQ(bind(from), first[static_cast<std::size_t>(from)]) << from;
}

/// A schedule of neighbours sends from one rank to the next, but of a transfer only two ranks know.
TEST(Choice, WhatTwoRanksDoPassesNoOther) {
  const MachineMap map = make_map(SipTopology::ring_1d, 6, 0, 0, 1, 1, 1);
  const ccl::Registry registry;
  const ccl::Group group = everybody(map);
  LoneChooser chooser(registry, map, group);
  CollectiveCall call;
  call.op = CollectiveOp::send_recv;
  call.to = 3;
  const LaunchMessage::TensorArg all = tensor(1 << 20, {{0, 1 << 20}});
  const ccl::CallTensors tensors{call, all, all, 6};
  const ccl::Choice choice = *chooser.choose(tensors, 2 << 20);
  EXPECT_EQ(choice.algorithm, "direct");
  for (const ccl::Candidate& candidate : choice.candidates) {
    if (candidate.name == "one_tree" || candidate.name == "ring") {
      EXPECT_EQ(candidate.unfit, "passes ranks that make no call") << candidate.name;
    }
  }
}

/// A send_recv is measured from every rank to the next: that says nothing of a transfer between two ranks, nor of one
/// over a greater distance.
TEST(Choice, MeasuredTransfersAreThoseToTheNextRank) {
  const MachineMap map = make_map(SipTopology::ring_1d, 6, 0, 0, 1, 1, 1);
  ccl::TunedTable table;
  table.add({ccl::machine_key(map), CollectiveOp::send_recv, Scope::sip, {4096}, {{"ring", {10}}, {"direct", {20}}}});
  const ccl::Registry registry = registry_of(
      "algorithms: { ring: { module: kernbench.ccl.ring }, direct: { module: kernbench.ccl.direct } }\ntuned:\n" +
      table.yaml());
  const ccl::Group group = everybody(map);
  LoneChooser chooser(registry, map, group);
  const auto choose = [&](int to, int from) {
    CollectiveCall call;
    call.op = CollectiveOp::send_recv;
    call.to = to;
    call.from = from;
    const LaunchMessage::TensorArg all = tensor(2048, {{0, 2048}});
    return *chooser.choose({call, all, all, 6}, 4096);
  };
  EXPECT_EQ(choose(1, 5).algorithm, "ring");
  EXPECT_TRUE(choose(1, 5).candidates[0].measured);
  EXPECT_EQ(choose(3, -1).algorithm, "direct");
  EXPECT_FALSE(choose(2, 4).candidates[0].measured);
}

TEST(Choice, TakesWhatHasRoomBesideTheRingsThatAreThere) {
  MachineMap map = make_map(SipTopology::ring_1d, 8, 0, 0, 1, 1, 1);
  const ccl::Registry registry =
      registry_of("algorithms: { far: { module: kernbench.ccl.direct }, near: { module: kernbench.ccl.ring } }\n");
  const ccl::Group group = everybody(map);
  map.tcm.bytes = 9 * group.queue.ring_bytes();  // seven partners fit beside two rings, not beside three
  for (const std::uint16_t others : {std::uint16_t{2}, std::uint16_t{3}}) {
    LoneChooser chooser(registry, map, group);
    const ccl::RingMemory tcm = ccl::ring_memory(map, MemoryKind::tcm, {});
    for (std::uint16_t sip = 0; sip < 8; ++sip) chooser.rings().take({sip, 0, 0}, others, group.queue, tcm);
    const ccl::Choice choice = *chooser.choose(CollectiveOp::send_recv, 4096);
    const auto far = std::find_if(choice.candidates.begin(), choice.candidates.end(),
                                  [](const ccl::Candidate& c) { return c.name == "far"; });
    EXPECT_EQ(far->unfit, others == 2 ? ""
                                      : "sip0.cube0.pe0: 10 IPCQ rings of 4 x 4096 B need 163840 B of TCM, which has "
                                        "147456 B; use fewer slots or smaller ones");
    EXPECT_EQ(choice.candidates.back().name, others == 2 ? "near" : "far");
    EXPECT_EQ(chooser.rings().most_used(), others) << "asking takes nothing";
  }
}

/// What it does is what its file says: no all_reduce, though it is called by that name.
TEST(Choice, LeavesCustomSchedulesOut) {
  const MachineMap map = make_map(SipTopology::ring_1d, 4, 0, 0, 1, 1, 1);
  const ccl::Registry registry =
      registry_of("algorithms: { next: { module: " KERNBENCH_SOURCE_DIR
                  "/docs/examples/schedules/next4_custom.xml }, d: { module: kernbench.ccl.direct } }\n");
  const ccl::Group group = everybody(map);
  const ccl::Choice choice = *LoneChooser(registry, map, group).choose(CollectiveOp::all_reduce, 16 << 20);
  EXPECT_EQ(choice.algorithm, "d");
  EXPECT_EQ(choice.candidates[1].unfit, "is custom: it does what its file says, where it is named");
}

TEST(Choice, ReadsTheFilesOfAlgorithmsOnceForAllCalls) {
  const MachineMap map = make_map(SipTopology::ring_1d, 4, 0, 0, 1, 1, 1);
  const std::string file = "choice_reads_once.xml";
  std::filesystem::copy_file(KERNBENCH_SOURCE_DIR "/docs/examples/schedules/ring4_all_reduce.xml", file,
                             std::filesystem::copy_options::overwrite_existing);
  const ccl::Registry registry = registry_of("algorithms: { mine: { module: ./" + file + " } }\n");
  const ccl::Group group = everybody(map);
  LoneChooser chooser(registry, map, group);
  EXPECT_EQ(chooser.choose(CollectiveOp::all_reduce, 4096)->algorithm, "mine");
  std::filesystem::remove(file);
  EXPECT_EQ(chooser.choose(CollectiveOp::all_reduce, 8192)->algorithm, "mine");
}

TEST(Choice, SaysWhyNothingServes) {
  const MachineMap map = make_map(SipTopology::ring_1d, 4, 0, 0, 1, 1, 1);
  const ccl::Registry registry = registry_of("algorithms: { mine: { module: kernbench.ccl.ring_allreduce } }\n");
  const ccl::Group group = everybody(map);
  LoneChooser chooser(registry, map, group);
  try {
    chooser.choose(CollectiveOp::all_to_all, 4096);
    FAIL();
  } catch (const ccl::Error& error) {
    EXPECT_STREQ(error.what(),
                 "no algorithm serves all_to_all with scope sip on 4 SIPs (ring_1d):\n  mine: does not serve "
                 "all_to_all");
  }
}

TEST(Choice, EveryOperationHasABuiltInAlgorithmOnEveryTopology) {
  const MachineMap maps[] = {
      make_map(SipTopology::ring_1d, 5, 0, 0, 2, 2, 2), make_map(SipTopology::torus_2d, 6, 3, 2, 2, 2, 2),
      make_map(SipTopology::mesh_2d_no_wrap, 6, 3, 2, 2, 2, 2), make_map(SipTopology::switch_star, 4, 0, 0, 2, 2, 2),
      make_map(SipTopology::fully_connected, 4, 0, 0, 2, 2, 2)};
  const ccl::Registry registry;
  for (const MachineMap& map : maps) {
    const ccl::Group group = everybody(map);
    LoneChooser chooser(registry, map, group);
    for (int op = 0; op <= static_cast<int>(CollectiveOp::send_recv); ++op) {
      for (const std::uint64_t bytes : {std::uint64_t{1024}, std::uint64_t{64} << 20}) {
        const ccl::Choice choice = *chooser.choose(static_cast<CollectiveOp>(op), bytes);
        EXPECT_NE(choice.algorithm, "") << op << " " << to_string(map.sip_topology);
        EXPECT_FALSE(choice.candidates.front().at_least) << op << " " << to_string(map.sip_topology);
      }
    }
  }
}

/// What an algorithm's model says if no other one has set a limit.
double estimated_alone(const MachineMap& map, const std::string& algorithm, const ccl::CallTensors& tensors) {
  const ccl::Registry only =
      registry_of("algorithms: { " + algorithm + ": { module: kernbench.ccl." + algorithm + " } }\n");
  const ccl::Group group = everybody(map);
  return LoneChooser(only, map, group).choose(tensors, 64 << 20)->candidates.front().ns;
}

TEST(Choice, WhatIsNotEstimatedIsFarFromTheBest) {
  const MachineMap map = make_map(SipTopology::torus_2d, 16, 4, 4, 2, 2, 8);
  const ccl::Registry registry;
  const ccl::Group group = everybody(map);
  const ccl::CallTensors tensors = tensors_of(map, CollectiveOp::all_reduce, 64 << 20);
  const ccl::Choice choice = *LoneChooser(registry, map, group).choose(tensors, 64 << 20);
  const double best = choice.candidates.front().ns;
  EXPECT_FALSE(choice.candidates.front().at_least);
  int left_out = 0;
  for (const ccl::Candidate& candidate : choice.candidates) {
    if (!candidate.unfit.empty() || !candidate.known) continue;
    const double alone = estimated_alone(map, candidate.name, tensors);
    if (candidate.at_least) {
      ++left_out;
      EXPECT_LE(candidate.ns, alone * (1 + 1e-9)) << candidate.name;
      EXPECT_GT(alone, 1.25 * best) << candidate.name;
    } else {
      EXPECT_DOUBLE_EQ(candidate.ns, alone) << candidate.name;
    }
  }
  EXPECT_GT(left_out, 0);
}

}  // namespace
}  // namespace kernbench::test
