#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <tuple>
#include <vector>

#include "ccl/run/collective.h"
#include "ccl/select/registry.h"
#include "tests/ccl/fake_machine.h"
#include "tests/ccl/lone_collective.h"
#include "tests/support/thrown.h"

namespace kernbench::test {
namespace {

/// 2 SIPs of 2 cubes of 2 PEs.
MachineMap eight_pes() { return make_map(SipTopology::ring_1d, 2, 0, 0, 2, 1, 2); }

ccl::Group group_of(const MachineMap& map, int world_size) {
  ccl::Group group;
  group.pes = ccl::rank_pes(map, world_size);
  for (const PeCoord pe : group.pes) group.sips.push_back(pe.sip);
  return group;
}

TEST(PeRanks, AreThePesInOrderOfSipCubeAndPe) {
  const std::vector<PeCoord> expected = {{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {0, 1, 1}, {1, 0, 0}};
  EXPECT_EQ(ccl::rank_pes(eight_pes(), 5), expected);
}

TEST(PeRanks, OfAMachineThatLacksAPeAreThoseThatItHas) {
  MachineMap map = eight_pes();
  map.pe_nodes[1] = kNoNode;  // sip0.cube0.pe1
  const std::vector<PeCoord> expected = {{0, 0, 0}, {0, 1, 0}, {0, 1, 1}};
  EXPECT_EQ(ccl::rank_pes(map, 3), expected);
}

TEST(PeRanks, MoreThanPesAreRefused) {
  EXPECT_EQ(ccl::rank_pes(eight_pes(), 8).size(), 8u);
  EXPECT_EQ(thrown_by([] { ccl::rank_pes(eight_pes(), 9); }), "world_size is 9; give 1 to 8, the PEs of the machine");
}

TEST(PeRanks, SendToThePeOfTheNextRankWhereverItIs) {
  const MachineMap map = eight_pes();
  ccl::RingNumbers rings;
  const LoneCollective ring(ccl::Registry().load("ring_allreduce"), map, group_of(map, 5), Scope::sip, rings);
  const std::vector<PeCoord> pes = ccl::rank_pes(map, 5);
  for (int rank = 0; rank < 5; ++rank) {
    const std::vector<NeighbourEntry> entries = ring.neighbours(rank);
    ASSERT_EQ(entries.size(), 2u) << "no cube and local directions";
    for (const NeighbourEntry& entry : entries) {
      EXPECT_EQ(entry.self, pes[static_cast<std::size_t>(rank)]);
      const int step = entry.direction == Direction::global_e() ? 1 : 4;
      EXPECT_EQ(entry.peer, pes[static_cast<std::size_t>((rank + step) % 5)]);
    }
  }
}

std::array<std::int64_t, 9> seen;  // by the last kernel; of this file's algorithm only

std::tuple<std::int64_t, int, int, int> probe_args(int world_size, std::int64_t n_elem, int cube_w, int cube_h) {
  return {n_elem, cube_w, cube_h, world_size};
}
void probe(Va, std::int64_t n_elem, int cube_w, int cube_h, int n_sips, int rank, int kind, int w, int h, Tl&) {
  seen = {n_elem, cube_w, cube_h, n_sips, rank, kind, w, h, 1};
}

TEST(PeRanks, AlgorithmsSeeTheWorldSizeAsSipsOfOneCube) {
  auto algorithm = std::make_shared<ccl::Algorithm>();
  algorithm->name = "probe";
  algorithm->topology_kinds = &ccl::kTopologyKinds;
  algorithm->topo_name_to_kind = &ccl::standard_topology_kind;
  algorithm->kernel_args = ccl::make_kernel_args<&probe_args>();
  algorithm->kernel = ccl::make_kernel<&probe>();
  algorithm->operations = ccl::bit(CollectiveOp::all_reduce);
  algorithm->scopes = ccl::bit(Scope::sip) | ccl::bit(Scope::cube);
  algorithm->topologies = ccl::topology_bit(0);
  algorithm->directions = ccl::kCubeGrid | ccl::kGlobalGrid;
  for (const Scope scope : {Scope::sip, Scope::cube}) {
    const MachineMap map = make_map(SipTopology::torus_2d, 4, 2, 2, 2, 1, 2);
    ccl::RingNumbers rings;
    const LoneCollective collective({"probe", "./probe.so", algorithm, {}}, map, group_of(map, 5), scope, rings);
    FakeMachine machine(map, collective);
    const int rank = 3;  // sip0.cube1.pe1: no cube 0 beside it
    const PeCoord home = ccl::rank_pes(map, 5)[rank];
    CollectiveCall call;
    const LaunchMessage::TensorArg tensor{0, {{home, 0, 12, 1, 6}}, {1, 6}};
    const ccl::Collective::Launch launch = collective.bind({call, tensor, tensor, 5, rank});
    EXPECT_EQ(launch.contributions, 5);
    EXPECT_EQ(launch.message.targets, std::vector<PeCoord>{home});
    seen = {};
    EXPECT_EQ(machine.run({launch}), "");
    EXPECT_EQ(seen, (std::array<std::int64_t, 9>{6, 1, 1, 5, 3, 0, 0, 0, 1})) << to_string(scope);
  }
}

TEST(PeRanks, SumOnEveryRankWithAlgorithmsThatKnowNothingOfThem) {
  for (const char* name : {"direct", "ring_allreduce", "lrab_hierarchical_allreduce"}) {
    for (const int world_size : {1, 2, 3, 5, 8}) {
      const MachineMap map = eight_pes();
      ccl::RingNumbers rings;
      const LoneCollective collective(ccl::Registry().load(name), map, group_of(map, world_size), Scope::sip, rings);
      FakeMachine machine(map, collective);
      std::vector<ccl::Collective::Launch> launches;
      CollectiveCall call;
      call.dtype = DType::f32;
      call.in = call.out = 4096;
      constexpr std::size_t kCount = 7;
      const std::vector<PeCoord> pes = ccl::rank_pes(map, world_size);
      for (int rank = 0; rank < world_size; ++rank) {
        const PeCoord pe = pes[static_cast<std::size_t>(rank)];
        auto& memory = machine.memory(pe, call.in);
        memory.resize(kCount * 4);
        for (std::size_t i = 0; i < kCount; ++i) {
          store_element(memory.data(), DType::f32, i, (1 << rank) + static_cast<double>(i));
        }
        const LaunchMessage::TensorArg tensor{call.in, {{pe, 0, kCount * 4, 1, kCount}}, {1, kCount}};
        launches.push_back(collective.bind({call, tensor, tensor, world_size, rank}));
      }
      EXPECT_EQ(machine.run(launches), "") << name << " of " << world_size;
      for (const PeCoord pe : pes) {
        for (std::size_t i = 0; i < kCount; ++i) {
          EXPECT_EQ(load_element(machine.memory(pe, call.in).data(), DType::f32, i),
                    (1 << world_size) - 1 + static_cast<double>(i) * world_size)
              << name << " of " << world_size;
        }
      }
    }
  }
}

TEST(PeRanks, ATensorElsewhereIsRefused) {
  const MachineMap map = eight_pes();
  ccl::RingNumbers rings;
  const LoneCollective collective(ccl::Registry().load("ring_allreduce"), map, group_of(map, 4), Scope::sip, rings);
  const LaunchMessage::TensorArg tensor{0, {{{0, 0, 0}, 0, 8, 1, 4}}, {1, 4}};
  EXPECT_EQ(thrown_by([&] {
              collective.bind({CollectiveCall(), tensor, tensor, 4, 1});
            }),
            "rank 1 of process group 0 is sip0.cube0.pe1, but its tensor lies on sip0.cube0.pe0; make it after the "
            "group");
}

}  // namespace
}  // namespace kernbench::test
