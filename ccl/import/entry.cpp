#include "ccl/import/entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <stdexcept>

#include "ccl/schedule/plan.h"

namespace kernbench::ccl {
namespace {

/// What `ask` returns; what it refuses names the algorithm, as modules need not do it. A plug-in may throw anything.
template <class Ask>
auto said_by(const AlgorithmEntry& entry, const Ask& ask) {
  const std::string prefix = fmt::format("algorithm '{}'", entry.name);
  try {
    return ask();
  } catch (const std::invalid_argument& error) {
    const std::string text = error.what();
    throw Error(text.rfind(prefix, 0) == 0 ? text : prefix + ": " + text);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    if (entry.is_built_in()) throw;
    throw Error(fmt::format("{}: {}", prefix, error.what()));
  } catch (...) {
    throw Error(fmt::format("{}: throws something that is not a std::exception", prefix));
  }
}

/// Of a plan.   assumed: pieces of 4 KiB of 64 GiB
constexpr std::int64_t kMostRounds = 1 << 24;

/// Throws Error if a plug-in's plan cannot be one; its schedule is proved by GroupAlgorithm::plan.
void check_plan(const std::string& name, const Plan& plan) {
  const auto wrong = [&](const std::string& what) {
    throw Error(fmt::format("algorithm '{}': its plan {}", name, what));
  };
  if (!plan.schedule) wrong("has no schedule");
  if (plan.schedule->steps.size() != static_cast<std::size_t>(plan.schedule->nodes))
    wrong(fmt::format("has lists of {} nodes, not of {}", plan.schedule->steps.size(), plan.schedule->nodes));
  if (plan.rounds < 1 || plan.rounds > kMostRounds)
    wrong(fmt::format("has {} rounds; give 1 to {}", plan.rounds, kMostRounds));
  if (!(plan.seconds >= 0)) wrong(fmt::format("should take {} s; give what it takes, or 0", plan.seconds));
}

/// Throws Error if a plug-in names nodes that there are not.
void check_links(const std::string& name, const std::vector<std::pair<std::int32_t, std::int32_t>>& links,
                 std::int32_t nodes) {
  for (const auto& [a, b] : links) {
    if (a >= 0 && b >= 0 && a < nodes && b < nodes && a != b) continue;
    throw Error(
        fmt::format("algorithm '{}': its links have nodes ({}, {}); give two of 0 to {}", name, a, b, nodes - 1));
  }
}

std::string signature(const std::vector<ArgumentType>& types) {
  std::string text = "(";
  for (const ArgumentType type : types) text += std::string(to_string(type)) + ", ";
  return text + "Tl&)";
}

/// t_ptr, what kernel_args returns, and the four that the backend appends.
std::vector<ArgumentType> types_given(const Algorithm& algorithm) {
  std::vector<ArgumentType> types{ArgumentType::va};
  types.insert(types.end(), algorithm.kernel_args.types, algorithm.kernel_args.types + algorithm.kernel_args.count);
  types.insert(types.end(), 4, ArgumentType::int32);
  return types;
}

}  // namespace

std::string AlgorithmEntry::described() const {
  const std::string& shown = schedule && name == module ? schedule->algorithm : name;
  return is_built_in() ? fmt::format("algorithm '{}'", shown) : fmt::format("algorithm '{}' ({})", shown, module);
}

bool AlgorithmEntry::is_as_shipped() const {
  if (module != kBuiltinPrefix + name || world_size) return false;
  const Parameter* const all = algorithm->parameters;
  return std::all_of(all, all + algorithm->parameter_count,
                     [&](const Parameter& p) { return parameters.at(p.name) == p.preset; });
}

void AlgorithmEntry::check_signature() const {
  const auto given = types_given(*algorithm);
  const std::vector<ArgumentType> taken(algorithm->kernel.types, algorithm->kernel.types + algorithm->kernel.count);
  if (given == taken) return;
  throw Error(
      fmt::format("algorithm '{}' ({}): kernel_args and kernel do not agree\n"
                  "  kernel gets  {}\n"
                  "  kernel takes {}\n"
                  "  (t_ptr, what kernel_args returns, then sip_rank, sip_topo_kind, sip_topo_w, sip_topo_h, tl)",
                  name, module, signature(given), signature(taken)));
}

Plan AlgorithmEntry::plan(PlanRequest request) const {
  request.parameters = parameters;
  if (schedule) return plan_with(schedule, request, described());
  Plan plan = said_by(*this, [&] { return algorithm->plan(request); });
  if (!is_built_in()) {
    check_plan(name, plan);
    require_slots(*plan.schedule, request.slots, described());
  }
  return plan;
}

std::vector<std::pair<std::int32_t, std::int32_t>> AlgorithmEntry::links(PlanRequest request) const {
  request.parameters = parameters;
  if (!schedule) {
    auto pairs = said_by(*this, [&] { return algorithm->links(request); });
    if (!is_built_in()) check_links(name, pairs, request.nodes());
    return pairs;
  }
  if (schedule->nodes != request.nodes()) {
    throw Error(fmt::format("schedule '{}' is for {} ranks, not for {}", schedule->algorithm, schedule->nodes,
                            request.nodes()));
  }
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  for (const ScheduleLink& link : schedule->links) pairs.emplace_back(link.a, link.b);
  return pairs;
}

}  // namespace kernbench::ccl
