#include "ccl/select/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <cmath>
#include <new>

#include "ccl/contract/legal.h"
#include "ccl/data/lanes.h"
#include "ccl/schedule/level_cost.h"
#include "ccl/select/message_estimate.h"
#include "ccl/select/tuned_table.h"

namespace kernbench::ccl {
namespace {

/// Of data that lie over all PEs. Nodes of a schedule are cubes where their tiles are combined, or are alike in the
/// end; elsewhere ranks, whose contributors may each bring a tile of their own.
CallShape assumed_shape(const ChoiceInput& input, const MachineMap& map, const Group& group) {
  CallShape shape;
  shape.op = input.op;
  shape.bytes = static_cast<std::int64_t>(input.bytes);
  if (group.ranks_are_pes()) return shape;
  shape.lanes = static_cast<std::int32_t>(map.pes_per_sip());
  if (input.scope == Scope::sip) return shape;
  if (reduces(input.op) || input.op == CollectiveOp::broadcast) {
    shape.node_w = map.cube_w;
    shape.node_h = map.cube_h;
    shape.lanes = static_cast<std::int32_t>(map.pes_per_cube);
  } else if (input.op == CollectiveOp::all_to_all || input.op == CollectiveOp::send_recv) {
    shape.bytes *= input.scope == Scope::cube ? map.cubes_per_sip() : map.pes_per_sip();
  }
  return shape;
}

/// Of algorithms whose times between measured sizes lie farther apart than this, the slower one is not the faster one.
/// assumed: a factor of 4 from size to size, and times that grow with anything between no and the full power of it
constexpr double kNear = 1.3;

/// What its busiest link alone keeps for this many times the least estimate is not estimated. If in the end nothing
/// better is left, all are estimated.
constexpr double kNotWorthEstimating = 1.25;

/// How many ranks on each one sends in a send_recv that all ranks make; 0: another call, or one of two ranks.
int distance_of(const ChoiceInput& input, const Group& group) {
  if (input.tensors == nullptr || input.op != CollectiveOp::send_recv) return 0;
  const CollectiveCall& call = input.tensors->call;
  const auto ranks = static_cast<int>(group.sips.size());
  return call.to < 0 || call.from < 0 ? 0 : (call.to - input.tensors->first + ranks) % ranks;
}

/// Everything that tells the places of two calls' data apart. Where ranks are PEs their tensors lie there.
std::vector<std::uint64_t> places_of(const CallTensors* tensors, bool ranks_are_pes) {
  std::vector<std::uint64_t> places;
  if (tensors == nullptr) return places;
  places.push_back(size_of(tensors->call.dtype));
  for (const LaunchMessage::TensorArg* argument : {&tensors->in, &tensors->out}) {
    places.push_back(argument->shards.size());
    places.push_back(static_cast<std::uint64_t>(argument->shape.cols));
    for (const TensorShard& shard : argument->shards) {
      const std::uint64_t owner =
          ranks_are_pes ? 0 : std::uint64_t{shard.owner.cube} << 48 | std::uint64_t{shard.owner.pe} << 32;
      places.push_back(owner | static_cast<std::uint64_t>(shard.row));
      places.push_back(static_cast<std::uint64_t>(shard.col));
      places.push_back(shard.offset_bytes);
      places.push_back(shard.nbytes);
    }
  }
  return places;
}

/// Whether a tensor lies as those that are measured do: its columns over all PEs of a SIP, each element once.
bool spread_over_all(const LaunchMessage::TensorArg& tensor, const MachineMap& map) {
  std::int64_t shards = 0, next = 0;
  for (const TensorShard& shard : tensor.shards) {
    if (shard.nbytes == 0) continue;
    if (shard.rows != tensor.shape.rows || shard.col != next) return false;
    next += shard.cols;
    ++shards;
  }
  return shards == std::min<std::int64_t>(tensor.shape.cols, map.pes_per_sip());
}

/// The same on all ranks: of what only the root has nothing is asked.
bool lies_as_measured(const CallTensors* tensors, const MachineMap& map) {
  if (tensors == nullptr) return true;
  const auto fits = [&](const LaunchMessage::TensorArg& t) { return t.shards.empty() || spread_over_all(t, map); };
  const CollectiveOp op = tensors->call.op;
  return (op == CollectiveOp::scatter || fits(tensors->in)) &&
         ((rooted(op) && op != CollectiveOp::scatter) || fits(tensors->out));
}

/// An error's text without the name of its algorithm, behind which it is to stand.
std::string without_name(const std::string& text, const std::string& algorithm) {
  const std::string begin = fmt::format("algorithm '{}'", algorithm);
  if (text.rfind(begin, 0) != 0) return text;
  return text.substr(std::min(text.find_first_not_of(": ", begin.size()), text.size()));
}

/// Tries something of an algorithm. Returns why it cannot: a plug-in may throw anything. Empty: it can.
template <class Trial>
std::string attempt(const std::string& algorithm, Trial&& trial) {
  try {
    trial();
    return {};
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::invalid_argument& error) {
    return without_name(error.what(), algorithm);
  } catch (const ConfigError& error) {
    return error.what();
  } catch (const std::exception& error) {
    return fmt::format("refuses: {}", error.what());
  }
}

PlanRequest seen(const SipShape& sips, PlanRequest request) {
  request.kind = sips.kind;
  request.sip_w = sips.w;
  request.sip_h = sips.h;
  return request;
}

std::string in_words(double ns) { return ns < 1e4 ? fmt::format("{:.0f} ns", ns) : fmt::format("{:.4g} us", ns / 1e3); }

std::string reason(const Choice& choice, const ChoiceInput& input) {
  const Candidate& best = choice.candidates.front();
  const Candidate* second = nullptr;
  if (choice.candidates.size() > 1 && choice.candidates[1].unfit.empty()) second = &choice.candidates[1];
  std::string text = fmt::format("{} of {} B: ", to_string(input.op), input.bytes);
  if (!best.known) return text + "nothing that serves it has a model or was tuned";
  text += fmt::format("{} {}", best.measured ? "tuned to take" : "should take", in_words(best.ns));
  if (second == nullptr) return text + "; nothing else serves it";
  if (!second->known) return text + fmt::format("; of {} nothing is known", second->name);
  return text + fmt::format(", next {} {}{}", second->name, second->at_least ? "at least " : "", in_words(second->ns));
}

}  // namespace

Chooser::Key Chooser::key_of(const ChoiceInput& input) const {
  return {input.op,       input.scope,
          input.bytes,    input.root + distance_of(input, group_),  // a call has one of them
          input.in_place, places_of(input.tensors, group_.ranks_are_pes())};
}

const Choice& Chooser::choose(const ChoiceInput& input) {
  const Key key = key_of(input);
  auto found = made_.find(key);
  if (found == made_.end()) found = made_.emplace(key, decide(input)).first;
  return found->second;
}

const Choice& Chooser::choose_other(const ChoiceInput& input, const std::string& why) {
  Choice& choice = made_.at(key_of(input));
  choice.candidates.front().unfit = without_name(why, choice.algorithm);
  std::rotate(choice.candidates.begin(), std::next(choice.candidates.begin()), choice.candidates.end());
  take_first(choice, input);
  return choice;
}

const std::vector<Chooser::Contender>& Chooser::contenders(Scope scope) {
  std::vector<Contender>& all = contenders_[scope];
  if (!all.empty()) return all;
  for (const std::string& name : registry_.names()) {
    Contender& contender = all.emplace_back(Contender{name});
    contender.unfit = attempt(name, [&] { prepare(contender, scope); });
  }
  const auto topologies = [](const Contender& c) {
    return c.entry.algorithm ? std::bitset<32>(c.entry.algorithm->topologies).count() : 0;
  };
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return topologies(a) < topologies(b); });
  return all;
}

