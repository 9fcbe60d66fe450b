#pragma once
#include <cstdint>
#include <string>
#include <tlm>

#include "models/memory/sparse_memory.h"

/// Functional side of an access: what a payload asks for, and its effect on contents. Takes no time.
namespace kernbench::memory_access {

/// TLM_OK_RESPONSE, or why the payload cannot be served by a memory of `capacity` bytes at `offset` of it. A streaming
/// width of 0 counts as the data length.
tlm::tlm_response_status check(const tlm::tlm_generic_payload& payload, std::uint64_t offset, std::uint64_t capacity);

/// Reads or writes `contents`, byte enables respected. Returns false if tracked contents were read before written.
/// REQUIRES: check() is TLM_OK_RESPONSE.
bool apply(tlm::tlm_generic_payload& payload, std::uint64_t offset, SparseMemory& contents);

/// Reports a read of bytes that nobody wrote. `memory`: structural name.
void warn_unwritten(const std::string& memory, const tlm::tlm_generic_payload& payload);

}  // namespace kernbench::memory_access
