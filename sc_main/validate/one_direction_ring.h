#pragma once
#include <cstdint>

#include "tlm/kernel/call.h"
#include "tlm/machine/fidelity.h"

namespace kernbench::validate {

/// One collective on preset `astra`: rings in one direction, dimension after dimension, one PE per rank.
struct OneDirectionRing {
  /// fabric: ranks at a switch that cuts through. storing_fabric: at one that stores whole messages; in a ring every
  /// port serves one pair of neighbours, so a relay between the two, which receives and sends on, is such a switch.
  enum class Shape : std::uint8_t { ring, fully_connected, fabric, storing_fabric, torus };
  Shape shape = Shape::ring;
  unsigned dims[2] = {4,
                      1};  ///< ranks in a ring of the first and of the second dimension; the second is 1 but on a torus
  CollectiveOp op = CollectiveOp::all_reduce;  ///< all_reduce, all_gather or reduce_scatter
  std::uint64_t bytes = 0;                     ///< S as in nccl-tests; of f32 elements
  bool whole_per_dimension =
      false;            ///< all_reduce on a torus: all of S in each dimension, not what is left of the first
  unsigned pieces = 1;  ///< of every message, one behind the other

  // The links.
  std::uint64_t bytes_per_second = 0;
  double latency_ns = 0;
  double endpoint_ns = 0;              ///< per message
  double memory_bytes_per_second = 0;  ///< three passes of every byte that is summed

  Fidelity fidelity;
  bool data = false;  ///< with numbers, checked

  unsigned ranks() const { return dims[0] * dims[1]; }
  /// Packets of 256 B that cross links, all together: what a run costs.
  double packets() const;
};

struct RingTime {
  double ns = 0;            ///< first kernel's start to last kernel's end
  std::uint64_t wrong = 0;  ///< elements; 0 without data
};

/// Builds the machine and runs it once. Once per process. Throws std::invalid_argument for what cannot be built (S that
/// does not divide), std::runtime_error if the run fails.
RingTime run_one_direction_ring(const OneDirectionRing& ring);

}  // namespace kernbench::validate
