#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <type_traits>

#include "runtime/replay_kind.h"
#include "tests/runtime/machine_run.h"
#include "tlm/machine/page_table.h"

namespace kernbench::testing {
namespace {

/// Twice what is there, by each PE on its own shard.
void twice(Va va, double factor, Tl& tl) {
  const ShardView shard = tl.shard(va);
  const Shape flat{1, shard.count()};
  tl.store(shard.va, tl.math(MathOp::mul, {tl.load(shard.va, flat, DType::f16), tl.fill(flat, DType::f16, factor)}));
}

/// The same again and again.
void often(Va base, double factor, Tl& tl) {
  for (int i = 0; i < 4; ++i) twice(base, factor, tl);
}

LaunchOptions alone(std::uint16_t stream = 0) {
  LaunchOptions options;
  options.alone = true;
  options.stream = stream;
  return options;
}

DPPolicy rows() { return DPPolicy().cube(CubeSplit::row_wise).pe(PeSplit::row_wise); }

/// What a run says, as it goes through a pipe.
struct Outcome {
  std::array<Ps, 8> ends{};  ///< of the last entry of the host trace, by SIP
  std::uint64_t launches = 0, repeated_launches = 0, repeated_collectives = 0, repeated_mappings = 0, shared = 0,
                samples = 0, refused = 0, disturbed = 0, entries = 0, marked = 0, last_marked = 0;
};
static_assert(std::is_trivially_copyable_v<Outcome>);

struct How {
  topology::SystemSpec spec = machine_of(2, 2, 2);
  std::vector<std::uint32_t> alike{0, 0};
  std::uint64_t sample = 64;
  bool replay = true;
  Grade grade = Grade::fast;
  bool refreshes = false;
  ReplayRefresh said = {};  ///< what replay is told of refreshes, without any
};

/// As HBM3's all-bank refresh: 350 ns every 3.9 us.
constexpr ReplayRefresh kRefresh{3'900'000, 350'000};
void refresh(HbmConfig& hbm) {
  const auto clocks = [&](double ps) { return static_cast<unsigned>(ps * 1e-12 * static_cast<double>(hbm.ck_hz)); };
  hbm.refresh = RefreshPolicy::all_bank;
  hbm.timing.t_refi = clocks(kRefresh.every);
  hbm.timing.t_rfc_ab = clocks(kRefresh.takes);
}

Outcome outcome_of(const How& how, const std::function<void(Context&)>& program) {
  RunOptions options;
  options.data = false;
  options.fidelity = Fidelity::all(how.grade);
  MachineRun run(how.spec, options);
  if (how.replay) {
    const auto map = [&](int sip, const MapEntry& entry) {
      run.machine.page_table(static_cast<std::uint16_t>(sip)).map(entry);
    };
    run.runtime.set_replay({how.sample, 1, how.alike, nullptr, how.refreshes ? kRefresh : how.said, map});
  }
  run.runtime.spawn(program, std::tuple<>(), how.spec.sips);
  Outcome outcome;
  for (const HostTraceEntry& entry : run.runtime.host_trace()) {
    Ps& end = outcome.ends.at(static_cast<std::size_t>(entry.sip));
    end = std::max(end, entry.t_complete);
    ++outcome.entries;
    outcome.marked += entry.repeated ? 1 : 0;
    outcome.last_marked = entry.repeated ? 1 : 0;
  }
  if (!how.replay) return outcome;
  const ReplayReport report = run.runtime.replay_report();
  outcome.launches = report.launches;
  outcome.repeated_launches = report.repeated_launches;
  outcome.repeated_collectives = report.repeated_collectives;
  outcome.repeated_mappings = report.repeated_mappings;
  outcome.shared = report.shared;
  outcome.samples = report.samples;
  outcome.refused = report.refused;
  outcome.disturbed = report.disturbed;
  return outcome;
}

/// In a process of its own: SystemC elaborates once in each.
Outcome run_apart(const How& how, const std::function<void(Context&)>& program) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    const Outcome outcome = outcome_of(how, program);
    const bool written = write(ends[1], &outcome, sizeof outcome) == static_cast<ssize_t>(sizeof outcome);
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  Outcome outcome;
  EXPECT_EQ(read(ends[0], &outcome, sizeof outcome), static_cast<ssize_t>(sizeof outcome));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return outcome;
}

/// Ends of each SIP without replay: the least, and the largest. Where there are refreshes that is a range, since how
/// many a program meets goes by when it begins: at eighths of their interval.
struct Range {
  Outcome least, largest;
};
Range without_replay(How how, const std::function<void(Context&)>& program) {
  how.replay = false;
  Range range{run_apart(how, program), {}};
  range.largest = range.least;
  constexpr int kPhases = 8;
  for (int i = 1; how.refreshes && i < kPhases; ++i) {
    const auto late = static_cast<Ps>(kRefresh.every) * static_cast<Ps>(i) / kPhases;
    const Outcome later = run_apart(how, [&program, late](Context& context) {
      context.wait(context.timer(late, "late"));
      program(context);
    });
    for (std::size_t sip = 0; sip < how.spec.sips; ++sip) {
      range.least.ends[sip] = std::min(range.least.ends[sip], later.ends[sip] - late);
      range.largest.ends[sip] = std::max(range.largest.ends[sip], later.ends[sip] - late);
    }
  }
  return range;
}

/// Runs with and without; the times of each SIP differ by half a percent at most, and by a refresh where there are
/// some.
Outcome replayed(How how, const std::function<void(Context&)>& program) {
  if (how.refreshes) refresh(how.spec.cube.hbm);
  const Outcome with = run_apart(how, program);
  const auto [least, largest] = without_replay(how, program);
  for (std::size_t sip = 0; sip < how.spec.sips; ++sip) {
    const auto end = static_cast<double>(with.ends[sip]), low = static_cast<double>(least.ends[sip]),
               high = static_cast<double>(largest.ends[sip]);
    const double besides = how.refreshes ? kRefresh.takes : 0;
    EXPECT_GT(low, 0) << "SIP " << sip << " did nothing";
    EXPECT_GE(end, low - 0.005 * low - besides) << "SIP " << sip;
    EXPECT_LE(end, high + 0.005 * high + besides) << "SIP " << sip;
  }
  if (std::getenv("KERNBENCH_RANDOM_PROGRAMS") != nullptr) {
    const auto last = [](const Outcome& outcome) {
      return static_cast<double>(*std::max_element(outcome.ends.begin(), outcome.ends.end()));
    };
    std::printf("%+.4f %% to %+.4f %% %llu of %llu repeated\n", 100 * (last(with) / last(largest) - 1),
                100 * (last(with) / last(least) - 1), static_cast<unsigned long long>(with.marked),
                static_cast<unsigned long long>(with.entries));
    std::fflush(stdout);
  }
  EXPECT_EQ(with.entries, least.entries) << "the host trace is as complete";
  EXPECT_EQ(with.marked, with.repeated_launches + with.repeated_collectives);
  return with;
}

constexpr std::int64_t kColumns = 32 * 1024;
constexpr std::uint64_t kFew = 32;  ///< occurrences that are more than enough for work that is always the same

TEST(Replay, EqualLaunchesAreSimulatedOnceOnOneSipAndTakeTheSameTimeOnAll) {
  How how;
  how.sample = 1u << 30;
  const Outcome outcome = replayed(how, [](Context& context) {
    std::vector<Tensor> tensors;  // as the weights of layers: alike, somewhere else
    for (int i = 0; i < 4; ++i) tensors.push_back(context.zeros({1, kColumns}, DType::f16, spread(), "x"));
    for (int i = 0; i < 40; ++i) context.launch("twice", alone(), twice, tensors[i % 4], 2.0);
  });
  EXPECT_EQ(outcome.launches, 80u);
  EXPECT_GE(outcome.repeated_launches, 80u - kFew);
  EXPECT_GE(outcome.shared, 2u);
  EXPECT_EQ(outcome.disturbed, 0u);
}

/// Weights of layers. The launch at the end waits for the last of them.
TEST(Replay, NewTensorsOfOnePlacementAreMappedByTheMachineFourTimes) {
  How how;
  for (const Grade grade : {Grade::fast, Grade::accurate}) {
    how.grade = grade;
    const Outcome outcome = replayed(how, [](Context& context) {
      std::vector<Tensor> tensors;
      for (int i = 0; i < 40; ++i) tensors.push_back(context.zeros({1 + i % 3, kColumns}, DType::f16, spread(), "x"));
      context.launch("twice", alone(), twice, tensors.back(), 2.0);
    });
    EXPECT_EQ(outcome.repeated_mappings, 2 * 40 - ReplayKind::kLeast) << "of two SIPs at once one is simulated";
    EXPECT_EQ(outcome.disturbed, 0u);
  }
}

TEST(Replay, AnotherPlacementIsMappedByTheMachine) {
  How how;
  how.spec = machine_of(1, 2, 2);
  how.alike = {0};
  const auto repeated = [&](const DPPolicy& last) {
    return replayed(how,
                    [&last](Context& context) {
                      std::vector<Tensor> tensors;
                      for (int i = 0; i < 10; ++i) {
                        tensors.push_back(context.zeros({4, kColumns}, DType::f16, i < 9 ? rows() : last, "x"));
                      }
                      context.launch("twice", alone(), twice, tensors.back(), 2.0);
                    })
        .repeated_mappings;
  };
  EXPECT_EQ(repeated(rows()), 10 - ReplayKind::kLeast);
  EXPECT_EQ(repeated(DPPolicy()), 9 - ReplayKind::kLeast) << "copies of their own for all";
}

TEST(Replay, OneRepeatInSoManyIsSimulated) {
  How how;
  how.sample = 4;
  const Outcome outcome = replayed(how, [](Context& context) {
    const Tensor x = context.zeros({1, kColumns}, DType::f16, spread(), "x");
    for (int i = 0; i < 100; ++i) context.launch("twice", alone(), twice, x, 2.0);
  });
  EXPECT_GE(outcome.samples, ReplayKind::kManySamples);
  EXPECT_LT(outcome.samples, 2 * ReplayKind::kManySamples) << "of two equal SIPs at once one is, and 16 say enough";
  EXPECT_EQ(outcome.refused, 0u);
}

/// Eight equal SIPs do the same at once: what one of them is drawn for, all take. Were each drawn, 16 of a hundred
/// instants would be simulated and not a few.
TEST(Replay, EqualSipsAreSampledTogether) {
  How how;
  how.sample = 64;
  how.spec = machine_of(8, 1, 2);
  how.alike.assign(8, 0);
  const Outcome outcome = replayed(how, [](Context& context) {
    const Tensor x = context.zeros({1, 1024}, DType::f16, spread(), "x");
    for (int i = 0; i < 130; ++i) context.launch("twice", alone(), twice, x, 2.0);
  });
  EXPECT_EQ(outcome.launches, 8 * 130u);
  EXPECT_GE(outcome.samples, 1u);
  EXPECT_LE(outcome.samples, 6u) << "of 126 instants, two expected; of 1008 repeats 16";
}

TEST(Replay, LaunchesThatMayMeetOthersAreSimulated) {
  const Outcome outcome = replayed(How(), [](Context& context) {
    const Tensor x = context.zeros({1, kColumns}, DType::f16, spread(), "x");
    const Tensor y = context.zeros({1, kColumns}, DType::f16, spread(), "y");
    const std::uint16_t other = context.new_stream();
    for (int i = 0; i < 12; ++i) {
      const Handle beside = context.launch_async("beside", alone(other), twice, y, 2.0);
      context.launch("twice", alone(), twice, x, 2.0);
      context.wait(beside);
    }
  });
  EXPECT_EQ(outcome.marked, 0u);
}

TEST(Replay, ALaunchThatFollowsInItsStreamBelongsToTheOneBefore) {
  How how;
  how.sample = 1u << 30;
  const Outcome outcome = replayed(how, [](Context& context) {
    const Tensor x = context.zeros({1, kColumns}, DType::f16, spread(), "x");
    const Tensor y = context.zeros({1, kColumns / 4}, DType::f16, spread(), "y");
    for (int i = 0; i < 20; ++i) {
      context.launch_async("first", alone(), twice, x, 2.0);
      context.launch("second", alone(), twice, y, 2.0);
    }
  });
  EXPECT_GE(outcome.repeated_launches, 80u - 2 * kFew);
}

TEST(Replay, AnotherPlacementIsAnotherKindOfWork) {
  How how;
  how.spec = machine_of(1, 2, 2);
  how.alike = {0};
  const Outcome outcome = replayed(how, [](Context& context) {
    const Tensor x = context.zeros({64, kColumns / 64}, DType::f16, spread(), "x");
    const Tensor y = context.zeros({64, kColumns / 64}, DType::f16, rows(), "y");
    for (int i = 0; i < 20; ++i) context.launch("twice", alone(), twice, x, 2.0);
    context.launch("twice", alone(), twice, y, 2.0);
  });
  EXPECT_GT(outcome.marked, 0u);
  EXPECT_EQ(outcome.last_marked, 0u) << "the first of its kind";
}

/// The factor changes no time. Two numbers in turn are two kinds; launches that say nothing differ in every argument.
TEST(Replay, LaunchesThatSayWhatTheirWorkDependsOnAreAlikeWhateverElseTheyGet) {
  How how;
  how.spec = machine_of(1, 2, 2);
  how.alike = {0};
  how.sample = 1u << 30;
  for (const bool says : {true, false}) {
    const Outcome outcome = replayed(how, [says](Context& context) {
      const Tensor x = context.zeros({1, kColumns}, DType::f16, spread(), "x");
      for (int i = 0; i < 100; ++i) {
        LaunchOptions options = alone();
        if (says) options.work = {i % 2};
        context.launch("twice", options, twice, x, 1.0 + i);
      }
    });
    if (says) {
      EXPECT_GE(outcome.repeated_launches, 100 - 2 * kFew);
      EXPECT_LE(outcome.repeated_launches, 100 - 2 * ReplayKind::kLeast);
    } else {
      EXPECT_EQ(outcome.repeated_launches, 0u);
    }
  }
}

/// Eight kinds of 200 launches, of which one in four is a sample until 16 have agreed and one in 64 from then on. Kinds
/// that differ in the numbers of their work are looked at together: the first has the 16, all have one in 64 of what is
/// left. Of others each has 16.
TEST(Replay, KindsThatDifferInTheNumbersOfTheirWorkAreSampledTogether) {
  How how;
  how.spec = machine_of(1, 2, 2);
  how.alike = {0};
  how.sample = 4;
  constexpr std::uint64_t kKinds = 8, kOfEach = 200, kRarely = 4 * ReplayKind::kManySamples;
  for (const bool family : {true, false}) {
    const Outcome outcome = replayed(how, [family](Context& context) {
      const Tensor x = context.zeros({1, kColumns}, DType::f16, spread(), "x");
      for (std::uint64_t i = 0; i < kKinds * kOfEach; ++i) {
        LaunchOptions options = alone();
        if (family) options.work = {static_cast<std::int64_t>(i / kOfEach)};
        context.launch("twice", options, twice, x, static_cast<double>(i / kOfEach));
      }
    });
    if (family) {
      EXPECT_GE(outcome.samples, ReplayKind::kManySamples);
      EXPECT_LE(outcome.samples, ReplayKind::kManySamples + kKinds * (kOfEach / kRarely + 2));
    } else {
      EXPECT_GE(outcome.samples, kKinds * ReplayKind::kManySamples);
    }
  }
}

TEST(Replay, ASlowerCubeIsAnotherPartOfTheMachine) {
  How how;
  topology::CubeSpec slow = how.spec.cube;
  slow.pe.math.lanes /= 8;
  how.spec.cubes[{1, 0}] = slow;
  how.alike = {0, 2};
  const Outcome outcome = replayed(how, [](Context& context) {
    const Tensor x = context.zeros({1, kColumns}, DType::f16, spread(), "x");
    for (int i = 0; i < 20; ++i) context.launch("twice", alone(), twice, x, 2.0);
  });
  EXPECT_EQ(outcome.shared, 0u);
  EXPECT_GT(outcome.marked, 0u);
}

TEST(Replay, KernelsThatMayTalkToOthersAreSimulated) {
  const Outcome outcome = replayed(How(), [](Context& context) {
    context.init_process_group(ring_algorithm());
    const Tensor x = context.zeros({1, kColumns}, DType::f16, spread(), "x");
    for (int i = 0; i < 6; ++i) context.launch("twice", twice, x, 2.0);
  });
  EXPECT_EQ(outcome.marked, 0u);
}

TEST(Replay, CollectivesAreRepeatedWithAllTheirMembersOrNone) {
  How how;
  how.sample = 1u << 30;
  how.spec = machine_of(4, 2, 2);
  how.alike = {0, 0, 0, 0};
  for (const Grade grade : {Grade::fast, Grade::accurate}) {
    how.grade = grade;
    const Outcome outcome = replayed(how, [](Context& context) {
      context.init_process_group(ring_algorithm());
      const Tensor x = context.zeros({1, kColumns}, DType::f16, spread(), "x");
      for (int i = 0; i < 40; ++i) {
        context.launch("twice", alone(), twice, x, 2.0);
        context.all_reduce(x);
      }
    });
    EXPECT_GE(outcome.repeated_collectives, 60u) << "of 160";
    EXPECT_EQ(outcome.repeated_collectives % 4, 0u);
  }
}

/// What follows other work than before is expected to begin as the last one did. It is so where both SIPs have done as
/// much; where one comes late, it is simulated.
TEST(Replay, CollectivesAfterNewWorkAreExpectedAsTheLastOneWas) {
  How how;
  how.sample = 1u << 30;
  for (const bool late : {false, true}) {
    const Outcome outcome = replayed(how, [late](Context& context) {
      context.init_process_group(ring_algorithm());
      const Tensor x = context.zeros({1, kColumns}, DType::f16, spread(), "x");
      for (int i = 0; i < 40; ++i) {
        context.launch("twice", alone(), twice, x, 2.0);
        context.all_reduce(x);
      }
      context.barrier();
      context.launch("thrice", alone(), twice, x, 3.0);
      if (late && context.rank() == 1) context.wait(context.timer(1'000'000, "late"));
      context.all_reduce(x);
    });
    EXPECT_EQ(outcome.last_marked, late ? 0u : 1u);
    EXPECT_EQ(outcome.disturbed, late ? 1u : 0u);
  }
}

TEST(Replay, CollectivesToWhichMembersComeInOtherOrdersAreSimulated) {
  const Outcome outcome = replayed(How(), [](Context& context) {
    context.init_process_group(ring_algorithm());
    const Tensor x = context.zeros({1, kColumns}, DType::f16, spread(), "x");
    for (int i = 0; i < 12; ++i) {
      // Never the same times twice.
      const Ps late = context.rank() == i % 2 ? 1'000'000 + 50'000 * static_cast<Ps>(i * i) : 0;
      if (late > 0) context.wait(context.timer(late, "late"));
      context.all_reduce(x);
    }
  });
  EXPECT_EQ(outcome.repeated_collectives, 0u);
}

/// However uncertain their mean is, as here, where it is said that they may meet 20 us more: they cost too much.
TEST(Replay, LongWorkIsSimulatedForItsMeanAsSeldomAsForSamples) {
  How how;
  how.sample = 8;
  how.said = {7e6, 20e6};
  how.spec = machine_of(2, 1, 2);
  const Outcome outcome = replayed(how, [](Context& context) {
    const Tensor x = context.zeros({32, kColumns}, DType::f16, spread(), "x");
    for (int i = 0; i < 20; ++i) context.launch("often", alone(), often, x, 2.0);
  });
  EXPECT_LE(outcome.launches - outcome.repeated_launches, ReplayKind::kLeastLong + 20 / 8 + outcome.samples);
}

/// Eight kinds of short work behind much long work: together they soon leave the run a little too uncertain, and one
/// more occurrence of one of them mends that. When what it said counted from the next repeat on only, all went on until
/// the run was longer: three times as many.
TEST(Replay, WhatAnOccurrenceSaysCountsAtOnce) {
  How how;
  how.sample = 1 << 20;
  how.said = {1e9, 8e6};
  how.spec = machine_of(1, 1, 2);
  how.alike.assign(1, 0);
  const Outcome outcome = run_apart(how, [](Context& context) {
    const Tensor first = context.zeros({32, kColumns}, DType::f16, spread(), "first");
    for (int i = 0; i < 100; ++i) context.launch("often", alone(), often, first, 2.0);
    std::vector<Tensor> tensors;
    for (int i = 0; i < 8; ++i) tensors.push_back(context.zeros({1, 512 + 64 * i}, DType::f16, spread(), "x"));
    for (int i = 0; i < 100; ++i) {
      for (const Tensor& x : tensors) context.launch("twice", alone(), twice, x, 2.0);
    }
  });
  EXPECT_EQ(outcome.launches, 100 + 8 * 100u);
  EXPECT_LE(outcome.launches - outcome.repeated_launches, 2 + 8 * 16u);
}

/// Ranks do the same, as of a model: bodies of launches and collectives that come again and again, with others that
/// overlap in between.
void random_program(std::uint64_t seed, Context& context) {
  std::mt19937_64 random(seed);  // the same on every rank
  const auto upto = [&](std::uint64_t n) { return random() % n; };
  context.init_process_group(ring_algorithm());
  std::vector<Tensor> tensors;
  for (int i = 0; i < 3; ++i) {
    const auto columns = static_cast<std::int64_t>(1024 << upto(6));
    tensors.push_back(context.zeros({4, columns}, DType::f16, upto(2) == 0 ? spread() : rows(), "x"));
  }
  const std::uint16_t other = context.new_stream();
  for (int body = 0; body < 3; ++body) {
    struct Step {
      std::uint64_t kind, tensor;
      bool skewed;
    };
    std::vector<Step> steps;
    for (std::uint64_t i = 0, n = 1 + upto(4); i < n; ++i) steps.push_back({upto(6), upto(3), upto(4) == 0});
    for (std::uint64_t i = 0, n = 4 + upto(12); i < n; ++i) {
      for (const Step& step : steps) {
        const Tensor& x = tensors[step.tensor];
        if (step.skewed) context.wait(context.timer(1'000 + 20'000 * static_cast<Ps>(context.rank()), "skew"));
        if (step.kind < 3) {
          context.launch("twice", alone(), twice, x, 2.0);
        } else if (step.kind == 3) {
          const Handle beside = context.launch_async("beside", alone(other), twice, x, 2.0);
          context.launch("twice", alone(), twice, tensors[(step.tensor + 1) % 3], 2.0);
          context.wait(beside);
        } else if (step.kind == 4) {
          context.all_reduce(x);
        } else {
          const Handle sum = context.all_reduce_async(x);
          context.launch("twice", alone(other), twice, tensors[(step.tensor + 1) % 3], 2.0);
          context.wait(sum);
        }
      }
    }
  }
}

TEST(ReplayPrograms, TakeTheTimeThatTheyTakeWithoutReplay) {
  const char* const asked = std::getenv("KERNBENCH_RANDOM_PROGRAMS");  // 200 with the label slow
  const std::uint64_t count = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 6;
  std::uint64_t marked = 0, entries = 0;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    How how;
    how.sample = 16;
    how.refreshes = seed / 4 % 2 == 1;
    how.spec = machine_of(2, static_cast<std::uint16_t>(1 + seed % 2), 2);
    how.grade = seed % 4 == 0 ? Grade::accurate : Grade::fast;
    const Outcome outcome = replayed(how, [seed](Context& context) { random_program(seed, context); });
    marked += outcome.marked;
    entries += outcome.entries;
  }
  EXPECT_GT(4 * marked, entries) << "more than a quarter is repeated";
}

}  // namespace
}  // namespace kernbench::testing
