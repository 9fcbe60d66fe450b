#pragma once
#include <cstdint>

#include "tlm/kernel/call.h"

namespace kernbench::ccl {

/// Entries of tl.call().parameters that the backend adds to the declared ones.
inline constexpr const char* kSlotsKey = "ipcq.slots";
inline constexpr const char* kSlotBytesKey = "ipcq.slot_bytes";

inline std::int64_t parameter_or(const CollectiveCall& call, const char* name, std::int64_t otherwise) {
  const auto found = call.parameters.find(name);
  return found == call.parameters.end() ? otherwise : found->second;
}

}  // namespace kernbench::ccl
