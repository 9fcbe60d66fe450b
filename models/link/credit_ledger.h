#pragma once
#include <array>
#include <cstdint>
#include <memory>

#include "models/noc/virtual_channel.h"

namespace kernbench {

/// The sender's knowledge of the buffers behind one output, by virtual channel.
///
/// Credits carry the time from which they may be used and are consumed lazily: no event marks their coming. They come
/// in runs: `units` from `when` on, one more per `step`. A packet of n units that starts at s uses its unit j at
/// s + j step, so it may start at the latest of (run.when - units of the packet before that run). A virtual channel
/// belongs to one packet until its last flit has been sent. State of a virtual network is made on its first use.
class CreditLedger {
 public:
  explicit CreditLedger(unsigned vcs_per_set, Cycle step = 1) : split_(vcs_per_set), step_(step) {}

  /// Adds to the capacity that virtual channel `vc` starts with.
  void announce(unsigned vc, unsigned units) {
    if (capacity_ == 0) capacity_ = units;
    if (units != capacity_) at(vc).available = units;
  }
  void add(unsigned vc, unsigned units, Cycle when, Cycle now) {
    Vc& c = at(vc);
    settle(c, now);
    if (c.runs != 0) {
      Run& last = c.at(c.runs - 1);
      if (last.when + last.units * step_ == when) {
        last.units += units;
        return;
      }
      if (c.runs == kRuns) {  // never early: the last run moves behind
        if (when > last.when + last.units * step_) last.when = when - last.units * step_;
        last.units += units;
        return;
      }
    }
    c.at(c.runs++) = {when, units};
  }
  /// Earliest start of a packet of `units`, which may be long past; kNoCycle: not known yet.
  Cycle ready(unsigned vc, unsigned units) {
    const Vc& c = at(vc);
    Cycle earliest = c.owned_until;
    unsigned before = c.available;
    for (unsigned r = 0; before < units; ++r) {
      if (r == c.runs) return kNoCycle;
      const Run& run = c.at(r);
      const Cycle start = run.when > before * step_ ? run.when - before * step_ : 0;
      if (start > earliest) earliest = start;
      before += run.units;
    }
    return earliest;
  }
  /// A packet starts at or after ready(vc, units) and has left before `until`.
  void take(unsigned vc, unsigned units, Cycle until) {
    Vc& c = at(vc);
    c.owned_until = until;
    while (c.available < units) pop(c);
    c.available -= units;
  }

 private:
  static constexpr unsigned kRuns = 16;
  struct Run {
    Cycle when;
    unsigned units;
  };
  struct Vc {
    Cycle owned_until = 0;
    unsigned available = 0;
    std::uint16_t runs = 0, first = 0;
    std::array<Run, kRuns> run;  // a ring
    Run& at(unsigned r) { return run[(first + r) % kRuns]; }
    const Run& at(unsigned r) const { return run[(first + r) % kRuns]; }
  };
  static void pop(Vc& c) {
    sc_assert(c.runs != 0);
    c.available += c.at(0).units;
    c.first = static_cast<std::uint16_t>((c.first + 1) % kRuns);
    --c.runs;
  }
  // A run that has begun is as good as available: whoever uses it does so at one unit per step, too.
  static void settle(Vc& c, Cycle now) {
    while (c.runs != 0 && c.at(0).when <= now) pop(c);
  }
  Vc& at(unsigned vc) {
    auto& vcs = networks_[split_.network(vc)];
    if (!vcs) {
      vcs = std::make_unique<Vc[]>(split_.vcs_per_set());
      for (unsigned k = 0; k < split_.vcs_per_set(); ++k) vcs[k].available = capacity_;
    }
    return vcs[split_.channel(vc)];
  }

  VcSplit split_;
  Cycle step_;
  unsigned capacity_ = 0;
  std::array<std::unique_ptr<Vc[]>, kVirtualNetworks> networks_;
};

}  // namespace kernbench
