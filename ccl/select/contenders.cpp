#include "ccl/select/contenders.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <utility>

namespace kernbench::ccl {
namespace {

AlgorithmEntry load(const Registry& registry, const std::string& name, int ranks, Problems& problems) {
  try {
    return registry.load(name, {}, ranks);
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem.where, problem.text, problem.hint);
    throw;
  } catch (const Error& error) {
    problems.add(registry.where(name), error.what());
    throw;
  }
}

/// Tries an algorithm's queues, where they might be too many. Throws Error if they do not fit.
void check_queues(const QueueNeeds& needs, const SipShape& sips, const MachineMap& map, const Group& group) {
  std::size_t most = 4 + 4 + map.pes_per_cube;  // directions of a grid, and PEs of a cube
  if (needs.directions & kGlobalPeers) most += group.sips.size();
  for (const auto* pairs : {&needs.links.ranks, &needs.links.cubes, &needs.links.pes}) {
    std::map<std::int32_t, std::size_t> degrees;
    std::size_t degree = 0;
    for (const auto& [a, b] : *pairs) degree = std::max({degree, ++degrees[a], ++degrees[b]});
    most += degree;
  }
  if (most * group.queue.ring_bytes() <= ring_memory(map, group.queue.memory, PeCoord{}).bytes) return;
  RingNumbers rings;
  GroupQueues(map, group, rings).add(sips, needs.directions, needs.links);
}

}  // namespace

std::vector<Contender> contenders(const Registry& registry, const MachineMap& map, const Group& group, Scope scope,
                                  const Parameters& parameters, const PlanRequest& machine, Problems& problems) {
  std::vector<Contender> all;
  for (const std::string& name : registry.names()) {
    Contender& one = all.emplace_back(Contender{name});
    one.unfit = attempt(name, [&] {
      AlgorithmEntry entry = load(registry, name, static_cast<int>(group.sips.size()), problems);
      override_parameters(entry, parameters);
      one.algorithm.emplace(std::move(entry), map, group);
      if ((one.algorithm->entry().algorithm->scopes & bit(scope)) == 0)
        throw Error(fmt::format("does not serve scope {}", to_string(scope)));
      check_queues(one.algorithm->needs(map, group, scope, machine), one.algorithm->sips(), map, group);
    });
  }
  const auto topologies = [](const Contender& c) {
    return c.algorithm ? std::bitset<32>(c.algorithm->entry().algorithm->topologies).count() : 0;
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Contender& a, const Contender& b) { return topologies(a) < topologies(b); });
  return all;
}

std::string without_name(const std::string& text, const std::string& algorithm) {
  const std::string begin = fmt::format("algorithm '{}'", algorithm);
  if (text.rfind(begin, 0) != 0) return text;
  return text.substr(std::min(text.find_first_not_of(": ", begin.size()), text.size()));
}

}  // namespace kernbench::ccl
