#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "runtime/call_order.h"
#include "tlm/ext/message.h"

namespace kernbench {

/// Finds messages of queues that nobody has received, which would be taken for those of a later launch.
///
/// What goes between PEs of one launch is received in that launch; between the parts of a collective, in that call;
/// between other launches, by the end of the program. Counted per ring, as kernels report when they end (RingCount).
class Leftovers {
 public:
  /// A launch is complete. Adds a fault to it for each ring in which it, or the collective of which it is the last
  /// part, has left something. `order` null: it is no collective.
  void came_back(Message& message, const CallOrder* order, std::size_t call, bool repeated);
  /// A part of a collective that no PE takes part in.
  void no_part(const CallOrder& order, std::size_t call);
  /// What the launches of a program have left; empty: nothing. Forgets it.
  std::string at_end();

 private:
  using Ring = std::pair<PeCoord, std::uint16_t>;
  struct Count {
    std::int64_t messages = 0;
    RingCount sent;      ///< of who put them in
    std::string kernel;  ///< of the sender
  };
  using Rings = std::map<Ring, Count>;
  struct Call {
    int parts = 0;
    bool repeated = false;  ///< a part was not simulated: nothing is known of it
    Rings open;
  };
  static void add(Rings& rings, const RingCount& count, const std::string& kernel);
  static void put(Rings& rings, const Ring& ring, const Count& count);
  static std::string text_of(const Count& count);
  static void report(const Rings& rings, Message& message);

  Rings open_;  ///< of launches that are no collectives
  std::map<std::pair<const CallOrder*, std::size_t>, Call> calls_;
};

}  // namespace kernbench
