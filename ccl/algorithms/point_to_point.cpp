#include "ccl/schedule/plan.h"

/// Straight from the PE that holds data to the PE that gets them, and sums there: for little data.
///
/// A load, a message and a store for each block: no PE in between, and no load or store at another PE but of what stays
/// on its rank. Its queues join just the PEs that a call needs. Serves data without copies that cubes of a rank need
/// not combine.
KERNBENCH_CCL_MODULE() {
  using namespace kernbench;
  using namespace kernbench::ccl;
  static const Algorithm algorithm = [] {
    Algorithm a;
    a.name = "point_to_point";
    a.topology_kinds = &kTopologyKinds;
    a.topo_name_to_kind = &standard_topology_kind;
    a.kernel_args = make_kernel_args<&schedule_kernel_args>();
    a.kernel = make_kernel<&schedule_kernel>();
    a.operations = kPeToPeOperations;
    a.scopes = kAllScopes;
    a.topologies = kAllTopologies;
    a.pe_to_pe = true;
    return a;
  }();
  return &algorithm;
}
