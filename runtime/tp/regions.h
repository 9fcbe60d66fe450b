#pragma once
#include <string>

#include "runtime/tp/parallel_state.h"

/// The borders of a tensor-parallel region, in the forward direction. "Full" is what every rank holds alike; "split" is
/// a rank's own columns, [r k, (r + 1) k) of rank r. Each waits for what it launches, unless a pass around it does; a
/// collective first for what was launched before (pass.h).
namespace kernbench::tp {

/// Full in, full out: the identity, for every rank holds the input already. Takes no simulated time.
Tensor copy_to_region(const ParallelState& state, const Tensor& x);

/// Partial sums in, full out: an all-reduce over the ranks, in place. Returns `x`.
Tensor reduce_from_region(const ParallelState& state, const Tensor& x);

/// Full in, split out: this rank's columns as a tensor of its own; one launch, nothing between ranks.
///
/// policy  how the result spreads over this rank's SIP
/// Throws  std::invalid_argument if the columns do not divide by the world size, naming `name`.
Tensor scatter_to_region(const ParallelState& state, const Tensor& x, const DPPolicy& policy, const std::string& name);
/// The same into a tensor that is there already: this rank's columns.
void scatter_to_region(const ParallelState& state, const Tensor& x, const Tensor& part);

/// Split in, full out: the columns of all ranks side by side, by one all-gather and nothing else.
///
/// policy  how the result spreads over this rank's SIP
Tensor gather_from_region(const ParallelState& state, const Tensor& x, const DPPolicy& policy, const std::string& name);
/// The same into a tensor that is there already: as many rows, the columns of all ranks.
void gather_from_region(const ParallelState& state, const Tensor& x, const Tensor& full);
/// Installs the queues of gather_from_region(state, x, full); every rank calls it. Takes simulated time.
void prepare_gather_from_region(const ParallelState& state, const Tensor& x, const Tensor& full);

// Sequence parallelism: "split" is a rank's own rows, [r m, (r + 1) m) of rank r, m = rows / ranks. Where a row layer
// would end with an all-reduce it ends with a reduce-scatter, and the next column layer begins with an all-gather: as
// many bytes, and what lies between (norms, residuals) is done once instead of by every rank.

/// Full in, split out: this rank's rows as a tensor of its own; one launch, nothing between ranks.
///
/// policy  how the result spreads over this rank's SIP
/// Throws  std::invalid_argument if the rows do not divide by the world size, naming `name`.
Tensor scatter_to_sequence_region(const ParallelState& state, const Tensor& x, const DPPolicy& policy,
                                  const std::string& name);
/// The same into a tensor that is there already: this rank's rows.
void scatter_to_sequence_region(const ParallelState& state, const Tensor& x, const Tensor& part);

/// Split in, full out: the rows of all ranks one below the other, by one all-gather.
Tensor gather_from_sequence_region(const ParallelState& state, const Tensor& x, const DPPolicy& policy,
                                   const std::string& name);
/// The same into a tensor that is there already.
void gather_from_sequence_region(const ParallelState& state, const Tensor& x, const Tensor& full);
/// Installs the queues of gather_from_sequence_region(state, x, full); every rank calls it. Takes simulated time.
void prepare_gather_from_sequence_region(const ParallelState& state, const Tensor& x, const Tensor& full);

/// Partial sums in, split out: this rank's rows of their sum, by one reduce-scatter. Throws as scatter does.
Tensor reduce_scatter_to_sequence_region(const ParallelState& state, const Tensor& x, const DPPolicy& policy,
                                         const std::string& name);
/// The same into a tensor that is there already.
void reduce_scatter_to_sequence_region(const ParallelState& state, const Tensor& x, const Tensor& part);
/// Installs the queues of reduce_scatter_to_sequence_region(state, x, part); every rank calls it. Takes simulated time.
void prepare_reduce_scatter_to_sequence_region(const ParallelState& state, const Tensor& x, const Tensor& part);

}  // namespace kernbench::tp
