#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "tlm/ext/packet.h"
#include "tlm/observe/observer.h"

namespace kernbench {

/// Where the time of a transaction went, by Delay; adds up to its latency.
using Breakdown = std::array<Ps, kDelays>;

/// Listens to the DMA ops of the machine since the last clear().
class DmaListener final : public OpObserver {
 public:
  void clear() { *this = DmaListener(); }
  std::uint64_t ops() const { return ops_; }
  Ps total() const { return total_; }                     ///< sum of the ops' times
  Ps last() const { return last_; }                       ///< time of the op that ended last
  const Breakdown& last_spent() const { return spent_; }  ///< where it went

  void op(const OpRecord& record) override {
    if (record.kind != "dma") return;
    ++ops_;
    total_ += record.end - record.start;
    if (record.end < last_end_ || record.spent.size() != spent_.size()) return;
    last_end_ = record.end;
    last_ = record.end - record.start;
    std::copy(record.spent.begin(), record.spent.end(), spent_.begin());
  }

 private:
  std::uint64_t ops_ = 0;
  Ps total_ = 0, last_ = 0, last_end_ = 0;
  Breakdown spent_{};
};

}  // namespace kernbench
