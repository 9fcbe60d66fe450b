#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ccl/run/bound_call.h"
#include "ccl/select/candidates.h"
#include "ccl/select/contenders.h"
#include "ccl/select/registry.h"
#include "ccl/select/source.h"
#include "tlm/config/problems.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

struct Choice {
  std::string algorithm;              ///< entry of ccl.yaml
  std::string why;                    ///< in words
  std::vector<Candidate> candidates;  ///< the choice first, then by time; those that cannot at the end
};

/// What `auto` stands for, call by call: of the algorithms that serve a call the one that should be fastest. A time is
/// the measured one (tuned_times) where there is one, else an estimate. One of which nothing is known is taken only if
/// there is no other, the default algorithm first. One for each process group.
class Chooser {
 public:
  /// Loads all entries. `registry` and what `calls` knows outlive it. `calls`, `queues`: of the group. `parameters`
  /// replace those of ccl.yaml; an algorithm that does not have one of these is no candidate. `named`: an entry that is
  /// made already.
  Chooser(const Registry& registry, std::shared_ptr<CallBinder> calls, std::shared_ptr<GroupQueues> queues,
          const Parameters& parameters = {}, const std::shared_ptr<const GroupAlgorithm>& named = nullptr);

  /// Throws ConfigError: all that is wrong with entries that cannot be loaded. No call takes such a one.
  void check_loaded() const { problems_.throw_if_any(); }
  /// Kept in the call, with the plan, which runs; so it is the same for calls of one shape, on all ranks. `bytes`: S as
  /// in nccl-tests. What it takes has room for its queues beside those that are there. Throws Error if no algorithm
  /// serves the call.
  std::shared_ptr<const Choice> choose(BoundCall& call, std::uint64_t bytes);

 private:
  Choice decide(BoundCall& call, std::uint64_t bytes);
  /// Why a contender cannot do it; empty: it may.
  std::string unfit(const Contender& contender, const BoundCall& call) const;
  std::string nothing_serves(const BoundCall& call, const std::vector<Candidate>& candidates) const;

  const Registry& registry_;
  const std::shared_ptr<CallBinder> calls_;
  const std::shared_ptr<GroupQueues> queues_;
  Problems problems_;
  std::vector<Contender> contenders_;
  const std::unique_ptr<TimeSource> tuned_;
  std::map<AlgorithmKind, std::unique_ptr<TimeSource>> estimates_;  ///< of kernels nothing is known
};

}  // namespace kernbench::ccl
