#pragma once
#include <cstdint>

#include "tlm/ext/message.h"
#include "tlm/observe/observer.h"

namespace kernbench {

/// Whether PCIE_EP carries out the message itself, as bursts between the host and a memory.
bool is_copy(const Message& message);

/// What the op log says of a message that has been answered.
OpRecord host_record(const Message& message, std::uint16_t sip);

}  // namespace kernbench
