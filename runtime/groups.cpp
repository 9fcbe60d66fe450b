#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "runtime/runtime_impl.h"
#include "tlm/config/units.h"

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

ProcessGroup& Groups::default_group(const char* who) {
  if (groups_.empty()) throw std::logic_error(fmt::format("{}: init_process_group has not been called", who));
  return *groups_.front();
}

std::optional<int> Groups::world_size(const ProcessGroupOptions& options) {
  return ProcessGroup::world_size(options, *ccl::Registry::of(options.ccl_file));
}

void Groups::make_default_group(const ProcessGroupOptions& wanted, int world_size) {
  if (!groups_.empty()) throw std::logic_error("init_process_group: the default group exists already");
  if (const std::optional<int> pes = this->world_size(wanted)) {
    if (*pes != world_size) {
      throw std::invalid_argument(fmt::format(
          "init_process_group: world_size is {} in ccl.yaml, the program has {} ranks: give the program as many", *pes,
          world_size));
    }
    rank_pes_ = ProcessGroup::rank_pes(wanted, *ccl::Registry::of(wanted.ccl_file), runtime_.map);
  } else if (world_size > runtime_.map.sips) {
    throw std::invalid_argument(fmt::format("init_process_group: {}, but the machine has {}",
                                            counted(world_size, "rank"), counted(runtime_.map.sips, "SIP")));
  }
  try {
    make_group(wanted, all_ranks(world_size));
  } catch (...) {
    rank_pes_.clear();
    throw;
  }
  options_ = wanted;
}

ProcessGroup& Groups::make_group(const ProcessGroupOptions& wanted, std::vector<int> ranks) {
  refuse_unknown("init_process_group", "Scope", wanted.scope, Scope::pe);
  if (rank_pes_.empty() && world_size(wanted)) {
    throw std::invalid_argument("new_group: world_size in ccl.yaml makes ranks PEs, but those of the program are SIPs");
  }
  std::vector<std::uint16_t> sips;
  std::vector<PeCoord> pes;
  for (const int rank : ranks) {
    if (rank_pes_.empty()) {
      // Rank r drives SIP r; a worker of the host's own the one that it has set.
      sips.push_back(
          static_cast<std::uint16_t>(rank < runtime_.map.sips ? rank : std::max(runtime_.program.device(rank), 0)));
    } else {
      pes.push_back(rank_pes_[static_cast<std::size_t>(rank)]);
      sips.push_back(pes.back().sip);
    }
  }
  const auto id = static_cast<std::uint16_t>(groups_.size());
  auto group = std::make_unique<ProcessGroup>(id, wanted, ccl::Registry::of(wanted.ccl_file), runtime_.map,
                                              std::move(ranks), std::move(sips), std::move(pes), rings_);
  reserve_rings(group->group().sips);
  groups_.push_back(std::move(group));
  return *groups_.back();
}

void Groups::reserve_rings(const std::vector<std::uint16_t>& sips) {
  if (runtime_.map.ipcq_buffer != MemoryKind::hbm) return;  // kernels own TCM, and tensors leave SRAM alone
  const std::uint64_t ring_bytes = ccl::queue_shape(runtime_.map).ring_bytes();
  for (const std::uint16_t sip : std::set<std::uint16_t>(sips.begin(), sips.end())) {
    for (const PeCoord pe : runtime_.map.pes(sip)) {
      if (rings_.used(pe) > 0) runtime_.tensors.device().reserve(pe, rings_.used(pe) * ring_bytes);
    }
  }
}

namespace {
/// Process groups count from 0 up, those of queues inside cubes from here.
constexpr std::uint16_t kFirstCubeGroup = 0x8000;
}  // namespace

const Groups::CubeQueues& Groups::cube_queues(int rank, int sip, std::uint16_t stream) {
  const auto known = cube_groups_.find({sip, stream});
  if (known != cube_groups_.end()) return known->second;
  const auto next = static_cast<std::uint16_t>(kFirstCubeGroup + cube_groups_.size());
  const auto number = static_cast<std::uint16_t>(sip);
  ccl::GroupQueues queues(runtime_.map, {next, {number}, ccl::queue_shape(runtime_.map)}, rings_);
  const ccl::SipShape alone;  // a ring of one SIP
  SfrWriteMessage rows{queues.rows(queues.add(alone, {ccl::kLocalPeers | ccl::kCubeGrid}), 0)};
  CubeQueues& made = cube_groups_.emplace(std::pair(sip, stream), CubeQueues{next, nullptr}).first->second;
  reserve_rings({number});
  if (!rows.entries.empty()) {
    made.installed = runtime_.messages.submit(std::move(rows), rank, sip, stream, {}, "queues of cubes");
  }
  return made;
}

