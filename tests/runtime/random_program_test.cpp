#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "tests/runtime/machine_run.h"
#include "tests/runtime/random_program.h"

namespace kernbench::testing {
namespace {

DPPolicy policy_of(int number) {
  DPPolicy policy;
  constexpr PeSplit kSplits[] = {PeSplit::replicate, PeSplit::column_wise, PeSplit::row_wise};
  policy = policy.pe(kSplits[number]);
  return policy;
}

void change(Tl& tl, Va va, std::int64_t count, double scale, double shift) {
  const Shape flat{1, count};
  const Tile x = tl.math(MathOp::mul, {tl.load(va, flat, DType::f32), tl.fill(flat, DType::f32, scale)});
  tl.store(va, tl.add(x, tl.fill(flat, DType::f32, shift)));
}

/// On each PE's own shard.
void affine(Va va, double scale, double shift, Tl& tl) {
  const ShardView shard = tl.shard(va);
  change(tl, shard.va, shard.count(), scale, shift);
}

/// Where a kernel sees the shards of another SIP's tensor.
struct Windows {
  std::array<Va, 4> va{};
  std::array<std::int64_t, 4> count{};  ///< elements; 0: none
};

void affine_far(const Windows& windows, double scale, double shift, Tl& tl) {
  for (std::size_t i = 0; i < windows.va.size() && windows.count[i] > 0; ++i) {
    change(tl, windows.va[i], windows.count[i], scale, shift);
  }
}

constexpr Va kWindows = Va{1} << 46;  ///< where ranks map each other's memory: beyond what tensors are given

/// What the ranks of one program share.
struct Shared {
  std::vector<std::vector<Tensor>> tensors;  ///< by rank
  std::vector<Handle> promises;
  std::uint64_t& windows;  ///< that were mapped on this machine
  int mismatches = 0;
  std::size_t reads = 0;
};

/// Carries out one rank's steps and compares what it reads with what the model says.
class Interpreter {
 public:
  Interpreter(Context& ctx, const RandomProgram& program, Shared& shared)
      : ctx_(ctx),
        program_(program),
        shared_(shared),
        mine_(shared.tensors[static_cast<std::size_t>(ctx.rank())]),
        other_stream_(ctx.new_stream()) {}

  void run() {
    const auto rank = static_cast<std::size_t>(ctx_.rank());
    for (std::size_t t = 0; t < RandomProgram::kTensors; ++t) {
      mine_.push_back(make(t, static_cast<double>(rank + 1) + 4 * static_cast<double>(t)));
    }
    if (rank == 0) {
      for (std::size_t i = 0; i < program_.promises; ++i) {
        shared_.promises.push_back(ctx_.promise("promise" + std::to_string(i)));
      }
    }
    ctx_.barrier();
    for (const Step& step : program_.steps[rank]) execute(step);
    ctx_.barrier();  // nobody's tensors go while others read them
    mine_.clear();
  }

 private:
  Tensor make(std::size_t t, double value) {
    const auto& spec = program_.tensors[static_cast<std::size_t>(ctx_.rank())][t];
    return ctx_.full(value, spec.shape, DType::f32, policy_of(spec.policy), "t" + std::to_string(t));
  }
  Tensor& tensor_of(int owner, std::size_t t) { return shared_.tensors[static_cast<std::size_t>(owner)][t]; }

  void execute(const Step& step) {
    switch (step.kind) {
      case Step::Kind::launch:
      case Step::Kind::launch_async:
        return launch(step);
      case Step::Kind::launch_far:
        return launch_far(step);
      case Step::Kind::wait:
        return wait(launches_[step.index]);
      case Step::Kind::read:
        return read(step);
      case Step::Kind::peek:
        tensor_of(step.owner, step.tensor).to_host();
        return;
      case Step::Kind::write: {
        Tensor& tensor = tensor_of(step.owner, step.tensor);
        std::vector<std::uint8_t> data(tensor.bytes());
        for (std::size_t i = 0; i < data.size() / sizeof(float); ++i) {
          store_element(data.data(), DType::f32, i, step.shift);
        }
        return tensor.write_bytes(data);
      }
      case Step::Kind::copy:
        return tensor_of(step.owner, step.tensor).copy_from(tensor_of(step.from, step.index));
      case Step::Kind::renew:
        mine_[step.tensor].free();
        mine_[step.tensor] = make(step.tensor, step.shift);
        return;
      case Step::Kind::fault:
        return fault();
      case Step::Kind::collective:
        return wait(collective(step));
      case Step::Kind::collective_async:
        collective(step);
        return;
      case Step::Kind::give:
        return ctx_.fulfil(shared_.promises[step.index]);
      case Step::Kind::take:
        return ctx_.wait(shared_.promises[step.index]);
      case Step::Kind::barrier:
        return ctx_.barrier();
      case Step::Kind::fail:
        throw std::runtime_error("made to fail");
    }
  }

