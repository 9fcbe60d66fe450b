#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/runtime.h"
#include "tlm/kernel/tl.h"

namespace kernbench::tp {

class GemmPlans;

/// Operands of gemm(). All on one SIP and of one floating-point dtype.
struct GemmOperands {
  Tensor a;                                    ///< m x k, or some of its rows are
  Tensor b;                                    ///< k x n
  Tensor bias;                                 ///< 1 x n, added to every row; an empty handle: none
  Tensor c;                                    ///< m x n: the result
  Activation activation = Activation::none;    ///< of a b + bias
  std::optional<std::int64_t> first_row = {};  ///< the m rows of a from here on; nothing: a has no others
  Tensor residual = {};                        ///< m x n, added behind the activation; an empty handle: none
};

/// c = activation(a b + bias) + residual: the project's GEMM kernel, for any placement of its operands. Submits one
/// launch and returns at once; one that passes a on between PEs is preceded, once, by the message that installs their
/// queues.
///
/// Each PE that holds a shard of c makes it, in the mapping that plan_gemm() (runtime/tp/gemm_planner.h) chooses. Sums
/// are kept in f32 (f64 for f64) and rounded once; their order depends on the mapping, never on timing.
/// Throws std::invalid_argument on shapes, dtypes or SIPs that do not fit, naming `name`.
Handle gemm(Context& context, const std::string& name, const GemmOperands& operands);
/// The same with the plan that `plans` has for such operands, on a stream of Context::new_stream.
Handle gemm(Context& context, const std::string& name, const GemmOperands& operands, GemmPlans& plans,
            std::uint16_t stream = 0);
/// Installs the queues that such a launch needs, if any, and waits for them: what gemm() then does is the launch alone.
void prepare_gemm(Context& context, const std::string& name, const GemmOperands& operands);
/// The same with the plan that `plans` has for such operands, of a launch on that stream.
void prepare_gemm(Context& context, const std::string& name, const GemmOperands& operands, GemmPlans& plans,
                  std::uint16_t stream = 0);

}  // namespace kernbench::tp
