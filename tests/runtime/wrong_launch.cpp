// Compiled by wrong_launch.sh, once as it is and once for each WRONG.
#include <array>
#include <string_view>

#include "runtime/runtime.h"

namespace kernbench {

void right(Va, double, Tl&) {}

void three(std::array<int, 3>, Tl&) {}

void launches(Context& ctx, const Tensor& tensor) {
  const double factor = 2;
  ctx.launch("k", right, tensor, factor);
  ctx.launch_async(
      "k", LaunchOptions{{{0, 0, 0}}}, [](Va, int, Tl&) {}, Va{0}, 7);
  ctx.launch("k", three, std::array<int, 3>{1, 2, 3});
#if WRONG == 1
  ctx.launch(
      "k", [factor](Va, Tl&) { (void)factor; }, tensor);
#elif WRONG == 2
  ctx.launch(
      "k", [](Va, const double*, Tl&) {}, tensor, &factor);
#elif WRONG == 3
  ctx.launch("k", right, tensor);
#elif WRONG == 4
  ctx.launch(
      "k", [](std::int64_t, Tl&) {}, tensor);
#elif WRONG == 5
  ctx.launch(
      "k", [](std::string, Tl&) {}, std::string("text"));
#elif WRONG == 6
  ctx.launch(
      "k", [](int, Tl&) {}, 2.5);
#elif WRONG == 7
  ctx.launch(
      "k", [](double&, Tl&) {}, 2.5);
#elif WRONG == 8
  ctx.launch(
      "k", [](std::string_view, Tl&) {}, std::string_view("text"));
#endif
}

}  // namespace kernbench
