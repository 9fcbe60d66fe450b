#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tlm/machine/address.h"

namespace kernbench {

struct Message;

/// Races of the same ops of a kernel, wherever they meet: mostly one mistake.
struct RaceKind {
  std::string kernel, first_op, second_op;  ///< ops without addresses
  std::uint64_t races = 0;
};

/// Finds PEs of one launch that race on a range of memory (`--debug`): two accesses by different PEs to a byte, at
/// least one a write, that nothing orders, so that the result depends on timing.
///
/// What orders (spec): a store is before whatever another PE does after it has received a message that was
/// sent after a fence behind that store. A read is before what follows a message that was sent after it, fence or not:
/// what is sent may depend on what was read. Messages pass order on. The end of a launch orders it before the next one.
/// Kept as vector clocks per launch and PE, and the last accesses to each range; one detector per SIP. A message from
/// another SIP counts as if it came from every PE here, since its way there is not followed: races behind it are
/// missed, none is invented. Accesses are looked at in the order in which this run makes them.
class RaceDetector {
 public:
  struct Race {
    PeCoord first, second;
    std::string first_op, second_op;
    PhysicalAddress at;
    std::uint64_t bytes = 0;
    /// "sip0.cube0.pe0 store(...) and sip0.cube0.pe1 load(...) race on 64 B at ..."
    std::string str() const;
  };
  /// Counts a race; true: the first of its kind. A machine's detectors share one list.
  bool count(const std::string& kernel, const Race& race);
  void share(std::vector<RaceKind>* kinds) { kinds_ = kinds; }
  using Text = std::shared_ptr<const std::string>;  ///< an op, in words; shared by its bursts

  /// `pe`, running `launch`, reads or writes; appends the races with what others did before.
  void access(const Message& launch, PeCoord pe, const Text& op, const PhysicalAddress& at, std::uint64_t bytes,
              bool write, std::vector<Race>& races);
  void fenced(const Message& launch, PeCoord pe);  ///< all that it issued is complete
  /// A message of `pe` leaves for ring `ring` of `to`; the messages of a ring arrive in order.
  void sent(const Message& launch, PeCoord pe, PeCoord to, std::uint16_t ring);
  void received(const Message& launch, PeCoord pe, PeCoord from, std::uint16_t ring);
  void ended(const Message& launch, PeCoord pe);

  RaceDetector() = default;
  RaceDetector(const RaceDetector&) = delete;
  RaceDetector& operator=(const RaceDetector&) = delete;

 private:
  struct Times {
    std::uint32_t stores = 0, reads = 0;
  };
  using Clock = std::map<PeCoord, Times>;
  struct Pe {
    Clock known;     ///< of others: what is before its next access. Of itself: the present epochs
    Clock released;  ///< what its messages pass on
  };
  struct Touch {
    PeCoord pe;
    std::uint32_t epoch = 0;
    Text op;
  };
  struct Range {
    std::uint64_t end = 0;
    std::vector<Touch> write;  ///< the last one, if any
    std::vector<Touch> reads;  ///< the last of each PE since
  };
  struct Launch {
    std::map<PeCoord, Pe> pes;
    std::size_t ended = 0;
    std::map<std::uint64_t, Range> ranges;  ///< by encoded address of the first byte; never overlapping
  };
  Pe& pe_of(Launch& launch, PeCoord pe);
  static void split(Launch& launch, std::uint64_t at);
  static void join(Clock& into, const Clock& from);

  std::map<std::uint64_t, Launch> launches_;  // by id of the message, until all of its PEs have ended
  std::vector<RaceKind> own_kinds_;
  std::vector<RaceKind>* kinds_ = &own_kinds_;
  std::map<std::pair<PeCoord, std::uint16_t>, std::deque<Clock>> on_their_way_;  ///< by receiver and ring
};

}  // namespace kernbench
