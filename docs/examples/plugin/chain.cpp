// ccl.yaml: algorithms: { chain: { module: ./build/chain.so } }
#include <kernbench/kernbench.h>

#include <algorithm>

using namespace kernbench;
using namespace kernbench::ccl;

namespace {

/// The node after the root comes next in the chain, and so on around.
std::int32_t node_at(const PlanRequest& request, std::int32_t place) {
  return (request.root + place) % request.nodes();
}

/// A pipelined broadcast along a chain of ranks: a node passes on what it has just received. S/B + (p - 1) (h +
/// chunk/B).
///
/// Node d of the chain receives a chunk 2 d ticks after the root sends it and passes it on in that tick: one tick on
/// the link, and one for the latency (lambda), which needs two slots. With a period of one tick, chunk follows chunk.
Plan plan(const PlanRequest& request) {
  auto schedule = std::make_shared<Schedule>();
  schedule->algorithm = "chain";
  schedule->op = request.op;
  schedule->nodes = request.nodes();
  schedule->root = request.root;
  schedule->period = 1;
  schedule->length = 2 * (request.nodes() - 1);
  Block block;
  block.contributor = request.root;
  schedule->blocks = {block};
  schedule->steps.resize(static_cast<std::size_t>(request.nodes()));
  for (std::int32_t place = 0; place < request.nodes(); ++place) {
    auto& steps = schedule->steps[static_cast<std::size_t>(node_at(request, place))];
    Step step;
    step.time = 2 * place;
    if (place > 0) {
      step.kind = StepKind::receive_copy;
      step.peer = node_at(request, place - 1);
      steps.push_back(step);
    }
    if (place + 1 < request.nodes()) {
      step.kind = StepKind::send;
      step.peer = node_at(request, place + 1);
      steps.push_back(step);
      const std::int32_t self = node_at(request, place);
      schedule->links.push_back({std::min(self, step.peer), std::max(self, step.peer), 1, 1, 2});
    }
  }
  std::sort(schedule->links.begin(), schedule->links.end(),
            [](const ScheduleLink& x, const ScheduleLink& y) { return std::pair(x.a, x.b) < std::pair(y.a, y.b); });
  const std::int64_t lane_bytes = request.bytes / request.lanes, chunk = 2048;
  return {schedule, (lane_bytes + chunk - 1) / chunk, 0};
}

/// Whatever the root, neighbours in the ring of ranks.
std::vector<std::pair<std::int32_t, std::int32_t>> links(const PlanRequest& request) {
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  for (std::int32_t a = 0; a + 1 < request.nodes(); ++a) pairs.emplace_back(a, a + 1);
  if (request.nodes() > 2) pairs.emplace_back(0, request.nodes() - 1);
  return pairs;
}

}  // namespace

KERNBENCH_CCL_MODULE() {
  static const Algorithm algorithm = schedule_algorithm(
      {"chain", bit(CollectiveOp::broadcast), bit(Scope::sip), topology_bit(kTopologyKinds.ring_1d)}, &plan, &links);
  return &algorithm;
}
