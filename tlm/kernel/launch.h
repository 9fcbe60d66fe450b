#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tlm/kernel/tl.h"

namespace kernbench {

/// Where a kernel begins, and what takes its arguments out of the bytes that a launch carries.
struct KernelEntry {
  using Code = void (*)();                                                                     ///< any kernel's address
  Code code = nullptr;                                                                         ///< the kernel
  void (*call)(Code code, const std::uint8_t* arguments, Tl& tl) = nullptr;                    ///< null: no kernel
  void operator()(const std::uint8_t* arguments, Tl& tl) const { call(code, arguments, tl); }  ///< runs it on one PE
};

/// Bytes of a launch's arguments at most.   source: CUDA C++ Programming Guide, "Function Parameters": 4 KB of kernel
/// parameters (4,096 B on every device; more from CUDA 12.1 on, on devices of compute capability 7.0 and higher)
inline constexpr std::size_t kMaxArgumentBytes = 4096;

namespace detail {

template <class T>
using Plain = std::remove_cv_t<std::remove_reference_t<T>>;

/// The function that something is, or that a lambda without captures turns into; void if there is none.
template <class K, class = void>
struct FunctionOf {
  using type = void;
};
template <class K>
struct FunctionOf<K, std::void_t<decltype(+std::declval<const K&>())>> {
  using type = decltype(+std::declval<const K&>());
};

template <class Types, class Indices>
struct FirstTypes;
template <class... T, std::size_t... I>
struct FirstTypes<std::tuple<T...>, std::index_sequence<I...>> {
  using type = std::tuple<Plain<std::tuple_element_t<I, std::tuple<T...>>>...>;
  static constexpr bool values =
      ((!std::is_lvalue_reference_v<std::tuple_element_t<I, std::tuple<T...>>> ||
        std::is_const_v<std::remove_reference_t<std::tuple_element_t<I, std::tuple<T...>>>>)&&...);
};

template <class... T>
struct Signature {
  static constexpr bool is_kernel = false;
};
template <class First, class... Rest>
struct Signature<First, Rest...> {
  using All = std::tuple<First, Rest...>;
  static constexpr bool is_kernel = std::is_same_v<std::tuple_element_t<sizeof...(Rest), All>, Tl&>;
  using Taken = FirstTypes<All, std::make_index_sequence<sizeof...(Rest)>>;
  using Parameters = typename Taken::type;
  static constexpr bool values = Taken::values;
};

template <class F>
struct KernelSignature : Signature<> {};
template <class... T>
struct KernelSignature<void (*)(T...)> : Signature<T...> {};
template <class... T>
struct KernelSignature<void (*)(T...) noexcept> : Signature<T...> {};

template <class K>
using SignatureOf = KernelSignature<typename FunctionOf<K>::type>;

/// Refers to elements that lie elsewhere, as std::string_view does; std::array holds its own.
template <class P, class = void>
inline constexpr bool is_array = false;
template <class P>
inline constexpr bool is_array<P, std::void_t<decltype(std::tuple_size<P>::value)>> = true;
template <class P, class = void>
inline constexpr bool is_view = false;
template <class P>
inline constexpr bool is_view<P, std::void_t<decltype(*std::declval<const P&>().data())>> = !is_array<P>;

template <class P>
struct IsParameter;

/// Stands for any field of a struct: noexcept(P{AnyField{}...}) says whether all of them are parameters.
struct AnyField {
  template <class F>
  operator F() const noexcept(IsParameter<F>::value);  // NOLINT(google-explicit-constructor): that is what it is for
};
template <std::size_t>
using AnyFieldAt = AnyField;

/// Fields of a struct that are looked at; elements of an array count as such.
inline constexpr std::size_t kMostFields = 32;

template <class P, class Indices, class = void>
inline constexpr bool takes_fields = false;
template <class P, std::size_t... I>
inline constexpr bool takes_fields<P, std::index_sequence<I...>, std::void_t<decltype(P{AnyFieldAt<I>{}...})>> = true;
template <class P, class Indices, class = void>
inline constexpr bool fields_are_parameters = false;
template <class P, std::size_t... I>
inline constexpr bool
    fields_are_parameters<P, std::index_sequence<I...>, std::enable_if_t<noexcept(P{AnyFieldAt<I>{}...})>> = true;

template <class P, std::size_t N = 0>
constexpr std::size_t count_fields() {
  if constexpr (N == kMostFields || !takes_fields<P, std::make_index_sequence<N + 1>>) {
    return N;
  } else {
    return count_fields<P, N + 1>();
  }
}

template <class P>
constexpr bool is_parameter() {
  if constexpr (!std::is_trivially_copyable_v<P> || !std::is_default_constructible_v<P> || std::is_pointer_v<P> ||
                std::is_member_pointer_v<P> || std::is_null_pointer_v<P> || is_view<P>) {
    return false;
  } else if constexpr (std::is_class_v<P> && std::is_aggregate_v<P>) {
    return fields_are_parameters<P, std::make_index_sequence<count_fields<P>()>>;
  } else {
    return true;
  }
}

/// A value that means the same on a PE as on the host: nothing in it points to host memory. Of an aggregate the first
/// kMostFields fields are looked at, and theirs; of other classes, and of unions, the compiler tells nothing.
template <class P>
struct IsParameter {
  static constexpr bool value = is_parameter<P>();
};

/// One whose value an argument can give, without a loss that nobody asked for.
template <class P, class A>
inline constexpr bool is_argument =
    std::is_convertible_v<const A&, P> && !(std::is_floating_point_v<A> && std::is_integral_v<P>);

/// An argument as its parameter. Throws std::invalid_argument for an integer that the parameter's type cannot hold;
/// `place`: of the argument, from 1 on.
template <class P, class A>
P as_parameter(const A& argument, std::size_t place) {
  const P value = argument;
  if constexpr (std::is_integral_v<P> && std::is_integral_v<A> && !std::is_same_v<P, bool>) {
    if (static_cast<A>(value) != argument || (value < P{0}) != (argument < A{0})) {
      throw std::invalid_argument("argument " + std::to_string(place) + " is " + std::to_string(argument) +
                                  "; the kernel's parameter holds " + std::to_string(std::numeric_limits<P>::min()) +
                                  " to " + std::to_string(std::numeric_limits<P>::max()));
    }
  }
  return value;
}

template <class List>
struct Arguments;
template <class... P>
struct Arguments<std::tuple<P...>> {
  static constexpr bool allowed = (IsParameter<P>::value && ...);
  static constexpr std::size_t bytes = (sizeof(P) + ... + std::size_t{0});

