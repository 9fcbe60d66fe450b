#pragma once
#include "models/pe/op.h"
#include "models/pe/services.h"

namespace kernbench::pe {

/// Reports a completed op to the observer, if it wants ops; the table of names and fields is docs/oplog.md.
/// `space`: for DMA, the kind of memory at the far end; `peer`: for IPCQ.
void log_op(const Services& services, const Op& op, Ps start, const char* component,
            std::optional<MemoryKind> space = std::nullopt, std::optional<PeCoord> peer = std::nullopt);
/// A named slice of a kernel, from tl.mark() to the next one or the kernel's end.
void log_mark(const Services& services, const std::string& kernel, const std::string& label, Ps start);

}  // namespace kernbench::pe
