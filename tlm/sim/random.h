#pragma once
#include <cstdint>

/// splitmix64: the same numbers on every platform.   source: Steele, Lea, Flood, Fast splittable pseudorandom number
/// generators, OOPSLA 2014
namespace kernbench {

inline constexpr std::uint64_t kSplitmixStep = 0x9E37'79B9'7F4A'7C15;

/// Every number gives another one, evenly.
constexpr std::uint64_t splitmix64(std::uint64_t x) {
  x += kSplitmixStep;
  x = (x ^ (x >> 30)) * 0xBF58'476D'1CE4'E5B9;
  x = (x ^ (x >> 27)) * 0x94D0'49BB'1331'11EB;
  return x ^ (x >> 31);
}

/// The next number of a generator with this state.
constexpr std::uint64_t next_splitmix64(std::uint64_t& state) {
  const std::uint64_t number = splitmix64(state);
  state += kSplitmixStep;
  return number;
}

}  // namespace kernbench
