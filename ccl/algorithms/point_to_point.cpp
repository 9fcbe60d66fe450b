#include "ccl/contract/contract.h"

/// Straight from the PE that holds data to the PE that gets them, and sums there: for little data.
///
/// A load, a message and a store for each block: no PE in between, and no load or store at another PE but of what stays
/// on its rank. Its queues join just the PEs that a call needs. Serves data without copies that cubes of a rank need
/// not combine.
namespace kernbench::ccl {

KERNBENCH_CCL_BUILT_IN(point_to_point) {
  static const Algorithm algorithm =
      pe_to_pe_algorithm({"point_to_point", kPeToPeOperations, kAllScopes, kAllTopologies});
  return &algorithm;
}

}  // namespace kernbench::ccl