  void launch(const Step& step) {
    const Tensor& tensor = mine_[step.tensor];
    const std::uint16_t stream = step.tensor == RandomProgram::kStreamed ? other_stream_ : std::uint16_t{0};
    launches_.push_back(ctx_.launch_async("affine", LaunchOptions{{}, stream}, affine, tensor, step.scale, step.shift));
    if (step.kind == Step::Kind::launch) wait(launches_.back());
  }

  Handle collective(const Step& step) {
    const Tensor& tensor = mine_[step.tensor];
    if (step.what == Step::Collective::broadcast) return ctx_.broadcast_async(tensor, step.from);
    return ctx_.all_reduce_async(tensor, step.what == Step::Collective::max ? ReduceOp::max : ReduceOp::sum);
  }

  /// Maps all copies of all shards, and has one PE of this rank's SIP change them.
  void launch_far(const Step& step) {
    const Tensor& tensor = tensor_of(step.owner, step.tensor);
    MmuMapMessage mapping;
    for (std::size_t i = 0; i < tensor.shards().size(); ++i) {
      if (tensor.shards()[i].nbytes == 0) continue;
      const Va va = kWindows + (Va{shared_.windows++} << 21);
      mapping.entries.push_back({va, tensor.shards()[i].nbytes, tensor.pa(i), {}});
    }
    Windows windows;
    for (std::size_t i = 0; i < mapping.entries.size(); ++i) {
      windows.va.at(i) = mapping.entries[i].va;
      windows.count.at(i) = static_cast<std::int64_t>(mapping.entries[i].bytes / sizeof(float));
    }
    ctx_.submit(std::move(mapping), other_stream_);
    const LaunchOptions one_pe{{{static_cast<std::uint16_t>(ctx_.rank()), 0, 0}}, other_stream_};
    launches_.push_back(ctx_.launch_async("affine_far", one_pe, affine_far, windows, step.scale, step.shift));
  }

  void wait(const Handle& handle) {
    ctx_.wait(handle);
    if (!handle.done()) ++shared_.mismatches;
  }

  void read(const Step& step) {
    const Tensor& tensor = tensor_of(step.owner, step.tensor);
    const bool same = is_text(step.access) ? reads_text(tensor, step) : values_of(tensor, step.access) == step.expected;
    ++shared_.reads;
    if (same) return;
    ++shared_.mismatches;
    std::fprintf(stderr, "rank %d reads %s of rank %d, not as expected: %g ...\n", ctx_.rank(),
                 to_string(tensor).c_str(), step.owner, step.expected.at(0));
  }
  static bool is_text(HostAccess access) {
    return access == HostAccess::to_string || access == HostAccess::stream_output;
  }
  /// The first elements, as far as both ways show them.
  static bool reads_text(const Tensor& tensor, const Step& step) {
    std::ostringstream text;
    if (step.access == HostAccess::to_string) {
      text << to_string(tensor);
    } else {
      text << tensor;
    }
    std::string begin = fmt::format("{} ({} f32): [", tensor.name(), tensor.shape().str());
    const auto shown = static_cast<std::size_t>(std::min<std::int64_t>(tensor.shape().cols, 8));
    for (std::size_t i = 0; i < shown; ++i) begin += fmt::format("{}{:g}", i > 0 ? ", " : "", step.expected[i]);
    return text.str().compare(0, begin.size(), begin) == 0;
  }
  static std::vector<double> values_of(const Tensor& tensor, HostAccess access) {
    std::vector<double> values;
    switch (access) {
      case HostAccess::to_host:
        return tensor.to_host();
      case HostAccess::data:
        return tensor.data();
      case HostAccess::bytes_to_host: {
        const auto bytes = tensor.bytes_to_host(tensor.copies() - 1);
        for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
          values.push_back(load_element(bytes.data(), DType::f32, i));
        }
        return values;
      }
      default:
        for (std::int64_t r = 0; r < tensor.shape().rows; ++r) {
          for (std::int64_t c = 0; c < tensor.shape().cols; ++c) {
            values.push_back(access == HostAccess::at ? tensor.at(r, c) : tensor(r, c));
          }
        }
        return values;
    }
  }

  void fault() {
    const auto sip = static_cast<std::uint16_t>(ctx_.rank());
    const Handle handle = ctx_.launch_async("stray", LaunchOptions{{{sip, 0, 0}}, other_stream_}, [](Tl& tl) {
      tl.load(0xdead'0000'0000, {1, 8}, DType::f16);
    });
    try {
      ctx_.wait(handle);
      ++shared_.mismatches;
    } catch (const DeviceFault&) {
    }
  }

