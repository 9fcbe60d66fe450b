#include "ccl/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ccl/call_keys.h"
#include "ccl/layout.h"
#include "ccl/neighbours.h"
#include "ccl/part_tl.h"
#include "ccl/verbs.h"
#include "tlm/machine/names.h"

namespace kernbench::ccl {
namespace {

/// What a launch's kernels share: immutable, owned by the kernel body.
struct CallPlan {
  std::shared_ptr<const Algorithm> algorithm;
  Layout layout;
  std::vector<Argument> arguments;
  Va tensor = 0;
};

void run_on_pe(const CallPlan& plan, Tl& tl) {
  const auto found = plan.layout.work.find({static_cast<int>(tl.program_id(1)), static_cast<int>(tl.program_id(0))});
  sc_assert(found != plan.layout.work.end());
  const PeWork& work = found->second;
  if (work.reduces && work.part.count() > 0) {
    PartTl part(tl, plan.tensor, work.part);
    plan.algorithm->kernel.call(plan.arguments.data(), part);
  }
  if (!work.cubes && work.line_size == 1) return;
  Verbs verbs(tl, 1);
  const std::size_t item = size_of(tl.call().dtype);
  if (work.cubes) tree_broadcast(verbs, *work.cubes, {work.part.va, work.part.count(), item});
  line_all_gather(verbs, {work.shard.va, work.shard.count(), item}, work.line_index, work.line_size, work.before,
                  work.after);
}

std::string signature(const std::vector<ArgumentType>& types) {
  std::string text = "(";
  for (const ArgumentType type : types) text += std::string(to_string(type)) + ", ";
  return text + "Tl&)";
}

/// t_ptr, what kernel_args returns, and the four that the backend appends.
std::vector<ArgumentType> types_given(const Algorithm& algorithm) {
  std::vector<ArgumentType> types{ArgumentType::va};
  types.insert(types.end(), algorithm.kernel_args.types, algorithm.kernel_args.types + algorithm.kernel_args.count);
  types.insert(types.end(), 4, ArgumentType::int32);
  return types;
}

void check_signature(const AlgorithmEntry& entry) {
  const Algorithm& algorithm = *entry.algorithm;
  const auto given = types_given(algorithm);
  const std::vector<ArgumentType> taken(algorithm.kernel.types, algorithm.kernel.types + algorithm.kernel.count);
  if (given == taken) return;
  throw Error(
      fmt::format("algorithm '{}' ({}): kernel_args and kernel do not agree\n"
                  "  kernel gets  {}\n"
                  "  kernel takes {}\n"
                  "  (t_ptr, what kernel_args returns, then sip_rank, sip_topo_kind, sip_topo_w, sip_topo_h, tl)",
                  entry.name, entry.module, signature(given), signature(taken)));
}

const char* kind_name(std::int32_t kind) { return to_string(static_cast<SipTopology>(kind)); }

SipShape shape_of(const AlgorithmEntry& entry, const MachineMap& map, const Group& group) {
  SipShape shape;
  shape.ranks = static_cast<int>(group.sips.size());
  bool whole = shape.ranks == map.sips && !group.ranks_are_pes();
  for (std::size_t r = 0; r < group.sips.size(); ++r) whole = whole && group.sips[r] == r;
  const bool grid = map.sip_topology == SipTopology::torus_2d || map.sip_topology == SipTopology::mesh_2d_no_wrap;
  // Part of a grid is no grid: its ranks form a ring of routed queues.
  const bool ring = group.ranks_are_pes() || (grid && !whole);
  const SipTopology topology = ring ? SipTopology::ring_1d : map.sip_topology;
  const Algorithm& algorithm = *entry.algorithm;
  shape.kind = algorithm.topo_name_to_kind ? algorithm.topo_name_to_kind(to_string(topology)) : kRing1d;
  if (shape.kind < 0 || shape.kind > kFullyConnected || !(algorithm.topologies & topology_bit(shape.kind))) {
    std::string served;
    for (std::int32_t kind = 0; kind <= kFullyConnected; ++kind) {
      if (algorithm.topologies & topology_bit(kind))
        served += (served.empty() ? "" : ", ") + std::string(kind_name(kind));
    }
    throw Error(fmt::format("algorithm '{}': unsupported topology kind {} ({}); it serves {}", entry.name, shape.kind,
                            to_string(topology), served));
  }
  if (shape.kind == kTorus2d || shape.kind == kMesh2d) {
    shape.w = map.sip_w;
    shape.h = map.sip_h;
  }
  return shape;
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

}  // namespace

std::vector<PeCoord> rank_pes(const MachineMap& map, int world_size) {
  std::vector<PeCoord> all;
  for (std::uint16_t sip = 0; sip < map.sips; ++sip) {
    const std::vector<PeCoord> here = map.pes(sip);
    all.insert(all.end(), here.begin(), here.end());
  }
  if (world_size < 1 || static_cast<std::size_t>(world_size) > all.size()) {
    throw Error(fmt::format("world_size is {}; give 1 to {}, the PEs of the machine", world_size, all.size()));
  }
  all.resize(static_cast<std::size_t>(world_size));
  return all;
}

struct Collective::Impl {
  AlgorithmEntry entry;
  const MachineMap& map;
  Group group;
  Scope scope;
  SipShape shape;
  NeighbourTables tables;
};

Collective::Collective(AlgorithmEntry entry, const MachineMap& map, Group group, Scope scope, RingNumbers& rings) {
  const Algorithm& algorithm = *entry.algorithm;
  if (group.sips.empty()) throw Error("a process group needs at least one rank");
  for (const std::uint16_t sip : group.sips) {
    if (sip >= map.sips)
      throw Error(fmt::format("process group {}: {} does not exist; the machine has {} SIPs", group.id, names::sip(sip),
                              map.sips));
    if (!group.ranks_are_pes() && std::count(group.sips.begin(), group.sips.end(), sip) > 1) {
      throw Error(fmt::format("process group {}: {} stands in it twice", group.id, names::sip(sip)));
    }
  }
  if (group.queue.slots == 0 || group.queue.slot_bytes < 8) throw Error("IPCQ rings need at least one slot of 8 B");
  check_signature(entry);
  if (!(algorithm.scopes & bit(scope))) {
    throw Error(fmt::format("algorithm '{}' does not serve scope {}", entry.name, to_string(scope)));
  }
  const SipShape shape = shape_of(entry, map, group);
  std::uint32_t directions = algorithm.directions;
  if (!group.ranks_are_pes()) {
    if (map.cubes_per_sip() > 1) directions |= kCubeGrid;                               // copies spread over cubes
    if (map.pes_per_cube > 1) directions |= lacks_pes(map) ? kLocalPeers : kLocalLine;  // and over PEs
  }
  NeighbourTables tables(map, group, shape, directions, rings);
  impl_ =
      std::unique_ptr<const Impl>(new Impl{std::move(entry), map, std::move(group), scope, shape, std::move(tables)});
}

Collective::~Collective() = default;
Collective::Collective(Collective&&) noexcept = default;
Collective& Collective::operator=(Collective&&) noexcept = default;

const std::string& Collective::name() const { return impl_->entry.name; }
Scope Collective::scope() const { return impl_->scope; }
const Group& Collective::group() const { return impl_->group; }
std::vector<NeighbourEntry> Collective::neighbours(int rank) const { return impl_->tables.of_rank(rank); }

Collective::Launch Collective::bind(int rank, CollectiveCall call, const std::vector<TensorShard>& shards) const {
  const Algorithm& algorithm = *impl_->entry.algorithm;
  if (!(algorithm.operations & bit(call.op))) {
    throw Error(fmt::format("algorithm '{}' does not serve {}", name(), to_string(call.op)));
  }
  if (call.in != call.out) throw Error(fmt::format("algorithm '{}' works in place only", name()));
  if (call.dtype == DType::boolean && call.reduce_op != ReduceOp::max && call.reduce_op != ReduceOp::min) {
    throw Error(fmt::format("{} of bool is not defined; use max (or) or min (and)", to_string(call.reduce_op)));
  }

  const bool one_pe = impl_->group.ranks_are_pes();  // each is a contribution of its own in every scope
  if (one_pe) check_home(impl_->group, rank, shards);
  const Scope tiles = one_pe ? Scope::sip : impl_->scope;
  auto plan = std::make_shared<CallPlan>(
      CallPlan{impl_->entry.algorithm, Layout(impl_->map, tiles, call.in, shards, size_of(call.dtype)), {}, call.in});
  const Layout& layout = plan->layout;
  const SipShape& shape = impl_->shape;
  Launch launch;
  launch.kernel = name();
  launch.contributions = shape.ranks * layout.cube_w * layout.cube_h;
  if (call.reduce_op == ReduceOp::avg) {
    double divisor = 0;
    store_element(&divisor, call.dtype, 0, launch.contributions);
    if (load_element(&divisor, call.dtype, 0) != launch.contributions) {
      throw Error(fmt::format("avg of {} contributions: {} cannot hold {}", launch.contributions, to_string(call.dtype),
                              launch.contributions));
    }
  }

  std::vector<Argument> leading(algorithm.kernel_args.count);
  algorithm.kernel_args.call(shape.ranks, layout.n_elem, layout.cube_w, layout.cube_h, leading.data());
  plan->arguments.emplace_back(call.in);
  plan->arguments.insert(plan->arguments.end(), leading.begin(), leading.end());
  for (const std::int32_t value : {rank, shape.kind, shape.w, shape.h}) plan->arguments.emplace_back(value);

  call.scope = impl_->scope;
  call.group = impl_->group.id;
  call.ranks.resize(static_cast<std::size_t>(shape.ranks));
  for (int r = 0; r < shape.ranks; ++r) call.ranks[static_cast<std::size_t>(r)] = r;
  call.parameters = impl_->entry.parameters;
  call.parameters[kSlotsKey] = impl_->group.queue.slots;
  call.parameters[kSlotBytesKey] = impl_->group.queue.slot_bytes;
  launch.call = std::move(call);

  const std::uint16_t sip = impl_->group.sips.at(static_cast<std::size_t>(rank));
  for (const auto& [unit, work] : layout.work) {
    launch.targets.push_back({sip, static_cast<std::uint16_t>(unit.first), static_cast<std::uint16_t>(unit.second)});
  }
  launch.body = [plan](Tl& tl) { run_on_pe(*plan, tl); };
  return launch;
}

}  // namespace kernbench::ccl
