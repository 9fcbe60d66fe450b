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
  TunedTimes(const Registry& registry, const CallBinder& calls, bool measured_so)
      : registry_(registry),
        map_(calls.map()),
        scope_(calls.scope()),
        whole_(calls.group().sips.size() == map_.sips && !calls.group().ranks_are_pes()),
        measured_so_(measured_so) {}

  void predict(const GroupAlgorithm& algorithm, const TimeQuery& query, Candidate& candidate) override {
    const TunedTable::Row* row = row_of(algorithm, query.call.tensors);
    if (row == nullptr) return;
    const std::optional<double> ns = TunedTable::ns(*row, algorithm.name(), query.bytes);
    if (!ns) return;
    candidate.ns = *ns;
    candidate.known = candidate.measured = true;
  }

 private:
  const TunedTable::Row* row_of(const GroupAlgorithm& algorithm, const CallTensors& tensors) {
    const bool shipped = algorithm.is_as_shipped();
    if (!whole_ || (!measured_so_ && !shipped) || !lies_as_measured(tensors, map_)) return nullptr;
    if (machine_.empty()) machine_ = machine_key(map_);
    if (measured_so_) {
      if (const auto* own = registry_.tuned().find(machine_, tensors.call.op, scope_)) return own;
    }
    return shipped ? TunedTable::shipped(machine_).find(machine_, tensors.call.op, scope_) : nullptr;
  }

  const Registry& registry_;
  const MachineMap& map_;
  const Scope scope_;
  const bool whole_;        ///< the group: tables are of all SIPs
  const bool measured_so_;  ///< with the parameters of ccl.yaml
  std::string machine_;     ///< in tuned tables, once it has been asked for
};

}  // namespace

std::unique_ptr<TimeSource> tuned_times(const Registry& registry, const CallBinder& calls, bool measured_so) {
  return std::make_unique<TunedTimes>(registry, calls, measured_so);
}

}  // namespace kernbench::ccl
