#include <gtest/gtest.h>

#include "ccl/select/registry.h"
#include "tests/ccl/all_reduce_case.h"
#include "tests/ccl/lone_collective.h"

namespace kernbench::test {
namespace {

struct Sips {
  SipTopology topology;
  int count, w, h;
};

const std::vector<Sips> kSips = {{SipTopology::ring_1d, 1, 0, 0},         {SipTopology::ring_1d, 2, 0, 0},
                                 {SipTopology::ring_1d, 3, 0, 0},         {SipTopology::ring_1d, 4, 0, 0},
                                 {SipTopology::ring_1d, 8, 0, 0},         {SipTopology::ring_1d, 16, 0, 0},
                                 {SipTopology::torus_2d, 2, 2, 1},        {SipTopology::torus_2d, 3, 1, 3},
                                 {SipTopology::torus_2d, 4, 2, 2},        {SipTopology::torus_2d, 6, 3, 2},
                                 {SipTopology::torus_2d, 9, 3, 3},        {SipTopology::torus_2d, 15, 5, 3},
                                 {SipTopology::torus_2d, 15, 3, 5},       {SipTopology::torus_2d, 16, 4, 4},
                                 {SipTopology::mesh_2d_no_wrap, 2, 1, 2}, {SipTopology::mesh_2d_no_wrap, 4, 4, 1},
                                 {SipTopology::mesh_2d_no_wrap, 4, 2, 2}, {SipTopology::mesh_2d_no_wrap, 8, 4, 2},
                                 {SipTopology::mesh_2d_no_wrap, 9, 3, 3}, {SipTopology::mesh_2d_no_wrap, 16, 4, 4}};

std::string describe(const Sips& s, const AllReduceCase& c, int cube_w, int cube_h, int pes) {
  return std::string(to_string(s.topology)) + " " + std::to_string(s.count) + " (" + std::to_string(s.w) + "x" +
         std::to_string(s.h) + ") cubes " + std::to_string(cube_w) + "x" + std::to_string(cube_h) + " pes " +
         std::to_string(pes) + " " + c.algorithm + " count " + std::to_string(c.count) + " " + to_string(c.dtype) +
         " " + to_string(c.op) + " scope " + to_string(c.scope) + (c.split_cubes ? " cube split" : " cube copies") +
         (c.split_pes ? " pe split" : " pe copies");
}

void expect_right(const Sips& s, int cube_w, int cube_h, int pes, const AllReduceCase& c) {
  const MachineMap map = make_map(s.topology, s.count, s.w, s.h, cube_w, cube_h, pes);
  EXPECT_EQ(run_all_reduce(map, c), "") << describe(s, c, cube_w, cube_h, pes);
}

TEST(AllReduce, IsRightOnEveryArrangementOfSips) {
  for (const Sips& sips : kSips) {
    for (const char* algorithm : {"ring_allreduce", "lrab_hierarchical_allreduce"}) {
      for (const std::int64_t count : {1, 2, 7, 64, 1000}) {
        AllReduceCase c;
        c.algorithm = algorithm;
        c.count = count;
        expect_right(sips, 1, 1, 2, c);
      }
    }
  }
}

TEST(AllReduce, RingServesSwitchAndFullyConnected) {
  for (const SipTopology topology : {SipTopology::switch_star, SipTopology::fully_connected}) {
    for (const int count : {1, 2, 4, 8}) {
      AllReduceCase c;
      c.count = 333;
      expect_right({topology, count, 0, 0}, 2, 1, 2, c);
    }
  }
}

TEST(AllReduce, CombinesShardWithShardOfOtherSipsAndKeepsCopies) {
  for (const auto& [w, h] : {std::pair(1, 1), std::pair(2, 1), std::pair(1, 3), std::pair(3, 2), std::pair(4, 4)}) {
    for (const char* algorithm : {"ring_allreduce", "lrab_hierarchical_allreduce"}) {
      for (const bool cubes : {true, false}) {
        for (const bool pes : {true, false}) {
          for (const std::int64_t count : {3, 500}) {
            AllReduceCase c;
            c.algorithm = algorithm;
            c.split_cubes = cubes;
            c.split_pes = pes;
            c.count = count;
            expect_right({SipTopology::ring_1d, 3, 0, 0}, w, h, 4, c);
          }
        }
      }
    }
  }
}

TEST(AllReduce, CopiesOnSomeCubesAndPesOnly) {
  for (const int cubes : {1, 2, 3, 5, 7, 9}) {
    for (const int pes : {1, 3, 4}) {
      AllReduceCase c;
      c.split_cubes = c.split_pes = false;
      c.num_cubes = cubes;
      c.num_pes = pes;
      c.count = 130;
      expect_right({SipTopology::ring_1d, 2, 0, 0}, 3, 3, 4, c);
    }
  }
}

TEST(AllReduce, ScopeCubeSumsTheTilesOfAllCubes) {
  for (const Sips& sips :
       {Sips{SipTopology::ring_1d, 1, 0, 0}, Sips{SipTopology::ring_1d, 2, 0, 0}, Sips{SipTopology::ring_1d, 5, 0, 0},
        Sips{SipTopology::torus_2d, 9, 3, 3}, Sips{SipTopology::mesh_2d_no_wrap, 6, 3, 2}}) {
    for (int w = 1; w <= 4; ++w) {
      for (int h = 1; h <= 4; ++h) {
        for (const bool pes : {true, false}) {
          AllReduceCase c;
          c.algorithm = "lrab_hierarchical_allreduce";
          c.scope = Scope::cube;
          c.split_pes = pes;
          c.count = 70;
          expect_right(sips, w, h, 3, c);
        }
      }
    }
  }
}

TEST(AllReduce, ScopeCubeOnCopiesAndOnFewerCubes) {
  for (const int cubes : {1, 2, 4, 8}) {
    AllReduceCase c;
    c.algorithm = "lrab_hierarchical_allreduce";
    c.scope = Scope::cube;
    c.split_cubes = false;
    c.num_cubes = cubes;
    c.count = 100;
    expect_right({SipTopology::ring_1d, 2, 0, 0}, 4, 2, 2, c);
  }
}

TEST(AllReduce, DtypesAndReduceOps) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::i16,
                            DType::i8, DType::f8e4m3}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::min, ReduceOp::prod}) {
      for (const char* algorithm : {"ring_allreduce", "lrab_hierarchical_allreduce"}) {
        AllReduceCase c;
        c.algorithm = algorithm;
        c.dtype = dtype;
        c.op = op;
        c.count = 77;
        expect_right({SipTopology::ring_1d, 4, 0, 0}, 2, 1, 2, c);
      }
    }
  }
  for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
    AllReduceCase c;
    c.dtype = DType::boolean;
    c.op = op;
    expect_right({SipTopology::ring_1d, 4, 0, 0}, 1, 1, 2, c);
  }
}

