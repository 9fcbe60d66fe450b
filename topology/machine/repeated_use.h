#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tlm/observe/usage.h"

namespace kernbench::topology {

/// What a place of a SIP did: a resource, or a virtual channel of a router's port.
struct PlaceUse {
  Ps busy = 0;
  std::uint64_t bytes = 0, messages = 0;
  Usage::Waits waited{};
  std::uint32_t mark = 0;
};

/// What work did in a machine that was not simulated, since equal work had been: each repeat the mean of what its
/// occurrences did at every place, spread evenly over its time.
class RepeatedUse {
 public:
  /// A kind of work, and which part of it.
  using Work = std::pair<std::size_t, std::size_t>;
  /// `slices`: at most, as of the machine's usages.
  explicit RepeatedUse(std::uint32_t slices) : slices_(slices) {}

  /// An occurrence was simulated; `uses` by place. `afresh`: those before it do not count any more.
  void simulated(const Work& work, const std::vector<PlaceUse>& uses, bool afresh);
  void repeated(const Work& work, std::uint16_t sip, Ps begin, Ps end);
  bool empty() const { return repeats_.empty(); }

  /// The slices of a run that ended at `end`: 2^shift ps long, not shorter than `shift` says.
  std::uint32_t prepare(std::uint32_t shift, Ps end);
  struct Sum {
    PlaceUse total;  ///< of `waited` and `busy` what `slices` hold
    std::vector<Usage::Slice> slices;
    std::vector<Usage::Waits> reasons;  ///< likewise, of their waiting; empty: nobody wants that
  };
  /// Adds to `sum`, whose slices are the run's, what repeats did at a place, and returns whether there was any.
  /// `units`: of it, that may be busy at once; no slice is busy for longer than it is. REQUIRES: prepare().
  bool add(std::uint16_t sip, std::uint32_t place, std::uint32_t units, Sum& sum) const;

 private:
  struct Known {
    struct Sums {
      double busy = 0, bytes = 0, messages = 0;
      std::array<double, Usage::kReasons> waited{};
      std::uint32_t mark = 0;
    };
    std::vector<Sums> sums;  // of the occurrences, by place
    std::uint64_t occurrences = 0;
  };
  /// How many occurrences' worth of a kind of work a SIP did in each slice.
  struct Weights {
    const Known* known = nullptr;
    std::size_t first = 0;
    std::vector<double> of;
  };

  UsageSlices slices_;
  std::uint32_t used_shift_ = 0;
  Ps end_ = 0;
  std::map<Work, Known> known_;
  std::map<std::pair<std::uint16_t, Work>, Usage> repeats_;
  std::vector<std::vector<Weights>> weights_;  // by SIP
};

}  // namespace kernbench::topology
