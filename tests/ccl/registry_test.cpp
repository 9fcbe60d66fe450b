#include "ccl/select/registry.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <tuple>

#include "ccl/run/collective.h"
#include "tests/ccl/fake_machine.h"
#include "tests/ccl/lone_collective.h"
#include "tests/support/thrown.h"
#include "tlm/config/problems.h"

namespace kernbench::test {
namespace {

class CclFile {
 public:
  explicit CclFile(const std::string& text) { std::ofstream(path_) << text; }
  ~CclFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_ =
      "ccl_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) + ".yaml";
};

TEST(CclYaml, ReadsEntriesDefaultsAndParameters) {
  const CclFile file(
      "defaults: { algorithm: mine, n_elem: 8 }\n"
      "algorithms:\n"
      "  mine: { module: kernbench.ccl.ring_allreduce, chunk_bytes: 2 KiB }\n");
  const ccl::Registry registry(file.path());
  EXPECT_EQ(registry.default_algorithm(), "mine");
  EXPECT_EQ(registry.algorithm(), "mine");
  EXPECT_EQ(registry.n_elem("mine"), 8);
  const ccl::AlgorithmEntry entry = registry.load("mine");
  EXPECT_STREQ(entry.algorithm->name, "ring_allreduce");
  EXPECT_EQ(entry.parameters.at("chunk_bytes"), 2048);
  EXPECT_EQ(registry.load("mine", {{"chunk_bytes", 64}}).parameters.at("chunk_bytes"), 64);
}

TEST(CclYaml, ElementsOfAShardAreTheEntrysThenTheDefaults) {
  const std::string entries =
      "algorithms:\n"
      "  own: { module: kernbench.ccl.ring_allreduce, n_elem: 4 }\n"
      "  none: { module: kernbench.ccl.ring_allreduce }\n";
  const CclFile both("defaults: { n_elem: 6 }\n" + entries);
  const ccl::Registry registry(both.path());
  EXPECT_EQ(registry.n_elem("own"), 4);
  EXPECT_EQ(registry.n_elem("none"), 6);
  EXPECT_EQ(ccl::Registry().n_elem("ring_allreduce"), std::nullopt);
}

TEST(CclYaml, LocatesANumberOfElementsOutOfRange) {
  const CclFile file("algorithms:\n  mine: { module: kernbench.ccl.ring_allreduce, n_elem: some }\n");
  EXPECT_EQ(thrown_by([&] { ccl::Registry registry(file.path()); }),
            file.path() +
                ":2:57: error: algorithms.mine.n_elem is 'some'\n  hint: give an integer from 1 to "
                "1099511627776");
}

TEST(CclYaml, TheAlgorithmIsThatOfTheDefaultsOrTheChoiceAmongAll) {
  const std::string entries =
      "algorithms:\n  b: { module: kernbench.ccl.ring }\n  a: { module: kernbench.ccl.direct }\n";
  const CclFile given("defaults: { algorithm: b }\n" + entries);
  EXPECT_EQ(ccl::Registry(given.path()).algorithm(), "b");
  const CclFile chosen("defaults: { algorithm: auto }\n" + entries);
  EXPECT_EQ(ccl::Registry(chosen.path()).algorithm(), "auto");
  const CclFile open(entries);
  EXPECT_EQ(ccl::Registry(open.path()).algorithm(), "auto");
  EXPECT_EQ(ccl::Registry().algorithm(), "auto");
}

TEST(CclYaml, AutoIsNoNameForAnEntryAndEntriesThereMustBe) {
  const CclFile file("algorithms:\n  auto: { module: kernbench.ccl.ring }\n");
  EXPECT_EQ(thrown_by([&] { ccl::Registry registry(file.path()); }),
            file.path() +
                ":2:3: error: 'auto' is no name for an entry\n  hint: it stands for the choice among all; "
                "take another");
  const CclFile empty("algorithms: {}\n");
  EXPECT_EQ(thrown_by([&] { ccl::Registry registry(empty.path()); }),
            empty.path() + ":1:13: error: 'algorithms' is empty\n  hint: give algorithm names, each with its module");
}

TEST(CclYaml, HintsNeverOfferAutoTwice) {
  const CclFile file(
      "defaults: { algorithm: best }\nalgorithms:\n  b: { module: kernbench.ccl.ring }\n  auto: { module: b }\n");
  EXPECT_EQ(
      thrown_by([&] { ccl::Registry registry(file.path()); }),
      file.path() + ":1:24: error: defaults.algorithm is 'best'\n  hint: valid values: b, auto\n" + file.path() +
          ":4:3: error: 'auto' is no name for an entry\n  hint: it stands for the choice among all; take another");
}

TEST(CclYaml, AModuleThatIsNoFileOrCannotBeOneHasItsPlace) {
  const std::string name(300, 'm');
  const CclFile file("algorithms:\n  a: { module: . }\n  b: { module: " + name + " }\n");
  EXPECT_EQ(thrown_by([&] { ccl::Registry registry(file.path()); }),
            file.path() + ":2:16: error: algorithm module './.': this is no file\n" + file.path() +
                ":3:16: error: algorithm module './" + name + "': there is no such file");
}

TEST(CclYaml, AFileThatIsNotThereMayBeABuiltInModuleMisspelt) {
  const CclFile file("algorithms:\n  a: { module: kernbench.cll.ring }\n");
  EXPECT_EQ(thrown_by([&] { ccl::Registry registry(file.path()); }),
            file.path() + ":2:16: error: algorithm module './kernbench.cll.ring': there is no such file\n" +
                "  hint: did you mean 'kernbench.ccl.ring'?");
}

TEST(CclYaml, AKeyThatIsGivenTwiceHidesNothing) {
  const CclFile file(
      "algorithms:\n  a: { module: kernbench.ccl.ring, module: kernbench.ccl.flood }\n  b: { modul: x }\n");
  EXPECT_EQ(
      thrown_by([&] { ccl::Registry registry(file.path()); }),
      file.path() +
          ":2:36: error: key 'module' is given twice in $.algorithms.a\n  hint: the first one stands in line 2\n" +
          file.path() + ":3:8: error: unknown key 'modul' in 'algorithms.b'\n  hint: did you mean 'module'?");
}

TEST(CclYaml, UnknownKeysAreNamedByTheEntryThatTheyStandIn) {
  const CclFile file(
      "algorithms:\n"
      "  mine: { module: kernbench.ccl.ring_allreduce, chunk_byte: 2 KiB }\n");
  EXPECT_EQ(thrown_by([&] { ccl::Registry registry(file.path()); }),
            file.path() +
                ":2:49: error: unknown key 'chunk_byte' in 'algorithms.mine'\n  hint: did you mean "
                "'chunk_bytes'?");
}

TEST(CclYaml, WorldSizeIsTheEntrysThenTheDefaultsThenTheTopologys) {
  const std::string entries =
      "algorithms:\n"
      "  own: { module: kernbench.ccl.ring_allreduce, world_size: 4 }\n"
      "  none: { module: kernbench.ccl.ring_allreduce }\n";
  const CclFile both("defaults: { world_size: 6 }\n" + entries);
  const ccl::Registry registry(both.path());
  EXPECT_EQ(registry.world_size("own"), 4);
  EXPECT_EQ(registry.load("own").world_size, 4);
  EXPECT_EQ(registry.world_size("none"), 6);
  EXPECT_EQ(registry.load("none").world_size, 6);
  EXPECT_EQ(ccl::Registry().world_size("ring_allreduce"), std::nullopt) << "the topology's";
}

TEST(CclYaml, LocatesAWorldSizeOutOfRange) {
  const CclFile file(
      "defaults: { world_size: x }\n"
      "algorithms:\n"
      "  mine: { module: kernbench.ccl.ring_allreduce, world_size: 0 }\n");
  EXPECT_EQ(thrown_by([&] { ccl::Registry registry(file.path()); }),
            file.path() + ":1:25: error: defaults.world_size is 'x'\n  hint: give an integer from 1 to 32767\n" +
                file.path() +
                ":3:61: error: algorithms.mine.world_size is '0'\n  hint: give an integer from 1 to 32767");
}

TEST(CclYaml, LocatesAModuleThatIsNotThereInTheSamePass) {
  const CclFile file(
      "algorithms:\n"
      "  mine: { module: ./libmissing.so }\n"
      "  other: { module: kernbench.ccl.rng }\n"
      "  third: { modul: kernbench.ccl.ring }\n"
      "  fourth: {}\n");
  EXPECT_EQ(thrown_by([&] { ccl::Registry registry(file.path()); }),
            file.path() + ":2:19: error: algorithm module './libmissing.so': there is no such file\n" + file.path() +
                ":3:20: error: no built-in algorithm 'kernbench.ccl.rng'; did you mean 'kernbench.ccl.ring'?\n" +
                file.path() +
                ":4:12: error: unknown key 'modul' in 'algorithms.third'\n  hint: did you mean 'module'?\n" +
                file.path() +
                ":5:3: error: algorithms.fourth has no 'module'\n  hint: name a built-in one, such as "
                "kernbench.ccl.ring_allreduce, or a shared library");
}

TEST(CclYaml, LocatesATunedTimeOfNoAlgorithm) {
  const CclFile file(
      "algorithms:\n  mine: { module: kernbench.ccl.ring }\n"
      "tuned:\n  - machine: m\n    op: all_reduce\n    scope: sip\n    bytes: [8]\n"
      "    time_ns: { mien: [1], mine: [2] }\n");
  EXPECT_EQ(thrown_by([&] { ccl::Registry registry(file.path()); }),
            file.path() + ":8:16: error: unknown key 'mien' in 'tuned.time_ns'\n  hint: did you mean 'mine'?");
}

TEST(CclYaml, LocatesAWorldSizeAboveThePesOfTheMachine) {
  const CclFile file(
      "defaults: { world_size: 9 }\n"
      "algorithms:\n"
      "  own: { module: kernbench.ccl.ring, world_size: 10 }\n"
      "  none: { module: kernbench.ccl.ring }\n");
  const ccl::Registry registry(file.path());
  const MachineMap map = make_map(SipTopology::ring_1d, 2, 0, 0, 2, 1, 2);
  EXPECT_EQ(thrown_by([&] { registry.rank_pes("own", map); }),
            file.path() + ":3:50: error: world_size is 10; give 1 to 8, the PEs of the machine");
  EXPECT_EQ(thrown_by([&] { registry.rank_pes("none", map); }),
            file.path() + ":1:25: error: world_size is 9; give 1 to 8, the PEs of the machine");
}

TEST(Registry, NamesTheNearestAlgorithm) {
  EXPECT_EQ(thrown_by([] { ccl::Registry().load("ring_allreduc"); }),
            "no algorithm 'ring_allreduc'; did you mean 'ring_allreduce'?");
  EXPECT_EQ(thrown_by([] { ccl::load_module("kernbench.ccl.ring_allredu"); }),
            "no built-in algorithm 'kernbench.ccl.ring_allredu'; did you mean 'kernbench.ccl.ring_allreduce'?");
  EXPECT_EQ(thrown_by([] {
              ccl::load_module("kernbench.ccl.xyz");
            }).rfind("no built-in algorithm 'kernbench.ccl.xyz'; give kernbench.ccl. and one of: direct, ", 0),
            0u);
  EXPECT_EQ(thrown_by([] {
              ccl::Registry().load("ring_allreduce", {{"chunks", 1}});
            }),
            "algorithm 'ring_allreduce' has no parameter 'chunks'; it has: chunk_bytes");
  EXPECT_EQ(thrown_by([] {
              ccl::Registry().load("ring_allreduce", {{"chunk_bytes", -1}});
            }),
            "algorithm 'ring_allreduce': parameter 'chunk_bytes' is -1; give 0 to 1073741824");
}

std::tuple<std::int64_t, int> short_args(int world_size, std::int64_t n_elem, int, int) { return {n_elem, world_size}; }
void long_kernel(Va, std::int64_t, int, int, int, int, int, int, int, Tl&) {}

TEST(Registry, ReportsBothSignaturesWhenTheyDisagree) {
  auto algorithm = std::make_shared<ccl::Algorithm>();
  algorithm->name = "mine";
  algorithm->kernel_args = ccl::make_kernel_args<&short_args>();
  algorithm->kernel = ccl::make_kernel<&long_kernel>();
  const ccl::AlgorithmEntry entry{"mine", "./mine.so", algorithm, {}};
  EXPECT_EQ(thrown_by([&] { entry.check_signature(); }),
            "algorithm 'mine' (./mine.so): kernel_args and kernel do not agree\n"
            "  kernel gets  (Va, std::int64_t, int, int, int, int, int, Tl&)\n"
            "  kernel takes (Va, std::int64_t, int, int, int, int, int, int, int, Tl&)\n"
            "  (t_ptr, what kernel_args returns, then sip_rank, sip_topo_kind, sip_topo_w, sip_topo_h, tl)");
}

TEST(Collective, RefusesWhatTheAlgorithmDoesNotServe) {
  const MachineMap map = make_map(SipTopology::switch_star, 2, 0, 0, 2, 1, 1);
  ccl::RingNumbers rings;
  const auto make = [&](const char* name, Scope scope) {
    LoneCollective(ccl::Registry().load(name), map, {0, {0, 1}, {}}, scope, rings);
  };
  EXPECT_EQ(thrown_by([&] { make("ring_allreduce", Scope::cube); }),
            "algorithm 'ring_allreduce' does not serve scope cube; it serves sip");
  EXPECT_EQ(thrown_by([&] { make("lrab_hierarchical_allreduce", Scope::sip); }),
            "algorithm 'lrab_hierarchical_allreduce': unsupported topology kind switch; it serves ring_1d, "
            "torus_2d, mesh_2d_no_wrap");
}

/// What one_tree plans, without the last receive of the last node.
ccl::Plan forgetful_plan(const ccl::PlanRequest& request) {
  ccl::Plan plan = ccl::load_module("kernbench.ccl.one_tree")->plan(request);
  auto schedule = std::make_shared<ccl::Schedule>(*plan.schedule);
  schedule->steps.back().pop_back();
  plan.schedule = schedule;
  return plan;
}

TEST(Collective, ProvesTheSchedulesOfPlugIns) {
  auto algorithm = std::make_shared<ccl::Algorithm>(*ccl::load_module("kernbench.ccl.one_tree"));
  const MachineMap map = make_map(SipTopology::ring_1d, 2, 0, 0, 1, 1, 1);
  const LaunchMessage::TensorArg tensor{0, {{{0, 0, 0}, 0, 8, 1, 4}}, {1, 4}};
  CollectiveCall call;
  call.op = CollectiveOp::broadcast;
  const auto bind = [&](const char* module) {
    ccl::RingNumbers rings;
    const LoneCollective collective({"mine", module, algorithm, {{"chunk_bytes", 0}}}, map, {0, {0, 1}, {}}, Scope::sip,
                                    rings);
    collective.bind({call, tensor, tensor, 2});
  };
  EXPECT_EQ(thrown_by([&] { bind("./mine.so"); }), "nothing was thrown");
  algorithm->plan = &forgetful_plan;
  EXPECT_EQ(thrown_by([&] { bind("./mine.so"); }),
            "algorithm 'mine': its schedule is wrong: schedule 'one_tree' (broadcast, 2 nodes): deadlock: "
            "step 0 of node 0 (send of block 0, node 1) waits in round 3, node 1 has come to its end");
}

TEST(Collective, RefusesUnequalTilesAndRingsThatDoNotFit) {
  MachineMap map = make_map(SipTopology::ring_1d, 2, 0, 0, 2, 1, 1);
  ccl::RingNumbers rings;
  const LoneCollective collective(ccl::Registry().load("lrab_hierarchical_allreduce"), map, {0, {0, 1}, {}},
                                  Scope::cube, rings);
  const LaunchMessage::TensorArg tensor{0, {{{0, 0, 0}, 0, 8, 1, 4}, {{0, 1, 0}, 8, 6, 1, 3}}, {1, 7}};
  EXPECT_EQ(thrown_by([&] {
              collective.bind({CollectiveCall(), tensor, tensor, 2});
            }),
            "scope cube needs equal tiles: cube 0 holds 4 elements on 1 PEs, cube 1 holds 3 on 1; choose a shape that "
            "divides");
  map.tcm.bytes = 32768;
  ccl::RingNumbers others;
  EXPECT_EQ(thrown_by([&] {
              LoneCollective(ccl::Registry().load("ring_allreduce"), map, {0, {0, 1}, {}}, Scope::sip, others);
            }),
            "sip0.cube0.pe0: 3 IPCQ rings of 4 x 4096 B need 49152 B of TCM, which has 32768 B; use fewer slots or "
            "smaller ones");
}

TEST(Collective, QueuesHaveNumbersForSoManyPartnersOnly) {
  const MachineMap map = make_map(SipTopology::ring_1d, 400, 0, 0, 4, 4, 8);
  ccl::Group group;
  for (std::uint16_t sip = 0; sip < map.sips; ++sip) group.sips.push_back(sip);
  ccl::RingNumbers rings;
  const ccl::GroupQueues queues(map, group, rings);
  EXPECT_EQ(queues.direction(ccl::NodeLevel::pe, 128, 0, 300 * 128 + 1),
            Direction::global(400 + 400 * 16 + 300 * 128 + 1));
  EXPECT_EQ(thrown_by([&] { queues.direction(ccl::NodeLevel::pe, 128, 0, 399 * 128 + 1); }),
            "is for machines of at most 49152 ranks, cubes and PEs: queues have no more numbers");
}

TEST(Collective, PlacesRingsInTheMemoryThatTheMachineNames) {
  MachineMap map = make_map(SipTopology::ring_1d, 2, 0, 0, 2, 1, 4);
  map.hbm_slice.bytes = 1 << 20;
  map.sram.bytes = 1 << 20;
  constexpr std::uint64_t kRing = 4 * 4096;
  for (const MemoryKind kind : {MemoryKind::tcm, MemoryKind::sram, MemoryKind::hbm}) {
    ccl::RingNumbers rings;
    const LoneCollective collective(ccl::Registry().load("ring_allreduce"), map, {0, {0, 1}, {4, 4096, kind}},
                                    Scope::sip, rings);
    std::map<std::string, PeCoord> owners;  // by address: no two rings share one
    for (const NeighbourEntry& entry : collective.neighbours(0)) {
      const PhysicalAddress& base = entry.ring_base;
      EXPECT_EQ(base.kind, kind);
      EXPECT_EQ(base.offset % kRing, 0U);
      EXPECT_TRUE(owners.emplace(base.str(), entry.self).second) << base.str();
      EXPECT_EQ(std::make_pair(base.sip, base.cube), std::make_pair(entry.self.sip, entry.self.cube));
      const std::uint64_t below = (std::uint64_t{entry.ring} + 1) * kRing;
      if (kind == MemoryKind::sram) {
        EXPECT_EQ(base.offset, map.sram.bytes - entry.self.pe * (map.sram.bytes / 4) - below);
      } else {
        EXPECT_EQ(base.unit, entry.self.pe);
        EXPECT_EQ(base.offset, (kind == MemoryKind::hbm ? map.hbm_slice.bytes : map.tcm.bytes) - below);
      }
    }
  }
  map.sram.bytes = 4 * 32768;
  ccl::RingNumbers rings;
  EXPECT_EQ(thrown_by([&] {
              LoneCollective(ccl::Registry().load("ring_allreduce"), map, {0, {0, 1}, {4, 4096, MemoryKind::sram}},
                             Scope::sip, rings);
            }),
            "sip0.cube0.pe0: 4 IPCQ rings of 4 x 4096 B need 65536 B of its share of the cube's SRAM, which has 32768 "
            "B; use fewer slots or smaller ones");
}

}  // namespace
}  // namespace kernbench::test
