#include "runtime/process_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "runtime/runtime_impl.h"

namespace kernbench {

namespace {
using ccl::kAuto;

std::shared_ptr<ccl::GroupQueues> make_queues(std::uint16_t id, const MachineMap& map, std::vector<std::uint16_t> sips,
                                              std::vector<PeCoord> pes, ccl::RingNumbers& rings) {
  ccl::Group group;
  group.id = id;
  group.sips = std::move(sips);
  group.pes = std::move(pes);
  group.queue = ccl::queue_shape(map);
  return std::make_shared<ccl::GroupQueues>(map, std::move(group), rings);
}

/// The entry that says how many ranks there are.
std::string counting_entry(const ProcessGroupOptions& options, const ccl::Registry& registry) {
  const std::string name = ProcessGroup::algorithm(options, registry);
  return name == kAuto ? registry.default_algorithm() : name;
}
}  // namespace

std::string ProcessGroup::algorithm(const ProcessGroupOptions& options, const ccl::Registry& registry) {
  return options.algorithm.empty() ? registry.algorithm() : options.algorithm;
}

std::optional<int> ProcessGroup::world_size(const ProcessGroupOptions& options, const ccl::Registry& registry) {
  return registry.world_size(counting_entry(options, registry));
}

std::vector<PeCoord> ProcessGroup::rank_pes(const ProcessGroupOptions& options, const ccl::Registry& registry,
                                            const MachineMap& map) {
  return registry.rank_pes(counting_entry(options, registry), map);
}

ProcessGroup::ProcessGroup(std::uint16_t id, const ProcessGroupOptions& options,
                           std::shared_ptr<const ccl::Registry> registry, const MachineMap& map, std::vector<int> ranks,
                           std::vector<std::uint16_t> sips, std::vector<PeCoord> pes, ccl::RingNumbers& rings)
    : options_(options),
      registry_(std::move(registry)),
      algorithm_(algorithm(options, *registry_)),
      queues_(make_queues(id, map, std::move(sips), std::move(pes), rings)),
      calls_(std::make_shared<ccl::CallBinder>(map, queues_->group(), options.scope)),
      tables_(ranks.size()),
      own_tables_(ranks.size()),
      programs_(ranks.size()),
      order_(fmt::format("process group {}", id), "collective", std::move(ranks)) {
  if (options.backend != "ahbm") {
    throw std::invalid_argument(fmt::format("init_process_group: backend is '{}': give 'ahbm'", options.backend));
  }
  if ((options.directions & ~ccl::kAllDirections) != 0) {
    throw std::invalid_argument(fmt::format("init_process_group: directions is {:#x}: bits of {:#x} have a meaning",
                                            options.directions, ccl::kAllDirections));
  }
  if (algorithm_ == kAuto) {
    chooser().check_loaded();
  } else {
    named_ =
        std::make_shared<const ccl::GroupAlgorithm>(registry_->load(algorithm_, options.parameters, size()), *calls_);
  }
  if (options.directions != 0) own_queues_ = queues_->add(ccl::sip_shape(map, queues_->group()), {options.directions});
  if (named_) use(named_);
}

ccl::Chooser& ProcessGroup::chooser() {
  const Parameters parameters = named_ ? Parameters() : options_.parameters;  // those are of the named one
  if (!chooser_) chooser_.emplace(*registry_, calls_, queues_, parameters, named_);
  return *chooser_;
}

std::size_t ProcessGroup::use(const std::shared_ptr<const ccl::GroupAlgorithm>& algorithm, ccl::BoundCall* call) {
  const auto found = std::find_if(algorithms_.begin(), algorithms_.end(), [&](const auto& one) {
    return one->name() == algorithm->name() && (call == nullptr || one->has_queues_for(*call));
  });
  if (found != algorithms_.end()) return static_cast<std::size_t>(found - algorithms_.begin());
  algorithms_.push_back(std::make_unique<ccl::Collective>(algorithm, queues_, calls_, call));
  return algorithms_.size() - 1;
}

ProcessGroup::Chosen ProcessGroup::algorithm_for(const ccl::CallTensors& tensors, std::uint64_t bytes,
                                                 Agreement& agreed) {
  const CollectiveCall& call = tensors.call;
  const std::shared_ptr<ccl::BoundCall> bound = calls_->bind(tensors);
  // A schedule is for all ranks, and its queues join neighbours, and many kernels serve no transfers: what two ranks do
  // is chosen as if none were named.
  if (named_ && (!tensors.is_transfer() || (named_->serves(call.op) && named_->kind() != ccl::AlgorithmKind::schedule)))
    return {use(named_, bound.get()), bound, nullptr};
  // Meanwhile there may be more queues, and what was bound for the others forgotten.
  if (agreed.choice) bound->choice = agreed.choice;
  agreed.choice = chooser().choose(*bound, bytes);
  return {use(agreed.choice->candidates.front().algorithm, bound.get()), bound, agreed.choice};
}

const std::string& ProcessGroup::algorithm_name() const {
  return algorithms_.empty() ? algorithm_ : algorithms_.back()->name();
}

int ProcessGroup::group_rank(int rank) const {
  const auto found = std::find(ranks().begin(), ranks().end(), rank);
  return found == ranks().end() ? -1 : static_cast<int>(found - ranks().begin());
}

bool ProcessGroup::installed(std::size_t number, const std::vector<int>& ranks) const {
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    const Tables& tables = tables_[static_cast<std::size_t>(group_rank(rank))];
    return tables.size() > number &&
           std::all_of(tables.begin(), tables.begin() + static_cast<std::ptrdiff_t>(number) + 1,
                       [](const auto& state) { return state == nullptr || state->done; });
  });
}

ProcessGroup::Slot ProcessGroup::program(int member, const std::shared_ptr<const Program>& program) {
  std::vector<Kept>& kept = programs_[static_cast<std::size_t>(member)];
  auto place = std::find_if(kept.begin(), kept.end(), [&](const Kept& one) { return one.program == program; });
  const bool installed = place != kept.end();
  if (!installed && kept.size() < kMostPrograms) {
    place = kept.insert(kept.end(), Kept());
  } else if (!installed) {
    place = std::min_element(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) { return a.used < b.used; });
  }
  *place = {program, ++program_uses_};
  const auto number = static_cast<std::uint32_t>(place - kept.begin());
  return {ProgramId{static_cast<std::uint32_t>(id()) << 16 | number}, installed};
}

CallOrder& ProcessGroup::transfers(int from, int to) {
  const auto found = transfers_.find({from, to});
  if (found != transfers_.end()) return found->second;
  const int sender = ranks()[static_cast<std::size_t>(from)], receiver = ranks()[static_cast<std::size_t>(to)];
  return transfers_
      .emplace(std::piecewise_construct, std::forward_as_tuple(from, to),
               std::forward_as_tuple(fmt::format("process group {}, rank {} to rank {}", id(), sender, receiver),
                                     "transfer", std::vector<int>{sender, receiver}))
      .first->second;
}

void ProcessGroup::left(int rank) {
  order_.left(rank);
  const int member = group_rank(rank);
  for (auto& [ends, order] : transfers_) {
    if (ends.first == member || ends.second == member) order.left(rank);
  }
}

void ProcessGroup::restart() {
  order_.restart();
  for (auto& [ends, order] : transfers_) order.restart();
}

}  // namespace kernbench
