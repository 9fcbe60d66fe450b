#pragma once
#include "models/pe/lanes.h"
#include "models/pe/services.h"
#include "models/pe/tracks.h"

namespace kernbench::pe {

/// The GEMM or the math engine: one op at a time, for the cycles of its closed form (compute_timing.h), from the clock
/// edge at or after the instant at which it is reached with its operands complete.
class ComputeEngine {
 public:
  enum class Kind { gemm, math };
  ComputeEngine(Kind kind, Services& services, OpSink& sink);

  bool full(const Op& op) const;
  void enqueue(Op& op);
  void advance();  ///< an op may have become ready
  /// Takes out what is queued of a failed kernel; a running op ends as usual.
  void remove(const KernelContext& context, std::vector<Op*>& removed) { lanes_.remove(context, removed); }

 private:
  void finish(Op& op);
  std::uint64_t label(const Op& op) const;

  Services& services_;
  OpSink& sink_;
  const Kind kind_;
  const Clock clock_;
  Lanes lanes_;
  bool busy_ = false;
  Track track_;
};

}  // namespace kernbench::pe
