#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <stdexcept>

#include "tests/runtime/barrier_machine.h"

// Host-read barriers on the real machine: real launches, real collectives, real mappings.
namespace kernbench::testing {
namespace {
using ::testing::HasSubstr;
using ::testing::StartsWith;

INSTANTIATE_TEST_SUITE_P(HostRead, BarrierOnMachine,
                         ::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds), [](const auto& info) {
                           return info.param == SchedulingKind::rounds ? "rounds" : "concurrent";
                         });

TEST_P(BarrierOnMachine, EachEntryPointWaitsForALaunchOfAnyRank) {
  build();
  for (const HostEntryPoint& entry : kHostEntryPoints) {
    SCOPED_TRACE(entry.name);
    for (const int reader : {0, 1}) {  // another rank, and its own
      Tensor tensor;
      Handle writer;
      run([&](Context& ctx) {
        Tensor other = make(ctx, kOther, "other");
        if (ctx.rank() == 1) {
          tensor = make(ctx, kBefore);
          writer = ctx.launch_async("writer", add_to, tensor, 1);
        }
        ctx.barrier();
        if (ctx.rank() == reader) use_after(entry, tensor, other, writer);
        ctx.barrier();
        if (ctx.rank() == 1) tensor = Tensor();
      });
    }
  }
  EXPECT_EQ(tried_, 2 * kHostEntryPoints.size());
}

TEST_P(BarrierOnMachine, EachEntryPointWaitsForALaunchOfAnotherSipThatWritesTheTensor) {
  build();
  for (const HostEntryPoint& entry : kHostEntryPoints) {
    SCOPED_TRACE(entry.name);
    for (const int reader : {0, 1}) {  // the tensor's rank, and the writer's
      Tensor tensor;
      Handle writer;
      run([&](Context& ctx) {
        Tensor other = make(ctx, kOther, "other");
        if (ctx.rank() == 0) tensor = make(ctx, kBefore);
        ctx.barrier();
        if (ctx.rank() == 1) writer = add_from_elsewhere(ctx, tensor);
        ctx.barrier();
        if (ctx.rank() == reader) use_after(entry, tensor, other, writer);
        ctx.barrier();
        if (ctx.rank() == 0) tensor = Tensor();
      });
    }
  }
  EXPECT_EQ(tried_, 2 * kHostEntryPoints.size());
}

TEST_P(BarrierOnMachine, EachEntryPointWaitsForAHostCopyThatGoesToTheTensorThroughAnotherSip) {
  build();
  for (const HostEntryPoint& entry : kHostEntryPoints) {
    SCOPED_TRACE(entry.name);
    Tensor tensor;
    run([&](Context& ctx) {
      if (ctx.rank() != 0) return;
      tensor = make(ctx, kBefore);
      Tensor other = make(ctx, kOther, "other");
      std::vector<std::uint8_t> data(tensor.bytes());
      for (std::size_t i = 0; i < kEntryElements; ++i) store_element(data.data(), DType::f32, i, kAfter);
      ctx.set_device(1);
      const Handle writer = ctx.submit(MemoryWriteMessage{tensor.pa(0), data});
      use_after(entry, tensor, other, writer);
      tensor = Tensor();
    });
  }
  EXPECT_EQ(tried_, kHostEntryPoints.size());
}

TEST_P(BarrierOnMachine, EachEntryPointWaitsForACollectiveThatAllHaveCalled) {
  build();
  for (const HostEntryPoint& entry : kHostEntryPoints) {
    SCOPED_TRACE(entry.name);
    for (const std::size_t read : {0U, 1U}) {  // whose tensor rank 1 reads
      std::vector<Tensor> tensors(2);
      std::vector<Ps> resumed(2);
      std::vector<Handle> parts(2);
      run([&](Context& ctx) {
        const auto rank = static_cast<std::size_t>(ctx.rank());
        tensors[rank] = make(ctx, kBefore);
        Tensor other = make(ctx, kOther, "other");
        ctx.barrier();
        parts[rank] = ctx.all_reduce_async(tensors[rank]);
        if (!rounds()) ctx.barrier();  // there, rank 0 has had its turn
        if (rank == 0) {
          ctx.wait(parts[0]);
        } else {
          use_after(entry, tensors[read], other, parts[read]);
        }
        resumed[rank] = ctx.now();
        ctx.barrier();
        tensors[rank] = Tensor();
      });
      if (rounds()) {
        EXPECT_EQ(resumed[0], resumed[1]) << "the common resume point";
      }
    }
  }
  EXPECT_EQ(tried_, 2 * kHostEntryPoints.size());
}

TEST_P(BarrierOnMachine, EachEntryPointWaitsForItsRanksOwnCollectiveThatPeersHaveNotCalled) {
  build();
  for (const HostEntryPoint& entry : kHostEntryPoints) {
    SCOPED_TRACE(entry.name);
    std::vector<std::string> order;
    std::vector<Ps> resumed(2);
    run([&](Context& ctx) {
      Tensor tensor = make(ctx, kBefore), other = make(ctx, kOther, "other");
      ctx.barrier();
      if (ctx.rank() == 0) {
        const Handle own = ctx.all_reduce_async(tensor);
        order.emplace_back("rank 0 reads");
        use_after(entry, tensor, other, own);
        order.emplace_back("rank 0 has read");
      } else {
        for (int i = 0; i < 3; ++i) ctx.launch("busy", add_to, other, 1);
        order.emplace_back("rank 1 calls");
        ctx.wait(ctx.all_reduce_async(tensor));
      }
      resumed[static_cast<std::size_t>(ctx.rank())] = ctx.now();
      if (ctx.rank() == 0 && entry.writes && entry.access != HostAccess::free) {
        EXPECT_EQ(tensor.at(0, 0), expected_of(entry.access)) << "not overwritten by the collective later";
      }
    });
    EXPECT_EQ(order, (std::vector<std::string>{"rank 0 reads", "rank 1 calls", "rank 0 has read"}));
    if (rounds()) {
      EXPECT_EQ(resumed[0], resumed[1]) << "the common resume point";
    }
  }
  EXPECT_EQ(tried_, kHostEntryPoints.size());
}

/// Whichever of its tensors it is: the output is not the first that the call names.
TEST_P(BarrierOnMachine, AReadOfTheOutputWaitsForItsRanksOwnCollectiveThatPeersHaveNotCalled) {
  build();
  int read = 0;
  run([&](Context& ctx) {
    ProcessGroupOptions direct;
    direct.algorithm = "direct";
    const Group group = ctx.new_group({0, 1}, direct);
    for (const bool transfer : {false, true}) {
      const Tensor in = make(ctx, ctx.rank() + 1, "in"), other = make(ctx, kOther, "other");
      const Tensor out = ctx.full(-1, {transfer ? 1 : 2, kEntryElements}, DType::f32, {}, "out");
      ctx.barrier();
      if (ctx.rank() == 1) {
        for (int i = 0; i < 3; ++i) ctx.launch("busy", add_to, other, 1);
        ctx.wait(transfer ? ctx.send_async(in, 0, group) : ctx.all_gather_async(in, out, group));
        continue;
      }
      const Handle own = transfer ? ctx.recv_async(out, 1, group) : ctx.all_gather_async(in, out, group);
      EXPECT_FALSE(own.done()) << "nothing is tried otherwise";
      EXPECT_EQ(out.at(transfer ? 0 : 1, 0), 2) << (transfer ? "recv" : "all_gather");
      EXPECT_TRUE(own.done());
      ++read;
    }
  });
  EXPECT_EQ(read, 2);
}

TEST_P(BarrierOnMachine, AReadWaitsForItsRanksOwnLaunchBehindACollectiveThatPeersHaveNotCalled) {
  build();
  for (const bool same : {true, false}) {  // the launch writes the collective's tensor, or another one
    bool read = false;
    run([&](Context& ctx) {
      const Tensor reduced = make(ctx, 1, "reduced"), scaled = make(ctx, 2, "scaled");
      ctx.barrier();
      if (ctx.rank() == 0) {
        ctx.all_reduce_async(reduced);
        const Tensor& written = same ? reduced : scaled;
        const Handle launch = ctx.launch_async("behind", add_to, written, 10);
        EXPECT_EQ(written.at(0, 7), 12) << "1 + 1 + 10, or 2 + 10";
        EXPECT_TRUE(launch.done());
        read = true;
      } else {
        ctx.launch("busy", add_to, scaled, 1);
        ctx.all_reduce(reduced);
      }
    });
    EXPECT_TRUE(read);
  }
}

TEST_P(BarrierOnMachine, CopyFromWaitsForOwnCollectivesOnItsSourceAndItsTarget) {
  build();
  std::vector<double> copied(2);
  run([&](Context& ctx) {
    const auto rank = static_cast<std::size_t>(ctx.rank());
    const Tensor source = make(ctx, ctx.rank() + 1, "source");
    Tensor target = make(ctx, ctx.rank() + 10, "target");
    if (rank == 1) ctx.launch("busy", add_to, target, 0);
    ctx.all_reduce_async(source);
    ctx.all_reduce_async(target);
    target.copy_from(source);
    copied[rank] = target.at(0, 0);
    ctx.barrier();
    EXPECT_EQ(target.at(0, 3), 3) << "the collective on the target came before";
  });
  EXPECT_EQ(copied, (std::vector<double>{3, 3}));
}

TEST_P(BarrierOnMachine, AReadDoesNotWaitForAnothersCollectiveThatSomebodyHasNotCalled) {
  // Nor for what stands behind it: they cannot complete before the reader goes on.
  build();
  std::vector<Tensor> tensors(2), behind(2);
  double read = 0;
  run([&](Context& ctx) {
    const auto rank = static_cast<std::size_t>(ctx.rank());
    tensors[rank] = make(ctx, 4);
    behind[rank] = make(ctx, 6, "behind");
    if (rank == 1) {
      ctx.all_reduce_async(tensors[1]);
      ctx.launch_async("behind", add_to, behind[1], 1);
    }
    ctx.barrier();
    if (rank == 0) {
      tensors[1].to_host();  // what is there while a collective is under way is not defined
      EXPECT_EQ(behind[1].at(0, 0), 6);
      ctx.all_reduce(tensors[0]);
      read = tensors[0].at(0, 0);
    }
    ctx.barrier();
    EXPECT_EQ(behind[1].at(0, 0), 7);
    ctx.barrier();
    tensors[rank] = behind[rank] = Tensor();
  });
  EXPECT_EQ(read, 8);
}

TEST_P(BarrierOnMachine, AReadOfOneTensorDoesNotWaitForItsRanksCollectiveOnAnother) {
  build();
  bool read = false;
  run([&](Context& ctx) {
    const Tensor reduced = make(ctx, 1, "reduced"), other = make(ctx, 5, "other");
    if (ctx.rank() == 0) {
      const Handle handle = ctx.all_reduce_async(reduced);
      EXPECT_EQ(other.at(0, 0), 5);
      EXPECT_FALSE(handle.done());
      read = true;
      ctx.barrier();  // rank 1 calls only now
      ctx.wait(handle);
    } else {
      ctx.barrier();
      ctx.all_reduce(reduced);
    }
  });
  EXPECT_TRUE(read);
}

TEST_P(BarrierOnMachine, AReadDoesNotWaitForAPartWhoseOtherPartStandsBehindACollectiveThatIsNotCalled) {
  // Rank 0 calls {0, 2} and then {0, 1}; rank 1 calls {0, 1}, which both have called and neither can complete before
  // rank 2 has called {0, 2}. Rank 2 reads rank 1's tensor first.
  build(3);
  std::vector<Tensor> tensors(3);
  bool read = false;
  run([&](Context& ctx) {
    const auto rank = static_cast<std::size_t>(ctx.rank());
    const Group far = ctx.new_group({0, 2}, ring_algorithm()), near = ctx.new_group({0, 1}, ring_algorithm());
    tensors[rank] = make(ctx, 1);
    const Tensor own = make(ctx, 3, "own");
    if (rank == 0) ctx.all_reduce_async(own, ReduceOp::sum, far);
    if (rank < 2) ctx.all_reduce_async(tensors[rank], ReduceOp::sum, near);
    ctx.barrier();
    if (rank == 2) {
      tensors[1].to_host();
      read = true;
      ctx.all_reduce(own, ReduceOp::sum, far);
    }
    ctx.barrier();
    if (rank == 1) {
      EXPECT_EQ(tensors[1].at(0, 0), 2);
    }
    if (rank != 1) {
      EXPECT_EQ(own.at(0, 0), 6);
    }
    tensors[rank] = Tensor();
  });
  EXPECT_TRUE(read);
}

TEST_P(BarrierOnMachine, AReadDoesNotWaitForAnothersKernelThatNeedsTheReader) {
  // Rank 1's kernel receives what rank 0 sends after its read: it cannot complete by itself, as the machine shows when
  // it stands still.
  build();
  std::vector<Tensor> tensors(2);
  std::vector<double> read;
  run([&](Context& ctx) {
    const auto rank = static_cast<std::size_t>(ctx.rank());
    tensors[rank] = make(ctx, ctx.rank() + 1);
    const auto receive = [](Va va, Tl& tl) { tl.store(va, tl.recv(Direction::global_w(), kRow, DType::f32)); };
    const auto send = [](Va va, Tl& tl) { tl.send(Direction::global_e(), tl.load(va, kRow, DType::f32)); };
    if (rank == 1) ctx.launch_async("receive", receive, tensors[1]);
    ctx.barrier();
    if (rank == 0) {
      read.push_back(tensors[1].at(0, 0));
      ctx.launch_async("send", send, tensors[0]);
      read.push_back(tensors[1].at(0, 0));  // it can complete now
    } else {
      read.push_back(tensors[1].at(0, 0));  // its own launch: waits for it, whatever it takes
    }
    ctx.barrier();
    tensors[rank] = Tensor();
  });
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(read.front(), 2) << "before rank 0 has sent";
  EXPECT_EQ(read[1], 1);
  EXPECT_EQ(read[2], 1);
}

TEST_P(BarrierOnMachine, ReadersOfAllRanksInTheMiddleOfCollectivesAllGoOn) {
  // Every rank reads while the collectives that the others still have to call are pending, in turn.
  build(3);
  std::vector<double> sums;
  run([&](Context& ctx) {
    std::vector<Tensor> tensors;
    for (int i = 0; i < 3; ++i) tensors.push_back(make(ctx, i + 1, "t" + std::to_string(i)));
    for (int i = 0; i < 3; ++i) {
      for (int k = 0; k < (ctx.rank() + i) % 3; ++k) {
        ctx.launch("busy", add_to, tensors[2], 0);
      }
      ctx.all_reduce_async(tensors[static_cast<std::size_t>(i)]);
      if ((ctx.rank() + i) % 2 == 0) sums.push_back(tensors[static_cast<std::size_t>(i)].at(0, 0) / (i + 1));
    }
    for (int i = 0; i < 3; ++i) sums.push_back(tensors[static_cast<std::size_t>(i)].at(0, 5) / (i + 1));
  });
  EXPECT_EQ(sums, std::vector<double>(5 + 9, 3));
}

TEST_P(BarrierOnMachine, TheMainContextWaitsForALaunchOfAnotherSip) {
  build();
  for (const HostEntryPoint& entry : kHostEntryPoints) {
    SCOPED_TRACE(entry.name);
    Context& ctx = host_->runtime.main();
    ctx.set_device(0);
    Tensor tensor = make(ctx, kBefore), other = make(ctx, kOther, "other");
    ctx.set_device(1);
    const Handle writer = add_from_elsewhere(ctx, tensor);
    use_after(entry, tensor, other, writer);
  }
  EXPECT_EQ(tried_, kHostEntryPoints.size());
}

TEST_P(BarrierOnMachine, TheMainContextsOwnCollectiveThatNobodyElseCallsIsADeadlockThatSaysSo) {
  build();
  Context& ctx = host_->runtime.main();
  ctx.set_device(0);
  const Tensor tensor = make(ctx, 1, "grad");
  const Handle own = ctx.all_reduce_async(tensor);
  std::string text;
  try {
    tensor.to_host();
  } catch (const Deadlock& error) {
    text = error.what();
  }
  EXPECT_THAT(text,
              HasSubstr(fmt::format("\n  main collective 'ring_allreduce' on sip0, submitted at {}, to use tensor "
                                    "'grad' by to_host(); process group 0, collective 0: not called by rank 1\n",
                                    ns_of(own.submitted()))));
}

TEST_P(BarrierOnMachine, ASingleDriverWaitsForALaunchOfAnotherSip) {
  host_ = std::make_unique<MachineRun>(machine_of(2, 1, 1), scheduled(GetParam()));
  host_->runtime.drive([&](Context& ctx) {
    for (const HostEntryPoint& entry : kHostEntryPoints) {
      SCOPED_TRACE(entry.name);
      ctx.set_device(0);
      Tensor tensor = make(ctx, kBefore), other = make(ctx, kOther, "other");
      ctx.set_device(1);
      const Handle writer = add_from_elsewhere(ctx, tensor);
      use_after(entry, tensor, other, writer);
    }
  });
  EXPECT_EQ(tried_, kHostEntryPoints.size());
}

TEST_P(BarrierOnMachine, WithNothingPendingNoEntryPointSwitches) {
  build();
  for (const HostEntryPoint& entry : kHostEntryPoints) {
    SCOPED_TRACE(entry.name);
    run([&](Context& ctx) {
      if (ctx.rank() != 0) return;
      Tensor tensor = make(ctx, kAfter), other = make(ctx, kOther, "other");
      const std::uint64_t switches = host_->runtime.switches(), before = waits();
      const Ps now = ctx.now();
      EXPECT_EQ(use_entry_point(entry.access, tensor, other), expected_of(entry.access));
      EXPECT_EQ(host_->runtime.switches(), switches);
      EXPECT_EQ(waits(), before);
      EXPECT_EQ(ctx.now(), now);
      ++tried_;
    });
  }
  EXPECT_EQ(tried_, kHostEntryPoints.size());
}

TEST_P(BarrierOnMachine, NoMetadataDrainsAnything) {
  // A launch, a launch of another SIP that writes the tensor, and a collective that the peer has not called are
  // pending.
  build();
  std::vector<Tensor> tensors(2);
  std::size_t looked = 0;
  run([&](Context& ctx) {
    const auto rank = static_cast<std::size_t>(ctx.rank());
    tensors[rank] = make(ctx, 1);
    ctx.barrier();
    Handle elsewhere;
    if (rank == 1) elsewhere = add_from_elsewhere(ctx, tensors[0]);
    ctx.barrier();
    if (rank == 0) {
      const Tensor& tensor = tensors[0];
      const Handle launch = ctx.launch_async("writer", add_to, tensor, 1);
      const Handle own = ctx.all_reduce_async(tensor);
      const std::vector<std::function<void()>> accessors = {
          [&] { EXPECT_EQ(tensor.shape().count(), 8); },  [&] { EXPECT_EQ(tensor.dtype(), DType::f32); },
          [&] { EXPECT_EQ(tensor.name(), "t"); },         [&] { EXPECT_NE(tensor.va(), 0u); },
          [&] { EXPECT_EQ(tensor.pa(0).sip, 0); },        [&] { EXPECT_EQ(tensor.sip(), 0); },
          [&] { EXPECT_EQ(tensor.shards().size(), 1u); }, [&] { EXPECT_EQ(tensor.bytes(), 32u); },
          [&] { EXPECT_EQ(tensor.copies(), 1u); },        [&] { EXPECT_FALSE(tensor.policy().num_pes().has_value()); },
      };
      const std::uint64_t switches = host_->runtime.switches();
      for (const auto& access : accessors) {
        access();
        EXPECT_FALSE(launch.done());
        EXPECT_FALSE(own.done());
        EXPECT_EQ(host_->runtime.switches(), switches);
        ++looked;
      }
      for (const HostAccessCounts& counts : host_->runtime.host_accesses()) EXPECT_EQ(counts.used, 0u);
      ctx.wait(own);
    } else {
      ctx.all_reduce(tensors[1]);
    }
    if (rank == 1) ctx.wait(elsewhere);
    ctx.barrier();
    tensors[rank] = Tensor();
  });
  EXPECT_EQ(looked, 10u);
}

}  // namespace
}  // namespace kernbench::testing
