#pragma once
#include "runtime/tp/gemm.h"
#include "runtime/tp/gemm_mapping.h"

namespace kernbench::tp {

/// What a launch by this mapping cannot beat. All PEs of the SIP that hold a part of an operand work at once:
///   array    least over m, n and k split over PEs of ceil(m'/rows) ceil(n'/cols) k' cycles, or the math engines at one
///            multiplication and one addition per lane and cycle each, if that is less
///   memory   bytes of all operands, each once, at the rate of the slices that hold copies of them
///   ucie     bytes of a and b that the cubes' parts of c need from other cubes, at the rate of the links (gemm_cut.h)
/// These are what no mapping beats. On top comes what this one cannot hide (latency):
///   - one dispatch, fill and drain of the engine that it uses, one way there and back for the result;
///   - one access of an open row of the own slice, in front of the longest of them; or, where it takes longer than all
///     these, the part of a or b that lies farthest from a result that needs it, one way: far parts may come while the
///     PE works on near ones;
///   - of a split k the spread and the sums: a PE works at the rows of b that it holds and at nothing else, so that it
///     begins when the first of their columns of a is there, with its part of the array's time behind it; behind the
///     last product a partial sum goes to another PE of the cube, which adds and rounds it.
struct GemmBound {
  Ps time = 0, array = 0, memory = 0, ucie = 0;
  Ps latency = 0;    ///< time is this and the longest of array, memory and ucie
  Ps spread = 0;     ///< of latency: a split k's first part of a comes from afar
  Ps sums = 0;       ///< of latency: a split k's partial sums
  double bytes = 0;  ///< of all operands, each once
  const char* binds() const;
};
GemmBound gemm_bound(const MachineMap& map, const GemmOperands& operands, const GemmMapping& mapping);

/// MACs that a cell of the array does in so many cycles.
struct CellRate {
  std::uint64_t cycles = 1, at_once = 1;
};
CellRate cell_rate(const PeEngines& engines, DType dtype);

}  // namespace kernbench::tp
