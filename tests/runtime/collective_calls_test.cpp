#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/runtime/host_run.h"
#include "tlm/kernel/operations.h"

/// What is refused before anything runs, and how differing calls are told.
namespace kernbench::testing {
namespace {

DPPolicy spread() { return DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise); }

Tensor make(Context& ctx, std::int64_t count, DType dtype = DType::f16, const DPPolicy& policy = spread()) {
  return ctx.full(1, {1, count}, dtype, policy, "t");
}

/// What rank `rank` of three throws.
template <class Program>
std::string failure(int rank, const Program& program) {
  HostRun host({3, 1, 1, 2, 1 << 20});
  const auto outcome = host.run(
      [&](Context& ctx) {
        ctx.init_process_group();
        program(ctx);
      },
      3, Ending::failure);
  if (outcome.failures.count(rank) == 0) return "no failure";
  try {
    std::rethrow_exception(outcome.failures.at(rank));
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// What calls of rank 1 throw that are refused before anybody hears of them.
std::vector<std::string> refusals(const std::vector<std::function<void(Context&)>>& calls) {
  std::vector<std::string> texts;
  HostRun host({3, 1, 1, 2, 1 << 20});
  host.run(
      [&](Context& ctx) {
        ctx.init_process_group();
        if (ctx.rank() != 1) return;
        for (const auto& call : calls) {
          try {
            call(ctx);
            texts.emplace_back("nothing was thrown");
          } catch (const std::invalid_argument& error) {
            texts.emplace_back(error.what());
          }
        }
      },
      3);
  return texts;
}
using Texts = std::vector<std::string>;

TEST(CollectiveCall, AnEnumeratorThatThereIsNotIsRefused) {
  const auto none = static_cast<ReduceOp>(9);
  const auto type = static_cast<DType>(55);
  EXPECT_EQ(refusals({[&](Context& ctx) { ctx.all_reduce_async(make(ctx, 20), none); },
                      [&](Context& ctx) { ctx.reduce_scatter_async(make(ctx, 60), make(ctx, 20), none); },
                      [&](Context& ctx) {
                        ctx.zeros({1, 2}, type, spread(), "z");
                      },
                      [&](Context& ctx) {
                        ctx.from_host({1, 2}, {1, 2}, type, spread(), "z");
                      },
                      [&](Context& ctx) {
                        ctx.from_bytes({1, 2}, {1, 2}, type, spread(), "z");
                      },
                      [](Context& ctx) {
                        ProcessGroupOptions options;
                        options.scope = static_cast<Scope>(7);
                        ctx.new_group({1}, options);
                      }}),
            (Texts{"all_reduce: ReduceOp(9) is none: they are numbered from 0 to 4",
                   "reduce_scatter: ReduceOp(9) is none: they are numbered from 0 to 4",
                   "tensor 'z': DType(55) is none: they are numbered from 0 to 10",
                   "tensor 'z': DType(55) is none: they are numbered from 0 to 10",
                   "tensor 'z': DType(55) is none: they are numbered from 0 to 10",
                   "init_process_group: Scope(7) is none: they are numbered from 0 to 2"}));
}

TEST(CollectiveCall, CountsMustFitTheOperation) {
  EXPECT_EQ(refusals({[](Context& ctx) { ctx.all_gather_async(make(ctx, 20), make(ctx, 50)); },
                      [](Context& ctx) { ctx.reduce_scatter_async(make(ctx, 20), make(ctx, 20)); },
                      [](Context& ctx) { ctx.all_reduce_async(make(ctx, 20), make(ctx, 21)); },
                      [](Context& ctx) { ctx.all_to_all_async(make(ctx, 20), make(ctx, 20)); },
                      [](Context& ctx) {
                        const Tensor both = make(ctx, 20);
                        ctx.all_gather_async(both, both);
                      }}),
            (Texts{"all_gather: 'in' has 20 elements, 'out' has 50: 'out' needs 3 times as many as 'in'",
                   "reduce_scatter: 'in' has 20 elements, 'out' has 20: 'in' needs 3 times as many as 'out'",
                   "all_reduce: 'in' has 20 elements, 'out' has 21: they need as many",
                   "all_to_all: 'in' has 20 elements, 'out' has 20: they have to be 3 equal blocks",
                   "all_gather: 'in' has 20 elements, 'out' has 20: they have to be 3 equal blocks"}));
}

TEST(CollectiveCall, TypesMustAgreeAndBeDefined) {
  EXPECT_EQ(refusals({[](Context& ctx) { ctx.all_reduce_async(make(ctx, 20), make(ctx, 20, DType::f32)); },
                      [](Context& ctx) { ctx.all_reduce_async(make(ctx, 20, DType::boolean)); }}),
            (Texts{"all_reduce: 'in' is f16, 'out' is f32",
                   "all_reduce: sum of bool is not defined; use max (or) or min (and)"}));
}

TEST(CollectiveCall, RootsAndPeersMustBeMembers) {
  EXPECT_EQ(refusals({[](Context& ctx) { ctx.broadcast_async(make(ctx, 20), 3); },
                      [](Context& ctx) { ctx.send_async(make(ctx, 20), -2); },
                      [](Context& ctx) { ctx.recv_async(make(ctx, 20), 1); }}),
            (Texts{"broadcast: root is 3: give 0 to 2, a rank of the group",
                   "send: to is -2: give 0 to 2, a rank of the group", "recv: rank 1 of the group is this one"}));
}

TEST(CollectiveCall, ATensorThatIsNeededMustBeThere) {
  EXPECT_EQ(refusals({[](Context& ctx) { ctx.gather_async(make(ctx, 20), {}, 1); },
                      [](Context& ctx) { ctx.scatter_async({}, make(ctx, 20), 1); },
                      [](Context& ctx) { ctx.all_gather_async(make(ctx, 20), {}); }}),
            (Texts{"gather: 'out' is an empty handle", "scatter: 'in' is an empty handle",
                   "all_gather: 'out' is an empty handle"}));
}

TEST(CollectiveCall, GatheredColumnsNeedAsManyRowsAndAnOutputOfTheirOwn) {
  const auto shaped = [](Context& ctx, Shape shape) { return ctx.full(1, shape, DType::f16, spread(), "t"); };
  EXPECT_EQ(refusals({[&](Context& ctx) {
                        ctx.all_gather_columns_async(shaped(ctx, {2, 5}), shaped(ctx, {6, 5}));
                      },
                      [&](Context& ctx) {
                        ctx.all_gather_columns_async(shaped(ctx, {2, 5}), shaped(ctx, {2, 10}));
                      },
                      [&](Context& ctx) {
                        const Tensor both = shaped(ctx, {2, 15});
                        ctx.prepare_all_gather_columns(both, both);
                      }}),
            (Texts{"all_gather_columns: 'in' is 2x5, 'out' 6x5: it needs 2x15",
                   "all_gather_columns: 'in' is 2x5, 'out' 2x10: it needs 2x15",
                   "prepare_all_gather_columns: 'in' and 'out' are one tensor"}));
}

TEST(CollectiveCall, ByItsNumberIsOneOfAGroupWithData) {
  const auto call = [](int number) {
    return [number](Context& ctx) {
      ctx.collective_async(static_cast<CollectiveOp>(number), make(ctx, 20), make(ctx, 20));
    };
  };
  EXPECT_EQ(refusals({call(kCollectiveOps), call(static_cast<int>(CollectiveOp::send_recv)),
                      call(static_cast<int>(CollectiveOp::barrier)), call(static_cast<int>(CollectiveOp::all_gather))}),
            (Texts{fmt::format("collective_async: CollectiveOp({}) is none: they are numbered from 0 to {}",
                               kCollectiveOps, kCollectiveOps - 1),
                   "collective_async: send_recv is no call of a group with data",
                   "collective_async: barrier is no call of a group with data",
                   "all_gather: 'in' has 20 elements, 'out' has 20: 'out' needs 3 times as many as 'in'"}));
}

TEST(CollectiveCall, OnlySomeWorkInPlace) {
  EXPECT_EQ(refusals({[](Context& ctx) {
              const Tensor both = make(ctx, 30);
              ctx.all_to_all_async(both, both);
            }}),
            (Texts{"all_to_all: 'in' and 'out' are one tensor, which all_to_all does not allow"}));
}

const std::string kSame = " there: ranks must issue the same collectives in the same order";

TEST(CollectiveMismatchText, NamesTheOperation) {
  EXPECT_EQ(failure(1,
                    [](Context& ctx) {
                      if (ctx.rank() == 1) {
                        ctx.all_gather_async(make(ctx, 20), make(ctx, 60));
                      } else {
                        ctx.all_reduce_async(make(ctx, 20));
                      }
                    }),
            "process group 0: collective 0 of rank 1 is all_gather(20 x f16, sip), but rank 0 called all_reduce(sum, "
            "20 x f16, sip)" +
                kSame);
}

TEST(CollectiveMismatchText, TellsAPreparationFromTheCallItself) {
  EXPECT_EQ(failure(1,
                    [](Context& ctx) {
                      const Tensor t = make(ctx, 20);
                      if (ctx.rank() == 1) {
                        ctx.prepare_all_reduce(t, t);
                      } else {
                        ctx.all_reduce_async(t);
                      }
                    }),
            "process group 0: collective 0 of rank 1 is prepare_all_reduce(sum, 20 x f16, sip), but rank 0 called "
            "all_reduce(sum, 20 x f16, sip)" +
                kSame);
}

TEST(CollectiveMismatchText, TellsBlocksThatLieSideBySideFromOthers) {
  EXPECT_EQ(failure(1,
                    [](Context& ctx) {
                      const Tensor in = make(ctx, 20), out = make(ctx, 60);
                      if (ctx.rank() == 1) {
                        ctx.all_gather_columns_async(in, out);
                      } else {
                        ctx.all_gather_async(in, out);
                      }
                    }),
            "process group 0: collective 0 of rank 1 is all_gather_columns(20 x f16, sip), but rank 0 called "
            "all_gather(20 x f16, sip)" +
                kSame);
}

TEST(CollectiveMismatchText, NamesTheCount) {
  EXPECT_EQ(failure(1, [](Context& ctx) { ctx.broadcast_async(make(ctx, ctx.rank() == 1 ? 21 : 20), 0); }),
            "process group 0: collective 0 of rank 1 is broadcast(21 x f16, sip, root 0), but rank 0 called "
            "broadcast(20 x f16, sip, root 0)" +
                kSame);
}

TEST(CollectiveMismatchText, NamesTheType) {
  EXPECT_EQ(
      failure(1,
              [](Context& ctx) { ctx.broadcast_async(make(ctx, 20, ctx.rank() == 1 ? DType::bf16 : DType::f16), 0); }),
      "process group 0: collective 0 of rank 1 is broadcast(20 x bf16, sip, root 0), but rank 0 called "
      "broadcast(20 x f16, sip, root 0)" +
          kSame);
}

TEST(CollectiveMismatchText, NamesTheRoot) {
  EXPECT_EQ(failure(1, [](Context& ctx) { ctx.broadcast_async(make(ctx, 20), ctx.rank() == 1 ? 2 : 0); }),
            "process group 0: collective 0 of rank 1 is broadcast(20 x f16, sip, root 2), but rank 0 called "
            "broadcast(20 x f16, sip, root 0)" +
                kSame);
}

TEST(CollectiveMismatchText, NamesThePlacement) {
  EXPECT_EQ(failure(1,
                    [](Context& ctx) {
                      ctx.all_reduce_async(make(ctx, 20, DType::f16, ctx.rank() == 1 ? DPPolicy() : spread()));
                    }),
            "process group 0: collective 0, all_reduce(sum, 20 x f16, sip), has tensors of other shape or placement on "
            "rank 1 (1x20 placed cube=replicate,pe=replicate, in place) than on rank 0 (1x20 placed "
            "cube=column_wise,pe=column_wise, in place): they must be alike on all ranks");
}

TEST(CollectiveMismatchText, NamesBothEndsOfATransfer) {
  EXPECT_EQ(failure(2,
                    [](Context& ctx) {
                      if (ctx.rank() == 0) ctx.send_async(make(ctx, 20), 2);
                      if (ctx.rank() == 2) ctx.recv_async(make(ctx, 21), 0);
                      ctx.barrier();
                    }),
            "process group 0, rank 0 to rank 2: transfer 0 of rank 2 is a transfer of 21 x f16 after 0 collectives, "
            "but rank 0 called a transfer of 20 x f16 after 0 collectives there: ranks must issue the same transfers "
            "in the same order");
}

TEST(CollectiveMismatchText, ATransferKeepsItsPlaceAmongCollectives) {
  const std::string text = failure(2, [](Context& ctx) {
    const Tensor t = make(ctx, 20);
    if (ctx.rank() == 0) ctx.send_async(t, 2);
    ctx.all_reduce_async(t);
    if (ctx.rank() == 2) ctx.recv_async(t, 0);
    ctx.barrier();
  });
  EXPECT_NE(text.find("a transfer of 20 x f16 after 1 collectives, but rank 0 called a transfer of 20 x f16 after 0"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace kernbench::testing
