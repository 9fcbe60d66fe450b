#pragma once
#include <cstdint>

#include "ccl/contract/schedule.h"

namespace kernbench::ccl {

/// Proves a schedule by running it on sets of contributions instead of numbers.
///
/// Throws Error, at the first problem found: a list out of order or with numbers out of range; a queue with fewer slots
/// than the order of the lists needs; a message of another length than its receiver expects, or of other data than it
/// is added to; a contribution added twice; lists that wait for each other with the slots that `links` grant; messages
/// left over; a part of `out` that is missing, stored twice, or not what the operation asks for. Of a custom schedule
/// there is nothing to say of `out`, and contributions may be added twice.
///
/// Knows nothing of how a schedule was made: it serves imported ones too. Runs as many rounds as overlap, and one more.
/// `slots`: of every queue, where positive; otherwise those of `links`.
void check(const Schedule& schedule, int slots = 0);

/// Slots that a queue needs for an assumed latency of `lambda` ticks with messages of `width` ticks: with fewer, lists
/// that count on the latency may deadlock (docs/constructions.md, Queues).
constexpr std::int32_t slots_for(std::int32_t lambda, std::int32_t width) { return 1 + (lambda + width - 1) / width; }

/// Units that the busiest direction of any link carries in one round, over the units of a region. Lanes that take turns
/// share the data evenly.
struct LinkLoad {
  double most = 0;   ///< of any link, in regions
  double total = 0;  ///< over all links and directions, in regions
};
LinkLoad link_load(const Schedule& schedule);

}  // namespace kernbench::ccl
