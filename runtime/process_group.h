#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ccl/collective.h"
#include "ccl/registry.h"
#include "tlm/ext/message.h"

namespace kernbench {

struct ProcessGroupOptions;

/// One group of ranks: an algorithm bound to the SIPs that they drive, and the order in which they call it.
class ProcessGroup {
 public:
  /// `ranks`: the members, by group rank; member i drives sips[i], or is pes[i] where ranks are PEs (otherwise `pes` is
  /// empty). `rings`: of the machine, shared by all groups. Throws ConfigError or std::invalid_argument.
  ProcessGroup(std::uint16_t id, const ProcessGroupOptions& options, const MachineMap& map, std::vector<int> ranks,
               std::vector<std::uint16_t> sips, std::vector<PeCoord> pes, ccl::RingNumbers& rings);

  /// What ccl.yaml says of the number of ranks: the algorithm's entry, otherwise the defaults. Given: ranks are PEs.
  static std::optional<int> world_size(const ProcessGroupOptions& options, const MachineMap& map);

  std::uint16_t id() const { return id_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks() const { return ranks_; }
  /// -1: not a member.
  int group_rank(int rank) const;
  std::uint16_t sip_of(int group_rank) const;
  const ccl::Collective& collective() const { return *collective_; }

  /// Enters this member's next call and returns its number. Throws CollectiveMismatch if another member's call of that
  /// number was another one, or if a member has ended without making it.
  std::size_t enter(int rank, const std::string& call);
  /// The member has ended: it makes no more calls. Throws CollectiveMismatch if others have made one that it has not.
  void left(int rank);
  /// Another program begins: the members live again.
  void restart() { ended_.assign(ranks_.size(), 0); }
  /// Every member has submitted call `number`.
  bool complete(std::size_t number) const;
  /// "process group 0, call 3: not made by rank 1"; empty if the call is complete.
  std::string missing(std::size_t number) const;
  std::size_t open_calls() const { return calls_.size(); }

 private:
  struct Call {
    std::string text;  ///< operation, reduce op, elements, dtype, scope
    int first = 0;     ///< rank that called it first
    int submitted = 0;
  };
  std::string absent(std::size_t number) const;

  const std::uint16_t id_;
  const std::vector<int> ranks_;
  std::unique_ptr<ccl::Collective> collective_;
  std::size_t completed_ = 0;        // calls that every member has made; they are forgotten
  std::deque<Call> calls_;           // from number `completed_` on
  std::vector<std::size_t> next_;    // by group rank
  std::vector<std::uint8_t> ended_;  // by group rank
};

}  // namespace kernbench