void Chooser::prepare(Contender& contender, Scope scope) const {
  contender.entry = registry_.load(contender.name, {}, static_cast<int>(group_.sips.size()));
  const Algorithm& algorithm = *contender.entry.algorithm;
  if ((algorithm.scopes & bit(scope)) == 0) throw Error(fmt::format("does not serve scope {}", to_string(scope)));
  contender.sips = sip_shape(contender.entry, map_, group_);
  check_queues(contender, scope);
}

std::vector<Candidate> Chooser::ranked(const ChoiceInput& input, const PlanRequest& request, double limit) {
  PlanRequest limited = request;
  std::vector<Candidate> candidates;
  const std::vector<Contender>& all = contenders(input.scope);
  double least = 0;  // of those that the models know
  for (const Contender& contender : all) {
    limited.most_seconds = least * limit / 1e9;
    const Candidate& candidate = candidates.emplace_back(judge(contender, input, limited));
    const bool estimated = candidate.unfit.empty() && candidate.known && !candidate.measured;
    if (estimated && candidate.ns > 0 && (least == 0 || candidate.ns < least)) least = candidate.ns;
  }
  refine(candidates, all, input, request);
  leave_out_little(candidates);
  sort_by_time(candidates, registry_.default_algorithm());
  prefer_plain(candidates);
  return candidates;
}

