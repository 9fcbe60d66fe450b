#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "runtime/runtime_impl.h"

namespace kernbench {

namespace {
/// "rank 1 (which has ended), 2 and 5 more"
template <class Ended>
std::string list_ranks(const std::vector<int>& ranks, const Ended& ended) {
  constexpr std::size_t kShown = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size() && i < kShown; ++i) {
    text += fmt::format("{}{}{}", i == 0 ? "" : ", ", ranks[i], ended(ranks[i]) ? " (which has ended)" : "");
  }
  if (ranks.size() > kShown) text += fmt::format(" and {} more", ranks.size() - kShown);
  return text;
}

std::vector<int> all_ranks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}
}  // namespace

ProcessGroup& RuntimeImpl::default_group(const char* who) {
  if (groups.empty()) throw std::logic_error(fmt::format("{}: init_process_group has not been called", who));
  return *groups.front();
}

void RuntimeImpl::make_default_group(const ProcessGroupOptions& wanted, int world_size) {
  if (!groups.empty()) throw std::logic_error("init_process_group: the default group exists already");
  if (const std::optional<int> pes = ProcessGroup::world_size(wanted)) {
    if (*pes != world_size) {
      throw std::invalid_argument(
          fmt::format("init_process_group: world_size is {} in ccl.yaml, the program has {} ranks: give the program as "
                      "many",
                      *pes, world_size));
    }
    rank_pes = ProcessGroup::rank_pes(wanted, map);
  } else if (world_size > map.sips) {
    throw std::invalid_argument(
        fmt::format("init_process_group: {} ranks, but the machine has {} SIPs", world_size, map.sips));
  }
  try {
    make_group(wanted, all_ranks(world_size));
  } catch (...) {
    rank_pes.clear();
    throw;
  }
  group_options = wanted;
}

int RuntimeImpl::device(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  return in_program && at < rank_pes.size() ? rank_pes[at].sip : devices[at];
}

PlacementUnits RuntimeImpl::units_of(int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  if (const auto part = parts.find(rank); in_program && part != parts.end()) return part->second;
  if (!in_program || at >= rank_pes.size()) return units;
  PlacementUnits own;
  own.cubes = {rank_pes[at].cube};
  own.pes = {{rank_pes[at].pe}};
  own.all = false;
  return own;
}

ProcessGroup& RuntimeImpl::make_group(const ProcessGroupOptions& wanted, std::vector<int> ranks) {
  if (rank_pes.empty() && ProcessGroup::world_size(wanted)) {
    throw std::invalid_argument("new_group: world_size in ccl.yaml makes ranks PEs, but those of the program are SIPs");
  }
  std::vector<std::uint16_t> sips;
  std::vector<PeCoord> pes;
  for (const int rank : ranks) {
    if (rank_pes.empty()) {
      // Rank r drives SIP r; a worker of the host's own the one that it has set.
      sips.push_back(static_cast<std::uint16_t>(rank < map.sips ? rank : std::max(device(rank), 0)));
    } else {
      pes.push_back(rank_pes[static_cast<std::size_t>(rank)]);
      sips.push_back(pes.back().sip);
    }
  }
  const auto id = static_cast<std::uint16_t>(groups.size());
  auto group =
      std::make_unique<ProcessGroup>(id, wanted, map, std::move(ranks), std::move(sips), std::move(pes), rings);
  reserve_rings(*group);
  groups.push_back(std::move(group));
  return *groups.back();
}

void RuntimeImpl::reserve_rings(const ProcessGroup& group) {
  if (map.ipcq_buffer != MemoryKind::hbm) return;  // kernels own TCM, and tensors leave SRAM alone
  const ccl::Group& bound = group.group();
  const std::set<std::uint16_t> sips_used(bound.sips.begin(), bound.sips.end());
  for (const std::uint16_t sip : sips_used) {
    for (const PeCoord pe : map.pes(sip)) {
      if (rings.used(pe) > 0) memory.reserve(pe, rings.used(pe) * bound.queue.ring_bytes());
    }
  }
}

namespace {
/// Process groups count from 0 up, those of queues inside cubes from here.
constexpr std::uint16_t kFirstCubeGroup = 0x8000;
}  // namespace

