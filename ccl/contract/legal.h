#pragma once
#include "tlm/kernel/dtype.h"
#include "tlm/kernel/operations.h"

/// Which operations exist for which data types; the table of docs/collectives.md.
namespace kernbench::ccl {

inline constexpr int kReduceOps = 5;

/// The operation combines elements, so that its reduce op matters.
constexpr bool reduces(CollectiveOp op) { return facts_of(op).has_data && facts_of(op).combines(); }

/// The operation has a root.
constexpr bool rooted(CollectiveOp op) { return facts_of(op).rooted(); }

/// The output may be the input, or a block of it.
constexpr bool works_in_place(CollectiveOp op, Scope scope) {
  return facts_of(op).in_place == InPlace::always || (facts_of(op).in_place == InPlace::sip && scope == Scope::sip);
}

/// A (operation, data type, reduce op) triple that is defined. What does not reduce moves any type and has no reduce op
/// but `sum`, which it ignores. Numbers, integers included, have all reduce ops; a bool has max (or) and min (and).
/// A barrier has no data.
constexpr bool legal(CollectiveOp op, DType dtype, ReduceOp reduce_op) {
  if (!reduces(op)) return reduce_op == ReduceOp::sum;
  if ((facts_of(op).reduce_ops & bit(reduce_op)) == 0) return false;
  return dtype != DType::boolean || reduce_op == ReduceOp::max || reduce_op == ReduceOp::min;
}

}  // namespace kernbench::ccl
