#include "ccl/select/contenders.h"

#include <algorithm>
#include <bitset>
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

}  // namespace

std::vector<Contender> contenders(const Registry& registry, const Parameters& parameters, const CallBinder& calls,
                                  const std::shared_ptr<const GroupAlgorithm>& named, Problems& problems) {
  const int ranks = static_cast<int>(calls.group().sips.size());
  std::vector<Contender> all;
  for (const std::string& name : registry.names()) {
    Contender& one = all.emplace_back(Contender{name});
    one.unfit = attempt(name, [&] {
      if (named != nullptr && named->name() == name) {
        one.algorithm = named;
      } else {
        AlgorithmEntry entry = load(registry, name, ranks, problems);
        override_parameters(entry, parameters);
        one.algorithm = std::make_shared<const GroupAlgorithm>(std::move(entry), calls);
      }
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
