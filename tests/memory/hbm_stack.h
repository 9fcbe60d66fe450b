#pragma once
#include "models/hbm/hbm.h"
#include "tests/memory/hbm_presets.h"
#include "tests/memory/initiator.h"
#include "tlm/machine/address.h"

namespace kernbench {

inline constexpr Ps kCk = 625;  // of hbm3_6400()
inline constexpr Ps kController = 10'000;
inline constexpr CubeCoord kCube{1, 2};

/// Two channels of HBM3, four pseudo channels, dealt to two slices.
inline HbmConfig small_hbm() {
  HbmConfig config = hbm3_6400();
  config.channels = 2;
  config.bytes = 64 << 20;
  config.controller_latency = kController;
  return config;
}
inline std::uint64_t address(std::uint64_t offset, std::uint16_t slice = 0) {
  return PhysicalAddress::hbm({kCube.sip, kCube.cube, slice}, offset).encode();
}

/// The stack with a test initiator at each slice. One per TEST: SystemC elaborates once in a process.
struct HbmStack {
  explicit HbmStack(const HbmConfig& config = small_hbm(), RunOptions options = {}, Observer* observer = nullptr)
      : hbm("hbm", config, kCube, 2, options, queue, observer), initiators{{"i0", queue}, {"i1", queue}} {
    for (int i = 0; i < 2; ++i) initiators[i].out.bind(*hbm.port[static_cast<std::size_t>(i)]);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }
  /// Latency of one request sent at `time`.
  Ps run(Ps time, tlm::tlm_generic_payload& payload, int slice = 0) {
    const std::size_t id = initiators[slice].send(time, payload);
    queue.run_all();
    return initiators[slice].records[id].response - time;
  }
  EventQueue queue;
  Hbm hbm;
  TestInitiator initiators[2];
};

inline const HbmTiming kTiming = hbm3_6400().timing;
inline const Ps kHit = (1 + kTiming.t_cl + 2) * kCk;
inline const Ps kClosed = kHit + (kTiming.t_rcd_rd + 1) * kCk;
inline const Ps kConflict = kClosed + (kTiming.t_rp - 1) * kCk;

// 512 KiB: one step of the row field with RoSiBaCoBg over two pseudo channels: 4 groups x 32 columns x 4 banks x 2
// stacks x 32 B.
inline constexpr std::uint64_t kNextRow = 2 * 32768 * 2;

}  // namespace kernbench