  Context& ctx_;
  const RandomProgram& program_;
  Shared& shared_;
  std::vector<Tensor>& mine_;
  const std::uint16_t other_stream_;
  std::vector<Handle> launches_;
};

std::size_t reads_of(const RandomProgram& program) {
  std::size_t count = 0;
  for (const auto& steps : program.steps) {
    for (const Step& step : steps) count += step.kind == Step::Kind::read ? 1 : 0;
  }
  return count;
}

constexpr int kBatch = 20;  ///< programs of one machine; the last one fails

/// The algorithm of a batch: a module's own kernel, schedules, what `auto` chooses.
const char* algorithm_of(std::uint64_t first) {
  constexpr const char* kAlgorithms[] = {"ring_allreduce", "direct", "auto"};
  return kAlgorithms[first / kBatch % std::size(kAlgorithms)];
}
bool reduces_only(std::uint64_t first) { return algorithm_of(first) == std::string("ring_allreduce"); }

/// Runs programs on one machine. Returns 0 if they behave as the model says.
int run_batch(std::uint64_t first, int count, SchedulingKind scheduling) {
  const int ranks = 2 + static_cast<int>(first / kBatch % 2);
  MachineRun host(machine_of(static_cast<std::uint16_t>(ranks), 1, 2), scheduled(scheduling));
  ProcessGroupOptions options;
  options.algorithm = algorithm_of(first);
  host.runtime.init_process_group(options);
  // The group is of as many ranks as there are SIPs.
  int bad = 0;
  std::uint64_t windows = 0;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    const RandomProgram program = make_random_program(seed, ranks, reduces_only(first), i + 1 == kBatch);
    Shared shared{std::vector<std::vector<Tensor>>(static_cast<std::size_t>(ranks)), {}, windows};
    std::string failed = "none";
    try {
      host.runtime.spawn([&](Context& ctx) { Interpreter(ctx, program, shared).run(); }, std::tuple<>(), ranks);
    } catch (const SpawnError& error) {
      failed = error.failures.size() == 1 ? std::to_string(error.failures.begin()->first) : "several";
      if (program.fails < 0) std::fprintf(stderr, "%s\n", error.what());
    } catch (const std::exception& error) {
      failed = "otherwise";
      std::fprintf(stderr, "%s\n", error.what());
    }
    if (failed != (program.fails < 0 ? "none" : std::to_string(program.fails))) ++shared.mismatches;
    if (program.fails < 0 && shared.reads != reads_of(program)) ++shared.mismatches;
    if (host.machine.pool().outstanding() != 0) ++shared.mismatches;  // however it ended, the machine ran on to its end
    if (scheduling == SchedulingKind::rounds &&
        host.runtime.pending_worker_waits() + host.runtime.pending_collectives() != 0) {
      ++shared.mismatches;
    }
    if (shared.mismatches == 0) continue;
    std::fprintf(stderr, "program %llu: %d mismatches; failed: %s\n", static_cast<unsigned long long>(seed),
                 shared.mismatches, failed.c_str());
    ++bad;
  }
  return bad;
}

/// In a process of its own: SystemC elaborates once.
int run_apart(std::uint64_t first, int count, SchedulingKind scheduling) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    const int bad = run_batch(first, count, scheduling);
    std::exit(bad == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// How many: KERNBENCH_RANDOM_PROGRAMS. A tenth of what the slow test RandomPrograms.Thousand runs, otherwise.
int programs() {
  const char* variable = std::getenv("KERNBENCH_RANDOM_PROGRAMS");
  return variable != nullptr ? std::atoi(variable) : 100;
}

class RandomPrograms : public ::testing::TestWithParam<SchedulingKind> {};
INSTANTIATE_TEST_SUITE_P(Runtime, RandomPrograms, ::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                         [](const auto& info) {
                           return info.param == SchedulingKind::rounds ? "rounds" : "concurrent";
                         });

TEST_P(RandomPrograms, BehaveAsTheSequentialModelPredicts) {
  const int count = programs();
  ASSERT_GT(count, 0);
  for (int first = 0; first < count; first += kBatch) {
    EXPECT_EQ(run_apart(static_cast<std::uint64_t>(first), std::min(kBatch, count - first), GetParam()), 0)
        << "programs from " << first << " on";
  }
}

TEST(RandomProgram, UsesTensorsInTheMiddleOfCollectivesAndAcrossSips) {
  std::size_t held = 0, held_writes = 0, far_in_flight = 0, far_reads = 0, far_writes = 0, far_launches = 0,
              broadcasts = 0;
  constexpr std::size_t kSeeds = 100;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RandomProgram program = make_random_program(seed, 2 + static_cast<int>(seed % 2), false, false);
    held += program.held_reads;
    held_writes += program.held_writes;
    far_in_flight += program.far_in_flight;
    far_reads += program.far_reads;
    far_writes += program.far_writes;
    far_launches += program.far_launches;
    broadcasts += program.broadcasts;
  }
  // In every program, on average.
  EXPECT_GT(held, kSeeds);
  EXPECT_GT(held_writes, kSeeds / 4);
  EXPECT_GT(far_in_flight, kSeeds / 4);
  EXPECT_GT(far_reads, kSeeds);
  EXPECT_GT(far_writes, kSeeds / 2);
  EXPECT_GT(far_launches, kSeeds);
  EXPECT_GT(broadcasts, kSeeds);
}

}  // namespace
}  // namespace kernbench::testing
