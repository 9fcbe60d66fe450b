#include "runtime/tp/parallel_state.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "runtime/tp/regions.h"
#include "tests/tp/tp_case.h"

namespace kernbench::testing {
namespace {

TEST(ParallelState, MustFollowInitProcessGroup) {
  MachineRun host(machine_of(2, 1, 1));
  host.runtime.spawn(
      [](Context& ctx) {
        EXPECT_EQ(error_text([&] { tp::initialize_model_parallel(ctx, 2); }),
                  "initialize_model_parallel: there is no process group: call init_process_group first");
      },
      std::tuple<>(), 2);
}

TEST(ParallelState, SizeHasToBeTheWorldSize) {
  MachineRun host(machine_of(2, 1, 1));
  int checked = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        EXPECT_EQ(error_text([&] { tp::initialize_model_parallel(ctx, 1); }),
                  "initialize_model_parallel: tensor_model_parallel_size is 1, the world has 2 ranks: give 2; other "
                  "sizes are not in this version");
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, 2);
        EXPECT_EQ(state.tensor_model_parallel_rank(), ctx.rank());
        EXPECT_EQ(state.tensor_model_parallel_world_size(), 2);
        ++checked;
      },
      std::tuple<>(), 2);
  EXPECT_EQ(checked, 2);
}

TEST(ParallelState, UseBeforeInitialisationIsAnError) {
  const tp::ParallelState none;
  const std::string text =
      "the tensor-parallel state is used before it is initialised: call initialize_model_parallel first";
  EXPECT_EQ(error_text([&] { none.tensor_model_parallel_rank(); }), text);
  EXPECT_EQ(error_text([&] { none.tensor_model_parallel_world_size(); }), text);
  EXPECT_EQ(error_text([&] { tp::ColumnParallelLinear(none, 4, 4); }), text);
  EXPECT_EQ(error_text([&] { tp::RowParallelLinear(none, 4, 4); }), text);
  EXPECT_EQ(error_text([&] { tp::copy_to_region(none, Tensor()); }), text);
}

/// Layers see the machine as a program of a user does, and never use a workload's kernel.
TEST(TpSources, IncludeThePublicApiOnly) {
  const std::set<std::string> allowed = {"runtime/runtime.h", "runtime/tensor_geometry.h", "tlm/kernel/activation.h",
                                         "tlm/kernel/tl.h"};
  const std::filesystem::path folder = std::filesystem::path(KERNBENCH_SOURCE_DIR) / "runtime" / "tp";
  const std::regex include("#include \"([^\"]+)\"");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".h" && entry.path().extension() != ".cpp") continue;
    ++files;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      const std::string header = match[1];
      EXPECT_TRUE(header.rfind("runtime/tp/", 0) == 0 || allowed.count(header) == 1) << entry.path() << ": " << header;
    }
  }
  EXPECT_GE(files, 8);
}

}  // namespace
}  // namespace kernbench::testing
