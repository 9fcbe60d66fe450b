#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "runtime/host_access.h"
#include "tlm/kernel/tile.h"

namespace kernbench::testing {

/// One step of one rank. What it is expected to read stands in it: the sequential model ran when it was made.
struct Step {
  enum class Kind {
    launch,        ///< x = scale * x + shift on every element of an own tensor, and wait
    launch_async,  ///< the same, without waiting
    launch_far,    ///< the same on another rank's tensor, by a kernel of this rank's SIP through a mapping; no waiting
    wait,          ///< for the launch `index` of this rank, perhaps for the second time
    read,          ///< by entry point `access`
    peek,          ///< likewise, at a moment at which the value is anybody's guess: it only has to return
    write,         ///< `shift` to all elements, by write_bytes
    copy,          ///< copy_from tensor `index` of rank `from`
    renew,         ///< free, and a new one filled with `shift`
    fault,         ///< a launch that reads an unmapped address; its fault is caught
    collective,    ///< `what` of a shared tensor, in place, and wait
    collective_async,  ///< the same, without waiting
    give,              ///< fulfils promise `index`: another rank may use what this one has used
    take,              ///< waits for promise `index`
    barrier,
    fail  ///< throws; the others are ended
  } kind;
  enum class Collective { sum, max, broadcast } what = Collective::sum;  ///< of all, element by element; of rank `from`
  std::size_t tensor = 0;
  int owner = 0;  ///< of the tensor
  std::size_t index = 0;
  int from = 0;
  HostAccess access = HostAccess::to_host;
  double scale = 1, shift = 0;
  std::vector<double> expected;  ///< of read
};

/// A program for all ranks, with the values that a sequential execution gives.
struct RandomProgram {
  struct Spec {
    Shape shape;
    int policy = 0;  ///< 0 replicate, 1 columns, 2 rows
  };
  static constexpr std::size_t kShared = 2;    ///< tensors that are alike on all ranks: for collectives
  static constexpr std::size_t kStreamed = 3;  ///< this one's launches are on a stream of their own, never held up
  static constexpr std::size_t kTensors = 4;
  int ranks = 2;
  std::vector<std::vector<Spec>> tensors;  ///< by rank
  std::vector<std::vector<Step>> steps;    ///< by rank
  std::size_t promises = 0;
  int fails = -1;  ///< the rank that throws

  // How much of what the programs are for is in this one.
  std::size_t held_reads = 0;   ///< reads and writes that have to wait for a collective which somebody has yet to call
  std::size_t held_writes = 0;  ///< of them
  /// Reads and writes of another rank's tensor that all have called a collective for and nobody has waited for.
  std::size_t far_in_flight = 0;
  std::size_t far_reads = 0, far_writes = 0, far_launches = 0;  ///< of another rank's tensor
  std::size_t broadcasts = 0;
};

/// The same program for the same seed. `reduces_only`: its collectives are all_reduces, as a module may serve no other.
RandomProgram make_random_program(std::uint64_t seed, int ranks, bool reduces_only, bool may_fail);

}  // namespace kernbench::testing
