// The collectives of a Context, as its users call them: each is a request.
#include <fmt/format.h>

#include <stdexcept>

#include "runtime/process_group.h"
#include "runtime/runtime_impl.h"
#include "tlm/kernel/operations.h"

namespace kernbench {

using Op = CollectiveOp;

namespace {
CollectiveCall reducing(Op op, ReduceOp reduce_op, int root = 0) {
  CollectiveCall call;
  call.op = op;
  call.reduce_op = reduce_op;
  call.root = root;
  return call;
}
CollectiveCall moving(Op op, int root = 0) { return reducing(op, ReduceOp::sum, root); }
CollectiveCall transfer(int to, int from) {
  CollectiveCall call = moving(Op::send_recv);
  call.to = to;
  call.from = from;
  return call;
}
}  // namespace

Handle Context::waited(Handle handle) {
  wait(handle);
  return handle;
}

Handle Context::collective_async(CollectiveOp operation, const Tensor& in, const Tensor& out, ReduceOp op, int root,
                                 const Group& group, const std::optional<TensorForm>& elsewhere) {
  refuse_unknown("collective_async", "CollectiveOp", operation, static_cast<CollectiveOp>(kCollectiveOps - 1));
  const OperationFacts& facts = facts_of(operation);
  if (!facts.has_data || facts.parties == Parties::pairs)
    throw std::invalid_argument(fmt::format("collective_async: {} is no call of a group with data", facts.name));
  return collective({reducing(operation, facts.combines() ? op : ReduceOp::sum, facts.rooted() ? root : 0), in, out,
                     group, elsewhere});
}

Handle Context::all_reduce_async(const Tensor& tensor, ReduceOp op, const Group& group) {
  return collective({reducing(Op::all_reduce, op), tensor, tensor, group});
}
Handle Context::all_reduce_async(const Tensor& in, const Tensor& out, ReduceOp op, const Group& group) {
  return collective({reducing(Op::all_reduce, op), in, out, group});
}
Handle Context::all_gather_async(const Tensor& in, const Tensor& out, const Group& group) {
  return collective({moving(Op::all_gather), in, out, group});
}
Handle Context::all_gather_columns_async(const Tensor& in, const Tensor& out, const Group& group) {
  return collective({moving(Op::all_gather), in, out, group, {}, 0, false, true});
}
Handle Context::reduce_scatter_async(const Tensor& in, const Tensor& out, ReduceOp op, const Group& group) {
  return collective({reducing(Op::reduce_scatter, op), in, out, group});
}
Handle Context::all_to_all_async(const Tensor& in, const Tensor& out, const Group& group) {
  return collective({moving(Op::all_to_all), in, out, group});
}
Handle Context::reduce_async(const Tensor& in, const Tensor& out, int root, ReduceOp op, const Group& group,
                             const std::optional<TensorForm>& elsewhere) {
  return collective({reducing(Op::reduce, op, root), in, out, group, elsewhere});
}
Handle Context::broadcast_async(const Tensor& tensor, int root, const Group& group) {
  return collective({moving(Op::broadcast, root), tensor, tensor, group});
}
Handle Context::broadcast_async(const Tensor& in, const Tensor& out, int root, const Group& group,
                                const std::optional<TensorForm>& elsewhere) {
  return collective({moving(Op::broadcast, root), in, out, group, elsewhere});
}
Handle Context::gather_async(const Tensor& in, const Tensor& out, int root, const Group& group,
                             const std::optional<TensorForm>& elsewhere) {
  return collective({moving(Op::gather, root), in, out, group, elsewhere});
}
Handle Context::scatter_async(const Tensor& in, const Tensor& out, int root, const Group& group,
                              const std::optional<TensorForm>& elsewhere) {
  return collective({moving(Op::scatter, root), in, out, group, elsewhere});
}
Handle Context::send_async(const Tensor& tensor, int to, const Group& group) {
  return collective({transfer(to, -1), tensor, {}, group});
}
Handle Context::recv_async(const Tensor& tensor, int from, const Group& group) {
  return collective({transfer(-1, from), {}, tensor, group});
}
Handle Context::shift_async(const Tensor& in, const Tensor& out, int distance, const Group& group) {
  const ProcessGroup& members = group.get() != nullptr ? *group.get() : runtime_.groups.default_group("shift");
  const int p = members.size(), own = members.group_rank(rank_);
  if (own < 0) {
    throw std::invalid_argument(fmt::format("shift: rank {} is not a member of process group {}", rank_, members.id()));
  }
  const int by = (distance % p + p) % p;
  return collective({transfer((own + by) % p, (own - by + p) % p), in, out, group, {}, by});
}

Handle Context::all_reduce(const Tensor& tensor, ReduceOp op, const Group& group) {
  return waited(all_reduce_async(tensor, op, group));
}
Handle Context::all_reduce(const Tensor& in, const Tensor& out, ReduceOp op, const Group& group) {
  return waited(all_reduce_async(in, out, op, group));
}
Handle Context::all_gather(const Tensor& in, const Tensor& out, const Group& group) {
  return waited(all_gather_async(in, out, group));
}
Handle Context::all_gather_columns(const Tensor& in, const Tensor& out, const Group& group) {
  return waited(all_gather_columns_async(in, out, group));
}
Handle Context::reduce_scatter(const Tensor& in, const Tensor& out, ReduceOp op, const Group& group) {
  return waited(reduce_scatter_async(in, out, op, group));
}
Handle Context::all_to_all(const Tensor& in, const Tensor& out, const Group& group) {
  return waited(all_to_all_async(in, out, group));
}
Handle Context::reduce(const Tensor& in, const Tensor& out, int root, ReduceOp op, const Group& group,
                       const std::optional<TensorForm>& elsewhere) {
  return waited(reduce_async(in, out, root, op, group, elsewhere));
}
Handle Context::broadcast(const Tensor& tensor, int root, const Group& group) {
  return waited(broadcast_async(tensor, root, group));
}
Handle Context::broadcast(const Tensor& in, const Tensor& out, int root, const Group& group,
                          const std::optional<TensorForm>& elsewhere) {
  return waited(broadcast_async(in, out, root, group, elsewhere));
}
Handle Context::gather(const Tensor& in, const Tensor& out, int root, const Group& group,
                       const std::optional<TensorForm>& elsewhere) {
  return waited(gather_async(in, out, root, group, elsewhere));
}
Handle Context::scatter(const Tensor& in, const Tensor& out, int root, const Group& group,
                        const std::optional<TensorForm>& elsewhere) {
  return waited(scatter_async(in, out, root, group, elsewhere));
}
Handle Context::send(const Tensor& tensor, int to, const Group& group) { return waited(send_async(tensor, to, group)); }
Handle Context::recv(const Tensor& tensor, int from, const Group& group) {
  return waited(recv_async(tensor, from, group));
}
Handle Context::shift(const Tensor& in, const Tensor& out, int distance, const Group& group) {
  return waited(shift_async(in, out, distance, group));
}

void Context::prepare_all_reduce(const Tensor& in, const Tensor& out, ReduceOp op, const Group& group) {
  prepare({reducing(Op::all_reduce, op), in, out, group, {}, 0, true});
}

void Context::prepare_all_gather_columns(const Tensor& in, const Tensor& out, const Group& group) {
  prepare({moving(Op::all_gather), in, out, group, {}, 0, true, true});
}

void Context::prepare_all_gather(const Tensor& in, const Tensor& out, const Group& group) {
  prepare({moving(Op::all_gather), in, out, group, {}, 0, true});
}

void Context::prepare_reduce_scatter(const Tensor& in, const Tensor& out, ReduceOp op, const Group& group) {
  prepare({reducing(Op::reduce_scatter, op), in, out, group, {}, 0, true});
}

}  // namespace kernbench
