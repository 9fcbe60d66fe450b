#pragma once
#include <cstdint>

#include "tlm/machine/ids.h"

namespace kernbench {

/// Names a program that PEs of a SIP have.
enum class ProgramId : std::uint32_t {};

/// What a PE keeps beside its kernels: a step list, with its tables, that a kernel follows. Whoever makes it derives
/// from it; a kernel of his finds it with Tl::program. Immutable.
class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  virtual ~Program() = default;
  /// Of what one PE gets of it, when it is installed.
  virtual std::uint64_t bytes(PeCoord pe) const = 0;
};

}  // namespace kernbench
