#pragma once
#include <cstdint>
#include <string>

#include "runtime/tp/gemm_mapping.h"
#include "runtime/tp/gemm_problem.h"

namespace kernbench::tp {

/// What a mapping should take, and what of: resources work at once, the slowest binds. Picoseconds.
struct GemmEstimate {
  Ps time = 0;
  Ps array = 0;     ///< the busiest PE's array, or math engine
  Ps memory = 0;    ///< the busiest HBM slice
  Ps port = 0;      ///< a PE's port: what it reads, and what is passed on to it
  Ps cut = 0;       ///< UCIe links across the middle of the SIP; of a ring, the busiest link
  Ps dispatch = 0;  ///< PE_CPU
  Ps latency = 0;   ///< first operands, fill, drain, epilogue, last store
  std::string binds() const;
};

/// One access of the farthest slice that holds a part of a.
Ps farthest_access(const GemmProblem& p);

/// Bytes of TCM that a GEMM may plan with.
std::uint64_t room_of(const GemmProblem& p);

/// Of a row of a that a split k loads at once where steps are shorter: steps are then cut out on the math engine. 0: a
/// step at a time.   measured on `default`: half of kSpanBytes is slow; of more than a block of rows, cutting keeps
/// narrow columns waiting for longer than short pieces do (512 x 512 x 4096: 0.44 of its bound against 0.68). Less
/// where TCM is small. Where b goes round, rows of a lie where they are read.
std::int64_t longest_span(const GemmProblem& p);

/// Elements of a row of a that are loaded at once, by a step of so many.
std::int64_t span_of(const GemmProblem& p, const GemmMapping& mapping, std::int64_t step);

/// Of a mapping with tiles; `kept_bytes` of b may stay in TCM over groups of rows.
GemmEstimate estimate(const GemmProblem& p, const GemmMapping& mapping, std::uint64_t kept_bytes);

}  // namespace kernbench::tp
