#pragma once
#include "models/pe/compute/gemm_array.h"
#include "models/pe/engine_queues.h"
#include "models/pe/services.h"
#include "models/pe/tracks.h"

namespace kernbench::pe {

/// The GEMM or the math engine. An op begins at the clock edge at or after the instant at which it is reached with its
/// operands complete. Math: one op at a time, for the cycles of its closed form (compute_timing.h). GEMM: the next op
/// enters the array as soon as its edge is free (gemm_array.h); while the array holds the sums of a composite's output
/// tile, only that composite's next step can enter. Operands and results load TCM's banks; where these are too slow, so
/// is the engine.
class ComputeEngine {
 public:
  enum class Kind { gemm, math };
  ComputeEngine(Kind kind, Services& services, OpSink& sink);

  bool full(const Op& op) const;
  void enqueue(Op& op);
  void advance();  ///< an op may have become ready
  /// Takes out what is queued of a failed kernel; running ops end as usual.
  void remove(const KernelContext& context, std::vector<Op*>& removed);

 private:
  /// When an op begins, when the engine can take the next one, when its operands have been read, when it is done.
  struct Span {
    Ps begin, accepts, read, done;
  };
  Op* next();
  void begin(Op& op);
  Span take(const Op& op);
  Span take_product(const Op& op);
  Span take_math(const Op& op);
  void finish(Op& op);
  std::uint64_t label(const Op& op) const;
  /// Null: nobody wants what happens over time.
  Usage* usage() const { return kind_ == Kind::gemm ? services_.usages.gemm : services_.usages.math; }

  Services& services_;
  OpSink& sink_;
  const Kind kind_;
  const Clock clock_;
  EngineQueues queues_;
  GemmArray array_;
  bool accepting_ = true, advancing_ = false;
  const KernelContext* holder_ = nullptr;   // whose composite has sums in the array
  Ps shown_until_ = 0;                      // busy up to here has been counted and published
  Ps at_peak(const Op& op) const;           // of a product, if somebody asks for causes
  void spend(const Cause& cause, Ps peak);  // the time since then; `peak` of it the array computes

  Track track_;
  Cause cause_;  // of the op that holds the engine
  Ps peak_ = 0;  // of that op
};

}  // namespace kernbench::pe
