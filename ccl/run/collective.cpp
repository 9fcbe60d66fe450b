#include "ccl/run/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ccl/contract/call_keys.h"
#include "ccl/contract/legal.h"
#include "ccl/data/layout.h"
#include "ccl/run/call_program.h"
#include "ccl/run/group_algorithm.h"
#include "ccl/run/group_queues.h"
#include "ccl/run/layout_program.h"
#include "ccl/run/pe_to_pe.h"
#include "ccl/run/schedule_call.h"
#include "tlm/machine/names.h"

namespace kernbench::ccl {
namespace {

/// Elements of the largest shard.
std::int64_t largest_shard(const LaunchMessage::TensorArg& tensor) {
  std::int64_t most = 0;
  for (const TensorShard& shard : tensor.shards) most = std::max(most, shard.rows * shard.cols);
  return most;
}

/// A rank that is a PE works on what lies there.
void check_home(const Group& group, int rank, const std::vector<TensorShard>& shards) {
  const PeCoord home = group.pes.at(static_cast<std::size_t>(rank));
  for (const TensorShard& shard : shards) {
    if (shard.rows * shard.cols == 0 || shard.owner == home) continue;
    throw Error(fmt::format("rank {} of process group {} is {}, but its tensor lies on {}; make it after the group",
                            rank, group.id, names::pe(home), names::pe(shard.owner)));
  }
}

/// Throws Error if the type has no such number.
void check_divisor(int contributions, DType dtype) {
  double divisor = 0;
  store_element(&divisor, dtype, 0, contributions);
  if (load_element(&divisor, dtype, 0) == contributions) return;
  throw Error(fmt::format("avg of {0} contributions: {1} cannot hold {0}", contributions, to_string(dtype)));
}

}  // namespace

struct Collective::Impl {
  const std::shared_ptr<const GroupAlgorithm> algorithm;
  const std::shared_ptr<GroupQueues> queues;
  const std::shared_ptr<CallBinder> calls;
  const ScheduleBinder schedules;
  const PeToPeBinder messages;
  GroupQueues::Added added{};
  std::vector<std::pair<std::int32_t, std::int32_t>> joined{};  ///< PE to PE: in order

  Impl(std::shared_ptr<const GroupAlgorithm> the_algorithm, std::shared_ptr<GroupQueues> the_queues,
       std::shared_ptr<CallBinder> the_calls)
      : algorithm(std::move(the_algorithm)),
        queues(std::move(the_queues)),
        calls(std::move(the_calls)),
        schedules(*algorithm, *queues),
        messages(*queues) {}

