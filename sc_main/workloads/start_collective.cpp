#include "sc_main/workloads/start_collective.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include "ccl/contract/error.h"
#include "ccl/select/registry.h"
#include "tlm/kernel/operations.h"

namespace kernbench {

Handle start_collective(Context& ctx, CollectiveOp op, const CollectiveCase& what, const CollectiveLayout& layout,
                        const Tensor& in, const Tensor& out, const Group& group) {
  // Of the one that this rank lacks, if it lacks one.
  const TensorForm elsewhere =
      in ? TensorForm{layout.out_shape(), what.out_policy} : TensorForm{layout.in_shape(), what.in_policy};
  return ctx.collective_async(facts_of(op).has_data ? op : CollectiveOp::all_reduce, in, out, what.reduce_op, what.root,
                              group, elsewhere);
}

namespace {
bool is_refusal(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const ccl::Error&) {
    return true;
  } catch (...) {
    return false;
  }
}
}  // namespace

void run_collectives(Session& session, int ranks, std::function<void(Context&)> program) {
  try {
    session.run(ranks, std::move(program));
  } catch (const SpawnError& error) {
    const bool refused = std::all_of(error.failures.begin(), error.failures.end(),
                                     [](const auto& failure) { return is_refusal(failure.second); });
    if (refused) std::rethrow_exception(error.failures.begin()->second);
    throw;
  }
}

bool adds_alike(const ProcessGroupOptions& group) {
  const std::string extension = std::filesystem::path(group.algorithm).extension().string();
  return extension != ".xml" && extension != ".so" && ccl::Registry::of(group.ccl_file)->module_files().empty();
}

}  // namespace kernbench
