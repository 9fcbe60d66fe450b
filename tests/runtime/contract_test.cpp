#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "ccl/run/collective.h"
#include "ccl/select/registry.h"
#include "tests/ccl/lone_collective.h"
#include "tests/runtime/machine_run.h"

/// The contract of algorithm modules (docs/collective_algorithms.md), on the whole machine: whatever a module is
/// inside, its four symbols are all that is needed to launch it.
namespace kernbench::testing {
namespace {
using Op = CollectiveOp;

constexpr int kRanks = 4;
constexpr std::int64_t kCount = 24;  // of a block

double value(int rank, std::int64_t element) { return 100 * (rank + 1) + static_cast<double>(element); }

double sum(std::int64_t element) {
  double total = 0;
  for (int rank = 0; rank < kRanks; ++rank) total += value(rank, element);
  return total;
}

bool is_long(Op op, bool out) {
  if (op == Op::all_to_all) return true;
  return out ? op == Op::all_gather || op == Op::gather : op == Op::reduce_scatter || op == Op::scatter;
}

/// Element `i` of what `rank` has in the end; nothing where the operation leaves it open.
std::optional<double> expected(Op op, int rank, std::int64_t i) {
  const int block = static_cast<int>(i / kCount);
  switch (op) {
    case Op::all_reduce:
      return sum(i);
    case Op::all_gather:
      return value(block, i % kCount);
    case Op::reduce_scatter:
      return sum(rank * kCount + i);
    case Op::broadcast:
      return value(0, i);
    case Op::all_to_all:
      return value(block, rank * kCount + i % kCount);
    case Op::scatter:
      return value(0, rank * kCount + i);
    case Op::send_recv:
      return value((rank + kRanks - 1) % kRanks, i);
    case Op::reduce:
      if (rank == 0) return sum(i);
      return {};
    case Op::gather:
      if (rank == 0) return value(block, i % kCount);
      return {};
    case Op::barrier:
      break;
  }
  return {};
}

/// The positional parameters of a kernel as a launch carries them.
using Positional = std::array<ccl::Argument, 16>;

void call_symbol(KernelEntry::Code kernel, const std::uint8_t* bytes, Tl& tl) {
  Positional arguments;
  std::memcpy(static_cast<void*>(arguments.data()), bytes, sizeof arguments);
  reinterpret_cast<void (*)(const ccl::Argument*, Tl&)>(kernel)(arguments.data(), tl);
}

LaunchMessage::TensorArg argument_of(const Tensor& tensor) {
  LaunchMessage::TensorArg argument{tensor.va(), {}, tensor.shape()};
  for (const ShardSpec& s : tensor.shards()) {
    argument.shards.push_back(
        {{static_cast<std::uint16_t>(s.sip), static_cast<std::uint16_t>(s.cube), static_cast<std::uint16_t>(s.pe)},
         s.offset_bytes,
         s.nbytes,
         s.region.rows,
         s.region.cols,
         s.region.row,
         s.region.col});
  }
  return argument;
}

/// A topology that the module serves.
topology::SystemSpec machine_for(const ccl::Algorithm& algorithm) {
  const auto serves = [&](SipTopology topology) {
    return (algorithm.topologies & ccl::topology_bit(static_cast<std::int32_t>(topology))) != 0;
  };
  topology::SystemSpec spec =
      serves(SipTopology::ring_1d)
          ? topology::small_machine(kRanks, 2, 1)
          : topology::grid_machine(serves(SipTopology::torus_2d) ? SipTopology::torus_2d : SipTopology::mesh_2d_no_wrap,
                                   2, 2, 2, 1);
  spec.cube.pes = 2;
  return spec;
}

using Case = std::pair<std::string, Op>;

std::vector<Case> every_module_and_operation() {
  std::vector<Case> cases;
  for (const std::string& name : ccl::builtin_algorithms()) {
    const auto algorithm = ccl::load_module(ccl::kBuiltinPrefix + name);
    for (int op = 0; op < static_cast<int>(Op::barrier); ++op) {
      if (algorithm->operations & ccl::bit(static_cast<Op>(op))) cases.emplace_back(name, static_cast<Op>(op));
    }
  }
  return cases;
}

class ModuleContract : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Ccl, ModuleContract, ::testing::ValuesIn(every_module_and_operation()),
                         [](const auto& info) { return info.param.first + "_" + to_string(info.param.second); });

TEST_P(ModuleContract, EveryBuiltInIsLaunchedByItsFourSymbolsAlone) {
  const auto& [name, op] = GetParam();
  const ccl::AlgorithmEntry entry = ccl::Registry().load(name);
  const ccl::Algorithm& algorithm = *entry.algorithm;
  ASSERT_NE(algorithm.topology_kinds, nullptr);
  ASSERT_NE(algorithm.topo_name_to_kind, nullptr);  // optional; all that ship have it
  ASSERT_NE(algorithm.kernel_args.call, nullptr);
  ASSERT_NE(algorithm.kernel.call, nullptr);
  ASSERT_EQ(algorithm.kernel.count, 1 + algorithm.kernel_args.count + 4);

  MachineRun host(machine_for(algorithm));
  const MachineMap& map = host.machine.map();
  ccl::RingNumbers rings;
  const ccl::Group group{0, {0, 1, 2, 3}, ccl::queue_shape(map)};
  std::unique_ptr<test::LoneCollective> backend;  // makes queues and programs
  const bool in_place = algorithm.kind() == ccl::AlgorithmKind::kernel;
  int ended = 0;
  host.runtime.spawn(
      [&, op = op](Context& ctx) {
        const int rank = ctx.rank();
        const std::int64_t in_count = kCount * (is_long(op, false) ? kRanks : 1);
        std::vector<double> values;
        for (std::int64_t i = 0; i < in_count; ++i) values.push_back(value(rank, i));
        const Tensor in = ctx.from_host(values, {1, in_count}, DType::i32, spread(), "in");
        const Tensor out =
            in_place ? in : ctx.full(-1, {1, kCount * (is_long(op, true) ? kRanks : 1)}, DType::i32, spread(), "out");
        CollectiveCall call;
        call.op = op;
        call.dtype = DType::i32;
        call.to = op == Op::send_recv ? (rank + 1) % kRanks : -1;
        call.from = op == Op::send_recv ? (rank + kRanks - 1) % kRanks : -1;
        const ccl::CallTensors tensors{call, argument_of(in), argument_of(out), kRanks, rank};
        if (backend == nullptr)
          backend = std::make_unique<test::LoneCollective>(entry, map, group, Scope::sip, rings, tensors);
        const ccl::Collective::Launch bound = backend->bind(tensors);
        ctx.wait(ctx.submit(SfrWriteMessage{backend->neighbours(rank)}));
        ctx.wait(ctx.submit(program_message(ProgramId{7}, bound.program, bound.message.targets)));
        ctx.barrier();

        Positional arguments;
        arguments[0] = ccl::Argument(in.va());
        algorithm.kernel_args.call(kRanks, tensors.in.shards.front().cols, 1, 1, &arguments[1]);
        const std::int32_t kind = algorithm.topo_name_to_kind(to_string(map.sip_topology));
        const bool grid =
            kind == algorithm.topology_kinds->torus_2d || kind == algorithm.topology_kinds->mesh_2d_no_wrap;
        std::size_t next = 1 + algorithm.kernel_args.count;
        for (const std::int32_t last : {rank, kind, grid ? 2 : 0, grid ? 2 : 0})
          arguments[next++] = ccl::Argument(last);
        for (std::uint32_t i = 0; i < algorithm.kernel.count; ++i)
          ASSERT_EQ(arguments[i].type, algorithm.kernel.types[i]);

        LaunchMessage launch;
        launch.kernel = algorithm.name;
        launch.entry = {reinterpret_cast<KernelEntry::Code>(algorithm.kernel.call), &call_symbol};
        launch.arguments.resize(sizeof arguments);
        std::memcpy(launch.arguments.data(), static_cast<const void*>(arguments.data()), sizeof arguments);
        launch.targets = bound.message.targets;
        launch.call = bound.message.call;
        launch.call->program = ProgramId{7};
        launch.tensors = {tensors.in, tensors.out};
        ctx.wait(ctx.submit(std::move(launch)));

        const std::vector<double> result = out.to_host();
        for (std::size_t i = 0; i < result.size(); ++i) {
          const auto right = expected(op, rank, static_cast<std::int64_t>(i));
          ASSERT_EQ(result[i], right.value_or(result[i])) << "rank " << rank << ", element " << i;
        }
        ++ended;
      },
      std::tuple<>(), kRanks);
  EXPECT_EQ(ended, kRanks);
}

}  // namespace
}  // namespace kernbench::testing