const RuntimeImpl::CubeQueues& RuntimeImpl::cube_queues(int rank, int sip, std::uint16_t stream) {
  const auto next = static_cast<std::uint16_t>(kFirstCubeGroup + cube_groups.size());
  const auto [found, fresh] = cube_groups.emplace(std::pair(sip, stream), CubeQueues{next, nullptr});
  if (!fresh) return found->second;
  const auto number = static_cast<std::uint16_t>(sip);
  const ccl::QueueShape queue{map.ipcq_slots, map.ipcq_slot_bytes, map.ipcq_buffer};
  ccl::GroupQueues queues(map, {next, {number}, queue}, rings);
  const ccl::SipShape alone;  // a ring of one SIP
  SfrWriteMessage rows{queues.rows(queues.add(alone, ccl::kLocalPeers, {}), 0)};
  if (map.ipcq_buffer == MemoryKind::hbm) {
    for (const PeCoord pe : map.pes(number)) memory.reserve(pe, rings.used(pe) * queue.ring_bytes());
  }
  if (!rows.entries.empty()) {
    found->second.installed = submit(std::move(rows), rank, sip, stream, {}, "queues of cubes");
  }
  return found->second;
}

void RuntimeImpl::install_tables(ProcessGroup& group, std::size_t algorithm, int rank) {
  const int member = group.group_rank(rank);
  if (member < 0) return;
  ProcessGroup::Tables& tables = group.tables(member);
  const std::size_t first = tables.size(), end = std::min(algorithm + 1, group.algorithms());
  SfrWriteMessage rows;
  for (std::size_t i = first; i < end; ++i) {
    const auto more = group.algorithm(i).neighbours(member);
    rows.entries.insert(rows.entries.end(), more.begin(), more.end());
  }
  std::shared_ptr<Handle::State> state;
  if (!rows.entries.empty()) {
    // On a stream that nothing under way holds up.
    state = submit(std::move(rows), rank, group.sip_of(member), copy_stream(rank, 0), {}, "neighbour tables");
    scheduling->announced(state);
  }
  if (first < end) tables.resize(end, state);
  scheduling->readied();  // others may wait for this rank, which had nothing to install
}

void RuntimeImpl::await_tables(ProcessGroup& group, std::size_t algorithm, int rank) {
  const int member = group.group_rank(rank);
  if (member < 0) return;
  install_tables(group, algorithm, rank);
  const ProcessGroup::Tables tables = group.tables(member);
  for (const std::shared_ptr<Handle::State>& state : tables) {
    if (state == nullptr) continue;
    await(state);
    throw_fault(*state);
  }
}

void RuntimeImpl::barrier(int rank, const char* what, const ProcessGroup* group) {
  const int key = group == nullptr ? -1 : group->id();
  const std::size_t members =
      group == nullptr ? static_cast<std::size_t>(in_program ? nprocs : 1) : group->ranks().size();
  Barrier& gate = barriers[key];
  const std::uint64_t number = gate.passed;
  gate.here.insert(rank);
  if (gate.here.size() == members) {
    ++gate.passed;
    for (const int other : std::exchange(gate.here, {})) {
      if (other != rank) scheduling->satisfied(other);
    }
    if (members > 1) scheduling->barrier_passed(what);
    return;
  }
  scheduler.wait(what, [&gate, number] { return gate.passed != number; });
}

std::string RuntimeImpl::detail(int rank) const {
  const auto ended = [this](int other) { return !scheduler.workers()[static_cast<std::size_t>(other)].live(); };
  for (const auto& [key, gate] : barriers) {
    if (gate.here.count(rank) == 0) continue;
    std::vector<int> absent;
    const std::vector<int> members = key < 0 ? all_ranks(nprocs) : groups[static_cast<std::size_t>(key)]->ranks();
    for (const int other : members) {
      if (gate.here.count(other) == 0) absent.push_back(other);
    }
    return "; not reached by " + list_ranks(absent, ended);
  }
  for (const auto& [id, state] : pending) {
    if (state->rank != rank || state->order == nullptr) continue;
    if (const std::string missing = state->order->missing(state->call); !missing.empty()) return "; " + missing;
  }
  return {};
}

void Runtime::init_process_group(const ProcessGroupOptions& options) {
  impl_->make_default_group(options, impl_->in_program ? impl_->nprocs : world_size(options));
  impl_->made_beforehand = true;
}

int Runtime::world_size(const ProcessGroupOptions& options) const {
  return ProcessGroup::world_size(options).value_or(impl_->map.sips);
}

int Runtime::world_size() const { return impl_->groups.empty() ? impl_->map.sips : impl_->groups.front()->size(); }