Choice Chooser::decide(const ChoiceInput& input) {
  Choice choice;
  const PlanRequest request = request_of(input);
  choice.candidates = ranked(input, request, kNotWorthEstimating);
  const bool unknown = !choice.candidates.empty() && choice.candidates.front().unfit.empty() &&
                       choice.candidates.front().at_least;  // the least estimate was of what is unfit, or wrong
  if (unknown) choice.candidates = ranked(input, request, 0);
  take_first(choice, input);
  return choice;
}

void Chooser::take_first(Choice& choice, const ChoiceInput& input) const {
  if (choice.candidates.empty() || !choice.candidates.front().unfit.empty()) {
    std::string all;
    for (const Candidate& c : choice.candidates) all += fmt::format("\n  {}: {}", c.name, c.unfit);
    throw Error(fmt::format("no algorithm serves {} with scope {} on {} SIP{} ({}):{}", to_string(input.op),
                            to_string(input.scope), group_.sips.size(), group_.sips.size() == 1 ? "" : "s",
                            to_string(map_.sip_topology), all));
  }
  choice.algorithm = choice.candidates.front().name;
  choice.why = reason(choice, input);
}

const TunedTable::Row* Chooser::measured(const AlgorithmEntry& entry, const ChoiceInput& input) {
  const bool whole = group_.sips.size() == map_.sips && !group_.ranks_are_pes();
  if (!whole || !lies_as_measured(input.tensors, map_)) return nullptr;
  if (machine_key_.empty()) machine_key_ = machine_key(map_);
  if (const TunedTable::Row* row = registry_.tuned().find(machine_key_, input.op, input.scope)) return row;
  if (!entry.is_as_shipped()) return nullptr;
  if (!shipped_) shipped_ = TunedTable::shipped(machine_key_, builtin_algorithms());
  return shipped_->find(machine_key_, input.op, input.scope);
}

void Chooser::check_queues(const Contender& contender, Scope scope) const {
  const Algorithm& algorithm = *contender.entry.algorithm;
  NodeLinks links;
  std::size_t most = 4 + 4 + map_.pes_per_cube;  // directions of a grid, and PEs of a cube
  if (algorithm.directions & kGlobalPeers) most += group_.sips.size();
  if (algorithm.links != nullptr) {
    links = node_links(contender.entry, map_, seen(contender.sips, machine_), scope);
    for (const auto* pairs : {&links.ranks, &links.cubes, &links.pes}) {
      std::map<std::int32_t, std::size_t> degrees;
      std::size_t degree = 0;
      for (const auto& [a, b] : *pairs) degree = std::max({degree, ++degrees[a], ++degrees[b]});
      most += degree;
    }
  }
  const RingMemory memory = ring_memory(map_, group_.queue.memory, PeCoord{});
  if (most * group_.queue.ring_bytes() <= memory.bytes) return;
  RingNumbers rings;
  GroupQueues(map_, group_, rings).add(contender.sips, algorithm.directions, links);
}

