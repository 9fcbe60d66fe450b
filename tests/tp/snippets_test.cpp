// The C++ of the pages in docs/, compiled and run as it stands there.
#include <gtest/gtest.h>

#include "tests/tp/tp_case.h"

namespace kernbench::testing {
namespace {

// docs/kernels.md: layer()
#include "snippets/kernels_1.inc"

/// What docs/runtime.md launches: each element of this PE's shard times a factor.
void scale(Va x, double factor, Tl& tl) {
  const ShardView own = tl.shard(x);
  const Tile values = tl.load(own.va, {1, own.count()}, DType::f16);
  tl.store(own.va, values * tl.fill({1, 1}, DType::f16, factor));
}

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

TEST(DocsSnippets, TheKernelOfTheKernelsPageComputesTheLayer) {
  constexpr std::int64_t kRows = 80, kIn = 16, kOut = 8;  // 40 rows a PE: a block of 32 and one of 8
  MachineRun host(machine_of(1, 1, 2));
  host.runtime.spawn(
      [&](Context& ctx) {
        const DPPolicy rows = DPPolicy().pe(PeSplit::row_wise);
        const Tensor x = ctx.from_host(values_of({kRows, kIn}, input_at), {kRows, kIn}, DType::f16, rows, "x");
        const Tensor w = ctx.from_host(values_of({kIn, kOut}, weight_at), {kIn, kOut}, DType::f16, DPPolicy(), "w");
        const Tensor b = ctx.from_host(values_of({1, kOut}, bias_at), {1, kOut}, DType::f16, DPPolicy(), "b");
        const Tensor y = ctx.full(0, {kRows, kOut}, DType::f16, rows, "y");
        ctx.launch("layer", layer, x, w, b, y, kIn, kOut);
        Values expected =
            product(values_of({kRows, kIn}, input_at), values_of({kIn, kOut}, weight_at), kRows, kIn, kOut);
        for (std::size_t i = 0; i < expected.size(); ++i)
          expected[i] = gelu(expected[i] + bias_at(0, static_cast<std::int64_t>(i) % kOut));
        expect_close(y.to_host(), expected, "y");
      },
      std::tuple<>(), 1);
}

TEST(DocsSnippets, TheProgramOfTheRuntimePageScalesAndSums) {
  MachineRun host(machine_of(2, 1, 2));
  Runtime& runtime = host.runtime;
  topology::Machine& machine = host.machine;
#include "snippets/runtime_1.inc"
  EXPECT_EQ(result, Values(4096, 2 * (1 + 2)));
}

TEST(DocsSnippets, TheLayersOfTheTensorParallelPageAreTheHostsProduct) {
  constexpr std::int64_t kRows = 4, kIn = 512, kHidden = 2048;
  const auto weight = [](std::int64_t row, std::int64_t col) { return weight_at(row, col) / 8; };
  MachineRun host(machine_of(2, 1, 2));
  host.runtime.spawn(
      [&](Context& ctx) {
        const Tensor x = ctx.from_host(values_of({kRows, kIn}, input_at), {kRows, kIn}, DType::f16,
                                       tp::LinearPlacement().input, "x");
#include "snippets/tensor_parallel_1.inc"
        Values hidden =
            product(values_of({kRows, kIn}, input_at), values_of({kIn, kHidden}, weight), kRows, kIn, kHidden);
        for (double& value : hidden) value = gelu(value);
        const Values expected = product(hidden, values_of({kHidden, kIn}, weight), kRows, kHidden, kIn);
        expect_close(y.to_host(), expected, "y");
      },
      std::tuple<>(), 2);
}

}  // namespace
}  // namespace kernbench::testing
