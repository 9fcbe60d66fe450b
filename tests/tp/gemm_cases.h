#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/tp/gemm_planner.h"
#include "tests/tp/tp_case.h"

namespace kernbench::testing {

/// Random shapes and placements, with sizes that do not divide among PEs, cubes or tiles; `count` of those that a
/// mapping of this kind serves. Operands are multiples of 1/8 and 1/16 and small, so that every order of sums gives the
/// same bits: the exact sum, rounded once. Half of the cases run in tiles of the planner's, half in random ones. No
/// result is above its bound. On a mesh of `w` x `h` cubes of 4 PEs.
inline void check_gemm_cases(tp::GemmMapping::Kind kind, unsigned seed, int count, std::uint16_t w = 3,
                             std::uint16_t h = 1) {
  topology::SystemSpec spec = topology::small_machine(1, w, h);
  spec.cube.pes = 4;
  MachineRun host(spec);
  std::mt19937 random(seed);
  const auto up_to = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)) + 1; };
  const auto policy = [&] {
    constexpr std::array kCubes = {CubeSplit::replicate, CubeSplit::column_wise, CubeSplit::row_wise};
    constexpr std::array kPes = {PeSplit::replicate, PeSplit::column_wise, PeSplit::row_wise,
                                 PeSplit::tiled_column_major, PeSplit::tiled_row_major};
    return policy_of(kCubes[random() % kCubes.size()], kPes[random() % kPes.size()]);
  };
  // Few random placements split k inside a cube: those of b and c are drawn from such as may.
  const auto suit = [&](std::array<DPPolicy, 4>& policies) {
    if (!tp::exchanges_sums(kind)) return;
    if (kind == tp::GemmMapping::Kind::ring) {
      policies[1] = policy_of(CubeSplit::column_wise, PeSplit::row_wise);
      policies[3] = policy_of(CubeSplit::row_wise, random() % 2 == 0 ? PeSplit::column_wise : PeSplit::row_wise);
      return;
    }
    constexpr std::array kPairs = {std::pair(CubeSplit::column_wise, CubeSplit::column_wise),
                                   std::pair(CubeSplit::replicate, CubeSplit::row_wise),
                                   std::pair(CubeSplit::replicate, CubeSplit::replicate)};
    const auto [of_b, of_c] = kPairs[random() % kPairs.size()];
    policies[1] = policy_of(of_b, PeSplit::row_wise);
    policies[3] = policy_of(of_c, random() % 3 == 0 ? PeSplit::replicate : PeSplit::row_wise);
  };
  int served = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        for (int tried = 0; served < count; ++tried) {
          ASSERT_LT(tried, count * 40) << "the mapping serves hardly anything";
          // Fewer rows of b than PEs of a cube: some have rows of c and nothing to sum.
          const bool short_k = tp::exchanges_sums(kind) && random() % 4 == 0;
          const std::int64_t m = up_to(80), n = up_to(80), k = up_to(short_k ? 6 : 150);
          std::array policies = {policy(), policy(), policy(), policy()};
          suit(policies);
          const Values x = values_of({m, k}, input_at), w = values_of({k, n}, weight_at);
          const Values x_of_c = values_of({m, n}, weight_at);
          const bool biased = random() % 2 == 0, relu = random() % 2 == 0;
          std::string mapping = to_string(kind);
          if (random() % 2 == 0) {
            mapping += ":" + std::to_string(up_to(50)) + "x" + std::to_string(up_to(40)) + "x" +
                       std::to_string(up_to(90)) + ",rows=" + std::to_string(up_to(3)) +
                       ",chains=" + std::to_string(up_to(3));
          }
          tp::GemmOperands operands;
          operands.a = ctx.from_host(x, {m, k}, DType::f16, policies[0], "a");
          operands.b = ctx.from_host(w, {k, n}, DType::f16, policies[1], "b");
          if (biased)
            operands.bias = ctx.from_host(values_of({1, n}, bias_at), {1, n}, DType::f16, policies[2], "bias");
          operands.c = ctx.empty({m, n}, DType::f16, policies[3], "c");
          const bool adds = random() % 3 == 0;
          const DPPolicy of_residual = policy();
          if (adds) operands.residual = ctx.from_host(x_of_c, {m, n}, DType::f16, of_residual, "residual");
          operands.activation = relu ? Activation::relu : Activation::none;
          tp::GemmPlan plan;
          try {
            plan = tp::plan_gemm(ctx.map(), "case", operands, mapping);
          } catch (const std::invalid_argument&) {
            // The others serve everything.
            EXPECT_TRUE(kind == tp::GemmMapping::Kind::passed || tp::exchanges_sums(kind));
            continue;
          }
          const Handle handle = tp::gemm(ctx, "case", operands, plan);
          ctx.wait(handle);
          Values expected = product(x, w, m, k, n);
          for (std::size_t i = 0; i < expected.size(); ++i) {
            if (biased) expected[i] += bias_at(0, static_cast<std::int64_t>(i) % n);
            if (relu) expected[i] = std::max(0.0, expected[i]);
            if (adds) expected[i] += x_of_c[i];
          }
          const std::string what = plan.best.mapping.str() + " " + std::to_string(m) + "x" + std::to_string(n) + "x" +
                                   std::to_string(k) + ", a " + to_string(policies[0]) + ", b " +
                                   to_string(policies[1]) + ", c " + to_string(policies[3]) +
                                   (adds ? ", residual " + to_string(of_residual) : "");
          ASSERT_EQ(operands.c.to_host(), in_f16(expected)) << what;
          for (std::size_t copy = 1; copy < operands.c.copies(); ++copy) {
            ASSERT_EQ(operands.c.bytes_to_host(copy), operands.c.bytes_to_host(0)) << what;
          }
          EXPECT_GE(handle.kernel_end() - handle.kernel_start(), plan.bound.time) << what;
          ++served;
        }
      },
      std::tuple<>(), 1);
  EXPECT_EQ(served, count);
}

}  // namespace kernbench::testing
