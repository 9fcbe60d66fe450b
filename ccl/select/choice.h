#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "ccl/run/bound_call.h"
#include "ccl/select/candidates.h"
#include "ccl/select/registry.h"
#include "ccl/select/source.h"
#include "tlm/config/problems.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

/// What `auto` decides by.
struct ChoiceInput {
  CollectiveOp op = CollectiveOp::all_reduce;
  std::uint64_t bytes = 0;               ///< S as in nccl-tests
  int root = 0;                          ///< rank of the group; means nothing where tensors are given
  bool in_place = true;                  ///< algorithms that are kernels work in place only
  const CallTensors* tensors = nullptr;  ///< where the data lie; null: over all PEs
};

struct Choice {
  std::string algorithm;                  ///< entry of ccl.yaml
  const AlgorithmEntry* entry = nullptr;  ///< that entry, of the Chooser
  std::string why;                        ///< in words
  std::vector<Candidate> candidates;      ///< the choice first, then by time; those that cannot at the end
};

/// What `auto` stands for, call by call: of the algorithms that serve a call the one that should be fastest. A time is
/// the measured one (tuned_times) where there is one, else an estimate, which the nearest measured sizes correct.
/// Algorithms for little data are left out where anything else is known, the others sorted; of two within 2 % a plain
/// list goes before a periodic one. One of which nothing is known is taken only if there is no other, the default
/// algorithm first. One for each process group: it remembers.
class Chooser {
 public:
  /// Loads all entries. `registry`, `map` and `group` outlive it. `parameters` replace those of ccl.yaml; an algorithm
  /// that does not have one of these is no candidate. `calls`: binds calls for the group, so that the call bound for
  /// the choice is the one that runs; null: the Chooser has its own.
  Chooser(const Registry& registry, const MachineMap& map, const Group& group, Scope scope = Scope::sip,
          const Parameters& parameters = {}, std::shared_ptr<CallBinder> calls = nullptr);

  /// Throws ConfigError: all that is wrong with entries that cannot be loaded. No call takes such a one.
  void check_loaded() const { problems_.throw_if_any(); }
  /// The same for the same input, on all ranks. The plan of the chosen algorithm is kept in its BoundCall, and runs.
  /// Throws Error if no algorithm serves the call.
  const Choice& choose(const ChoiceInput& input);
  /// Marks the algorithm that was chosen for this input as unfit, `why` to be read behind its name, and takes the next
  /// one: what choose() gave for it is changed. Throws Error if there is none. REQUIRES: choose(input) before.
  const Choice& choose_other(const ChoiceInput& input, const std::string& why);

 private:
  void load(GroupAlgorithm& loaded, const Parameters& parameters);
  /// Tries an algorithm's queues. Throws Error if they do not fit.
  void check_queues(const GroupAlgorithm& loaded) const;

  Choice decide(const ChoiceInput& input);
  TimeQuery query_of(const ChoiceInput& input) const;
  /// Why an algorithm cannot do it; empty: it may.
  static std::string unfit(const GroupAlgorithm& algorithm, const ChoiceInput& input);
  static void ask(TimeSource& source, const GroupAlgorithm& algorithm, const TimeQuery& query, Candidate& candidate);
  void ask_estimate(const GroupAlgorithm& algorithm, const TimeQuery& query, Candidate& candidate);
  /// Times between measured sizes, of those that might be the fastest.
  void correct_between(const TimeQuery& query, std::vector<Candidate>& all);
  /// Times that were not measured. `limit`: an algorithm that surely takes this many times the least estimate so far is
  /// not estimated; 0: all are.
  void estimate(TimeQuery& query, double limit, std::vector<Candidate>& all);
  /// Takes the first of its candidates. Throws Error if that cannot.
  void take_first(Choice& choice, const ChoiceInput& input) const;

  const Registry& registry_;
  const MachineMap& map_;
  const Group& group_;
  const Scope scope_;
  const std::shared_ptr<CallBinder> calls_;
  Problems problems_;
  std::vector<GroupAlgorithm> algorithms_;  ///< those for few topologies first: what was made for this one may be good
  const std::unique_ptr<TimeSource> tuned_;
  std::map<AlgorithmKind, std::unique_ptr<TimeSource>> estimates_;  ///< of kernels nothing is known
  /// Operation, bytes, root, peer, in place, and how the tensors lie.
  using Key = std::tuple<CollectiveOp, std::uint64_t, int, int, bool, std::vector<std::uint64_t>>;
  Key key_of(const ChoiceInput& input) const;
  std::map<Key, Choice> made_;
};

}  // namespace kernbench::ccl
