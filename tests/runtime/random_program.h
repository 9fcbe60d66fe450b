#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tlm/kernel/tile.h"

namespace kernbench::testing {

/// One step of one rank. What it is expected to read stands in it: the sequential model ran when it was made.
struct Step {
  enum class Kind {
    launch,        ///< x = scale * x + shift on every element, and wait
    launch_async,  ///< the same, without waiting
    wait,          ///< for the launch `index` of this rank, perhaps for the second time
    read,          ///< of all elements, in the way of `index`; of `owner`'s tensor
    copy,          ///< from tensor `index`
    renew,         ///< free, and a new one filled with `shift`
    fault,         ///< a launch that reads an unmapped address; its fault is caught
    reduce,        ///< all_reduce, and wait
    reduce_async,  ///< all_reduce; waited for before the next step that touches its tensor
    barrier,
    fail  ///< throws; the others are ended
  } kind;
  std::size_t tensor = 0, index = 0;
  int owner = 0;
  double scale = 1, shift = 0;
  std::vector<double> expected;  ///< of read

  explicit Step(Kind kind, std::size_t tensor = 0, std::size_t index = 0, int owner = 0)
      : kind(kind), tensor(tensor), index(index), owner(owner) {}
};

/// A program for all ranks, with the values that a sequential execution gives.
struct RandomProgram {
  struct Spec {
    Shape shape;
    int policy = 0;  ///< 0 replicate, 1 columns, 2 rows
  };
  static constexpr std::size_t kShared = 2, kTensors = 4;  ///< the first ones are alike on all ranks: for collectives
  int ranks = 2;
  std::vector<std::vector<Spec>> tensors;  ///< by rank
  std::vector<std::vector<Step>> steps;    ///< by rank
  int fails = -1;                          ///< the rank that throws
};

/// The same program for the same seed.
RandomProgram make_random_program(std::uint64_t seed, int ranks, bool may_fail);

}  // namespace kernbench::testing
