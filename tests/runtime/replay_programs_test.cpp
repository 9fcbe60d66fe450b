#include <random>

#include "tests/runtime/replay_run.h"

namespace kernbench::testing {
namespace {

/// Ranks do the same, as of a model: bodies of launches and collectives that come again and again, with others that
/// overlap in between.
void random_program(std::uint64_t seed, Context& context) {
  std::mt19937_64 random(seed);  // the same on every rank
  const auto upto = [&](std::uint64_t n) { return random() % n; };
  context.init_process_group(ring_algorithm());
  std::vector<Tensor> tensors;
  for (int i = 0; i < 3; ++i) {
    const auto columns = static_cast<std::int64_t>(1024 << upto(6));
    tensors.push_back(context.zeros({4, columns}, DType::f16, upto(2) == 0 ? spread() : rows(), "x"));
  }
  const std::uint16_t other = context.new_stream();
  for (int body = 0; body < 3; ++body) {
    struct Step {
      std::uint64_t kind, tensor;
      bool skewed;
    };
    std::vector<Step> steps;
    for (std::uint64_t i = 0, n = 1 + upto(4); i < n; ++i) steps.push_back({upto(6), upto(3), upto(4) == 0});
    for (std::uint64_t i = 0, n = 4 + upto(12); i < n; ++i) {
      for (const Step& step : steps) {
        const Tensor& x = tensors[step.tensor];
        if (step.skewed) context.wait(context.timer(1'000 + 20'000 * static_cast<Ps>(context.rank()), "skew"));
        if (step.kind < 3) {
          context.launch("twice", alone(), twice, x, 2.0);
        } else if (step.kind == 3) {
          const Handle beside = context.launch_async("beside", alone(other), twice, x, 2.0);
          context.launch("twice", alone(), twice, tensors[(step.tensor + 1) % 3], 2.0);
          context.wait(beside);
        } else if (step.kind == 4) {
          context.all_reduce(x);
        } else {
          const Handle sum = context.all_reduce_async(x);
          context.launch("twice", alone(other), twice, tensors[(step.tensor + 1) % 3], 2.0);
          context.wait(sum);
        }
      }
    }
  }
}

TEST(ReplayPrograms, TakeTheTimeThatTheyTakeWithoutReplay) {
  const char* const asked = std::getenv("KERNBENCH_RANDOM_PROGRAMS");  // 200 with the label slow
  const std::uint64_t count = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 6;
  std::uint64_t marked = 0, entries = 0;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    How how;
    how.sample = 16;
    how.refreshes = seed / 4 % 2 == 1;
    how.spec = machine_of(2, static_cast<std::uint16_t>(1 + seed % 2), 2);
    how.grade = seed % 4 == 0 ? Grade::accurate : Grade::fast;
    const Outcome outcome = replayed(how, [seed](Context& context) { random_program(seed, context); });
    marked += outcome.marked;
    entries += outcome.entries;
  }
  EXPECT_GT(4 * marked, entries) << "more than a quarter is repeated";
}

}  // namespace
}  // namespace kernbench::testing
