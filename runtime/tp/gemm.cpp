#include "runtime/tp/gemm.h"

#include "runtime/tp/gemm_kernel.h"
#include "runtime/tp/gemm_planner.h"
#include "runtime/tp/gemm_problem.h"
#include "runtime/tp/own_shard.h"

namespace kernbench::tp {

bool talks(const GemmPlan& plan) {
  return plan.best.mapping.kind == GemmMapping::Kind::passed || exchanges_sums(plan.best.mapping.kind);
}

namespace {
void prepare_planned(Context& context, const GemmOperands& operands, const GemmPlan& plan, std::uint16_t stream) {
  if (talks(plan)) context.prepare_cube_queues(operands.c.sip(), stream);
}
}  // namespace

Handle gemm(Context& context, const std::string& name, const GemmOperands& operands) {
  return gemm(context, name, operands, plan_gemm(context.map(), name, operands));
}

Handle gemm(Context& context, const std::string& name, const GemmOperands& operands, GemmPlans& plans,
            std::uint16_t stream) {
  return gemm(context, name, operands, plans.of(context.map(), name, operands), stream);
}

void prepare_gemm(Context& context, const std::string& name, const GemmOperands& operands) {
  prepare_planned(context, operands, plan_gemm(context.map(), name, operands), 0);
}

void prepare_gemm(Context& context, const std::string& name, const GemmOperands& operands, GemmPlans& plans,
                  std::uint16_t stream) {
  prepare_planned(context, operands, plans.of(context.map(), name, operands), stream);
}

Handle gemm(Context& context, const std::string& name, const GemmOperands& operands, const GemmPlan& plan,
            std::uint16_t stream) {
  GemmCall call{geometry_of(operands.a),
                geometry_of(operands.b),
                geometry_of(operands.bias),
                geometry_of(operands.c),
                operands.activation,
                plan.best.mapping,
                plan.kept_bytes,
                plan.span,
                plan.pes_of_cube,
                operands.first_row.value_or(0),
                context.map().cube_w};
  LaunchOptions options = on_pes_of(operands.c);
  options.stream = stream;
  if (exchanges_sums(plan.best.mapping.kind)) {
    const std::set<PeCoord> all = split_workers(operands);
    options.targets.assign(all.begin(), all.end());
  }
  options.cube_queues = talks(plan);
  const std::int64_t m = operands.c.shape().rows, n = operands.c.shape().cols, k = operands.a.shape().cols;
  options.bound = {plan.bound.time,
                   plan.bound.binds(),
                   2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
                   plan.bound.bytes,
                   "gemm",
                   m,
                   n,
                   k,
                   plan.best.mapping.str()};
  if (operands.residual) {
    const Tensor& r = operands.residual;
    const GemmResidualCall with{call, geometry_of(r)};
    if (!operands.bias)
      return context.launch_async(name, options, gemm_residual_kernel, operands.a, operands.b, Va{0}, r, operands.c,
                                  with);
    return context.launch_async(name, options, gemm_residual_kernel, operands.a, operands.b, operands.bias, r,
                                operands.c, with);
  }
  if (!operands.bias) {
    return context.launch_async(name, options, gemm_kernel, operands.a, operands.b, Va{0}, operands.c, call);
  }
  return context.launch_async(name, options, gemm_kernel, operands.a, operands.b, operands.bias, operands.c, call);
}

}  // namespace kernbench::tp
