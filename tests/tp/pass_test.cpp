#include "runtime/tp/pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <tuple>
#include <vector>

#include "runtime/tp/transformer.h"
#include "tests/tp/tp_case.h"

namespace kernbench::testing {
namespace {

void twice(Va x, Tl& tl) {
  const Tile tile = tl.load(x, {1, 16}, DType::f16);
  tl.store(x, tile + tile);
}
void stray(Va, Tl& tl) { tl.load(0xdead'0000'0000, {1, 16}, DType::f16); }

/// One rank, with a tensor of 1 x 16 ones.
void on_one_rank(const std::function<void(Context&, const tp::ParallelState&, const Tensor&)>& program) {
  MachineRun host(machine_of(1, 1, 2));
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        program(ctx, tp::initialize_model_parallel(ctx, 1), ctx.full(1, {1, 16}, DType::f16, {}, "x"));
      },
      std::tuple<>(), 1);
}

TEST(Pass, OnlyTheOutermostWaitsAtItsEnd) {
  on_one_rank([](Context& ctx, const tp::ParallelState& state, const Tensor& x) {
    const Ps begin = ctx.now();
    tp::Pass outer(state);
    Handle inner_launch;
    {
      tp::Pass inner(state);
      inner_launch = inner.add(ctx.launch_async("twice", twice, x));
      inner.end();
    }
    const Handle launch = outer.add(ctx.launch_async("twice", twice, x));
    EXPECT_EQ(ctx.now(), begin);
    EXPECT_FALSE(inner_launch.done());
    outer.end();
    EXPECT_TRUE(inner_launch.done());
    EXPECT_TRUE(launch.done());
    EXPECT_EQ(x.at(0, 5), 4.0);
  });
}

TEST(Pass, AWaitInsideIsForTheLaunchesAroundToo) {
  on_one_rank([](Context& ctx, const tp::ParallelState& state, const Tensor& x) {
    tp::Pass outer(state);
    const Handle launch = outer.add(ctx.launch_async("twice", twice, x));
    tp::Pass(state).wait();
    EXPECT_TRUE(launch.done());
    const Ps now = ctx.now();
    outer.end();
    EXPECT_EQ(ctx.now(), now) << "nothing is left to wait for";
  });
}

TEST(Pass, AFaultOfALaunchThatOthersFollowReachesTheRank) {
  try {
    on_one_rank([](Context& ctx, const tp::ParallelState& state, const Tensor& x) {
      tp::Pass pass(state);
      pass.add(ctx.launch_async("stray", stray, x));
      pass.add(ctx.launch_async("twice", twice, x));
      pass.end();
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const SpawnError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("MMU fault in kernel 'stray'"));
  }
}

TEST(Pass, OfALayerSubmitsAllLaunchesBetweenTwoCollectivesAtOnceAndTheyRunInOrder) {
  MachineRun host(machine_of(2, 2, 2));
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, 2);
        tp::Model model = tp::load_model("llama3-8b");
        model.width = 64;
        model.heads = 4;
        model.kv_heads = 2;
        model.head_dim = 16;
        model.mlp_width = 96;
        const tp::TransformerLayer layer(state, model, "layer0", {});
        tp::KvCache cache = layer.cache(1, 8);
        const tp::RotaryTable rotary(state, 8, model.head_dim, model.rope_theta);
        const Tensor x = ctx.zeros({4, model.width}, DType::f16, {}, "x");
        const tp::LayerTensors tensors = layer.place(cache, 4);
        layer.prepare(tensors);
        const Ps begin = ctx.now();
        layer.forward(x, cache, rotary, tensors);
        if (ctx.rank() != 0) return;
        std::vector<std::vector<HostTraceEntry>> stretches(1);  // launches between collectives
        for (const HostTraceEntry& entry : host.runtime.host_trace()) {
          if (entry.rank != 0 || entry.t_submit < begin) continue;
          entry.kind == "launch" ? stretches.back().push_back(entry) : stretches.emplace_back().clear();
        }
        ASSERT_EQ(stretches.size(), 3u);
        EXPECT_EQ(stretches[0].size(), 5u) << "norm, qkv, rotary, scores, out";
        EXPECT_EQ(stretches[1].size(), 5u) << "norm, up, gate, product, down";
        EXPECT_EQ(stretches[2].size(), 1u) << "residual";
        for (const std::vector<HostTraceEntry>& stretch : stretches) {
          for (std::size_t i = 1; i < stretch.size(); ++i) {
            EXPECT_EQ(stretch[i].t_submit, stretch[0].t_submit) << stretch[i].name;
            EXPECT_GE(stretch[i].kernel_start, stretch[i - 1].kernel_end) << stretch[i].name;
          }
        }
      },
      std::tuple<>(), 2);
}

}  // namespace
}  // namespace kernbench::testing
