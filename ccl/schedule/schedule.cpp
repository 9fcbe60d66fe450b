#include "ccl/schedule/schedule.h"

#include <algorithm>

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

std::int32_t regions_in(CollectiveOp op, std::int32_t nodes) {
  const bool many = op == CollectiveOp::reduce_scatter || op == CollectiveOp::all_to_all || op == CollectiveOp::scatter;
  return many ? nodes : 1;
}

std::int32_t regions_out(CollectiveOp op, std::int32_t nodes) {
  const bool many = op == CollectiveOp::all_gather || op == CollectiveOp::all_to_all || op == CollectiveOp::gather;
  return many ? nodes : 1;
}

}  // namespace kernbench::ccl
