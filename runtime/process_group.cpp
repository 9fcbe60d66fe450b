#include "runtime/process_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/errors.h"
#include "runtime/runtime.h"

namespace kernbench {

namespace {
/// The entry of ccl.yaml that `options` name or leave to be chosen.
std::string algorithm_of(const ProcessGroupOptions& options, const ccl::Registry& registry, SipTopology topology) {
  return options.algorithm == "auto" ? registry.choose(CollectiveOp::all_reduce, options.scope, topology)
                                     : options.algorithm;
}
}  // namespace

std::optional<int> ProcessGroup::world_size(const ProcessGroupOptions& options, const MachineMap& map) {
  const ccl::Registry registry(options.ccl_file);
  return registry.world_size(algorithm_of(options, registry, map.sip_topology));
}

ProcessGroup::ProcessGroup(std::uint16_t id, const ProcessGroupOptions& options, const MachineMap& map,
                           std::vector<int> ranks, std::vector<std::uint16_t> sips, std::vector<PeCoord> pes,
                           ccl::RingNumbers& rings)
    : id_(id), ranks_(std::move(ranks)), next_(ranks_.size(), 0), ended_(ranks_.size(), 0) {
  if (options.backend != "ahbm") {
    throw std::invalid_argument(fmt::format("init_process_group: backend is '{}': give 'ahbm'", options.backend));
  }
  const ccl::Registry registry(options.ccl_file);
  const std::string name = algorithm_of(options, registry, map.sip_topology);
  ccl::Group group;
  group.id = id;
  group.sips = std::move(sips);
  group.pes = std::move(pes);
  group.queue = {map.ipcq_slots, map.ipcq_slot_bytes, map.ipcq_buffer};
  collective_ = std::make_unique<ccl::Collective>(registry.load(name, options.parameters), map, std::move(group),
                                                  options.scope, rings);
}

int ProcessGroup::group_rank(int rank) const {
  const auto found = std::find(ranks_.begin(), ranks_.end(), rank);
  return found == ranks_.end() ? -1 : static_cast<int>(found - ranks_.begin());
}

std::uint16_t ProcessGroup::sip_of(int group_rank) const {
  return collective_->group().sips[static_cast<std::size_t>(group_rank)];
}

std::size_t ProcessGroup::enter(int rank, const std::string& call) {
  const auto self = static_cast<std::size_t>(group_rank(rank));
  const std::size_t number = next_[self];
  if (number - completed_ == calls_.size()) calls_.push_back({call, rank, 0});
  Call& entry = calls_[number - completed_];
  if (entry.text != call) {
    throw CollectiveMismatch(fmt::format(
        "process group {}: collective {} of rank {} is {}, but rank {} called {} there: ranks must issue the same "
        "collectives in the same order",
        id_, number, rank, call, entry.first, entry.text));
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (ended_[i] == 0 || next_[i] > number) continue;
    throw CollectiveMismatch(
        fmt::format("process group {}: rank {} calls collective {}, {}, but rank {} has ended "
                    "without calling it",
                    id_, rank, number, call, ranks_[i]));
  }
  ++next_[self];
  ++entry.submitted;
  while (!calls_.empty() && calls_.front().submitted == size()) {
    calls_.pop_front();
    ++completed_;
  }
  return number;
}

void ProcessGroup::left(int rank) {
  const auto self = static_cast<std::size_t>(group_rank(rank));
  ended_[self] = 1;
  const std::size_t number = next_[self];
  if (number - completed_ >= calls_.size()) return;
  const Call& entry = calls_[number - completed_];
  throw CollectiveMismatch(
      fmt::format("process group {}: rank {} has ended without calling collective {}, {}, which "
                  "rank {} called",
                  id_, rank, number, entry.text, entry.first));
}

bool ProcessGroup::complete(std::size_t number) const { return number < completed_; }

std::string ProcessGroup::missing(std::size_t number) const {
  if (complete(number)) return {};
  return fmt::format("process group {}, collective {}: not called by {}", id_, number, absent(number));
}

std::string ProcessGroup::absent(std::size_t number) const {
  constexpr std::size_t kShown = 8;
  std::string text;
  std::size_t count = 0;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (next_[i] > number || ++count > kShown) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks_[i]);
  }
  if (count > kShown) text += fmt::format(" and {} more", count - kShown);
  return (count == 1 ? "rank " : "ranks ") + text;
}

}  // namespace kernbench
