#include "ccl/choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "ccl/level_cost.h"
#include "ccl/schedule_call.h"
#include "ccl/tuned_table.h"

namespace kernbench::ccl {
namespace {

/// Nodes of a schedule are cubes where cubes contribute and are combined; elsewhere ranks.
bool nodes_are_cubes(const ChoiceInput& input) {
  const bool combines = input.op == CollectiveOp::all_reduce || input.op == CollectiveOp::reduce ||
                        input.op == CollectiveOp::reduce_scatter || input.op == CollectiveOp::broadcast;
  return combines && input.scope != Scope::sip;
}

/// Where nodes are ranks, several contributors of a rank may each bring a tile of their own.
std::int64_t bytes_of_node(const ChoiceInput& input, const MachineMap& map, bool ranks_are_pes) {
  const auto bytes = static_cast<std::int64_t>(input.bytes);
  if (ranks_are_pes || (input.op != CollectiveOp::all_to_all && input.op != CollectiveOp::send_recv)) return bytes;
  switch (input.scope) {
    case Scope::cube:
      return bytes * map.cubes_per_sip();
    case Scope::pe:
      return bytes * map.pes_per_sip();
    default:
      return bytes;
  }
}

/// Models are not finer than this: of two plans nearer to each other, the shorter one is not known.
constexpr double kTie = 1.02;

/// Among modelled plans as good as the first, one with a plain list goes first: its node runs ahead of what it waits
/// for, where a periodic list keeps the assumed pace (two SIPs, 64 MiB: 0.97 of the bound against 0.80).
void prefer_plain(std::vector<Candidate>& candidates) {
  if (candidates.empty()) return;
  const Candidate best = candidates.front();
  if (!best.unfit.empty() || best.ns == 0 || best.measured || !best.periodic) return;
  const auto plain = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& c) {
    return c.unfit.empty() && !c.measured && c.ns > 0 && !c.periodic && c.ns <= best.ns * kTie;
  });
  if (plain != candidates.end()) std::rotate(candidates.begin(), plain, std::next(plain));
}

std::string in_words(double ns) { return ns < 1e4 ? fmt::format("{:.0f} ns", ns) : fmt::format("{:.4g} us", ns / 1e3); }

std::string reason(const Choice& choice, const ChoiceInput& input) {
  const Candidate& best = choice.candidates.front();
  const Candidate* second = nullptr;
  if (choice.candidates.size() > 1 && choice.candidates[1].unfit.empty()) second = &choice.candidates[1];
  std::string text = fmt::format("{} of {} B: ", to_string(input.op), input.bytes);
  if (best.ns == 0) return text + "nothing that serves it has a model or was tuned";
  text += fmt::format("{} {}", best.measured ? "tuned to take" : "should take", in_words(best.ns));
  if (second == nullptr) return text + "; nothing else serves it";
  if (second->ns == 0) return text + fmt::format("; of {} nothing is known", second->name);
  return text + fmt::format(", next {} {}", second->name, in_words(second->ns));
}

}  // namespace

const Choice& Chooser::choose(const ChoiceInput& input) {
  const auto key = std::tuple(input.op, input.scope, input.bytes, input.root, input.lanes, input.in_place);
  auto found = made_.find(key);
  if (found == made_.end()) found = made_.emplace(key, decide(input)).first;
  return found->second;
}

Choice Chooser::decide(const ChoiceInput& input) const {
  Choice choice;
  for (const std::string& name : registry_.names()) choice.candidates.push_back(judge(name, input));
  const std::string& preset = registry_.default_algorithm();
  const auto rank = [&](const Candidate& c) {  // measured before modelled before unknown before unfit
    const int kind = !c.unfit.empty() ? 3 : c.ns == 0 ? 2 : c.measured ? 0 : 1;
    return std::tuple(kind, c.ns, c.name != preset, c.name);
  };
  std::sort(choice.candidates.begin(), choice.candidates.end(),
            [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); });
  prefer_plain(choice.candidates);
  if (choice.candidates.empty() || !choice.candidates.front().unfit.empty()) {
    std::string all;
    for (const Candidate& c : choice.candidates) all += fmt::format("\n  {}: {}", c.name, c.unfit);
    throw Error(fmt::format("no algorithm serves {} with scope {} on {} SIPs ({}):{}", to_string(input.op),
                            to_string(input.scope), group_.sips.size(), to_string(map_.sip_topology), all));
  }
  choice.algorithm = choice.candidates.front().name;
  choice.why = reason(choice, input);
  return choice;
}

Candidate Chooser::judge(const std::string& name, const ChoiceInput& input) const {
  Candidate candidate;
  candidate.name = name;
  try {
    const AlgorithmEntry entry = registry_.load(name);
    const Algorithm& algorithm = *entry.algorithm;
    if ((algorithm.operations & bit(input.op)) == 0) throw Error(fmt::format("does not serve {}", to_string(input.op)));
    if ((algorithm.scopes & bit(input.scope)) == 0)
      throw Error(fmt::format("does not serve scope {}", to_string(input.scope)));
    if (algorithm.plan == nullptr && !input.in_place) throw Error("works in place only");
    const SipShape shape = sip_shape(entry, map_, group_);
    const bool whole = shape.ranks == map_.sips && !group_.ranks_are_pes();
    const TunedTable::Row* row = whole ? registry_.tuned().find(machine_key(map_), input.op, input.scope) : nullptr;
    if (const auto ns = row == nullptr ? std::nullopt : TunedTable::ns_at(*row, name, input.bytes)) {
      candidate.ns = *ns;
      candidate.measured = true;
    }
    if (candidate.measured || algorithm.plan == nullptr) return candidate;
    PlanRequest request = ScheduleBinder::base_request(entry, map_, shape);
    const bool cubes = nodes_are_cubes(input) && !group_.ranks_are_pes();
    request.op = input.op;
    set_nodes(request, cubes ? map_.cube_w : 1, cubes ? map_.cube_h : 1);
    request.root = input.root * request.cubes();
    if (input.op == CollectiveOp::send_recv) {
      request.root = -1;
      request.peer = 1;
    }
    request.bytes = bytes_of_node(input, map_, group_.ranks_are_pes());
    const std::uint32_t pes = group_.ranks_are_pes() ? 1 : cubes ? map_.pes_per_cube : map_.pes_per_sip();
    request.lanes = input.lanes > 0 ? input.lanes : static_cast<std::int32_t>(pes);
    request.slots = group_.queue.slots;
    request.slot_bytes = group_.queue.slot_bytes;
    const Plan plan = entry.plan(request);
    if (plan.schedule->slots() > group_.queue.slots) {
      throw Error(fmt::format("needs queues of {} slots, they have {}", plan.schedule->slots(), group_.queue.slots));
    }
    candidate.ns = plan.seconds * 1e9;
    candidate.periodic = plan.schedule->period > 0;
  } catch (const std::invalid_argument& error) {
    candidate.unfit = error.what();
  } catch (const ConfigError& error) {
    candidate.unfit = error.what();
  }
  return candidate;
}

}  // namespace kernbench::ccl
