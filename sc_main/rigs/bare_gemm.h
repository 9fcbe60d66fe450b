#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tlm/kernel/dtype.h"
#include "tlm/sim/time.h"

namespace kernbench {

/// One product on one PE of a machine that does nothing else.
struct BareGemm {
  std::int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::f16;
  bool composite = false;         ///< streamed through tiles from HBM; otherwise `dot` of tiles that lie in TCM
  std::vector<std::string> sets;  ///< changes to preset `minimal`, as --set takes them
};

/// Builds the machine and runs the product, without data: the time from the first operand in the array to the last
/// result out of it. Once per process. Throws std::runtime_error if it fails.
Ps run_bare_gemm(const BareGemm& gemm);

}  // namespace kernbench
