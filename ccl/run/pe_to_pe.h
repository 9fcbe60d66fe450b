#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ccl/contract/verbs.h"
#include "ccl/data/region_map.h"
#include "ccl/run/bound_call.h"
#include "ccl/run/group_queues.h"
#include "tlm/kernel/operations.h"

/// Calls that run PE to PE: who holds elements sends them straight to the PE that gets them (decision 0500).
namespace kernbench::ccl {

/// Elements that lie together on one PE of a rank and go to one PE of another.
struct PeMessage {
  /// Of the message, in a row.
  struct Part {
    std::int64_t begin = 0, count = 0;  ///< elements
    std::uint64_t offset = 0;           ///< in `out`, B
  };
  std::int32_t from = 0, to = 0;  ///< cube * PEs of a cube + PE
  std::int32_t round = 0;         ///< so many messages go before it from and to the same PEs
  std::int64_t count = 0;         ///< elements
  std::uint64_t offset = 0;       ///< in `in`, B
  std::vector<Part> parts;
};

/// The messages of one call, of all ranks. What goes from one rank to another hangs on no more than two regions.
class PeMessages {
 public:
  /// Throws Error where the data are too many, or lie so that no PE can send them on its own.
  PeMessages(const MachineMap& map, const Group& group, const BoundCall& call);

  const std::vector<PeMessage>& between(int from, int to) const;  ///< group ranks that may be the same
  bool sends(int from, int to) const;                             ///< they have messages; every rank keeps its own
  /// The PEs that have messages for each other, as pairs of NodeLinks::pes in order: found when first asked for.
  const std::vector<std::pair<std::int32_t, std::int32_t>>& links() const;
  int contributions() const { return maps_->contributions; }

 private:
  int in_region(int from, int to) const;
  int out_region(int from, int to) const;
  std::vector<PeMessage> cut(const RegionMap& in, const RegionMap& out) const;

  const std::shared_ptr<const CallMaps> maps_;
  const OperationFacts& facts_;
  const int ranks_, root_;
  const int pes_, rank_pes_;                                        // of a cube, of a rank
  const std::int64_t item_, most_;                                  // bytes of an element; elements of a message
  std::map<std::pair<int, int>, std::vector<PeMessage>> messages_;  // by region of in and of out
  mutable std::optional<std::vector<std::pair<std::int32_t, std::int32_t>>> links_;
};

/// Of a call: found once. Throws Error likewise.
const std::shared_ptr<const PeMessages>& pe_messages(const MachineMap& map, const Group& group, BoundCall& call);

/// What one PE does, in this order.
struct PeStep {
  enum class Kind : std::uint8_t {
    send,  ///< loads the message and sends it
    keep,  ///< loads what stays on its rank and stores it
    take,  ///< receives the message and stores it
    sum    ///< loads what its rank contributes, adds what it receives from all others, stores it
  };
  Kind kind = Kind::send;
  const PeMessage* message = nullptr;
  std::vector<Direction> directions;  ///< sum: of all others, in the order of addition; keep: none
};

/// One rank's part of a call: what its kernels share.
struct PeToPeCall {
  std::shared_ptr<const PeMessages> messages;
  std::map<std::pair<int, int>, std::vector<PeStep>> steps;  ///< by (cube, PE)

  void run(Tl& tl) const;
  /// Of what a PE keeps of it.
  std::uint64_t bytes(int cube, int pe) const;
};

/// Binds the calls of one process group.
class PeToPeBinder {
 public:
  explicit PeToPeBinder(const GroupQueues& queues) : queues_(queues) {}

  /// Throws Error where the call cannot run PE to PE. REQUIRES: its queues (PeMessages::links) exist.
  PeToPeCall bind(const CallTensors& tensors, BoundCall& bound) const;

 private:
  Ps way(int rank_a, std::int32_t a, int rank_b, std::int32_t b) const;

  const GroupQueues& queues_;
};

}  // namespace kernbench::ccl
