#pragma once
#include <cstdint>

#include "tlm/kernel/tl.h"

namespace kernbench::tp {

/// Bytes that a kernel may plan with, of a launch's share of TCM: three quarters, and less of a small one, in which
/// gaps between tiles are too short for the next one sooner.   measured: of 242 random GEMMs in 32 KiB to 8 MiB three
/// found no place in three quarters
std::uint64_t tcm_room(std::uint64_t share);

/// Elements of a tile: `most`, or fewer where TCM is small. `bytes`: of TCM that is in use at once for each of them.
std::int64_t fitting_elements(const Tl& tl, std::int64_t most, std::uint64_t bytes);

}  // namespace kernbench::tp
