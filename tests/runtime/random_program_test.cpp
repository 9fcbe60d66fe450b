#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/runtime/machine_run.h"
#include "tests/runtime/random_program.h"

namespace kernbench::testing {
namespace {

DPPolicy policy_of(int number) {
  DPPolicy policy;
  constexpr PeSplit kSplits[] = {PeSplit::replicate, PeSplit::column_wise, PeSplit::row_wise};
  policy.pe = kSplits[number];
  return policy;
}

KernelBody affine(Va va, double scale, double shift) {
  return [va, scale, shift](Tl& tl) {
    const ShardView shard = tl.shard(va);
    const Shape flat{1, shard.count()};
    const Tile x = tl.math(MathOp::mul, {tl.load(shard.va, flat, DType::f32), tl.fill(flat, DType::f32, scale)});
    tl.store(shard.va, tl.add(x, tl.fill(flat, DType::f32, shift)));
  };
}

/// Carries out one rank's steps and compares what it reads with what the model says.
class Interpreter {
 public:
  Interpreter(Context& ctx, const RandomProgram& program, std::vector<std::vector<Tensor>>& tensors, int& mismatches,
              std::size_t& reads)
      : ctx_(ctx),
        program_(program),
        all_(tensors),
        mine_(tensors[static_cast<std::size_t>(ctx.rank())]),
        mismatches_(mismatches),
        reads_(reads),
        other_stream_(ctx.new_stream()) {}

  void run() {
    const auto rank = static_cast<std::size_t>(ctx_.rank());
    for (std::size_t t = 0; t < RandomProgram::kTensors; ++t) {
      mine_.push_back(make(t, static_cast<double>(rank + 1) + 4 * static_cast<double>(t)));
    }
    for (const Step& step : program_.steps[rank]) execute(step);
    finish_collectives();
    ctx_.barrier();  // nobody's tensors go while others read them
    mine_.clear();
  }

 private:
  Tensor make(std::size_t t, double value) {
    const auto& spec = program_.tensors[static_cast<std::size_t>(ctx_.rank())][t];
    return ctx_.full(value, spec.shape, DType::f32, policy_of(spec.policy), "t" + std::to_string(t));
  }
  /// Tensors keep to a stream of their own, so that the model's order holds for each.
  std::uint16_t stream_of(std::size_t t) const { return t < RandomProgram::kShared ? 0 : other_stream_; }
  /// A read does not wait for a collective that another rank may still have to submit; the program does.
  void finish_collectives() {
    for (const Handle& handle : collectives_) {
      ctx_.wait(handle);
      if (!handle.done()) ++mismatches_;
    }
    collectives_.clear();
  }

  void execute(const Step& step) {
    switch (step.kind) {
      case Step::Kind::launch:
      case Step::Kind::launch_async: {
        const Tensor& tensor = mine_[step.tensor];
        launches_.push_back(ctx_.launch_async("affine", affine(tensor.va(), step.scale, step.shift), {tensor}, {},
                                              stream_of(step.tensor)));
        if (step.kind == Step::Kind::launch_async) return;
        return wait(launches_.back());
      }
      case Step::Kind::wait:
        return wait(launches_[step.index]);
      case Step::Kind::read:
        finish_collectives();
        return read(step);
      case Step::Kind::copy:
        finish_collectives();
        return mine_[step.tensor].copy_from(mine_[step.index]);
      case Step::Kind::renew:
        finish_collectives();
        mine_[step.tensor].free();
        mine_[step.tensor] = make(step.tensor, step.shift);
        return;
      case Step::Kind::fault:
        return fault();
      case Step::Kind::reduce:
        return wait(ctx_.all_reduce_async(mine_[step.tensor]));
      case Step::Kind::reduce_async:
        collectives_.push_back(ctx_.all_reduce_async(mine_[step.tensor]));
        return;
      case Step::Kind::barrier:
        finish_collectives();
        return ctx_.barrier();
      case Step::Kind::fail:
        throw std::runtime_error("made to fail");
    }
  }

  void wait(const Handle& handle) {
    ctx_.wait(handle);
    if (!handle.done()) ++mismatches_;
  }

