#include "tests/runtime/replay_run.h"

namespace kernbench::testing {
namespace {

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

/// The root ends first, and begins the next one while the others are still at work: each takes as long as the other
/// lets it, and the first one of a chain as the last one take other times than those between.
TEST(Replay, CollectivesThatMeetAreSimulated) {
  How how;
  how.sample = 8;
  how.spec = machine_of(4, 2, 2);
  how.alike = {0, 0, 0, 0};
  const Outcome outcome = replayed(how, [](Context& context) {
    ProcessGroupOptions group;
    group.algorithm = "auto";
    context.init_process_group(group);
    const Tensor x = context.zeros({1, kColumns}, DType::f16, spread(), "x");
    for (int i = 0; i < 40; ++i) context.broadcast(x, 0);
  });
  EXPECT_EQ(outcome.repeated_collectives, 0u);
  EXPECT_EQ(outcome.links_met, 0u) << "what passes over a link belongs to one of them at a time";
}

/// Rank 1 comes 50 ns later: there the work of the collective begins. Launches and collectives are batches of one.
TEST(Replay, RecordsHearOfEveryRepeatAndWhereWorkBegins) {
  How how;
  how.sample = 1u << 30;
  const Outcome outcome = replayed(how, [](Context& context) {
    context.init_process_group(ring_algorithm());
    const Tensor x = context.zeros({1, kColumns}, DType::f16, spread(), "x");
    for (int i = 0; i < 40; ++i) {
      context.launch("twice", alone(), twice, x, 2.0);
      if (context.rank() == 1) context.wait(context.timer(50'000, "late"));
      context.all_reduce(x);
    }
  });
  EXPECT_GE(outcome.repeated_collectives, 20u);
  EXPECT_EQ(outcome.told_repeats, outcome.repeated_launches + outcome.repeated_collectives + outcome.repeated_mappings);
  EXPECT_EQ(outcome.told_backwards, 0u);
  EXPECT_GE(outcome.from_later, 1u);
  EXPECT_EQ(outcome.from_first, 0u);
  EXPECT_EQ(outcome.link_repeats, outcome.repeated_collectives) << "of two SIPs, as of two members";
  EXPECT_EQ(outcome.links_met, 0u);
}

int fills = 0;
void fill_often(Va, Tl& tl) {
  for (int i = 0; i < fills; ++i) tl.fill({64, 64}, DType::f16, 0);
}

/// One of four SIPs is simulated, all take its time, which differs from turn to turn. So members come at once, where
/// each would have taken a time of its own: the all_reduce, simulated or not, is late by what the last of four is later
/// than their mean.
TEST(Replay, ACollectiveBeginsWhenTheLastOfItsMembersWouldHaveCome) {
  How how;
  how.sample = 1u << 30;
  how.spec = machine_of(4, 2, 2);
  how.alike = {0, 0, 0, 0};
  const auto run = [&how](int every_other, unsigned turns) {
    return run_apart(how, [=](Context& context) {
      context.init_process_group(ring_algorithm());
      const Tensor x = context.zeros({1, kColumns}, DType::f16, spread(), "x");
      for (unsigned i = 0; i < turns; ++i) {
        fills = i % 2 == 0 ? 40 : every_other;
        context.launch("fill_often", alone(), fill_often, x);
        context.all_reduce(x);
      }
    });
  };
  const unsigned simulated = ReplayKind::kLeast, longer = simulated + 6;
  const Outcome equal = run(40, longer), differ = run(80, simulated), repeated = run(80, longer);
  const Ps all_reduce = equal.last_took[3], forty = differ.last_took[0], eighty = differ.last_took[2];
  ASSERT_GT(eighty, forty);
  ReplayKind kind("fill_often", 1);
  for (unsigned i = 0; i < simulated; ++i) kind.add({{0, 0, i % 2 == 0 ? forty : eighty}}, {});
  const auto late = [&] { return last_of(4) * kind.scatter().share() * kind.mean_time(); };
  constexpr double kEdge = 2'000;  // ps: where in a clock the all_reduce begins
  EXPECT_NEAR(static_cast<double>(differ.last_took[3]), static_cast<double>(all_reduce) + late(), kEdge);
  const auto mean = static_cast<double>(repeated.last_took[2]);
  if (kind.mean_time() < mean - kEdge) kind.add({{0, 0, eighty}}, {});  // one more was simulated, for its mean
  EXPECT_NEAR(kind.mean_time(), mean, kEdge);
  EXPECT_NEAR(static_cast<double>(repeated.last_took[3]), static_cast<double>(all_reduce) + late(), kEdge);
}

/// A kernel that changes what it does, which nothing of a launch shows: samples find it, and it is simulated from then
/// on.
TEST(Replay, WorkThatASampleShowsToDifferIsSimulatedFromThenOn) {
  How how;
  how.sample = 4;
  const auto run = [&how](int later) {
    return run_apart(how, [later](Context& context) {
      const Tensor x = context.zeros({1, kColumns}, DType::f16, spread(), "x");
      for (int i = 0; i < 80; ++i) {
        fills = i < 40 ? 40 : later;
        context.launch("fill_often", alone(), fill_often, x);
      }
    });
  };
  const Outcome same = run(40), differs = run(80);
  EXPECT_EQ(same.refused, 0u);
  EXPECT_EQ(same.last_marked, 1u);
  EXPECT_EQ(differs.refused, 1u);
  EXPECT_EQ(differs.last_marked, 0u);
  EXPECT_GT(differs.last_took[3], same.last_took[3]);
  EXPECT_LT(differs.repeated_launches, same.repeated_launches);
}

/// Each SIP takes a time of its own then, so that nobody has to be waited for besides.
TEST(Replay, BehindWorkThatIsNotRepeatedACollectiveBeginsWhenItsMembersCome) {
  How how;
  how.sample = 1;
  how.spec = machine_of(4, 2, 2);
  how.alike = {0, 0, 0, 0};
  const auto run = [&how](int first) {
    return run_apart(how, [first](Context& context) {
      context.init_process_group(ring_algorithm());
      const Tensor x = context.zeros({1, kColumns}, DType::f16, spread(), "x");
      for (int i = 0; i < 20; ++i) {
        fills = i < 10 ? first : 80;
        context.launch("fill_often", alone(), fill_often, x);
        context.all_reduce(x);
      }
    });
  };
  const Outcome same = run(80), differs = run(40);
  EXPECT_EQ(same.refused, 0u);
  EXPECT_GE(differs.refused, 1u);
  EXPECT_EQ(differs.last_took[2], same.last_took[2]);
  EXPECT_NEAR(static_cast<double>(differs.last_took[3]), static_cast<double>(same.last_took[3]), 2'000);
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
  EXPECT_LE(outcome.launches - outcome.repeated_launches, ReplayLong().least + 20 / 8 + outcome.samples);
}

/// Serving asks for each kind twice: by what occurrences differ is known from the first kinds.
TEST(Replay, OneOccurrenceIsEnoughWhereThatIsSaidOnceOthersSayByHowMuchTheyDiffer) {
  constexpr std::int64_t kKinds = 10;
  How how;
  how.long_work = {1.0, 1};
  const Outcome outcome = replayed(how, [](Context& context) {
    for (std::int64_t rows = 1; rows <= kKinds; ++rows) {
      const Tensor x = context.zeros({rows, kColumns}, DType::f16, spread(), "x");
      for (int i = 0; i < 3; ++i) context.launch("twice", alone(), twice, x, 2.0);
    }
  });
  EXPECT_EQ(outcome.launches - outcome.repeated_launches, kKinds + ReplayKind::kTold + outcome.samples);
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

}  // namespace
}  // namespace kernbench::testing
