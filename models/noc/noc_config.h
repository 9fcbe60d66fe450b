#pragma once
#include <cstdint>

#include "tlm/ext/packet.h"
#include "tlm/sim/time.h"

namespace kernbench {

enum class Arbitration : std::uint8_t { round_robin, weighted_round_robin };
enum class RoutingAlgorithm : std::uint8_t { xy, yx, table };

/// Shape and timing of a router network, in cycles of its clock. topology.yaml and its presets hold the sources.
struct NocConfig {
  std::uint16_t rows = 4, cols = 4;
  std::uint32_t flit_bytes = 64;
  std::uint64_t clock_hz = 4'000'000'000;
  RoutingAlgorithm routing = RoutingAlgorithm::xy;
  Arbitration arbitration = Arbitration::round_robin;
  std::uint32_t vcs_per_set = 4;     ///< virtual channels of each (class, set)
  std::uint32_t vc_depth_flits = 8;  ///< buffer of one virtual channel at an input port
  std::uint32_t routing_delay = 0;   ///< cycles; route looked ahead one hop
  std::uint32_t vc_alloc_delay = 1;
  std::uint32_t sw_alloc_delay = 1;
  std::uint32_t switch_delay = 1;  ///< switch traversal
  std::uint32_t link_delay = 1;    ///< router to router, injection and ejection
  std::uint32_t credit_delay = 2;  ///< buffer slot freed to credit usable upstream

  unsigned vcs() const { return kVirtualNetworks * vcs_per_set; }
  /// First virtual channel of a (class, set).
  unsigned first_vc(int virtual_network) const { return static_cast<unsigned>(virtual_network) * vcs_per_set; }
  Rate link_rate() const { return Rate(clock_hz * flit_bytes); }
};

}  // namespace kernbench
