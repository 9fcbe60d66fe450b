#pragma once
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/sobol.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kernbench::sweep {

/// Places in the unit cube, one after the other: drawn at random, or the Sobol sequence shifted by a random vector. The
/// same seed gives the same places on every machine.
class Sequence {
 public:
  Sequence(bool sobol, std::size_t dimensions, std::uint64_t seed);
  std::vector<double> next();

 private:
  std::size_t dimensions_;
  boost::random::mt19937_64 random_;
  std::optional<boost::random::sobol> sobol_;
  std::vector<double> shift_;  // of the Sobol sequence
};

/// `count` places of which every one of the `count` slices of every axis holds exactly one.
std::vector<std::vector<double>> latin_hypercube(std::size_t count, std::size_t dimensions, std::uint64_t seed);

}  // namespace kernbench::sweep
