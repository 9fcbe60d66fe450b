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
  std::string algorithm;                  ///< entry of ccl.yaml
  const AlgorithmEntry* entry = nullptr;  ///< that entry, of the Chooser
  std::string why;                        ///< in words
  std::vector<Candidate> candidates;      ///< the choice first, then by time; those that cannot at the end
};

/// What `auto` stands for, call by call: of the algorithms that serve a call the one that should be fastest. A time is
/// the measured one (tuned_times) where there is one, else an estimate. One of which nothing is known is taken only if
/// there is no other, the default algorithm first. One for each process group.
class Chooser {
 public:
  /// Loads all entries. `registry`, `map` and `group` outlive it. `parameters` replace those of ccl.yaml; an algorithm
  /// that does not have one of these is no candidate. `calls`: binds calls for the group, so that the call bound for
  /// the choice is the one that runs; null: the Chooser has its own.
  Chooser(const Registry& registry, const MachineMap& map, const Group& group, Scope scope = Scope::sip,
          const Parameters& parameters = {}, std::shared_ptr<CallBinder> calls = nullptr);

  /// Throws ConfigError: all that is wrong with entries that cannot be loaded. No call takes such a one.
  void check_loaded() const { problems_.throw_if_any(); }
  /// The same for calls of one shape, on all ranks, while their BoundCall is kept: the choice is kept there, with the
  /// plan, which runs. `bytes`: S as in nccl-tests. Throws Error if no algorithm serves the call.
  std::shared_ptr<const Choice> choose(const CallTensors& tensors, std::uint64_t bytes);
  /// Marks the algorithm that was chosen for these tensors as unfit, `why` to be read behind its name, and takes the
  /// next one: what choose() gave for it is changed. Throws Error if there is none. REQUIRES: choose(...) before.
  std::shared_ptr<const Choice> choose_other(const CallTensors& tensors, std::uint64_t bytes, const std::string& why);

 private:
  Choice decide(BoundCall& call, std::uint64_t bytes);
  /// Why a contender cannot do it; empty: it may.
  static std::string unfit(const Contender& contender, const BoundCall& call);
  /// Takes the first of its candidates. Throws Error if that cannot.
  void take_first(Choice& choice, const BoundCall& call, std::uint64_t bytes) const;

  const Registry& registry_;
  const MachineMap& map_;
  const Group& group_;
  const Scope scope_;
  const std::shared_ptr<CallBinder> calls_;
  Problems problems_;
  const std::vector<Contender> contenders_;
  const std::unique_ptr<TimeSource> tuned_;
  std::map<AlgorithmKind, std::unique_ptr<TimeSource>> estimates_;  ///< of kernels nothing is known
};

}  // namespace kernbench::ccl
