// A plug-in that is wrong in the way that the environment's KERNBENCH_WRONG names: one library for all of them.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "ccl/contract/contract.h"

namespace kernbench::ccl {
namespace {

bool wrong(const char* how) {
  const char* const chosen = std::getenv("KERNBENCH_WRONG");
  return chosen != nullptr && std::string(chosen) == how;
}

/// Every rank sends to rank 0, which adds, and sends the sum back.
Plan plan(const PlanRequest& request) {
  if (wrong("plan throws")) throw std::runtime_error("no plan today");
  if (wrong("plan throws a number")) throw 7;
  if (wrong("parameter")) return {nullptr, request.parameters.at("chnk_bytes")};
  if (wrong("no schedule")) return {};
  auto schedule = std::make_shared<Schedule>();
  const std::int32_t nodes = request.nodes();
  schedule->algorithm = "wrong";
  schedule->op = request.op;
  schedule->nodes = nodes;
  schedule->blocks.emplace_back();
  schedule->steps.resize(static_cast<std::size_t>(nodes));
  const auto add = [&](std::int32_t node, std::int64_t time, std::int32_t peer, StepKind kind, bool completes) {
    schedule->steps[static_cast<std::size_t>(node)].push_back({time, peer, 0, kind, completes});
  };
  for (std::int32_t k = 1; k < nodes; ++k) {
    add(k, wrong("time") ? -1 : k - 1, 0, wrong("kind") ? static_cast<StepKind>(77) : StepKind::send, false);
    add(0, k, k, StepKind::receive_reduce, k == nodes - 1);
    schedule->links.push_back({0, k, 1, 0, wrong("slots") ? 0 : 1});
  }
  for (std::int32_t k = 1; k < nodes; ++k) {
    if (k < 3 || !wrong("answer")) add(0, nodes + k, k, StepKind::send, false);
    add(k, nodes + k + 1, 0, StepKind::receive_copy, false);
  }
  schedule->length = 2 * nodes + 1;
  schedule->period = wrong("period") ? -1 : 0;
  schedule->outstanding = wrong("outstanding") ? -4 : 0;
  return {schedule,
          wrong("rounds")        ? 0
          : wrong("many rounds") ? std::int64_t{1} << 50
                                 : 1,
          wrong("seconds") ? -1.0 : 1e-6};
}

std::vector<std::pair<std::int32_t, std::int32_t>> links(const PlanRequest& request) {
  if (wrong("links throw")) throw std::runtime_error("no links today");
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  for (std::int32_t node = 1; node < request.nodes(); ++node) pairs.emplace_back(0, node);
  if (wrong("links")) pairs.emplace_back(0, 99);
  if (wrong("fewer links")) pairs.pop_back();
  return pairs;
}

std::int32_t no_such_kind(const char*) { return 7; }
std::tuple<std::int64_t, int> no_cubes(int world_size, std::int64_t n_elem, int, int) { return {n_elem, world_size}; }

}  // namespace
}  // namespace kernbench::ccl

KERNBENCH_CCL_MODULE() {
  using namespace kernbench;
  using namespace kernbench::ccl;
  if (wrong("throws")) throw std::runtime_error("not today");
  if (wrong("throws a number")) throw 7;
  static const Algorithm algorithm = [] {
    Algorithm a;
    a.name = wrong("name") ? "" : "wrong";
    a.topology_kinds = &kTopologyKinds;
    a.topo_name_to_kind = wrong("topology") ? &no_such_kind : &standard_topology_kind;
    if (!wrong("kernel_args")) a.kernel_args = make_kernel_args<&schedule_kernel_args>();
    if (wrong("signature")) a.kernel_args = make_kernel_args<&no_cubes>();
    if (!wrong("kernel")) a.kernel = make_kernel<&schedule_kernel>();
    a.plan = &plan;
    a.links = &links;
    if (wrong("operations")) a.operations = 1u << 25;
    if (wrong("scopes")) a.scopes = 1u << 25;
    if (wrong("topologies")) a.topologies = 1u << 25;
    if (wrong("directions")) a.directions = 1u << 20;
    if (wrong("PE to PE")) a.pe_to_pe = true;
    if (wrong("PE to PE and plan")) {
      a.pe_to_pe = true;
      a.operations = bit(CollectiveOp::all_gather);
    }
    return a;
  }();
  return &algorithm;
}
