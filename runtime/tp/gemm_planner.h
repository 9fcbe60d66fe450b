#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/tp/gemm.h"
#include "runtime/tp/gemm_mapping.h"

namespace kernbench::tp {

/// What a mapping should take, and what of: resources work at once, the slowest binds. Picoseconds.
struct GemmEstimate {
  Ps time = 0;
  Ps array = 0;     ///< the busiest PE's array, or math engine
  Ps memory = 0;    ///< the busiest HBM slice
  Ps port = 0;      ///< a PE's port: what it reads, and what is passed on to it
  Ps cut = 0;       ///< UCIe links across the middle of the SIP
  Ps dispatch = 0;  ///< PE_CPU
  Ps latency = 0;   ///< first operands, fill, drain, epilogue, last store
  std::string binds() const;
};

/// What no mapping can beat: all PEs of the SIP that hold a part of an operand work at once, at the best split.
///   array    least over m, n and k split over PEs of ceil(m'/rows) ceil(n'/cols) k' cycles, or the math engines at one
///            multiplication and one addition per lane and cycle each, if that is less
///   memory   bytes of all operands, each once, at the rate of the slices that hold copies of them
///   latency  one dispatch, one access of an open row, fill and drain of the array, one way there and back for the
///   result
struct GemmBound {
  Ps time = 0, array = 0, memory = 0, latency = 0;
  std::string binds() const;
};

struct GemmCandidate {
  GemmMapping mapping;
  GemmEstimate estimate;
};

/// What was chosen for one GEMM, and what it was chosen from.
struct GemmPlan {
  GemmCandidate best;
  GemmBound bound;
  std::vector<GemmCandidate> considered;  ///< the best tiles of each kind that serves, the best kind first
  std::uint64_t kept_bytes = 0;           ///< of b that may stay in TCM
  std::uint64_t pes_of_cube = 0;          ///< bit p: PE p of each cube makes a part of c
};

/// The mapping with the least estimate; `mapping` "auto", or a kind or a whole mapping to force (parse_gemm_mapping).
/// Takes no simulated time. Throws std::invalid_argument on operands that do not fit, naming `name`, and on a mapping
/// that does not serve them.
GemmPlan plan_gemm(const MachineMap& map, const std::string& name, const GemmOperands& operands,
                   const std::string& mapping = "auto");

/// gemm() with a plan made before. REQUIRES: of these operands, or such that lie alike.
Handle gemm(Context& context, const std::string& name, const GemmOperands& operands, const GemmPlan& plan);

}  // namespace kernbench::tp
