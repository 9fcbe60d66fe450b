#pragma once
#include <cstdint>

#include "tlm/base/time.h"
#include "tlm/kernel/direction.h"
#include "tlm/machine/ids.h"

namespace kernbench {

class Usage;

/// What one IPCQ queue pair of a PE has done since it was first installed between its peers.
struct QueueStatistics {
  std::uint16_t group = 0;
  Direction direction;
  PeCoord peer, source;
  std::uint64_t messages_sent = 0, bytes_sent = 0;  ///< slot messages
  std::uint64_t messages_received = 0, bytes_received = 0;
  Ps blocked_for_credit = 0;     ///< a send was next and the peer's ring was full
  Ps blocked_for_data = 0;       ///< a recv was next and the own ring was empty
  std::uint16_t high_water = 0;  ///< most complete messages in the ring at once
  std::uint16_t slots = 0;
  Usage* usage = nullptr;  ///< over time; null: nobody wants it
};

}  // namespace kernbench
