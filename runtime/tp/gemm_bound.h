#pragma once
#include "runtime/tp/gemm.h"

namespace kernbench::tp {

/// What no mapping can beat: all PEs of the SIP that hold a part of an operand work at once, at the best split.
///   array    least over m, n and k split over PEs of ceil(m'/rows) ceil(n'/cols) k' cycles, or the math engines at one
///            multiplication and one addition per lane and cycle each, if that is less
///   memory   bytes of all operands, each once, at the rate of the slices that hold copies of them
///   latency  one dispatch, one access of an open row, fill and drain of the array, one way there and back for the
///            result; the access is that of the part of a or b that lies farthest from a result that needs it, one way,
///            where that takes longer
///   time     dispatch, fill, drain and way of the result, and the longer of an access of the own slice followed by
///            array or memory, and the farthest access: far parts may come while the PE works on near ones
struct GemmBound {
  Ps time = 0, array = 0, memory = 0, latency = 0;
  double bytes = 0;  ///< of all operands, each once
  const char* binds() const;
};
GemmBound gemm_bound(const MachineMap& map, const GemmOperands& operands);

/// MACs that a cell of the array does in so many cycles.
struct CellRate {
  std::uint64_t cycles = 1, at_once = 1;
};
CellRate cell_rate(const PeEngines& engines, DType dtype);

}  // namespace kernbench::tp
