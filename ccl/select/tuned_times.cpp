#include <algorithm>
#include <optional>

#include "ccl/contract/legal.h"
#include "ccl/select/source.h"
#include "ccl/select/tuned_table.h"

namespace kernbench::ccl {
namespace {

/// Whether a tensor lies as those that are measured do: its columns over all PEs of a SIP, each element once.
bool spread_over_all(const LaunchMessage::TensorArg& tensor, const MachineMap& map) {
  std::int64_t shards = 0, next = 0;
  for (const TensorShard& shard : tensor.shards) {
    if (shard.nbytes == 0) continue;
    if (shard.rows != tensor.shape.rows || shard.col != next) return false;
    next += shard.cols;
    ++shards;
  }
  return shards == std::min<std::int64_t>(tensor.shape.cols, map.pes_per_sip());
}

/// The same on all ranks: of what only the root has nothing is asked. A send_recv is measured from each rank to the
/// next.
bool lies_as_measured(const CallTensors& tensors, const MachineMap& map) {
  if (tensors.call.op == CollectiveOp::send_recv && (tensors.is_transfer() || tensors.peer != 1)) return false;
  const auto fits = [&](const LaunchMessage::TensorArg& t) { return t.shards.empty() || spread_over_all(t, map); };
  const OperationFacts& op = facts_of(tensors.call.op);
  return (op.whole_in() || fits(tensors.in)) && ((op.rooted() && !op.whole_in()) || fits(tensors.out));
}

class TunedTimes final : public TimeSource {
 public:
  TunedTimes(const Registry& registry, const CallBinder& calls)
      : registry_(registry),
        map_(calls.map()),
        scope_(calls.scope()),
        whole_(calls.group().sips.size() == map_.sips && !calls.group().ranks_are_pes()) {}

  void begin(const BoundCall& call) override {
    own_ = shipped_ = nullptr;
    if (!whole_ || !lies_as_measured(call.tensors, map_)) return;
    if (machine_key_.empty()) machine_key_ = machine_key(map_);
    own_ = registry_.tuned().find(machine_key_, call.tensors.call.op, scope_);
    shipped_ = TunedTable::shipped(machine_key_).find(machine_key_, call.tensors.call.op, scope_);
  }

  void predict(const GroupAlgorithm& algorithm, const TimeQuery& query, Candidate& candidate) override {
    const TunedTable::Row* row = own_;
    if (row == nullptr && algorithm.entry().is_as_shipped()) row = shipped_;
    if (row == nullptr) return;
    const std::optional<double> ns = TunedTable::ns(*row, algorithm.name(), query.bytes);
    if (!ns) return;
    candidate.ns = *ns;
    candidate.known = candidate.measured = true;
  }

 private:
  const Registry& registry_;
  const MachineMap& map_;
  const Scope scope_;
  const bool whole_;                          ///< the group: tables are of all SIPs
  std::string machine_key_;                   ///< in tuned tables, once it has been asked for
  const TunedTable::Row* own_ = nullptr;      ///< of the call's operation: of ccl.yaml
  const TunedTable::Row* shipped_ = nullptr;  ///< likewise: what ships
};

}  // namespace

std::unique_ptr<TimeSource> tuned_times(const Registry& registry, const CallBinder& calls) {
  return std::make_unique<TunedTimes>(registry, calls);
}

}  // namespace kernbench::ccl
