#pragma once
#include <string>

#include "tlm/ext/message.h"
#include "tlm/machine/machine_map.h"

namespace kernbench {

/// Why a message that a program made by hand cannot go to a SIP: no kernel, a place that the machine does not have, a
/// range that nothing answers for. Empty: it can.
/// What the runtime makes itself needs no such check.
std::string fault_of(const decltype(Message::body)& body, const MachineMap& map, int sip);

}  // namespace kernbench
