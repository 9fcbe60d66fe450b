#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ccl/run/collective.h"
#include "ccl/run/group_queues.h"
#include "ccl/select/choice.h"
#include "ccl/select/registry.h"
#include "runtime/call_order.h"
#include "runtime/runtime.h"

namespace kernbench {

/// One group of ranks: the SIPs that they drive, the queues between them, an algorithm for each operation, and the
/// order of the members' calls.
class ProcessGroup {
 public:
  /// `ranks`: the members, by group rank; member i drives sips[i], or is pes[i] where ranks are PEs (otherwise `pes` is
  /// empty). `registry`: of its ccl.yaml. `rings`: of the machine, shared by all groups. Throws ConfigError or
  /// std::invalid_argument.
  ProcessGroup(std::uint16_t id, const ProcessGroupOptions& options, std::shared_ptr<const ccl::Registry> registry,
               const MachineMap& map, std::vector<int> ranks, std::vector<std::uint16_t> sips, std::vector<PeCoord> pes,
               ccl::RingNumbers& rings);

  /// What ccl.yaml says of the number of ranks: the algorithm's entry, otherwise the defaults. Given: ranks are PEs.
  static std::optional<int> world_size(const ProcessGroupOptions& options, const ccl::Registry& registry);
  /// The PEs that are ranks then. Throws ConfigError if the machine has fewer.
  static std::vector<PeCoord> rank_pes(const ProcessGroupOptions& options, const ccl::Registry& registry,
                                       const MachineMap& map);
  /// The entry that the options name, or else that of ccl.yaml; or "auto".
  static std::string algorithm(const ProcessGroupOptions& options, const ccl::Registry& registry);

  std::uint16_t id() const { return queues_->group().id; }
  int size() const { return order_.size(); }
  const std::vector<int>& ranks() const { return order_.ranks(); }
  Scope scope() const { return calls_->scope(); }
  const ccl::Group& group() const { return queues_->group(); }
  /// -1: not a member.
  int group_rank(int rank) const;
  std::uint16_t sip_of(int group_rank) const { return group().sips[static_cast<std::size_t>(group_rank)]; }

  /// An algorithm by its number, the call that it is for, and what `auto` decided; null: it was asked for.
  struct Chosen {
    std::size_t number = 0;
    std::shared_ptr<ccl::BoundCall> call{};
    std::shared_ptr<const ccl::Choice> choice{};
  };
  /// The algorithm for a call of size `bytes`, as nccl-tests counts it: the one asked for, or what `auto` chooses; the
  /// same on every member, of which `tensors.rank` is the one that calls. Throws ccl::Error if there is none.
  Chosen algorithm_for(const ccl::CallTensors& tensors, std::uint64_t bytes, Agreement& agreed);
  std::size_t algorithms() const { return algorithms_.size(); }  ///< in use so far
  /// Of the last one that came into use; "auto" before there is any.
  const std::string& algorithm_name() const;
  const ccl::Collective& algorithm(std::size_t number) const { return *algorithms_[number]; }

  /// What installs the queues of each algorithm, in their order, on a member's SIP: null where there is nothing to do.
  using Tables = std::vector<std::shared_ptr<Handle::State>>;
  Tables& tables(int member) { return tables_[static_cast<std::size_t>(member)]; }
  /// These ranks have the queues of algorithm `number` and of those before it, which share some with it.
  bool installed(std::size_t number, const std::vector<int>& ranks) const;

  /// Queues of ProcessGroupOptions::directions on a member's SIP.
  std::vector<NeighbourEntry> own_queues(int member) const {
    return own_queues_.empty() ? std::vector<NeighbourEntry>() : queues_->rows(own_queues_, member);
  }
  /// What installs them; null before.
  std::shared_ptr<Handle::State>& own_table(int member) { return own_tables_[static_cast<std::size_t>(member)]; }

  /// The number that a program has on a member's PEs, and whether they have it there already; otherwise it has to be
  /// installed before the next launch, on the stream of all the member's collectives: it may take another's place.
  struct Slot {
    ProgramId id{};
    bool installed = false;
  };
  Slot program(int member, const std::shared_ptr<const Program>& program);

  CallOrder& order() { return order_; }  ///< of the collectives
  /// Of what member `from` sends to member `to`.
  CallOrder& transfers(int from, int to);
  /// The rank, a member, has ended: throws CollectiveMismatch if others have made a call that it has not.
  void left(int rank);
  /// Another program begins: the members live again.
  void restart();

 private:
  /// `call`: for which it is.
  std::size_t use(const std::shared_ptr<const ccl::GroupAlgorithm>& algorithm, ccl::BoundCall* call = nullptr);
  /// Made with the group where that has `auto`, else with its first transfer.
  ccl::Chooser& chooser();

  const ProcessGroupOptions options_;
  const std::shared_ptr<const ccl::Registry> registry_;
  const std::string algorithm_;  ///< an entry's name, or "auto"
  std::shared_ptr<ccl::GroupQueues> queues_;
  std::shared_ptr<ccl::CallBinder> calls_;
  std::shared_ptr<const ccl::GroupAlgorithm> named_{};  ///< of `algorithm_`; null: "auto"
  std::optional<ccl::Chooser> chooser_{};
  std::vector<std::unique_ptr<ccl::Collective>> algorithms_;  // in the order of their first use
  std::vector<Tables> tables_;                                // by group rank
  ccl::GroupQueues::Added own_queues_;
  std::vector<std::shared_ptr<Handle::State>> own_tables_;  // by group rank
  /// Programs of a member, by their number in the group, and when each was used last.   assumed: a PE has room for 16
  /// of a group; the one that was not used for the longest time makes room for the next
  struct Kept {
    std::shared_ptr<const Program> program;
    std::uint64_t used = 0;
  };
  static constexpr std::size_t kMostPrograms = 16;
  std::vector<std::vector<Kept>> programs_;  // by group rank
  std::uint64_t program_uses_ = 0;
  CallOrder order_;
  std::map<std::pair<int, int>, CallOrder> transfers_;  // by group ranks
};

}  // namespace kernbench
