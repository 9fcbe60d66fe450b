#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/process_group.h"
#include "runtime/runtime.h"

namespace kernbench {

/// Process groups, their queues on the machine, and barriers.
class Groups {
 public:
  explicit Groups(RuntimeImpl& runtime) : runtime_(runtime) {}

  const std::vector<std::unique_ptr<ProcessGroup>>& all() const { return groups_; }  ///< by id; 0: the default group
  ProcessGroup& default_group(const char* who);
  /// Before a program, for all its ranks.
  void make_beforehand(const ProcessGroupOptions& options, int world_size);
  /// A rank's own call, as Context's: they return when all ranks have called them.
  void init(int rank, const ProcessGroupOptions& options);
  ProcessGroup& new_group(int rank, const std::vector<int>& ranks, const ProcessGroupOptions& options);

  /// What ccl.yaml says of the number of ranks; none: ranks are SIPs.
  std::optional<int> world_size(const ProcessGroupOptions& options);
  /// Reserves the memory of the queues that algorithms up to number `algorithm` need, and submits the rows for them
  /// that one member's SIP does not have.
  void install_tables(ProcessGroup& group, std::size_t algorithm, int rank);
  /// The same, and returns when they are in.
  void await_tables(ProcessGroup& group, std::size_t algorithm, int rank);
  /// What launches of a stream on a SIP with queues between the PEs of a cube need; the first call submits what
  /// installs them.
  struct CubeQueues {
    std::uint16_t group = 0;
    std::shared_ptr<Handle::State> installed;  ///< null: there are none
  };
  const CubeQueues& cube_queues(int rank, int sip, std::uint16_t stream);
  /// `group` null: all workers.
  void barrier(int rank, const char* what, const ProcessGroup* group = nullptr);

  /// A program of so many ranks begins.
  void begin_program(int nprocs);
  /// A worker begins: neighbour tables first, on all SIPs, if the group was made beforehand and is to have them.
  void enter(int rank);
  void left(int rank);                           ///< it makes no more calls
  void forget_barriers() { barriers_.clear(); }  ///< after a failed program

  /// By rank, where ranks are PEs; otherwise empty.
  const std::vector<PeCoord>& rank_pes() const { return rank_pes_; }
  /// Ranks that keep this one at a barrier; none: it is at none.
  std::vector<int> absent_at_barrier(int rank) const;
  /// Who keeps a rank from going on: "; process group 0, collective 3: not called by rank 1".
  std::string detail(int rank) const;

 private:
  void make_default_group(const ProcessGroupOptions& options, int world_size);
  ProcessGroup& make_group(const ProcessGroupOptions& options, std::vector<int> ranks);

  /// Rings in HBM: tensors stay below them.
  void reserve_rings(const std::vector<std::uint16_t>& sips);

  RuntimeImpl& runtime_;
  ccl::RingNumbers rings_;
  std::vector<std::unique_ptr<ProcessGroup>> groups_;
  std::map<std::pair<int, std::uint16_t>, CubeQueues> cube_groups_;  // by SIP and stream
  ProcessGroupOptions options_;                                      // of the default group
  bool made_beforehand_ = false;                                     // the default group, by make_beforehand()
  bool tables_installed_ = false;                                    // of the default group
  std::vector<PeCoord> rank_pes_;
  std::vector<std::uint8_t> joined_;  // ranks that called init() themselves
  struct NewGroup {
    std::uint16_t id;
    ProcessGroupOptions options;
    std::vector<int> ranks;
  };
  std::vector<NewGroup> new_groups_;         // in order of new_group calls
  std::vector<std::size_t> next_new_group_;  // by rank
  struct Barrier {
    std::set<int> here;
    std::uint64_t passed = 0;
  };
  std::map<int, Barrier> barriers_;  // by group id; -1: all workers
};

}  // namespace kernbench