  template <class... A>
  static constexpr bool takes() {
    if constexpr (sizeof...(A) == sizeof...(P)) {
      return (is_argument<P, A> && ...);
    } else {
      return true;  // said elsewhere
    }
  }

  template <class... A>
  static std::vector<std::uint8_t> pack(const A&... arguments) {
    std::vector<std::uint8_t> packed(bytes);
    [[maybe_unused]] std::uint8_t* at = packed.data();
    [[maybe_unused]] std::size_t place = 0;
    ((put(as_parameter<P>(arguments, ++place), at), at += sizeof(P)), ...);
    return packed;
  }

  /// Bytes between members are zero: equal arguments are equal byte by byte.
  template <class T>
  static void put(T value, std::uint8_t* at) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&value);
#endif
#endif
    std::memcpy(at, &value, sizeof(T));
  }

  template <class T>
  static T take(const std::uint8_t*& at) {
    T value;
    std::memcpy(static_cast<void*>(&value), at, sizeof(T));
    at += sizeof(T);
    return value;
  }

  template <class Function>
  static void call(KernelEntry::Code code, [[maybe_unused]] const std::uint8_t* at, Tl& tl) {
    const std::tuple<P...> values{take<P>(at)...};  // braces: in this order
    std::apply([&](const P&... value) { reinterpret_cast<Function>(code)(value..., tl); }, values);
  }
};

}  // namespace detail

/// Whether something may be launched: a function, or a lambda without captures, `void kernel(P..., Tl& tl)`.
template <class K>
inline constexpr bool is_kernel_v = detail::SignatureOf<detail::Plain<K>>::is_kernel;

/// What a kernel takes before its `Tl&`, as a std::tuple of values. REQUIRES: is_kernel_v<K>.
template <class K>
using KernelParameters = typename detail::SignatureOf<detail::Plain<K>>::Parameters;

/// A kernel and its arguments as a launch carries them: in order, without gaps.
struct BoundKernel {
  KernelEntry entry;                    ///< the kernel
  std::vector<std::uint8_t> arguments;  ///< of its parameters
};

/// Checks types and number of the arguments, and makes of them what the kernel's parameters are. Throws
/// std::invalid_argument for an integer that its parameter's type cannot hold.
template <class K, class... A>
BoundKernel bind_kernel(const K& kernel, const A&... arguments) {
  static_assert(is_kernel_v<K>,
                "a kernel is a function, or a lambda without captures, void kernel(P..., Tl& tl): what it needs comes "
                "as arguments");
  if constexpr (is_kernel_v<K>) {
    using Function = typename detail::FunctionOf<K>::type;
    using Parameters = KernelParameters<K>;
    using Pack = detail::Arguments<Parameters>;
    static_assert(detail::SignatureOf<K>::values, "a kernel takes its arguments by value, or as const references");
    static_assert(Pack::allowed,
                  "a kernel's parameters are Va (for a tensor), numbers, and trivially copyable structs without "
                  "pointers");
    static_assert(sizeof...(A) == std::tuple_size_v<Parameters>,
                  "a launch gives as many arguments as the kernel has parameters before Tl&");
    static_assert(Pack::template takes<A...>(), "an argument of this launch is not what the kernel's parameter takes");
    if constexpr (sizeof...(A) == std::tuple_size_v<Parameters> && Pack::allowed && Pack::template takes<A...>()) {
      const Function function = kernel;
      return {{reinterpret_cast<KernelEntry::Code>(function), &Pack::template call<Function>},
              Pack::pack(arguments...)};
    }
  }
  return {};
}

}  // namespace kernbench