TEST(AllReduce, EndsWithAnyNumberOfSlots) {
#ifdef __SANITIZE_ADDRESS__
  constexpr std::int64_t kCount = 1000;  // still several rounds of each slot; a third of the time
#else
  constexpr std::int64_t kCount = 3000;
#endif
  for (const std::uint16_t slots : {1, 2, 3, 4, 8}) {
    for (const char* algorithm : {"ring_allreduce", "lrab_hierarchical_allreduce"}) {
      for (const Sips& sips : {Sips{SipTopology::ring_1d, 2, 0, 0}, Sips{SipTopology::ring_1d, 8, 0, 0},
                               Sips{SipTopology::mesh_2d_no_wrap, 9, 3, 3}}) {
        AllReduceCase c;
        c.algorithm = algorithm;
        c.queue = {slots, 32};
        c.count = kCount;
        expect_right(sips, 1, 1, 1, c);
        c.split_cubes = c.split_pes = false;
        expect_right(sips, 2, 2, 3, c);
        c.scope = Scope::cube;
        c.count = 500;
        if (c.algorithm != std::string("ring_allreduce")) expect_right(sips, 3, 3, 2, c);
      }
    }
  }
}

TEST(AllReduce, TakesAMessageSize) {
  for (const char* algorithm : {"ring_allreduce", "lrab_hierarchical_allreduce"}) {
    for (const std::int64_t bytes : {1, 16, 48, 1 << 20}) {
      AllReduceCase c;
      c.algorithm = algorithm;
      c.parameters = {{"chunk_bytes", bytes}};
      c.count = 400;
      expect_right({SipTopology::torus_2d, 6, 3, 2}, 1, 1, 1, c);
    }
  }
}

// Bytes over all queues are 2(p-1) S for both algorithms, whatever the arrangement.
TEST(AllReduce, MovesEveryElementTwiceBetweenContributors) {
  for (const Sips& sips : kSips) {
    for (const char* algorithm : {"ring_allreduce", "lrab_hierarchical_allreduce"}) {
      const MachineMap map = make_map(sips.topology, sips.count, sips.w, sips.h, 1, 1, 1);
      ccl::RingNumbers rings;
      std::vector<std::uint16_t> all;
      for (std::uint16_t s = 0; s < sips.count; ++s) all.push_back(s);
      const LoneCollective collective(ccl::Registry().load(algorithm, {{"chunk_bytes", 8}}), map, {0, all, {4, 8}},
                                      Scope::sip, rings);
      FakeMachine machine(map, collective);
      std::vector<ccl::Collective::Launch> launches;
      constexpr std::int64_t kCount = 96;  // of f64: one element is a message
      for (int rank = 0; rank < sips.count; ++rank) {
        const PeCoord pe{static_cast<std::uint16_t>(rank), 0, 0};
        machine.memory(pe, 0x1000).resize(kCount * 8);
        CollectiveCall call;
        call.dtype = DType::f64;
        const LaunchMessage::TensorArg tensor{0x1000, {{pe, 0, kCount * 8, 1, kCount}}, {1, kCount}};
        launches.push_back(collective.bind({call, tensor, tensor, sips.count, rank}));
      }
      ASSERT_EQ(machine.run(launches), "");
      EXPECT_EQ(machine.messages, 2u * static_cast<unsigned>(sips.count - 1) * kCount)
          << algorithm << " " << sips.count;
    }
  }
}

}  // namespace
}  // namespace kernbench::test