CallShape Chooser::shape_of(const ChoiceInput& input) const {
  const CallShape assumed = assumed_shape(input, map_, group_);
  if (input.tensors == nullptr || group_.ranks_are_pes()) return assumed;
  const CallTensors& tensors = *input.tensors;
  const std::size_t item = size_of(tensors.call.dtype);
  const int ranks = static_cast<int>(group_.sips.size());
  try {
    const CallMaps maps = make_call_maps(map_, input.op, input.scope, ranks, tensors.in, tensors.out, item);
    if (maps.elements == 0) return assumed;
    return call_shape(maps, Lanes(map_, maps, input.op, input.in_place, item).all().size(), item);
  } catch (const Error&) {  // the call will say so
    return assumed;
  }
}

PlanRequest Chooser::request_of(const ChoiceInput& input) const {
  const bool transfer = input.op == CollectiveOp::send_recv;
  PlanRequest request = call_request(machine_, group_.queue, shape_of(input), transfer ? -1 : input.root,
                                     transfer ? std::max(1, distance_of(input, group_)) : 0);
  if (request.cubes() == 1 && !group_.ranks_are_pes()) spread_regions(map_, request);
  return request;
}

Plan Chooser::planned(const Contender& contender, const PlanRequest& request) const {
  Plan plan = contender.entry.plan(seen(contender.sips, request));
  if (plan.schedule->slots() > group_.queue.slots) {
    throw Error(fmt::format("needs queues of {} slots, they have {}", plan.schedule->slots(), group_.queue.slots));
  }
  return plan;
}

Candidate Chooser::judge(const Contender& contender, const ChoiceInput& input, const PlanRequest& request) {
  Candidate candidate;
  candidate.name = contender.name;
  candidate.unfit = attempt(contender.name, [&] {
    const AlgorithmEntry& entry = contender.entry;
    if (entry.algorithm && (entry.algorithm->operations & bit(input.op)) == 0)
      throw Error(fmt::format("does not serve {}", to_string(input.op)));
    if (!contender.unfit.empty()) throw Error(contender.unfit);
    const AlgorithmKind kind = entry.algorithm->kind();
    if (kind == AlgorithmKind::kernel && !input.in_place) throw Error("works in place only");
    if (const TunedTable::Row* row = measured(entry, input))
      candidate.between = TunedTable::between(*row, contender.name, input.bytes);
    if (candidate.between) {
      candidate.ns = candidate.between->ns();
      candidate.known = candidate.measured = true;
      return;
    }
    if (kind == AlgorithmKind::pe_to_pe && input.tensors != nullptr) {
      const MessageEstimate estimate =
          estimate_messages(map_, group_, input.scope, seen(contender.sips, machine_), *input.tensors);
      candidate.ns = estimate.seconds * 1e9;
      candidate.known = true;
      if (estimate.crowded) candidate.little = "sends in no order";
    }
    if (kind != AlgorithmKind::schedule) return;
    const Plan plan = planned(contender, request);
    candidate.ns = plan.seconds * 1e9;
    candidate.known = true;
    candidate.at_least = plan.at_least;
    candidate.periodic = plan.schedule->period > 0;
    if (plan.schedule->bundles && plan.rounds > 1) candidate.little = "sends bundles";
  });
  return candidate;
}

void Chooser::refine(std::vector<Candidate>& candidates, const std::vector<Contender>& contenders,
                     const ChoiceInput& input, const PlanRequest& request) const {
  double least = 0;
  for (const Candidate& c : candidates) {
    if (c.measured && (least == 0 || c.ns < least)) least = c.ns;
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Candidate& candidate = candidates[i];
    const auto& around = candidate.between;
    if (!around || around->exact() || candidate.ns > least * kNear) continue;
    if (contenders[i].entry.algorithm->kind() != AlgorithmKind::schedule) continue;
    const auto model = [&](std::uint64_t bytes) {
      PlanRequest at = request;
      at.bytes = std::llround(static_cast<double>(request.bytes) / static_cast<double>(input.bytes) *
                              static_cast<double>(bytes));
      return planned(contenders[i], at).seconds * 1e9;
    };
    const std::string unfit = attempt(candidate.name, [&] {
      candidate.ns = model(input.bytes) * std::pow(around->low_ns / model(around->low), 1 - around->share) *
                     std::pow(around->high_ns / model(around->high), around->share);
    });
    if (!unfit.empty()) candidate.unfit = unfit;
  }
}

}  // namespace kernbench::ccl
