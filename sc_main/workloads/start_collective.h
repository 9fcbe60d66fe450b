#pragma once
#include <functional>

#include "runtime/process_group.h"
#include "runtime/runtime.h"
#include "sc_main/workloads/collective_case.h"
#include "sc_main/workloads/workload.h"

namespace kernbench {

/// Starts this rank's part of a collective of a group. `in` or `out` is empty where the rank has none. A barrier is an
/// all_reduce. REQUIRES: op is not send_recv.
Handle start_collective(Context& ctx, CollectiveOp op, const CollectiveCase& what, const CollectiveLayout& layout,
                        const Tensor& in, const Tensor& out, const Group& group);

/// Whether all ranks have the same bits in the end: the tool's own algorithms promise it (docs/collectives.md). A
/// schedule file or a module of a user's ccl.yaml may add in another order on each.
bool adds_alike(const ProcessGroupOptions& group);

/// As session.run(), of a program that is the same on every rank: what a collective refuses is said without the rank
/// that happened to ask first.
void run_collectives(Session& session, int ranks, std::function<void(Context&)> program);

}  // namespace kernbench
