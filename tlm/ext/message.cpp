#include "tlm/ext/message.h"

#include <fmt/format.h>

namespace kernbench {

const char* to_string(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kernel:
      return "kernel error";
    case Fault::Kind::mmu:
      return "MMU fault";
    case Fault::Kind::bus:
      return "bus error";
    case Fault::Kind::ipcq:
      return "IPCQ error";
    case Fault::Kind::out_of_memory:
      return "out of memory";
  }
  return "?";
}

std::string Fault::str() const {
  std::string text = fmt::format("{}: {}", component, to_string(kind));
  if (!kernel.empty()) text += fmt::format(" in kernel '{}'", kernel);
  if (!op.empty()) text += fmt::format(", op {}", op);
  return text + fmt::format(", at {}.{:03} ns: {}", time / kPsPerNs, time % kPsPerNs, reason);
}

}  // namespace kernbench