void Groups::install_tables(ProcessGroup& group, std::size_t algorithm, int rank) {
  const int member = group.group_rank(rank);
  if (member < 0) return;
  ProcessGroup::Tables& tables = group.tables(member);
  const std::size_t first = tables.size(), end = std::min(algorithm + 1, group.algorithms());
  SfrWriteMessage rows;
  std::shared_ptr<Handle::State>& own = group.own_table(member);
  const bool owns = own == nullptr;
  if (first < end) reserve_rings(group.group().sips);
  if (owns) rows.entries = group.own_queues(member);
  for (std::size_t i = first; i < end; ++i) {
    const auto more = group.algorithm(i).neighbours(member);
    rows.entries.insert(rows.entries.end(), more.begin(), more.end());
  }
  std::shared_ptr<Handle::State> state;
  if (!rows.entries.empty()) {
    // On a stream that nothing under way holds up.
    state = runtime_.messages.submit(std::move(rows), rank, group.sip_of(member), runtime_.tensors.copy_stream(rank, 0),
                                     {}, "neighbour tables");
    runtime_.program.scheduling().announced(state);
  }
  if (first < end) tables.resize(end, state);
  if (owns) own = state;
  runtime_.program.scheduling().readied();  // others may wait for this rank, which had nothing to install
}

void Groups::await_tables(ProcessGroup& group, std::size_t algorithm, int rank) {
  const int member = group.group_rank(rank);
  if (member < 0) return;
  install_tables(group, algorithm, rank);
  ProcessGroup::Tables tables = group.tables(member);
  tables.push_back(group.own_table(member));
  for (const std::shared_ptr<Handle::State>& state : tables) {
    if (state == nullptr) continue;
    runtime_.messages.await_done(state);
  }
}

void Groups::barrier(int rank, const char* what, const ProcessGroup* group) {
  const int key = group == nullptr ? -1 : group->id();
  const std::size_t members =
      group == nullptr ? static_cast<std::size_t>(runtime_.program.ranks()) : group->ranks().size();
  Barrier& gate = barriers_[key];
  const std::uint64_t number = gate.passed;
  gate.here.insert(rank);
  if (gate.here.size() == members) {
    ++gate.passed;
    for (const int other : std::exchange(gate.here, {})) {
      if (other != rank) runtime_.program.scheduling().satisfied(other);
    }
    if (members > 1) runtime_.program.scheduling().barrier_passed(what);
    return;
  }
  runtime_.program.scheduler().wait(what, [&gate, number] { return gate.passed != number; });
}

std::vector<int> Groups::absent_at_barrier(int rank) const {
  std::vector<int> absent;
  for (const auto& [key, gate] : barriers_) {
    if (gate.here.count(rank) == 0) continue;
    const std::vector<int> members =
        key < 0 ? all_ranks(runtime_.program.nprocs()) : groups_[static_cast<std::size_t>(key)]->ranks();
    for (const int other : members) {
      if (gate.here.count(other) == 0) absent.push_back(other);
    }
    break;
  }
  return absent;
}

std::string Groups::detail(int rank) const {
  const auto ended = [this](int other) {
    return !runtime_.program.scheduler().workers()[static_cast<std::size_t>(other)].live();
  };
  const std::vector<int> absent = absent_at_barrier(rank);
  if (!absent.empty()) return "; not reached by " + list_ranks(absent, ended);
  for (const auto& [id, state] : runtime_.messages.pending()) {
    if (state->rank != rank || state->order == nullptr) continue;
    if (const std::string missing = state->order->missing(state->call); !missing.empty()) return "; " + missing;
  }
  return {};
}

void Groups::make_beforehand(const ProcessGroupOptions& options, int world_size) {
  make_default_group(options, world_size);
  made_beforehand_ = true;
}

void Groups::begin_program(int nprocs) {
  joined_.assign(static_cast<std::size_t>(nprocs), 0);
  next_new_group_.assign(static_cast<std::size_t>(nprocs), 0);
  barriers_.clear();
  new_groups_.clear();
  for (const auto& group : groups_) group->restart();
}

void Groups::enter(int rank) {
  if (!made_beforehand_ || tables_installed_) return;
  if (options_.install_at_once) await_tables(*groups_.front(), 0, rank);
  barrier(rank, "the other ranks' neighbour tables");
  tables_installed_ = true;
}

void Groups::left(int rank) {
  for (const auto& group : groups_) {
    if (group->group_rank(rank) >= 0) group->left(rank);
  }
}

