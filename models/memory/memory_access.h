#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <tlm>

#include "models/memory/sparse_memory.h"

/// Functional side of an access: what a payload asks for, and its effect on contents. Takes no time.
namespace kernbench::memory_access {

/// `offset` if a memory of `capacity` bytes can serve the payload there. Sets the response status: TLM_OK_RESPONSE, or
/// why it cannot. A streaming width of 0 counts as the data length.
std::optional<std::uint64_t> check(tlm::tlm_generic_payload& payload, std::uint64_t offset, std::uint64_t capacity);

/// Reads or writes `contents`, byte enables respected. Returns false if tracked contents were read before written.
/// REQUIRES: check() gave an offset.
bool apply(tlm::tlm_generic_payload& payload, std::uint64_t offset, SparseMemory& contents);

/// Reports a read of bytes that nobody wrote. `memory`: structural name.
void warn_unwritten(const std::string& memory, const tlm::tlm_generic_payload& payload);

}  // namespace kernbench::memory_access
