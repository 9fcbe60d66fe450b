#pragma once
#include <cstdint>

#include "ccl/contract/plan_request.h"

namespace kernbench::ccl {

struct Estimate {
  double seconds = 0;
  bool at_least = false;  ///< not what it takes, but less
};

/// What `rounds` rounds of a schedule take by a model of links and engines. As in a PE, every node issues its
/// list in order and runs it by data flow: ops of one end of a queue follow each other, those of different ends do not
/// wait for each other unless one needs the other's value; behind a full queue of ops nothing is issued. A message
/// waits for its value, a slot, the lane's port and the links, takes its bytes over their rates plus a fixed part, and
/// is there after the level's latency; its slot is free again a credit's way after it has been received. A lane takes
/// send_seconds and receive_seconds for each, and the time of its bytes. A load stands before everything, a store
/// after.
///
/// All lanes together are one node whose links they share, one lane's part of a message behind the other's; a lane goes
/// on when its own part is there. A message takes its links one after the other, each as it gets free; the first and
/// the last between SIPs are what joins the cubes with the IO chiplet. Links between the same two SIPs share their
/// rate, and with a switch the messages of a SIP share its port. Many rounds are extrapolated from the last ones that
/// were run. Lanes that take turns (Schedule::variants) share the links with those of the other variants; where they
/// limit what is outstanding, the first list stands for all.
///
/// What takes longer than `request.most_seconds` by the bytes of its busiest link alone is not run: at least that.
Estimate estimate(const Schedule& schedule, const PlanRequest& request, std::int64_t rounds);

}  // namespace kernbench::ccl