void Groups::init(int rank, const ProcessGroupOptions& options) {
  const int world_size = runtime_.program.ranks();
  joined_.resize(static_cast<std::size_t>(world_size), 0);
  std::uint8_t& joined = joined_[static_cast<std::size_t>(rank)];
  if (joined != 0 || made_beforehand_ || tables_installed_) {
    throw std::logic_error("init_process_group: the default group exists already");
  }
  if (groups_.empty()) {
    make_default_group(options, world_size);
  } else if (!(options == options_)) {
    throw CollectiveMismatch(
        fmt::format("init_process_group: rank {} asks for algorithm '{}', backend '{}', and other ranks for algorithm "
                    "'{}', backend '{}', or scope, parameters, directions or file differ: all ranks pass the same",
                    rank, options.algorithm, options.backend, options_.algorithm, options_.backend));
  }
  joined = 1;
  if (options.install_at_once) await_tables(*groups_.front(), 0, rank);
  barrier(rank, "init_process_group");
  tables_installed_ = true;
}

ProcessGroup& Groups::new_group(int rank, const std::vector<int>& ranks, const ProcessGroupOptions& options) {
  const ProcessGroup& world = default_group("new_group");
  const std::string shown = fmt::format("[{}]", fmt::join(ranks, ", "));
  if (ranks.empty()) throw std::invalid_argument("new_group: the list of ranks is empty");
  for (const int member : ranks) {
    // A worker of the host's own stands for the SIP that it has set.
    const bool own = rank_pes_.empty() && member >= runtime_.map.sips && member < runtime_.program.ranks() &&
                     runtime_.program.device(member) >= 0;
    if (world.group_rank(member) < 0 && !own) {
      throw std::invalid_argument(
          fmt::format("new_group{}: there is no rank {}: give 0 to {}", shown, member, world.size() - 1));
    }
    if (std::count(ranks.begin(), ranks.end(), member) > 1) {
      throw std::invalid_argument(fmt::format("new_group{}: rank {} stands in it twice", shown, member));
    }
    for (const int other : ranks) {
      if (own && other != member && runtime_.program.device(other) == runtime_.program.device(member))
        throw std::invalid_argument(fmt::format("new_group{}: ranks {} and {} are on one SIP", shown, member, other));
    }
  }
  std::size_t& next = next_new_group_[static_cast<std::size_t>(rank)];
  if (next == new_groups_.size()) {
    const ProcessGroup& made = make_group(options, ranks);
    new_groups_.push_back({made.id(), options, ranks});
  }
  const NewGroup& entry = new_groups_[next];
  ProcessGroup& group = *groups_[entry.id];
  if (entry.ranks != ranks || !(entry.options == options)) {
    throw CollectiveMismatch(fmt::format(
        "new_group {} of rank {} is {}, but another rank called new_group[{}] there, or with other options: all ranks "
        "make the same groups in the same order",
        next, rank, shown, fmt::join(entry.ranks, ", ")));
  }
  ++next;
  if (options.install_at_once) await_tables(group, 0, rank);
  barrier(rank, "new_group");
  return group;
}

void Runtime::init_process_group(const ProcessGroupOptions& options) {
  impl_->groups.make_beforehand(options, impl_->program.running() ? impl_->program.nprocs() : world_size(options));
}

int Runtime::world_size(const ProcessGroupOptions& options) const {
  return impl_->groups.world_size(options).value_or(impl_->map.sips);
}

int Runtime::world_size() const {
  return impl_->groups.all().empty() ? impl_->map.sips : impl_->groups.all().front()->size();
}

const std::string& Runtime::algorithm() const {
  static const std::string kNone;
  return impl_->groups.all().empty() ? kNone : impl_->groups.all().front()->algorithm_name();
}

int Context::world_size() const { return runtime_.program.ranks(); }
bool Context::in_process_group() const { return !runtime_.groups.all().empty(); }

void Context::init_process_group(const ProcessGroupOptions& options) { runtime_.groups.init(rank_, options); }

Group Context::new_group(const std::vector<int>& ranks, const ProcessGroupOptions& options) {
  return Group(runtime_.groups.new_group(rank_, ranks, options));
}

int Context::group_rank(const Group& group) const {
  return (group.get() != nullptr ? *group.get() : runtime_.groups.default_group("group_rank")).group_rank(rank_);
}

int Context::group_size(const Group& group) const {
  return (group.get() != nullptr ? *group.get() : runtime_.groups.default_group("group_size")).size();
}

void Context::barrier() { runtime_.groups.barrier(rank_, "barrier"); }

void Context::barrier(const Group& group) {
  const ProcessGroup& members = group.get() != nullptr ? *group.get() : runtime_.groups.default_group("barrier");
  if (members.group_rank(rank_) < 0) {
    throw std::invalid_argument(
        fmt::format("barrier: rank {} is not a member of process group {}", rank_, members.id()));
  }
  runtime_.groups.barrier(rank_, "barrier", &members);
}

}  // namespace kernbench
