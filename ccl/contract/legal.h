#pragma once
#include "tlm/kernel/call.h"
#include "tlm/kernel/dtype.h"

/// Which operations exist for which data types; the table of docs/collectives.md.
namespace kernbench::ccl {

inline constexpr int kCollectiveOps = 10;
inline constexpr int kReduceOps = 5;

/// The operation combines elements, so that its reduce op matters.
constexpr bool reduces(CollectiveOp op) {
  return op == CollectiveOp::all_reduce || op == CollectiveOp::reduce_scatter || op == CollectiveOp::reduce;
}

/// The operation has a root.
constexpr bool rooted(CollectiveOp op) {
  return op == CollectiveOp::reduce || op == CollectiveOp::broadcast || op == CollectiveOp::gather ||
         op == CollectiveOp::scatter;
}

/// The output may be the input, or a block of it: of all_gather and reduce_scatter the contributor's own.
constexpr bool works_in_place(CollectiveOp op, Scope scope) {
  if (op == CollectiveOp::all_gather || op == CollectiveOp::reduce_scatter) return scope == Scope::sip;
  return op == CollectiveOp::all_reduce || op == CollectiveOp::reduce || op == CollectiveOp::broadcast ||
         op == CollectiveOp::barrier;
}

/// A (operation, data type, reduce op) triple that is defined. What does not reduce moves any type and has no reduce op
/// but `sum`, which it ignores. Numbers, integers included, have all reduce ops; a bool has max (or) and min (and).
/// A barrier has no data.
constexpr bool legal(CollectiveOp op, DType dtype, ReduceOp reduce_op) {
  if (!reduces(op)) return reduce_op == ReduceOp::sum;
  return dtype != DType::boolean || reduce_op == ReduceOp::max || reduce_op == ReduceOp::min;
}

}  // namespace kernbench::ccl
