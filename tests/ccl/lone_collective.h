#pragma once
#include <memory>
#include <optional>
#include <utility>

#include "ccl/run/collective.h"

namespace kernbench::test {

/// What a process group has, for one algorithm alone.
struct LoneGroup {
  std::shared_ptr<ccl::GroupQueues> queues;
  std::shared_ptr<ccl::CallBinder> calls;

  LoneGroup(std::shared_ptr<ccl::GroupQueues> its, Scope scope)
      : queues(std::move(its)), calls(std::make_shared<ccl::CallBinder>(queues->map(), queues->group(), scope)) {}
};

/// A collective that binds its calls itself.
class LoneCollective : private LoneGroup, public ccl::Collective {
 public:
  LoneCollective(ccl::AlgorithmEntry entry, std::shared_ptr<ccl::GroupQueues> its, Scope scope,
                 const std::optional<ccl::CallTensors>& first = {})
      : LoneGroup(std::move(its), scope),
        Collective(std::make_shared<ccl::GroupAlgorithm>(std::move(entry), *calls), queues, calls,
                   first ? calls->bind(*first).get() : nullptr) {}
  /// With queues of its own.
  LoneCollective(ccl::AlgorithmEntry entry, const MachineMap& map, ccl::Group group, Scope scope,
                 ccl::RingNumbers& rings, const std::optional<ccl::CallTensors>& first = {})
      : LoneCollective(std::move(entry), std::make_shared<ccl::GroupQueues>(map, std::move(group), rings), scope,
                       first) {}

  Launch bind(const ccl::CallTensors& tensors) const { return Collective::bind(tensors, *calls->bind(tensors)); }
  bool has_queues_for(const ccl::CallTensors& tensors) const {
    return Collective::has_queues_for(*calls->bind(tensors));
  }
};

}  // namespace kernbench::test
