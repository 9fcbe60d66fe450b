#pragma once
#include <cstdint>

#include "ccl/schedule/schedule.h"

namespace kernbench::ccl {

/// Seconds that `rounds` rounds of a schedule take by a model of links and engines: every node goes through its list in
/// order; a message waits for its value, a slot and the link, takes its bytes over the link's rate plus a fixed part,
/// and is there after the level's latency; an engine takes send_seconds and receive_seconds of a lane for each, and the
/// time of the lane's bytes. A load stands before everything, a store after it.
///
/// All lanes together are one node whose links they share, one lane's part of a message behind the other's; a lane goes
/// on when its own part is there. A routed message takes its links one after the other, each
/// as it gets free. Links between the same two SIPs share their rate, and with a switch the messages of a SIP share its
/// port. Many rounds are extrapolated from the last ones that were run.
double estimate_seconds(const Schedule& schedule, const PlanRequest& request, std::int64_t rounds);

}  // namespace kernbench::ccl
