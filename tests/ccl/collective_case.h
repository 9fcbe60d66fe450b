#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/placement.h"
#include "tests/ccl/fake_machine.h"

namespace kernbench::test {

/// One collective over placements of its input and output, checked element by element on integers.
struct CollectiveCase {
  CollectiveOp op = CollectiveOp::all_reduce;
  Scope scope = Scope::sip;
  ReduceOp reduce_op = ReduceOp::sum;
  std::string algorithm = "direct";
  std::int64_t count = 48;  ///< elements of one block of one contributor
  DPPolicy in, out;
  bool rows = true;  ///< the larger side of an all_gather and the like has a row per contributor; else it is one row
  bool in_place = false;
  int root = 0, shift = 1;
  ccl::QueueShape queue{4, 64};  ///< small slots, so that few elements make many messages
  Parameters parameters;
  /// Of a custom schedule: whose inputs' sum stands in an element of a rank's output; nobody's: it is not written.
  std::function<std::vector<int>(int rank, std::int64_t element)> custom;
  double least_share = 0;  ///< that Launch::least has to have of the time that what comes takes on the links
};

/// "" if right, else what is wrong.
std::string run_collective(const MachineMap& map, const CollectiveCase& c);

}  // namespace kernbench::test
