#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "ccl/run/collective.h"
#include "ccl/run/request.h"
#include "ccl/select/candidates.h"
#include "ccl/select/registry.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

/// What `auto` decides by.
struct ChoiceInput {
  CollectiveOp op = CollectiveOp::all_reduce;
  Scope scope = Scope::sip;
  std::uint64_t bytes = 0;  ///< S as in nccl-tests
  int root = 0;
  bool in_place = true;                  ///< algorithms that are kernels work in place only
  const CallTensors* tensors = nullptr;  ///< where the data lie; null: over all PEs
};

struct Choice {
  std::string algorithm;              ///< entry of ccl.yaml
  std::string why;                    ///< in words
  std::vector<Candidate> candidates;  ///< the choice first, then by time; those that cannot at the end
};

/// What `auto` stands for, call by call: of the algorithms that serve a call the one that should be fastest. Times come
/// from the tuned table of ccl.yaml where it has this machine and size, else from the table that ships, otherwise from
/// estimates. One of which nothing is known is taken only if there is no other, the default algorithm first. Between
/// two measured sizes the model says how the time grows, and the measurements how far it is from the truth. One for
/// each process group: it remembers.
class Chooser {
 public:
  /// All of them outlive it.
  Chooser(const Registry& registry, const MachineMap& map, const Group& group)
      : registry_(registry), map_(map), group_(group), machine_(machine_request(map, sip_shape(map, group))) {}

  /// The same for the same input, on all ranks. Throws Error if no algorithm serves it.
  const Choice& choose(const ChoiceInput& input);
  /// Another choice for what was chosen and turned out not to serve it; `why` is to be read behind its name. Throws
  /// Error if there is none.
  const Choice& choose_other(const ChoiceInput& input, const std::string& why);

 private:
  /// An entry of ccl.yaml, loaded once for all choices of a scope.
  struct Contender {
    std::string name;
    AlgorithmEntry entry{};
    SipShape sips{};      ///< as it sees them
    std::string unfit{};  ///< why it serves no call of this scope; empty: it does
  };
  /// All entries, those for few topologies first: one that was made for this one is likely to be good.
  const std::vector<Contender>& contenders(Scope scope);
  void prepare(Contender& contender, Scope scope) const;
  /// Tries an algorithm's queues. Throws Error if they do not fit.
  void check_queues(const Contender& contender, Scope scope) const;

  Choice decide(const ChoiceInput& input);
  /// How the call's data are dealt; where that is not known, or does not suit it: over all PEs.
  CallShape shape_of(const ChoiceInput& input) const;
  /// What every algorithm is asked for: the SIPs apart, as it sees them.
  PlanRequest request_of(const ChoiceInput& input) const;
  /// The best first. `limit`: an algorithm that surely takes this many times the least estimate so far is not
  /// estimated; 0: all are.
  std::vector<Candidate> ranked(const ChoiceInput& input, const PlanRequest& request, double limit);
  /// `request`: with what a model may stop at, see PlanRequest::most_seconds.
  Candidate judge(const Contender& contender, const ChoiceInput& input, const PlanRequest& request);
  /// What was measured of an entry's operation, with tensors that lie as these do; null: nothing.
  const TunedTable::Row* measured(const AlgorithmEntry& entry, const ChoiceInput& input);
  /// By the model. Throws Error if it cannot be.
  Plan planned(const Contender& contender, const PlanRequest& request) const;
  /// Times between measured sizes, of those that might be the fastest.
  void refine(std::vector<Candidate>& candidates, const std::vector<Contender>& contenders, const ChoiceInput& input,
              const PlanRequest& request) const;
  /// Takes the first of its candidates. Throws Error if that cannot.
  void take_first(Choice& choice, const ChoiceInput& input) const;

  const Registry& registry_;
  const MachineMap& map_;
  const Group& group_;
  const PlanRequest machine_;
  std::map<Scope, std::vector<Contender>> contenders_;
  std::string machine_key_;            ///< in tuned tables, once it has been asked for
  std::optional<TunedTable> shipped_;  ///< of the machine, once it has been asked for
  /// The last: how the tensors lie.
  using Key = std::tuple<CollectiveOp, Scope, std::uint64_t, int, bool, std::vector<std::uint64_t>>;
  Key key_of(const ChoiceInput& input) const;
  std::map<Key, Choice> made_;
};

}  // namespace kernbench::ccl
