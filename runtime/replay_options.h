#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tlm/ext/message.h"
#include "tlm/kernel/tile.h"

namespace kernbench {

/// Keeps what simulated work has done in the machine, such as the bits that a network carried, for its repeats: they do
/// what the mean of its occurrences did.
class ReplayRecord {
 public:
  /// One part of a kind of work, which one SIP does.
  struct Work {
    std::size_t kind = 0;  ///< its number
    std::size_t part = 0;  ///< of a collective, the place of the member; behind all places, by SIP, what its links do
  };
  /// What a SIP does once of such a part.
  struct Batch {
    /// Of virtual addresses.
    struct Range {
      Va begin = 0;
      std::uint64_t bytes = 0;
    };
    /// Of the host.
    struct Call {
      std::uint64_t message = 0;  ///< its id
      std::string kernel;         ///< of a launch or a collective
    };
    int sip = 0;
    bool links = false;          ///< what leaves the SIP for others while a collective goes on; else all but that
    std::vector<Call> calls;     ///< in order
    std::vector<Range> tensors;  ///< that they use, in order
  };
  /// What a SIP has done up to an instant or, once it has ended, from that one on.
  struct Done {
    virtual ~Done() = default;
  };
  virtual ~ReplayRecord() = default;
  /// Work of a SIP begins, or has ended: nothing else is under way there. Where it cannot be told apart from other
  /// work, `end` is not called. Null: nothing of it is kept.
  virtual std::unique_ptr<Done> begin(const Batch& batch) = 0;
  virtual void end(int sip, Done& done) = 0;
  /// `done` is what an occurrence did from `from` on, of a collective, when its last member came; `afresh`: occurrences
  /// before it count no more.
  virtual void simulated(Work work, const Done& done, Ps from, bool afresh) = 0;
  /// A SIP does it from `begin` to `end`, and it is not simulated. Parts of one collective are told one after the
  /// other. Of work of which no occurrence is known yet, one may be told later.
  virtual void repeated(Work work, const Batch& batch, Ps begin, Ps end) = 0;
  /// The host waits from now on for a message that is not simulated, the last one of its work; and hears of its end.
  virtual void waits(std::uint64_t) {}
  virtual void hears(std::uint64_t, Work, int /*sip*/) {}
};

/// What makes equal work differ that comes at different times: every `every` ps the memory stands for up to `takes` ps.
struct ReplayRefresh {
  double every = 0, takes = 0;  ///< 0: it does not

  /// ps^2: work of that length meets whole refreshes, and one more as often as the rest of its length says.
  double variance(double length) const {
    if (every <= 0) return 0;
    const double turns = length / every, rest = turns - static_cast<double>(static_cast<std::uint64_t>(turns));
    return rest * (1 - rest) * takes * takes;
  }
};

/// From one instant to another.
struct ReplayWindow {
  Ps from = 0, to = kNever;
};

/// Work that takes long is simulated less often: it costs seconds, and what its first occurrence finds otherwise than
/// later ones is little of it.
struct ReplayLong {
  double from = 10e6;  ///< ps a launch: rows that the first occurrence finds closed are 1 % of it at most
  /// Occurrences before others take their mean; at least 1. Two of the first kinds (ReplayKind::kTold): by what
  /// occurrences differ, collectives wait for the last of equal SIPs.
  std::uint64_t least = 2;
};

/// How work is repeated (runtime/replay.h).
struct ReplayOptions {
  std::uint64_t sample = 64;  ///< one repeat in so many is simulated as well, and compared; at least 1
  std::uint64_t seed = 1;     ///< of the choice which
  /// By SIP: those of one number are equal in all that a launch of theirs can meet. Empty: no two are.
  std::vector<std::uint32_t> alike;
  std::vector<ReplayRecord*> records;  ///< they outlive the runtime
  std::vector<ReplayWindow> watched;   ///< what runs then is simulated, for somebody looks at it
  ReplayRefresh refresh;               ///< of the memory
  /// Adds a range to the page table of a SIP, as a message does that is repeated. Empty: such messages are simulated.
  std::function<void(int sip, const MapEntry& entry)> map;
  ReplayLong long_work;
};

/// What replay has made of a run.
struct ReplayReport {
  std::uint64_t launches = 0, collectives = 0;  ///< parts of collectives, one for each member
  std::uint64_t repeated_launches = 0, repeated_collectives = 0;
  std::uint64_t shared = 0;             ///< of the repeated: with an equal one that was being simulated
  std::uint64_t repeated_mappings = 0;  ///< of new tensors; in none of the other figures
  std::uint64_t kinds = 0;              ///< of launches and collectives that differ
  double time = 0, repeated = 0;  ///< ps: sums over launches and parts of what they took, each from the end of the
                                  ///< one before it on; of the repeated ones
  std::uint64_t samples = 0;      ///< repeats that were simulated as well
  double largest = 0;           ///< of a kind with samples: how far their mean is from that of the repeats, as a share
  std::string largest_of;       ///< its name
  double all = 0;               ///< the samples' sum against that of what they would have been as repeats, as a share
  std::uint64_t refused = 0;    ///< kinds whose samples differed by more than they may: simulated since
  std::uint64_t disturbed = 0;  ///< repeats that something met that came later
};

}  // namespace kernbench
