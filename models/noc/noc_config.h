#pragma once
#include <cstdint>

#include "tlm/base/time.h"
#include "tlm/ext/packet.h"

namespace kernbench {

enum class Arbitration : std::uint8_t { round_robin, weighted_round_robin };
enum class RoutingAlgorithm : std::uint8_t { xy, yx, table };
/// per_flow: a function of source and destination, the same at every router, so that packets of a flow never overtake.
/// any: whichever is free, round robin, anew at every router.
enum class VcChoice : std::uint8_t { per_flow, any };
/// interleave: flits of packets in different virtual channels share a link flit by flit. hold: a link granted to a
/// packet stays with it until the tail, unless it runs out of credits or flits.
enum class SwitchPolicy : std::uint8_t { interleave, hold };

/// Shape and timing of a router network, in cycles of its clock. topology.yaml and its presets hold the sources.
struct NocConfig {
  std::uint16_t rows = 4, cols = 4;
  std::uint32_t flit_bytes = 64;
  std::uint64_t clock_hz = 4'000'000'000;
  RoutingAlgorithm routing = RoutingAlgorithm::xy;
  Arbitration arbitration = Arbitration::round_robin;
  VcChoice vc_choice = VcChoice::per_flow;
  SwitchPolicy switch_policy = SwitchPolicy::interleave;
  bool packet_chaining = true;       ///< a packet takes over the output channel of the one before it in its buffer
  std::uint32_t vcs_per_set = 4;     ///< virtual channels of each (class, set)
  std::uint32_t vc_depth_flits = 8;  ///< buffer of one virtual channel at an input port
  std::uint32_t routing_delay = 0;   ///< cycles; route looked ahead one hop
  std::uint32_t vc_alloc_delay = 1;
  std::uint32_t sw_alloc_delay = 1;
  std::uint32_t switch_delay = 1;             ///< switch traversal
  std::uint32_t link_delay = 1;               ///< router to router, injection and ejection
  std::uint32_t credit_delay = 2;             ///< buffer slot freed to credit usable upstream
  std::uint64_t energy_per_bit_aj = 200'000;  ///< attojoule: buffer, switch and the wire to the next hop
  std::uint64_t static_uw = 10'000;           ///< microwatt of one router

  unsigned vcs() const { return kVirtualNetworks * vcs_per_set; }
  /// First virtual channel of a (class, set).
  unsigned first_vc(int virtual_network) const { return static_cast<unsigned>(virtual_network) * vcs_per_set; }
  Rate link_rate() const { return Rate(clock_hz * flit_bytes); }
};

}  // namespace kernbench
