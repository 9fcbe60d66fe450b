#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "ccl/run/collective.h"
#include "tests/runtime/machine_run.h"

namespace kernbench::testing {
namespace {
using ::testing::HasSubstr;

/// A ccl.yaml for this test; gone with it.
class CclFile {
 public:
  explicit CclFile(const std::string& text) : path_(name()) { std::ofstream(path_) << text; }
  ~CclFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  static std::string name() {
    std::string name = "ccl_";
    for (const char c : std::string(::testing::UnitTest::GetInstance()->current_test_info()->name())) {
      name += c == '/' ? '_' : c;
    }
    return name + ".yaml";
  }
  const std::string path_;
};

ProcessGroupOptions with(const CclFile& file, const std::string& algorithm) {
  ProcessGroupOptions options;
  options.algorithm = algorithm;
  options.ccl_file = file.path();
  return options;
}

std::string entry(const std::string& keys, const char* module = "ring_allreduce") {
  return std::string("algorithms:\n  mine: { module: kernbench.ccl.") + module + keys + " }\n";
}

class PeRanksInEveryMemory : public ::testing::TestWithParam<BufferCase> {};
INSTANTIATE_TEST_SUITE_P(Runtime, PeRanksInEveryMemory, every_buffer_and_scheduling(), &name_of);

TEST_P(PeRanksInEveryMemory, ReduceOverPesOfOneCubeOfSeveralAndOfBothSips) {
  const CclFile file(entry(", world_size: 6"));
  MachineRun host(machine_of(2, 2, 2, std::get<0>(GetParam())), scheduled(std::get<1>(GetParam())));
  const ProcessGroupOptions options = with(file, "mine");
  const int world_size = host.runtime.world_size(options);
  EXPECT_EQ(world_size, 6);
  const std::vector<PeCoord> pes = ccl::rank_pes(host.machine.map(), world_size);
  int checked = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group(options);
        EXPECT_EQ(ctx.group_size(), 6);
        const PeCoord home = pes[static_cast<std::size_t>(ctx.rank())];
        const DPPolicy columns = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise);
        const Tensor tensor = ctx.full(1 << ctx.rank(), {1, 33}, DType::f32, columns, "t");
        ASSERT_EQ(tensor.shards().size(), 1u);
        EXPECT_EQ(tensor.pa(0).str(), PhysicalAddress::hbm(home, tensor.pa(0).offset).str());
        ctx.all_reduce(tensor);
        for (const double value : tensor.to_host()) ASSERT_EQ(value, 63);
        ++checked;
      },
      std::tuple<>(), world_size);
  EXPECT_EQ(checked, 6);
  EXPECT_EQ(host.machine.pool().outstanding(), 0u);
}

/// A rank is one contribution, whatever the scope.
TEST(PeRanks, AllScopesMeanTheSame) {
  const CclFile file(entry(", world_size: 4"));
  MachineRun host(machine_of(1, 2, 2));
  ProcessGroupOptions options = with(file, "mine");
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group(options);
        for (const Scope scope : {Scope::sip, Scope::cube, Scope::pe}) {
          options.scope = scope;
          const Group group = ctx.new_group({0, 1, 2, 3}, options);
          const Tensor tensor = ctx.full(1 << ctx.rank(), {1, 8}, DType::f32, DPPolicy(), "t");
          ctx.all_reduce(tensor, ReduceOp::sum, group);
          for (const double value : tensor.to_host()) ASSERT_EQ(value, 15) << to_string(scope);
        }
      },
      std::tuple<>(), 4);
}

TEST(PeRanks, SetDeviceIsUnused) {
  const CclFile file("defaults: { world_size: 3 }\n" + entry(""));
  MachineRun host(machine_of(2, 1, 2));
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group(with(file, "mine"));
        ctx.set_device(1);
        EXPECT_EQ(ctx.device(), ctx.rank() / 2) << "the SIP of the rank's PE";
        const Tensor tensor = ctx.zeros({4, 4}, DType::f16, {}, "t");
        EXPECT_EQ(tensor.sip(), ctx.rank() / 2);
        EXPECT_EQ(tensor.shards().at(0).pe, ctx.rank() % 2);
      },
      std::tuple<>(), 3);
}

TEST(PeRanks, SubGroupsAreOfPesToo) {
  const CclFile file(entry(", world_size: 4", "lrab_hierarchical_allreduce"));
  MachineRun host(machine_of(2, 1, 2));
  int checked = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group(with(file, "mine"));
        const Group odd = ctx.new_group({3, 1}, with(file, "mine"));
        if (ctx.rank() % 2 == 0) return;
        const Tensor tensor = ctx.full(ctx.rank(), {1, 8}, DType::f32, {}, "t");
        ctx.all_reduce(tensor, ReduceOp::sum, odd);
        EXPECT_EQ(tensor.at(0, 7), 4);
        ++checked;
      },
      std::tuple<>(), 4);
  EXPECT_EQ(checked, 2);
}

TEST(PeRanks, WorldSizeIsTheEntrysThenTheDefaultsThenTheTopologys) {
  const CclFile file(
      "defaults: { world_size: 3 }\n"
      "algorithms:\n"
      "  own: { module: kernbench.ccl.ring_allreduce, world_size: 4 }\n"
      "  none: { module: kernbench.ccl.ring_allreduce }\n");
  MachineRun host(machine_of(2, 1, 2));
  EXPECT_EQ(host.runtime.world_size(with(file, "own")), 4);
  EXPECT_EQ(host.runtime.world_size(with(file, "none")), 3);
  EXPECT_EQ(host.runtime.world_size(ring_algorithm()), 2) << "SIPs";
  host.runtime.init_process_group(with(file, "own"));
  EXPECT_EQ(host.runtime.world_size(), 4);
}

TEST(PeRanks, AProgramOfAnotherSizeIsRefused) {
  const CclFile file(entry(", world_size: 3"));
  MachineRun host(machine_of(2, 1, 2));
  try {
    host.runtime.spawn([&](Context& ctx) { ctx.init_process_group(with(file, "mine")); }, std::tuple<>(), 2);
    FAIL();
  } catch (const SpawnError& error) {
    EXPECT_STREQ(error.what(),
                 "rank 0 of 2 failed; first reason: init_process_group: world_size is 3 in ccl.yaml, the program has 2 "
                 "ranks: give the program as many");
  }
}

TEST(PeRanks, DeadlockReportNamesTheRankOfEachPe) {
  const CclFile file(entry(", world_size: 2"));
  MachineRun host(machine_of(1, 1, 2));
  try {
    host.runtime.spawn(
        [&](Context& ctx) {
          ctx.init_process_group(with(file, "mine"));
          const Tensor tensor = ctx.zeros({1, 8}, DType::f16, {}, "t");
          ctx.launch(
              "wait",
              [](Va, Tl& tl) {
                tl.recv(Direction::global_w(), {1, 8}, DType::f16);
              },
              tensor);
        },
        std::tuple<>(), 2);
    FAIL();
  } catch (const Deadlock& error) {
    EXPECT_THAT(error.what(), HasSubstr("0    sip0.cube0.pe0 wait"));
    EXPECT_THAT(error.what(), HasSubstr("1    sip0.cube0.pe1 wait"));
  }
}

}  // namespace
}  // namespace kernbench::testing
