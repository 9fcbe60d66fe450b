#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ccl/level_cost.h"
#include "ccl/rehearsal/record.h"

namespace kernbench::ccl {

/// What the engines of a PE take: PeRates in seconds and bytes per second.
struct Engines {
  explicit Engines(const PeRates& rates)
      : dispatch(seconds(rates.engines.dispatch)),
        dma_setup(seconds(rates.engines.dma_setup)),
        dma_bytes(static_cast<double>(rates.engines.dma_bytes)),
        tcm_latency(seconds(rates.engines.tcm_latency)),
        tcm(static_cast<double>(rates.tcm.bytes_per_second())),
        cycle(1 / static_cast<double>(rates.engines.math_hz)),
        raw(rates.engines) {}

  /// Seconds that the math engine takes for an op.
  double math(const RehearsedOp& op) const {
    const auto item = static_cast<std::uint32_t>(std::max(op.place, 1));
    const std::uint32_t lanes = std::max(item > 4 ? raw.math_lanes / 2 : raw.math_lanes, 1U);
    const std::uint32_t cycles = (op.bytes / item + lanes - 1) / lanes + raw.math_fill;
    return cycles * cycle;
  }
  /// Ops that wait for the engine.
  std::size_t depth(RehearsedOp::Kind kind) const {
    using Kind = RehearsedOp::Kind;
    return kind == Kind::math                          ? raw.math_queue
           : kind == Kind::load || kind == Kind::store ? raw.dma_queue
                                                       : raw.ipcq_queue;
  }

  double dispatch, dma_setup, dma_bytes, tcm_latency, tcm, cycle;
  PeEngines raw;
};

}  // namespace kernbench::ccl