  void read(const Step& step) {
    const Tensor& tensor = all_[static_cast<std::size_t>(step.owner)][step.tensor];
    std::vector<double> values;
    switch (step.index) {
      case 0:
        values = tensor.to_host();
        break;
      case 1:
        for (std::int64_t r = 0; r < tensor.shape().rows; ++r) {
          for (std::int64_t c = 0; c < tensor.shape().cols; ++c) values.push_back(tensor.at(r, c));
        }
        break;
      default: {
        const auto bytes = tensor.bytes_to_host(tensor.copies() - 1);
        for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.shape().count()); ++i) {
          values.push_back(load_element(bytes.data(), DType::f32, i));
        }
      }
    }
    ++reads_;
    if (values == step.expected) return;
    ++mismatches_;
    std::fprintf(stderr, "rank %d reads %g from %s of rank %d, not %g\n", ctx_.rank(), values.at(0),
                 tensor.name().c_str(), step.owner, step.expected.at(0));
  }

  void fault() {
    const auto sip = static_cast<std::uint16_t>(ctx_.rank());
    const Handle handle = ctx_.launch_async(
        "stray",
        [](Tl& tl) {
          tl.load(0xdead'0000'0000, {1, 8}, DType::f16);
        },
        {}, {{sip, 0, 0}}, other_stream_);
    try {
      ctx_.wait(handle);
      ++mismatches_;
    } catch (const DeviceFault&) {
    }
  }

  Context& ctx_;
  const RandomProgram& program_;
  std::vector<std::vector<Tensor>>& all_;
  std::vector<Tensor>& mine_;
  int& mismatches_;
  std::size_t& reads_;
  const std::uint16_t other_stream_;
  std::vector<Handle> launches_, collectives_;
};

std::size_t reads_of(const RandomProgram& program) {
  std::size_t count = 0;
  for (const auto& steps : program.steps) {
    for (const Step& step : steps) count += step.kind == Step::Kind::read ? 1 : 0;
  }
  return count;
}

constexpr int kBatch = 20;  ///< programs of one machine; the last one fails

/// Runs programs on one machine. Returns 0 if they behave as the model says.
int run_batch(std::uint64_t first, int count, SchedulingKind scheduling) {
  const int ranks = 2 + static_cast<int>(first / kBatch % 2);
  MachineRun host(machine_of(static_cast<std::uint16_t>(ranks), 1, 2), scheduled(scheduling));
  host.runtime.init_process_group(ring_algorithm());
  // The group is of as many ranks as there are SIPs.
  int bad = 0;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    const RandomProgram program = make_random_program(seed, ranks, i + 1 == kBatch);
    std::vector<std::vector<Tensor>> tensors(static_cast<std::size_t>(ranks));
    int mismatches = 0;
    std::size_t reads = 0;
    std::string failed = "none";
    try {
      host.runtime.spawn([&](Context& ctx) { Interpreter(ctx, program, tensors, mismatches, reads).run(); },
                         std::tuple<>(), ranks);
    } catch (const SpawnError& error) {
      failed = error.failures.size() == 1 ? std::to_string(error.failures.begin()->first) : "several";
      if (program.fails < 0) std::fprintf(stderr, "%s\n", error.what());
    } catch (const std::exception& error) {
      failed = "otherwise";
      std::fprintf(stderr, "%s\n", error.what());
    }
    if (failed != (program.fails < 0 ? "none" : std::to_string(program.fails))) ++mismatches;
    if (program.fails < 0 && reads != reads_of(program)) ++mismatches;
    if (host.runtime.pending_worker_waits() + host.runtime.pending_collectives() != 0) ++mismatches;
    if (mismatches == 0) continue;
    std::fprintf(stderr, "program %llu: %d mismatches; failed: %s\n", static_cast<unsigned long long>(seed), mismatches,
                 failed.c_str());
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

constexpr int kPrograms = 1000;

class RandomPrograms : public ::testing::TestWithParam<SchedulingKind> {};
INSTANTIATE_TEST_SUITE_P(Runtime, RandomPrograms, ::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                         [](const auto& info) {
                           return info.param == SchedulingKind::rounds ? "rounds" : "concurrent";
                         });

TEST_P(RandomPrograms, BehaveAsTheSequentialModelPredicts) {
  for (int first = 0; first < kPrograms; first += kBatch) {
    EXPECT_EQ(run_apart(static_cast<std::uint64_t>(first), std::min(kBatch, kPrograms - first), GetParam()), 0)
        << "programs from " << first << " on";
  }
}

}  // namespace
}  // namespace kernbench::testing
