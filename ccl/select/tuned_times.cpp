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
  TunedTimes(const Registry& registry, const CallBinder& calls, const BoundCall& call, bool measured_so) {
    const MachineMap& map = calls.map();
    const bool whole = calls.group().sips.size() == map.sips && !calls.group().ranks_are_pes();
    if (!whole || !lies_as_measured(call.tensors, map)) return;
    const std::string machine = machine_key(map);
    const CollectiveOp op = call.tensors.call.op;
    if (measured_so) own_ = registry.tuned().find(machine, op, calls.scope());
    shipped_ = TunedTable::shipped(machine).find(machine, op, calls.scope());
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
  const TunedTable::Row* own_ = nullptr;      ///< of ccl.yaml
  const TunedTable::Row* shipped_ = nullptr;  ///< of those that ship
};

}  // namespace

std::unique_ptr<TimeSource> tuned_times(const Registry& registry, const CallBinder& calls, const BoundCall& call,
                                        bool measured_so) {
  return std::make_unique<TunedTimes>(registry, calls, call, measured_so);
}

}  // namespace kernbench::ccl
