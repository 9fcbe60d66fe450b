#include "runtime/process_group.h"

#include <fmt/format.h>

#include "runtime/errors.h"
#include "runtime/runtime.h"

namespace kernbench {

ProcessGroup::ProcessGroup(const ProcessGroupOptions& options, const MachineMap& map, int world_size)
    : world_size_(world_size), next_(static_cast<std::size_t>(world_size), 0) {
  const ccl::Registry registry(options.ccl_file);
  const std::string name = options.algorithm == "auto"
                               ? registry.choose(CollectiveOp::all_reduce, options.scope, map.sip_topology)
                               : options.algorithm;
  ccl::Group group;
  for (int rank = 0; rank < world_size; ++rank) group.sips.push_back(static_cast<std::uint16_t>(rank));
  group.queue = {map.ipcq_slots, map.ipcq_slot_bytes, map.ipcq_buffer};
  collective_ = std::make_unique<ccl::Collective>(registry.load(name, options.parameters), map, std::move(group),
                                                  options.scope, rings_);
}

std::uint64_t ProcessGroup::ring_bytes(PeCoord pe) const {
  return rings_.used(pe) * collective_->group().queue.ring_bytes();
}

std::size_t ProcessGroup::enter(int rank, const std::string& call) {
  const std::size_t number = next_[static_cast<std::size_t>(rank)];
  if (number == calls_.size()) calls_.push_back({call, rank, 0});
  Call& entry = calls_[number];
  if (entry.text != call) {
    throw CollectiveMismatch(fmt::format(
        "process group 0: collective {} of rank {} is {}, but rank {} called {} there: ranks must issue the same "
        "collectives in the same order",
        number, rank, call, entry.first, entry.text));
  }
  ++next_[static_cast<std::size_t>(rank)];
  ++entry.submitted;
  return number;
}

bool ProcessGroup::complete(std::size_t number) const { return calls_[number].submitted == world_size_; }

}  // namespace kernbench