const std::string& Runtime::algorithm() const {
  static const std::string kNone;
  return impl_->groups.empty() ? kNone : impl_->groups.front()->algorithm_name();
}

int Context::world_size() const { return runtime_.in_program ? runtime_.nprocs : 1; }
bool Context::in_process_group() const { return !runtime_.groups.empty(); }

void Context::init_process_group(const ProcessGroupOptions& options) {
  RuntimeImpl& runtime = runtime_;
  runtime.joined.resize(static_cast<std::size_t>(world_size()), 0);
  std::uint8_t& joined = runtime.joined[static_cast<std::size_t>(rank_)];
  if (joined != 0 || runtime.made_beforehand || runtime.tables_installed) {
    throw std::logic_error("init_process_group: the default group exists already");
  }
  if (runtime.groups.empty()) {
    runtime.make_default_group(options, world_size());
  } else if (!(options == runtime.group_options)) {
    throw CollectiveMismatch(fmt::format(
        "init_process_group: rank {} asks for algorithm '{}', backend '{}', and other ranks for algorithm '{}', "
        "backend "
        "'{}', or scope, parameters or file differ: all ranks pass the same",
        rank_, options.algorithm, options.backend, runtime.group_options.algorithm, runtime.group_options.backend));
  }
  joined = 1;
  if (options.install_at_once) runtime.await_tables(*runtime.groups.front(), 0, rank_);
  runtime.barrier(rank_, "init_process_group");
  runtime.tables_installed = true;
}

Group Context::new_group(const std::vector<int>& ranks, const ProcessGroupOptions& options) {
  const ProcessGroup& world = runtime_.default_group("new_group");
  const std::string shown = fmt::format("[{}]", fmt::join(ranks, ", "));
  if (ranks.empty()) throw std::invalid_argument("new_group: the list of ranks is empty");
  for (const int rank : ranks) {
    // A worker of the host's own stands for the SIP that it has set.
    const bool own =
        runtime_.rank_pes.empty() && rank >= runtime_.map.sips && rank < world_size() && runtime_.device(rank) >= 0;
    if (world.group_rank(rank) < 0 && !own) {
      throw std::invalid_argument(
          fmt::format("new_group{}: there is no rank {}: give 0 to {}", shown, rank, world.size() - 1));
    }
    if (std::count(ranks.begin(), ranks.end(), rank) > 1) {
      throw std::invalid_argument(fmt::format("new_group{}: rank {} stands in it twice", shown, rank));
    }
    for (const int other : ranks) {
      if (own && other != rank && runtime_.device(other) == runtime_.device(rank))
        throw std::invalid_argument(fmt::format("new_group{}: ranks {} and {} are on one SIP", shown, rank, other));
    }
  }
  std::size_t& next = runtime_.next_new_group[static_cast<std::size_t>(rank_)];
  if (next == runtime_.new_groups.size()) {
    const ProcessGroup& made = runtime_.make_group(options, ranks);
    runtime_.new_groups.push_back({made.id(), options, ranks});
  }
  const RuntimeImpl::NewGroup& entry = runtime_.new_groups[next];
  ProcessGroup& group = *runtime_.groups[entry.id];
  if (entry.ranks != ranks || !(entry.options == options)) {
    throw CollectiveMismatch(fmt::format(
        "new_group {} of rank {} is {}, but another rank called new_group[{}] there, or with other options: all ranks "
        "make the same groups in the same order",
        next, rank_, shown, fmt::join(entry.ranks, ", ")));
  }
  ++next;
  if (options.install_at_once) runtime_.await_tables(group, 0, rank_);
  runtime_.barrier(rank_, "new_group");
  return Group(group);
}

int Context::group_rank(const Group& group) const {
  return (group.get() != nullptr ? *group.get() : runtime_.default_group("group_rank")).group_rank(rank_);
}

int Context::group_size(const Group& group) const {
  return (group.get() != nullptr ? *group.get() : runtime_.default_group("group_size")).size();
}

void Context::barrier() { runtime_.barrier(rank_, "barrier"); }

void Context::barrier(const Group& group) {
  const ProcessGroup& members = group.get() != nullptr ? *group.get() : runtime_.default_group("barrier");
  if (members.group_rank(rank_) < 0) {
    throw std::invalid_argument(
        fmt::format("barrier: rank {} is not a member of process group {}", rank_, members.id()));
  }
  runtime_.barrier(rank_, "barrier", &members);
}

}  // namespace kernbench
