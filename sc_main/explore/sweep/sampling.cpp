#include "sc_main/explore/sweep/sampling.h"

#include <boost/random/uniform_int_distribution.hpp>

#include <cmath>
#include <numeric>
#include <utility>

namespace kernbench::sweep {
namespace {
/// In [0, 1).
double unit(std::uint64_t bits) { return std::ldexp(static_cast<double>(bits >> 11), -53); }
}  // namespace

Sequence::Sequence(bool sobol, std::size_t dimensions, std::uint64_t seed) : dimensions_(dimensions), random_(seed) {
  if (!sobol) return;
  sobol_.emplace(dimensions);
  for (std::size_t i = 0; i < dimensions; ++i) shift_.push_back(unit(random_()));
}

std::vector<double> Sequence::next() {
  std::vector<double> place(dimensions_);
  for (std::size_t i = 0; i < dimensions_; ++i) {
    if (!sobol_) {
      place[i] = unit(random_());
      continue;
    }
    const double shifted = unit((*sobol_)()) + shift_[i];
    place[i] = shifted - std::floor(shifted);
  }
  return place;
}

std::vector<std::vector<double>> latin_hypercube(std::size_t count, std::size_t dimensions, std::uint64_t seed) {
  boost::random::mt19937_64 random(seed);
  std::vector<std::vector<double>> places(count, std::vector<double>(dimensions));
  std::vector<std::size_t> slice(count);
  for (std::size_t axis = 0; axis < dimensions; ++axis) {
    std::iota(slice.begin(), slice.end(), std::size_t{0});
    for (std::size_t i = count; i > 1; --i) {
      boost::random::uniform_int_distribution<std::size_t> other(0, i - 1);
      std::swap(slice[i - 1], slice[other(random)]);
    }
    for (std::size_t i = 0; i < count; ++i)
      places[i][axis] = (static_cast<double>(slice[i]) + unit(random())) / static_cast<double>(count);
  }
  return places;
}

}  // namespace kernbench::sweep
