#include "ccl/select/choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "tlm/kernel/operations.h"

namespace kernbench::ccl {
namespace {

/// What its busiest link alone keeps for this many times the least time so far is not estimated.
constexpr double kNotWorthEstimating = 1.25;

std::string in_words(double ns) { return ns < 1e4 ? fmt::format("{:.0f} ns", ns) : fmt::format("{:.4g} us", ns / 1e3); }

std::string reason(const std::vector<Candidate>& candidates, CollectiveOp op, std::uint64_t bytes) {
  const Candidate& best = candidates.front();
  std::string text = fmt::format("{} of {} B: ", to_string(op), bytes);
  if (!best.known) return text + "nothing that serves it has a model or was tuned";
  text += fmt::format("{} {}", best.measured ? "tuned to take" : "should take", in_words(best.ns));
  if (candidates.size() == 1 || !candidates[1].unfit.empty()) return text + "; nothing else serves it";
  const Candidate& second = candidates[1];
  if (!second.known) return text + fmt::format("; of {} nothing is known", second.name);
  return text + fmt::format(", next {} {}{}", second.name, second.at_least ? "at least " : "", in_words(second.ns));
}

}  // namespace

Chooser::Chooser(const Registry& registry, std::shared_ptr<CallBinder> calls, std::shared_ptr<GroupQueues> queues,
                 const Parameters& parameters, const std::shared_ptr<const GroupAlgorithm>& named)
    : registry_(registry),
      calls_(std::move(calls)),
      queues_(std::move(queues)),
      contenders_(contenders(registry, parameters, *calls_, named, problems_)),
      tuned_(tuned_times(registry, *calls_, parameters.empty())) {
  estimates_[AlgorithmKind::schedule] = plan_times();
  estimates_[AlgorithmKind::pe_to_pe] = message_times(*calls_);
}

std::shared_ptr<const Choice> Chooser::choose(BoundCall& call, std::uint64_t bytes) {
  if (!call.choice) call.choice = std::make_shared<const Choice>(decide(call, bytes));
  return call.choice;
}

Choice Chooser::decide(BoundCall& call, std::uint64_t bytes) {
  Choice choice;
  TimeQuery query{call, bytes};
  for (const Contender& contender : contenders_) {
    Candidate& candidate = choice.candidates.emplace_back();
    candidate.name = contender.name;
    candidate.algorithm = contender.algorithm;
    candidate.unfit = unfit(contender, call);
    if (!candidate.unfit.empty()) continue;
    candidate.unfit = attempt(contender.name, [&] {
      queues_->check(contender.algorithm->sips(), contender.algorithm->needs_of(call));
      tuned_->predict(*contender.algorithm, query, candidate);
      const auto estimate = estimates_.find(contender.algorithm->kind());
      if (!candidate.known && estimate != estimates_.end())
        estimate->second->predict(*contender.algorithm, query, candidate);
    });
    // What is for little data may be left out in the end, and may not keep anything else from being estimated.
    if (!candidate.usable() || !candidate.little.empty() || candidate.ns <= 0) continue;
    const double limit = candidate.ns * kNotWorthEstimating / 1e9;
    query.most_seconds = query.most_seconds > 0 ? std::min(query.most_seconds, limit) : limit;
  }
  rank_candidates(choice.candidates, registry_.default_algorithm());
  if (choice.candidates.empty() || !choice.candidates.front().unfit.empty())
    throw Error(call.refusal.empty() ? nothing_serves(call, choice.candidates) : call.refusal);
  choice.algorithm = choice.candidates.front().name;
  choice.why = reason(choice.candidates, call.tensors.call.op, bytes);
  call.use(choice.algorithm, std::move(choice.candidates.front().plan));
  for (Candidate& candidate : choice.candidates) candidate.plan = {};
  return choice;
}

std::string Chooser::unfit(const Contender& contender, const BoundCall& call) const {
  if (!contender.algorithm) return contender.unfit;
  const CollectiveOp op = call.tensors.call.op;
  if (!contender.algorithm->serves(op)) return fmt::format("does not serve {}", to_string(op));
  const std::shared_ptr<const Schedule>& file = contender.algorithm->entry().schedule;
  if (file && file->custom) return "is custom: it does what its file says, where it is named";
  if (contender.algorithm->kind() != AlgorithmKind::kernel) return call.refusal;
  if (call.in_place) return "";
  const bool rooted = facts_of(op).rooted();
  return rooted ? "works in place only, which ranks cannot know of each other" : "works in place only";
}

std::string Chooser::nothing_serves(const BoundCall& call, const std::vector<Candidate>& candidates) const {
  const std::size_t sips = calls_->group().sips.size();
  std::string text =
      fmt::format("no algorithm serves {} with scope {} on {} SIP{} ({}):", to_string(call.tensors.call.op),
                  to_string(calls_->scope()), sips, sips == 1 ? "" : "s", to_string(calls_->map().sip_topology));
  for (const Candidate& c : candidates) text += fmt::format("\n  {}: {}", c.name, c.unfit);
  return text;
}

}  // namespace kernbench::ccl
