#include "sc_main/workloads/start_collective.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "ccl/contract/error.h"
#include "ccl/select/registry.h"

namespace kernbench {

Handle start_collective(Context& ctx, CollectiveOp op, const CollectiveCase& what, const CollectiveLayout& layout,
                        const Tensor& in, const Tensor& out, const Group& group) {
  // Of the one that this rank lacks, if it lacks one.
  const TensorForm elsewhere =
      in ? TensorForm{layout.out_shape(), what.out_policy} : TensorForm{layout.in_shape(), what.in_policy};
  switch (op) {
    case CollectiveOp::barrier:
    case CollectiveOp::all_reduce:
      return ctx.all_reduce_async(in, out, what.reduce_op, group);
    case CollectiveOp::all_gather:
      return ctx.all_gather_async(in, out, group);
    case CollectiveOp::reduce_scatter:
      return ctx.reduce_scatter_async(in, out, what.reduce_op, group);
    case CollectiveOp::reduce:
      return ctx.reduce_async(in, out, what.root, what.reduce_op, group, elsewhere);
    case CollectiveOp::broadcast:
      return ctx.broadcast_async(in, out, what.root, group, elsewhere);
    case CollectiveOp::all_to_all:
      return ctx.all_to_all_async(in, out, group);
    case CollectiveOp::gather:
      return ctx.gather_async(in, out, what.root, group, elsewhere);
    case CollectiveOp::scatter:
      return ctx.scatter_async(in, out, what.root, group, elsewhere);
    case CollectiveOp::send_recv:
      break;
  }
  throw std::logic_error("send_recv is not a call of a group");
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
  return extension != ".xml" && extension != ".so" && ccl::Registry(group.ccl_file).module_files().empty();
}

}  // namespace kernbench
