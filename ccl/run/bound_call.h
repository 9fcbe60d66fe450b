#pragma once
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ccl/contract/plan_request.h"
#include "ccl/data/lanes.h"
#include "ccl/data/region_map.h"
#include "ccl/run/queues.h"
#include "tlm/ext/message.h"
#include "tlm/kernel/program.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

class PeMessages;
struct Choice;
struct ExecutionPlan;

/// The tensors of a collective call on one rank's SIP. They lie alike on all ranks; where a rank is a PE, on that PE.
struct CallTensors {
  CollectiveCall call;
  LaunchMessage::TensorArg in, out;
  int rank;  ///< group rank that makes the call
  /// Of a schedule for the call. Of a send_recv: sender and receiver; sender -1 if everybody sends `peer` ranks on.
  int root = 0, peer = 0;

  /// `ranks`: of the group. Throws Error if a send_recv has no such ends.
  CallTensors(CollectiveCall call, LaunchMessage::TensorArg in, LaunchMessage::TensorArg out, int ranks, int rank = 0);
  bool in_place;  ///< in and out are one, on this rank
  /// On all ranks: with a root each may do as it likes.
  bool in_place_everywhere() const;
  bool is_transfer() const;  ///< of two ranks, and no other
};

/// What calls of one shape launch on one rank: all that bases, data type and reduction do not change.
struct PreparedCall {
  std::shared_ptr<const Program> program;
  std::vector<PeCoord> targets;
  int contributions = 0;
  Ps least = 0;
  // Arguments of kernel_args.
  std::int64_t n_elem = 0;
  int cube_w = 1, cube_h = 1;
};

/// A call as all ranks make it. Choosing an algorithm begins with it, and the chosen algorithm goes on from it: data,
/// lanes and the request are found once, and what is planned to choose is what runs.
struct BoundCall {
  CallTensors tensors;  ///< of the rank that came first
  bool in_place;        ///< on all ranks
  std::string refusal;  ///< why no schedule or message can move these data; kernels may. Then nothing of this is there:
  std::shared_ptr<const CallMaps> maps;
  std::optional<Lanes> lanes;  ///< before they are cut for a schedule; none where there are no elements
  PlanRequest request;         ///< SIPs as they are

  std::shared_ptr<const Choice> choice;  ///< what `auto` takes for it; ranks that are PEs share it. Null: not asked
  // What follows is of one algorithm, by its name: use() replaces all of it.
  std::string algorithm;
  Plan plan;
  std::shared_ptr<const ExecutionPlan> ready;             ///< the plan, with lanes that are cut for it
  std::map<std::pair<int, bool>, PreparedCall> prepared;  ///< by rank, and whether it is in place there

  std::shared_ptr<const PeMessages> messages;  ///< of those who run PE to PE; null: nobody has asked for them

  BoundCall(CallTensors of, bool same) : tensors(std::move(of)), in_place(same) {}
  /// From now on it is for this algorithm. A plan without a schedule: it has not been planned.
  void use(const std::string& other, Plan planned) {
    algorithm = other;
    plan = std::move(planned);
    ready = nullptr;
    prepared.clear();
  }
};

/// Binds the calls of one process group. It keeps the last ones, for the other ranks and for calls of the same shape:
/// of collectives (where ranks are PEs of each rank, whose tensors lie on that PE), and of the transfers of each pair
/// of ranks.
class CallBinder {
 public:
  /// The arguments outlive it. A rank that is a PE is one contribution in every scope: its scope is sip.
  CallBinder(const MachineMap& map, const Group& group, Scope scope);
  /// The same for calls of one shape: those that differ in nothing but bases, data type and reduction.
  std::shared_ptr<BoundCall> bind(const CallTensors& tensors);

  const MachineMap& map() const { return map_; }
  const Group& group() const { return group_; }
  Scope scope() const { return scope_; }
  /// What every request of the group says of the machine, with the SIPs as they are.
  const PlanRequest& machine() const { return machine_; }

 private:
  /// Sender, receiver, and the rank that is a PE; -1: all.
  using Whose = std::tuple<int, int, int>;
  std::shared_ptr<BoundCall> make(const CallTensors& tensors, bool in_place) const;
  /// Goes on from what another rank, which is a PE too, chose for the like of it.
  void share_choice(const Whose& whose, BoundCall& call) const;

  const MachineMap& map_;
  const Group& group_;
  const Scope scope_;
  const PlanRequest machine_;
  std::map<Whose, std::list<std::shared_ptr<BoundCall>>> calls_;  // the last one first
  /// Of each.   assumed: as many as a program needs in turn; each has programs on the PEs
  static constexpr std::size_t kMostCalls = 16;
};

}  // namespace kernbench::ccl
