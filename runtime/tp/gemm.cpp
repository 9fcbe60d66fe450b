#include "runtime/tp/gemm.h"

#include "runtime/tp/gemm_kernel.h"
#include "runtime/tp/gemm_planner.h"
#include "runtime/tp/own_shard.h"

namespace kernbench::tp {

namespace {
bool passes(const GemmPlan& plan) { return plan.best.mapping.kind == GemmMapping::Kind::passed; }

}  // namespace

Handle gemm(Context& context, const std::string& name, const GemmOperands& operands) {
  return gemm(context, name, operands, plan_gemm(context.map(), name, operands));
}

void prepare_gemm(Context& context, const std::string& name, const GemmOperands& operands) {
  if (passes(plan_gemm(context.map(), name, operands))) context.prepare_cube_queues(operands.c.sip());
}

Handle gemm(Context& context, const std::string& name, const GemmOperands& operands, const GemmPlan& plan) {
  GemmCall call{geometry_of(operands.a), geometry_of(operands.b), geometry_of(operands.bias),
                geometry_of(operands.c), operands.activation,     plan.best.mapping,
                plan.kept_bytes,         plan.pes_of_cube};
  LaunchOptions options = on_pes_of(operands.c);
  options.cube_queues = passes(plan);
  if (!operands.bias) {
    return context.launch_async(name, options, gemm_kernel, operands.a, operands.b, Va{0}, operands.c, call);
  }
  return context.launch_async(name, options, gemm_kernel, operands.a, operands.b, operands.bias, operands.c, call);
}

}  // namespace kernbench::tp
