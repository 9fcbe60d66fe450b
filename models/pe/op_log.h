#pragma once
#include <array>
#include <optional>
#include <string>

#include "models/pe/op.h"
#include "models/pe/services.h"

namespace kernbench::pe {

/// What an op's record says of the other end.
struct FarEnd {
  std::optional<MemoryKind> space;                 ///< DMA: the kind of memory
  std::optional<PeCoord> peer;                     ///< IPCQ
  const std::array<Ps, kDelays>* spent = nullptr;  ///< DMA: of the burst that ended last, from its injection
  Ps setup = 0;                                    ///< DMA: before the first burst
  std::uint64_t queue = 0, message = 0;            ///< IPCQ: as in OpRecord
};

/// Reports a completed op to the observer, if it wants ops; the table of names and fields is docs/oplog.md.
void log_op(const Services& services, const Op& op, const char* component, const FarEnd& far_end = {});
/// Reports a kernel that ends now.
void log_kernel(const Services& services, const Message& message, Ps start);
/// A named slice of a kernel, from tl.mark() to the next one or the kernel's end.
void log_mark(const Services& services, const std::string& kernel, const std::string& label, Ps start);

}  // namespace kernbench::pe
