#include "ccl/contract/schedule.h"

#include <algorithm>

#include "tlm/kernel/operations.h"

namespace kernbench::ccl {

const char* to_string(StepKind kind) {
  switch (kind) {
    case StepKind::send:
      return "send";
    case StepKind::receive_copy:
      return "receive_copy";
    case StepKind::receive_reduce:
      return "receive_reduce";
    case StepKind::copy:
      return "copy";
    case StepKind::reduce:
      return "reduce";
  }
  return "?";
}

int Schedule::slots() const {
  std::int32_t most = 1;
  for (const ScheduleLink& link : links) most = std::max(most, link.slots);
  return most;
}

std::int32_t regions_in(CollectiveOp op, std::int32_t nodes) { return facts_of(op).in == Blocks::each ? nodes : 1; }

std::int32_t regions_out(CollectiveOp op, std::int32_t nodes) { return facts_of(op).out == Blocks::each ? nodes : 1; }

}  // namespace kernbench::ccl
