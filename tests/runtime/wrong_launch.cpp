// Compiled by wrong_launch.sh, once as it is and once for each WRONG.
#include <array>
#include <string_view>

#include "runtime/runtime.h"
#include "runtime/tensor_geometry.h"

namespace kernbench {

void right(Va, double, Tl&) {}

void three(std::array<int, 3>, Tl&) {}

// What a kernel's parameter may be: looked at by fields, whatever they are in.
enum class Kind : std::uint8_t { one };
struct Numbers {
  int a = 3;
  std::uint64_t b;
  Kind kind;
  Direction direction;
  DType dtype;
  bool flag;
};
struct Deep {
  Numbers numbers;
  std::array<double, 4> weights;
  int more[3];
};
struct Empty {};
struct WithEmpty {
  Empty empty;
  int a;
};
struct Large {
  char bytes[4000];
};
struct Based : Numbers {
  unsigned low : 3, high : 5;
};
struct Pointer {
  int a, b, c;
  const float* there;
};
struct DeepPointer {
  Pointer inner;
  int a;
};
struct DeeperPointer {
  int a;
  DeepPointer inner;
};
struct Pointers {
  int a[3];
  void* there[2];
};
struct ArrayOfPointers {
  std::array<int*, 2> there;
};
struct Function {
  int (*call)(int);
};
struct Member {
  int Numbers::*which;
};
struct View {
  int a;
  std::string_view text;
};
struct BasedOnPointer : Pointer {};
template <class... T>
constexpr bool all = (detail::IsParameter<T>::value && ...);
template <class... T>
constexpr bool none = !(detail::IsParameter<T>::value || ...);
static_assert(all<Numbers, Deep, Empty, WithEmpty, Large, Based, TensorGeometry, std::array<Deep, 2>>);
static_assert(none<Pointer, DeepPointer, DeeperPointer, Pointers, ArrayOfPointers, Function, Member, View,
                   BasedOnPointer, std::array<Pointer, 2>>);

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
#elif WRONG == 9
  ctx.launch(
      "k", [](DeepPointer, Tl&) {}, DeepPointer());
#endif
}

}  // namespace kernbench
