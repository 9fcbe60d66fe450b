#pragma once
#include <array>
#include <cstdint>

#include "tlm/ext/message.h"
#include "tlm/observe/observer.h"

namespace kernbench {

/// Whether PCIE_EP carries out the message itself, as bursts between the host and a memory.
bool is_copy(const Message& message);

/// What the host's side of a copy takes of its time.
struct HostShare {
  Ps doorbell = 0, latency = 0, wire = 0;
};
/// Sets Message::spent of a copy that ends at `end`: `burst` of the burst that ended last, the host's share, and
/// waiting.
void account_copy(Message& message, const std::array<Ps, kDelays>& burst, const HostShare& host, Ps end);

/// What the op log says of a message that has been answered.
OpRecord host_record(const Message& message, std::uint16_t sip);

}  // namespace kernbench
