#include "ccl/select/choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "ccl/contract/legal.h"

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

Chooser::Chooser(const Registry& registry, std::shared_ptr<CallBinder> calls, const Parameters& parameters)
    : registry_(registry),
      calls_(std::move(calls)),
      contenders_(contenders(registry, parameters, *calls_, problems_)),
      tuned_(tuned_times(registry, *calls_)) {
  estimates_[AlgorithmKind::schedule] = plan_times();
  estimates_[AlgorithmKind::pe_to_pe] = message_times(*calls_);
}

std::shared_ptr<const Choice> Chooser::choose(BoundCall& call, std::uint64_t bytes) {
  if (!call.choice) call.choice = std::make_shared<Choice>(decide(call, bytes));
  return call.choice;
}

std::shared_ptr<const Choice> Chooser::choose_other(BoundCall& call, std::uint64_t bytes, const std::string& why) {
  Choice& choice = *call.choice;
  const std::string reason = without_name(why, choice.algorithm);
  choice.candidates.front().unfit = reason;
  // Queues stay: they will not fit later either, but for those of other messages.
  if (choice.runs->kind() != AlgorithmKind::pe_to_pe) named(choice.algorithm).unfit = reason;
  std::rotate(choice.candidates.begin(), std::next(choice.candidates.begin()), choice.candidates.end());
  take_first(choice, call, bytes);
  call.use(choice.algorithm, {});
  return call.choice;
}

Contender& Chooser::named(const std::string& name) {
  return *std::find_if(contenders_.begin(), contenders_.end(), [&](const Contender& c) { return c.name == name; });
}

Choice Chooser::decide(BoundCall& call, std::uint64_t bytes) {
  Choice choice;
  TimeQuery query{call, bytes};
  for (const Contender& contender : contenders_) {
    Candidate& candidate = choice.candidates.emplace_back();
    candidate.name = contender.name;
    candidate.unfit = unfit(contender, call);
    if (!candidate.unfit.empty()) continue;
    candidate.unfit = attempt(contender.name, [&] {
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
  take_first(choice, call, bytes);
  call.use(choice.algorithm, std::move(choice.candidates.front().plan));
  for (Candidate& candidate : choice.candidates) candidate.plan = {};
  return choice;
}

std::string Chooser::unfit(const Contender& contender, const BoundCall& call) {
  if (!contender.algorithm) return contender.unfit;
  const CollectiveOp op = call.tensors.call.op;
  if (!contender.algorithm->serves(op)) return fmt::format("does not serve {}", to_string(op));
  if (!contender.unfit.empty()) return contender.unfit;
  if (contender.algorithm->kind() != AlgorithmKind::kernel) return call.refusal;
  return call.in_place ? "" : "works in place only";
}

void Chooser::take_first(Choice& choice, const BoundCall& call, std::uint64_t bytes) {
  const CollectiveOp op = call.tensors.call.op;
  if (choice.candidates.empty() || !choice.candidates.front().unfit.empty()) {
    if (!call.refusal.empty()) throw Error(call.refusal);
    std::string all;
    for (const Candidate& c : choice.candidates) all += fmt::format("\n  {}: {}", c.name, c.unfit);
    const std::size_t sips = calls_->group().sips.size();
    throw Error(fmt::format("no algorithm serves {} with scope {} on {} SIP{} ({}):{}", to_string(op),
                            to_string(calls_->scope()), sips, sips == 1 ? "" : "s",
                            to_string(calls_->map().sip_topology), all));
  }
  choice.algorithm = choice.candidates.front().name;
  choice.runs = named(choice.algorithm).algorithm;
  choice.why = reason(choice.candidates, op, bytes);
}

}  // namespace kernbench::ccl
