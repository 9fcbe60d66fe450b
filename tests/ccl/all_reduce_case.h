#pragma once
#include <string>
#include <vector>

#include "tests/ccl/fake_machine.h"

namespace kernbench::test {

/// One all_reduce over a placement, checked element by element against a sum in double.
struct AllReduceCase {
  std::string algorithm = "ring_allreduce";
  Scope scope = Scope::sip;
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::f32;
  std::int64_t count = 100;        ///< elements of one rank's tensor (scope sip) or of one cube's tile (scope cube)
  bool split_cubes = true;         ///< else every cube holds a copy
  bool split_pes = true;           ///< else every PE of the cube does
  int num_cubes = 0, num_pes = 0;  ///< 0: all
  ccl::QueueShape queue{4, 64};    ///< small slots, so that few elements make many messages
  Parameters parameters;
};

/// "" if right, else what is wrong.
std::string run_all_reduce(const MachineMap& map, const AllReduceCase& c);

}  // namespace kernbench::test