  const std::shared_ptr<const Algorithm>& module() const { return algorithm->entry().algorithm; }
  PreparedCall prepare(const CallTensors& tensors, BoundCall& bound) const;
  PreparedCall prepare_kernel(const CallTensors& tensors) const;
  PreparedCall prepare_schedule(const CallTensors& tensors, BoundCall& bound) const;
  PreparedCall prepare_messages(const CallTensors& tensors, BoundCall& bound) const;
  std::uint16_t sip_of(const CallTensors& tensors) const {
    return queues->group().sips.at(static_cast<std::size_t>(tensors.rank));
  }
  /// The kernel with its positional parameters.
  BoundKernel bind_arguments(int rank, Va in, const PreparedCall& call) const;
  Ps least_time(std::uint16_t sip, std::int64_t bytes) const;
};

Collective::Collective(std::shared_ptr<const GroupAlgorithm> algorithm, std::shared_ptr<GroupQueues> queues,
                       std::shared_ptr<CallBinder> calls, BoundCall* first)
    : impl_(std::make_unique<Impl>(std::move(algorithm), std::move(queues), std::move(calls))) {
  QueueNeeds needs = first == nullptr ? impl_->algorithm->needs() : impl_->algorithm->needs_of(*first);
  impl_->added = impl_->queues->add(impl_->algorithm->sips(), needs);
  if (needs.sparing) impl_->joined = std::move(needs.links.pes);
}

Collective::~Collective() = default;
Collective::Collective(Collective&&) noexcept = default;
Collective& Collective::operator=(Collective&&) noexcept = default;

const std::string& Collective::name() const { return impl_->algorithm->name(); }
const Group& Collective::group() const { return impl_->queues->group(); }
std::vector<NeighbourEntry> Collective::neighbours(int rank) const { return impl_->queues->rows(impl_->added, rank); }

bool Collective::has_queues_for(BoundCall& call) const {
  if (impl_->algorithm->kind() != AlgorithmKind::pe_to_pe) return true;
  const auto& links = impl_->algorithm->pe_links(call);
  return std::includes(impl_->joined.begin(), impl_->joined.end(), links.begin(), links.end());
}

Collective::Launch Collective::bind(const CallTensors& tensors, BoundCall& bound) const {
  CollectiveCall call = tensors.call;
  const AlgorithmEntry& entry = impl_->algorithm->entry();
  check_serves(entry, call.op);
  if (entry.schedule && entry.schedule->custom && call.reduce_op == ReduceOp::avg) {
    throw Error(fmt::format("algorithm '{}': its file is custom and does not say what avg divides by", name()));
  }
  const int ranks = impl_->algorithm->sips().ranks;
  if (group().ranks_are_pes()) {
    check_home(group(), tensors.rank, tensors.in.shards);
    check_home(group(), tensors.rank, tensors.out.shards);
  }
  call.in = tensors.in.base;
  call.out = tensors.out.base;
  call.scope = impl_->calls->scope();
  call.group = group().id;
  call.ranks.resize(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) call.ranks[static_cast<std::size_t>(r)] = r;
  call.parameters = entry.parameters;
  call.parameters[kSlotsKey] = group().queue.slots;
  call.parameters[kSlotBytesKey] = group().queue.slot_bytes;
  if (bound.algorithm != name()) bound.use(name(), {});
  const std::pair key(tensors.rank, tensors.in_place);
  auto known = bound.prepared.find(key);
  if (known == bound.prepared.end()) known = bound.prepared.emplace(key, impl_->prepare(tensors, bound)).first;
  const PreparedCall& prepared = known->second;
  if (reduces(call.op) && call.reduce_op == ReduceOp::avg) check_divisor(prepared.contributions, call.dtype);
  BoundKernel kernel = impl_->bind_arguments(tensors.rank, tensors.in.base, prepared);
  Launch launch{{}, prepared.program, prepared.contributions};
  launch.message.kernel = name();
  launch.message.entry = kernel.entry;
  launch.message.arguments = std::move(kernel.arguments);
  launch.message.targets = prepared.targets;
  launch.message.group = group().id;
  launch.message.call = std::move(call);
  launch.message.least = prepared.least;
  return launch;
}

PreparedCall Collective::Impl::prepare(const CallTensors& tensors, BoundCall& bound) const {
  switch (algorithm->kind()) {
    case AlgorithmKind::schedule:
      return prepare_schedule(tensors, bound);
    case AlgorithmKind::pe_to_pe:
      return prepare_messages(tensors, bound);
    case AlgorithmKind::kernel:
      break;
  }
  if (!tensors.in_place) throw Error(fmt::format("algorithm '{}' works in place only", algorithm->name()));
  return prepare_kernel(tensors);
}

PreparedCall Collective::Impl::prepare_kernel(const CallTensors& tensors) const {
  Layout layout(queues->map(), calls->scope(), 0, tensors.in.shards, size_of(tensors.call.dtype));
  PreparedCall made;
  made.n_elem = layout.n_elem;
  made.cube_w = layout.cube_w;
  made.cube_h = layout.cube_h;
  made.contributions = algorithm->sips().ranks * layout.cube_w * layout.cube_h;
  const std::uint16_t sip = sip_of(tensors);
  for (const auto& [unit, work] : layout.work) {
    made.targets.push_back({sip, static_cast<std::uint16_t>(unit.first), static_cast<std::uint16_t>(unit.second)});
  }
  made.program = std::make_shared<LayoutProgram>(module(), std::move(layout));
  return made;
}

PreparedCall Collective::Impl::prepare_schedule(const CallTensors& tensors, BoundCall& bound) const {
  RankCall call = schedules.bind(tensors, bound);
  PreparedCall made;
  made.n_elem = largest_shard(tensors.in);
  if (const CallMaps& maps = *call.plan->maps; maps.level != NodeLevel::rank) {
    made.cube_w = maps.node_w / maps.pes;
    made.cube_h = maps.node_h;
  }
  made.contributions = call.plan->maps->contributions;
  const std::uint16_t sip = sip_of(tensors);
  for (const auto& [cube, pe] : call.targets()) {
    made.targets.push_back({sip, static_cast<std::uint16_t>(cube), static_cast<std::uint16_t>(pe)});
  }
  made.least = least_time(sip, call.to_come);
  made.program = std::make_shared<StepsProgram<RankCall>>(module(), std::move(call));
  return made;
}

PreparedCall Collective::Impl::prepare_messages(const CallTensors& tensors, BoundCall& bound) const {
  PeToPeCall call = messages.bind(tensors, bound);
  PreparedCall made;
  made.n_elem = largest_shard(tensors.in);
  made.contributions = call.messages->contributions();
  const std::uint16_t sip = sip_of(tensors);
  for (const auto& [unit, steps] : call.steps) {
    made.targets.push_back({sip, static_cast<std::uint16_t>(unit.first), static_cast<std::uint16_t>(unit.second)});
  }
  made.program = std::make_shared<StepsProgram<PeToPeCall>>(module(), std::move(call));
  return made;
}

BoundKernel Collective::Impl::bind_arguments(int rank, Va in, const PreparedCall& call) const {
  const KernelArgs& leading = module()->kernel_args;
  std::vector<Argument> arguments(leading.count);
  leading.call(algorithm->sips().ranks, call.n_elem, call.cube_w, call.cube_h, arguments.data());
  arguments.insert(arguments.begin(), Argument(in));
  for (const std::int32_t value : {rank, algorithm->sips().kind, algorithm->sips().w, algorithm->sips().h})
    arguments.emplace_back(value);
  return bind_collective(*module(), arguments);
}

/// No kernel of the SIP's ends before all that it is to receive has passed the links to the SIP.
Ps Collective::Impl::least_time(std::uint16_t sip, std::int64_t bytes) const {
  if (queues->group().ranks_are_pes() || bytes == 0) return 0;
  std::uint64_t bytes_per_second = 0;
  for (const LinkBundle& link : queues->map().sip_links) {
    if (link.a == sip || link.b == sip) bytes_per_second += link.capacity.bytes_per_second();
  }
  return bytes_per_second == 0 ? 0 : Rate(bytes_per_second).time_for(static_cast<std::uint64_t>(bytes));
}

}  // namespace kernbench::ccl
