#pragma once
#include <optional>
#include <string>

#include "ccl/contract/schedule.h"

namespace kernbench::ccl {

/// Reads an algorithm file in MSCCL's XML format as a schedule; nodes are its gpus.
///
/// Served: allreduce, allgather, reducescatter, alltoall and broadcast (from gpu 0), in place or not; all step types
/// (s, r, rcs, rrs, rrc, rrcs, cpy, re, nop), several thread blocks and channels. Thread blocks run one step after the
/// other and wait for the steps they depend on; their order on a node is that of a run in which a message takes
/// `lambda` steps, more where they would wait for ever for room: queues need one slot more than that. Each channel
/// between two gpus has as much room as if it had a queue of its own. Throws ConfigError with file:line:column: no such
/// file, broken XML, unknown or missing attributes, numbers out of range, sends that nobody receives, steps that wait
/// for ever, outputs that are not what the operation wants. Nobody has proved that the schedule does what the file
/// says: see check().
///
/// `ranks`: nobody needs a schedule for another number; of such a file the result has name, operation and nodes only.
Schedule read_msccl(const std::string& file, std::optional<int> ranks = {}, int lambda = 2);
/// The same of a text; `name` stands for the file in messages.
Schedule parse_msccl(const std::string& text, const std::string& name, std::optional<int> ranks = {}, int lambda = 2);

}  // namespace kernbench::ccl
