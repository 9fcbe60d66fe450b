#include "ccl/select/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <new>

#include "ccl/contract/legal.h"
#include "ccl/run/request.h"

namespace kernbench::ccl {
namespace {

/// Of data that lie over all PEs. Nodes of a schedule are cubes where their tiles are combined, or are alike in the
/// end; elsewhere ranks, whose contributors may each bring a tile of their own.
CallShape assumed_shape(const ChoiceInput& input, const MachineMap& map, const Group& group, Scope scope) {
  CallShape shape;
  shape.op = input.op;
  shape.bytes = static_cast<std::int64_t>(input.bytes);
  if (group.ranks_are_pes()) return shape;
  shape.lanes = static_cast<std::int32_t>(map.pes_per_sip());
  if (scope == Scope::sip) return shape;
  const OperationFacts& facts = facts_of(input.op);
  if (facts.joins_tiles()) {
    shape.node_w = map.cube_w;
    shape.node_h = map.cube_h;
    shape.lanes = static_cast<std::int32_t>(map.pes_per_cube);
  } else if (!facts.whole_in() && !facts.whole_out()) {
    shape.bytes *= scope == Scope::cube ? map.cubes_per_sip() : map.pes_per_sip();
  }
  return shape;
}

/// Of algorithms whose times between measured sizes lie farther apart than this, the slower one is not the faster one.
/// assumed: a factor of 4 from size to size, and times that grow with anything between no and the full power of it
constexpr double kNear = 1.3;

/// What its busiest link alone keeps for this many times the least estimate is not estimated. If in the end nothing
/// better is left, all are estimated.
constexpr double kNotWorthEstimating = 1.25;

/// Everything that tells the places of two calls' data apart, as in same_shape; but where ranks are PEs their tensors
/// lie there, and the choice is one.
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

Chooser::Chooser(const Registry& registry, const MachineMap& map, const Group& group, Scope scope,
                 const Parameters& parameters, std::shared_ptr<CallBinder> calls)
    : registry_(registry),
      map_(map),
      group_(group),
      scope_(scope),
      calls_(calls ? std::move(calls) : std::make_shared<CallBinder>(map, group, scope)),
      tuned_(tuned_times(registry, map, group, scope)) {
  estimates_[AlgorithmKind::schedule] = plan_times();
  estimates_[AlgorithmKind::pe_to_pe] = message_times(map, group, calls_->machine());
  for (const std::string& name : registry.names()) {
    GroupAlgorithm& algorithm = algorithms_.emplace_back(GroupAlgorithm{name});
    algorithm.unfit = attempt(name, [&] { load(algorithm, parameters); });
  }
  const auto topologies = [](const GroupAlgorithm& a) {
    return a.entry.algorithm ? std::bitset<32>(a.entry.algorithm->topologies).count() : 0;
  };
  std::stable_sort(algorithms_.begin(), algorithms_.end(),
                   [&](const auto& a, const auto& b) { return topologies(a) < topologies(b); });
}

void Chooser::load(GroupAlgorithm& loaded, const Parameters& parameters) {
  try {
    loaded.entry = registry_.load(loaded.name, {}, static_cast<int>(group_.sips.size()));
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems()) problems_.add(problem.where, problem.text, problem.hint);
    throw;
  } catch (const Error& error) {
    problems_.add(registry_.where(loaded.name), error.what());
    throw;
  }
  override_parameters(loaded.entry, parameters);
  loaded.as_shipped = loaded.entry.is_as_shipped();
  if ((loaded.entry.algorithm->scopes & bit(scope_)) == 0)
    throw Error(fmt::format("does not serve scope {}", to_string(scope_)));
  loaded.sips = sip_shape(loaded.entry, map_, group_);
  check_queues(loaded);
}

void Chooser::check_queues(const GroupAlgorithm& loaded) const {
  const QueueNeeds needs = queue_needs(loaded.entry, loaded.sips, map_, group_, calls_->machine(), scope_);
  std::size_t most = 4 + 4 + map_.pes_per_cube;  // directions of a grid, and PEs of a cube
  if (needs.directions & kGlobalPeers) most += group_.sips.size();
  for (const auto* pairs : {&needs.links.ranks, &needs.links.cubes, &needs.links.pes}) {
    std::map<std::int32_t, std::size_t> degrees;
    std::size_t degree = 0;
    for (const auto& [a, b] : *pairs) degree = std::max({degree, ++degrees[a], ++degrees[b]});
    most += degree;
  }
  const RingMemory memory = ring_memory(map_, group_.queue.memory, PeCoord{});
  if (most * group_.queue.ring_bytes() <= memory.bytes) return;
  RingNumbers rings;
  GroupQueues(map_, group_, rings).add(loaded.sips, needs.directions, needs.links);
}

Chooser::Key Chooser::key_of(const ChoiceInput& input) const {
  const CallTensors* const tensors = input.tensors;
  const auto [root, peer] = tensors == nullptr ? std::pair(input.root, 0) : std::pair(tensors->root, tensors->peer);
  return {input.op, input.bytes, root, peer, input.in_place, places_of(tensors, group_.ranks_are_pes())};
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

Choice Chooser::decide(const ChoiceInput& input) {
  TimeQuery query = query_of(input);
  std::vector<Candidate> all;  // as algorithms_
  for (const GroupAlgorithm& algorithm : algorithms_) {
    Candidate& candidate = all.emplace_back();
    candidate.name = algorithm.name;
    candidate.unfit = unfit(algorithm, input);
    ask(*tuned_, algorithm, query, candidate);
  }
  correct_between(query, all);
  Choice choice;
  for (const double limit : {kNotWorthEstimating, 0.0}) {
    estimate(query, limit, all);
    choice.candidates = all;
    leave_out_little(choice.candidates);
    sort_by_time(choice.candidates, registry_.default_algorithm());
    prefer_plain(choice.candidates);
    // If the first is not known any better, the least estimate was of what is unfit, or wrong.
    if (all.empty() || !choice.candidates.front().unfit.empty() || !choice.candidates.front().at_least) break;
  }
  take_first(choice, input);
  if (query.call) query.call->use(choice.algorithm, std::move(choice.candidates.front().plan));
  for (Candidate& candidate : choice.candidates) candidate.plan = {};
  return choice;
}

TimeQuery Chooser::query_of(const ChoiceInput& input) const {
  TimeQuery query;
  query.op = input.op;
  query.bytes = input.bytes;
  query.tensors = input.tensors;
  if (input.tensors != nullptr) query.call = calls_->bind(*input.tensors);
  if (query.call && !query.call->refusal.empty()) query.call = nullptr;  // the call will say so
  if (query.call && query.call->lanes) {
    query.request = query.call->request;
  } else {
    const bool transfer = input.op == CollectiveOp::send_recv;
    query.request = call_request(map_, group_, calls_->machine(), assumed_shape(input, map_, group_, scope_),
                                 transfer ? -1 : input.root, transfer ? 1 : 0);
  }
  return query;
}

std::string Chooser::unfit(const GroupAlgorithm& algorithm, const ChoiceInput& input) {
  const std::shared_ptr<const Algorithm>& module = algorithm.entry.algorithm;
  if (module && (module->operations & bit(input.op)) == 0) return fmt::format("does not serve {}", to_string(input.op));
  if (!algorithm.unfit.empty()) return algorithm.unfit;
  return module->kind() == AlgorithmKind::kernel && !input.in_place ? "works in place only" : "";
}

void Chooser::ask(TimeSource& source, const GroupAlgorithm& algorithm, const TimeQuery& query, Candidate& candidate) {
  if (!candidate.unfit.empty()) return;
  candidate.unfit = attempt(candidate.name, [&] { source.predict(algorithm, query, candidate); });
}

void Chooser::ask_estimate(const GroupAlgorithm& algorithm, const TimeQuery& query, Candidate& candidate) {
  const auto source = estimates_.find(algorithm.entry.algorithm->kind());
  if (source != estimates_.end()) ask(*source->second, algorithm, query, candidate);
}

void Chooser::correct_between(const TimeQuery& query, std::vector<Candidate>& all) {
  double least = 0;
  for (const Candidate& c : all) {
    if (c.measured && (least == 0 || c.ns < least)) least = c.ns;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& around = all[i].between;
    if (!around || around->exact() || all[i].ns > least * kNear) continue;
    ask_estimate(algorithms_[i], query, all[i]);
  }
}

void Chooser::estimate(TimeQuery& query, double limit, std::vector<Candidate>& all) {
  double least = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Candidate& candidate = all[i];
    if (candidate.measured || !candidate.unfit.empty()) continue;
    query.request.most_seconds = least * limit / 1e9;
    if (!candidate.known || candidate.at_least) ask_estimate(algorithms_[i], query, candidate);
    const bool estimated = candidate.unfit.empty() && candidate.known;
    if (estimated && candidate.ns > 0 && (least == 0 || candidate.ns < least)) least = candidate.ns;
  }
}

void Chooser::take_first(Choice& choice, const ChoiceInput& input) const {
  if (choice.candidates.empty() || !choice.candidates.front().unfit.empty()) {
    std::string all;
    for (const Candidate& c : choice.candidates) all += fmt::format("\n  {}: {}", c.name, c.unfit);
    throw Error(fmt::format("no algorithm serves {} with scope {} on {} SIP{} ({}):{}", to_string(input.op),
                            to_string(scope_), group_.sips.size(), group_.sips.size() == 1 ? "" : "s",
                            to_string(map_.sip_topology), all));
  }
  choice.algorithm = choice.candidates.front().name;
  choice.entry = &std::find_if(algorithms_.begin(), algorithms_.end(), [&](const GroupAlgorithm& algorithm) {
                    return algorithm.name == choice.algorithm;
                  })->entry;
  choice.why = reason(choice, input);
}

}  // namespace kernbench::ccl
