#include "ccl/contract.h"
#include "ccl/schedule/build.h"

/// Every node straight to every other: all operations, wherever queues between all pairs fit.
///
/// Optimal where every pair has a link of its own: 2 S / (p B) for an all_reduce, in two steps. Elsewhere the network
/// routes, and far messages share links with near ones. Reductions go to the owner of each part and come back.
namespace kernbench::ccl {
namespace {

std::vector<std::pair<std::int32_t, std::int32_t>> links(const PlanRequest& request) {
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  for (std::int32_t a = 0; a < request.nodes(); ++a) {
    for (std::int32_t b = a + 1; b < request.nodes(); ++b) pairs.emplace_back(a, b);
  }
  return pairs;
}

Plan plan(const PlanRequest& request) {
  const int lambda = request.slots >= 3 ? 1 : 0;
  Plan plan;
  plan.schedule =
      std::make_shared<const Schedule>(direct_schedule({request.op, request.root, request.peer}, request.nodes(), 1,
                                                       lambda, request.kind == kTopologyKinds.switch_star));
  return plan;
}

constexpr Parameter kParameters[] = {
    {"chunk_bytes", Parameter::Unit::bytes, 0, 0, 1 << 30, "bytes of a message; 0: by size; at most a slot"}};

}  // namespace
}  // namespace kernbench::ccl

KERNBENCH_CCL_MODULE() {
  using namespace kernbench;
  using namespace kernbench::ccl;
  static const Algorithm algorithm = [] {
    Algorithm a;
    a.name = "direct";
    a.topology_kinds = &kTopologyKinds;
    a.topo_name_to_kind = &standard_topology_kind;
    a.parameters = kParameters;
    a.parameter_count = 1;
    a.operations = 0x1FF;  // all but barrier
    a.scopes = bit(Scope::sip) | bit(Scope::cube) | bit(Scope::pe);
    a.topologies = 0x1F;
    a.plan = &plan;
    a.links = &links;
    return a;
  }();
  return &algorithm;
}
