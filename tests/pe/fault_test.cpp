// What goes wrong, and what is said about it.
#include "tests/pe/fault_reason.h"

namespace kernbench {
namespace {

using test::Bench;
using test::kMapped;
using test::kMappedToo;
using test::reason_of;
using test::two_pes;

constexpr Va kUnmapped = 0x9000000;

TEST(PeFault, AnUnmappedAddressNamesPeVaKernelAndOp) {
  Bench bench;
  bench.map_hbm(0, 1 << 20);
  bench.ending = Bench::Ending::failed;
  Message& message = bench.launch([](Tl& tl) {
    tl.store(kMapped, tl.load(kUnmapped, {4, 8}, DType::f16));
    tl.fence();
    tl.store(kMappedToo, tl.fill({1, 8}, DType::f16, 1));
  });
  EXPECT_EQ(bench.answers(message, CommandKind::failed), 1u);
  ASSERT_EQ(message.faults.size(), 1u);
  const Fault& fault = message.faults[0];
  EXPECT_EQ(fault.kind, Fault::Kind::mmu);
  EXPECT_EQ(fault.component, "sip0.cube0.pe0.dma_r");
  EXPECT_EQ(fault.kernel, "k");
  EXPECT_EQ(fault.op, "load(0x9000000, 4x8 f16)");
  EXPECT_EQ(fault.reason, "VA 0x9000000 is not mapped for sip0.cube0.pe0");
  EXPECT_EQ(fault.time, Bench::body(message).first_start + bench.options.config.cpu.dispatch);
  EXPECT_EQ(bench.get(kMappedToo, DType::f16, 8), std::vector<double>(8, 0));  // nothing after it happened
  Message& next = bench.launch([](Tl& tl) { tl.store(kMappedToo, tl.fill({1, 8}, DType::f16, 1)); });
  EXPECT_EQ(bench.answers(next, CommandKind::done), 1u);
  EXPECT_EQ(bench.get(kMappedToo, DType::f16, 8), std::vector<double>(8, 1));
}

TEST(PeFault, AMappingThatEndsWithinAnOpFaultsAtItsEnd) {
  Bench bench;
  bench.map_hbm(0, kMapped + 100);
  EXPECT_EQ(reason_of(bench,
                      [](Tl& tl) {
                        tl.load(kMapped, {1, 64}, DType::f16);
                      }),
            "VA 0x10064 is not mapped for sip0.cube0.pe0");
}

TEST(PeFault, AnErrorResponseNamesTheAddress) {
  Bench bench;
  bench.map_hbm(0, 1 << 20);
  bench.failing_address = PhysicalAddress::hbm(bench.coord(0), kMappedToo + 300).encode();
  EXPECT_EQ(reason_of(bench,
                      [](Tl& tl) {
                        tl.load(kMappedToo, {1, 256}, DType::f16);
                      }),
            "read at sip0.cube0.pe0.hbm+0x20100 of 256 B answered TLM_ADDRESS_ERROR_RESPONSE");
  EXPECT_EQ(reason_of(bench,
                      [](Tl& tl) {
                        tl.store(kMappedToo, tl.alloc({1, 256}, DType::f16));
                      }),
            "write at sip0.cube0.pe0.hbm+0x20100 of 256 B answered TLM_ADDRESS_ERROR_RESPONSE");
}

TEST(PeFault, MemoryThatDoesNotExistIsABusError) {
  Bench bench;
  bench.pages.map({kMapped, 64, PhysicalAddress::hbm({0, 0, 9}, 0), {}});
  EXPECT_EQ(reason_of(bench,
                      [](Tl& tl) {
                        tl.load(kMapped, {1, 8}, DType::f16);
                      }),
            "there is no memory at sip0.cube0.pe9.hbm+0x0");
}

TEST(PeFault, MisuseOfTheApiNamesOpShapesAndKernel) {
  Bench bench;
  bench.map_hbm(0, 1 << 20);
  const std::string where = "kernel 'k' on sip0.cube0.pe0: ";
  const auto f16 = [](Tl& tl, std::int64_t rows, std::int64_t cols) { return tl.alloc({rows, cols}, DType::f16); };
  EXPECT_EQ(reason_of(bench, [&](Tl& tl) { tl.dot(f16(tl, 4, 8), f16(tl, 4, 8)); }),
            where + "dot(4x8 f16, 4x8 f16): a has 8 columns but b has 4 rows");
  EXPECT_EQ(reason_of(bench,
                      [&](Tl& tl) {
                        tl.dot(f16(tl, 4, 8), tl.alloc({8, 4}, DType::f32));
                      }),
            where + "dot(4x8 f16, 8x4 f32): the dtypes differ; cast one of them");
  EXPECT_EQ(reason_of(bench, [&](Tl& tl) { tl.dot(f16(tl, 4, 8), f16(tl, 8, 4), f16(tl, 1, 4)); }),
            where + "dot(4x8 f16, 8x4 f16): the accumulator is 1x4 f16, the product 4x4");
  EXPECT_EQ(reason_of(bench, [&](Tl& tl) { f16(tl, 4, 8) + f16(tl, 4, 7); }),
            where + "add(4x8 f16, 4x7 f16): the shapes do not agree, and neither can be broadcast");
  EXPECT_EQ(reason_of(bench,
                      [&](Tl& tl) {
                        f16(tl, 4, 8) * tl.alloc({4, 8}, DType::bf16);
                      }),
            where + "mul(4x8 f16, 4x8 bf16): the dtypes differ; cast one of them");
  EXPECT_EQ(reason_of(bench,
                      [&](Tl& tl) {
                        tl.math(MathOp::exp, {tl.alloc({1, 4}, DType::i32)});
                      }),
            where + "exp(1x4 i32): not defined for i32");
  EXPECT_EQ(reason_of(bench, [&](Tl& tl) { tl.math(MathOp::add, {f16(tl, 1, 1)}); }),
            where + "add(1x1 f16): takes 2 operands");
  EXPECT_EQ(reason_of(bench, [&](Tl& tl) { tl.select(f16(tl, 1, 4), f16(tl, 1, 4), f16(tl, 1, 4)); }),
            where + "select(1x4 f16, 1x4 f16, 1x4 f16): the mask is f16; it must be bool");
  EXPECT_EQ(reason_of(bench, [&](Tl& tl) { tl.slice(f16(tl, 1, 4), 3, 2); }),
            where + "slice(1x4 f16): [3, 5) is not within its 4 columns");
  EXPECT_EQ(reason_of(bench, [&](Tl& tl) { tl.reduce(ReduceKind::sum, f16(tl, 2, 4), 2); }),
            where + "reduce_sum(2x4 f16): axis is 2; give 0 (over rows) or 1 (over columns)");
  EXPECT_EQ(reason_of(bench,
                      [&](Tl& tl) {
                        tl.broadcast(f16(tl, 2, 4), {3, 4});
                      }),
            where + "broadcast(2x4 f16): cannot be broadcast to 3x4");
  EXPECT_EQ(reason_of(bench,
                      [&](Tl& tl) {
                        tl.load(kMapped, {2, 8}, DType::f16, 4);
                      }),
            where + "load(2x8 f16): row_stride is 4; give 0 or at least the 8 columns");
  EXPECT_EQ(reason_of(bench,
                      [&](Tl& tl) {
                        tl.load(kMapped, {-1, 8}, DType::f16);
                      }),
            where + "load(-1x8 f16): give rows and columns from 0 to 4294967295");
  EXPECT_EQ(reason_of(bench, [&](Tl& tl) { tl.store(kMapped, Tile()); }),
            where + "store: a tile is empty: it was never made");
  EXPECT_EQ(reason_of(bench, [&](Tl& tl) { tl.shard(0x77); }),
            where + "shard(0x77): no tensor argument of this launch begins there");
  EXPECT_EQ(reason_of(bench, [&](Tl& tl) { tl.call(); }), where + "call: this launch is not part of a collective");
  EXPECT_EQ(reason_of(bench, [&](Tl& tl) { tl.program_id(3); }),
            where + "program_id: axis is 3; give 0 (PE), 1 (cube) or 2 (SIP)");
  EXPECT_EQ(reason_of(bench, [](Tl&) { throw std::out_of_range("chunk 7"); }), where + "chunk 7");
  EXPECT_EQ(reason_of(bench, [](Tl&) { throw 7; }), where + "threw something that is not a std::exception");
  EXPECT_EQ(reason_of(bench,
                      [&](Tl& tl) {
                        tl.load(kMapped, {2, 8}, DType::f16, std::int64_t{1} << 62);
                      }),
            where + "load(2x8 f16): row_stride is 4611686018427387904: the last row lies beyond all addresses");
  EXPECT_EQ(reason_of(bench,
                      [&](Tl& tl) {
                        tl.gather(kMapped, {0, std::int64_t{1} << 57}, 8, DType::f16);
                      }),
            where + "gather(2x8 f16): index 144115188075855872 lies beyond all addresses");
  CompositeGemm gemm;
  gemm.m = gemm.n = gemm.k = 8;
  gemm.lda = 4;
  EXPECT_EQ(reason_of(bench, [&](Tl& tl) { tl.composite_gemm(gemm); }),
            where + "composite_gemm(8x8x8 f16): lda is 4; give 0 or at least 8");
}

TEST(PeFault, ATileOfAnEarlierLaunchIsRefusedEvenWhereItsRecorderStoodInTheSamePlace) {
  Bench bench;
  bench.map_hbm(0, 1 << 20);
  Tile kept, slice;
  Message& first = bench.launch([&](Tl& tl) {
    kept = tl.fill({1, 8}, DType::f16, 1);
    slice = tl.slice(kept, 2, 4);
  });
  EXPECT_EQ(bench.answers(first, CommandKind::done), 1u);
  const std::string where = "kernel 'k' on sip0.cube0.pe0: ";
  for (int launch = 0; launch < 4; ++launch) {
    EXPECT_EQ(reason_of(bench, [&](Tl& tl) { tl.store(kMapped, kept); }),
              where + "store(1x8 f16): the tile belongs to another kernel");
    EXPECT_EQ(reason_of(bench, [&](Tl& tl) { tl.store(kMapped, slice); }),
              where + "store(1x4 f16): the tile belongs to another kernel");
  }
}

TEST(PeFault, AnEmptyTileNamesTheCallKernelAndPe) {
  Bench bench;
  const std::string whose = "kernel 'k' on sip0.cube0.pe0: ";
  EXPECT_EQ(reason_of(bench,
                      [](Tl& tl) {
                        static_cast<void>(Tile() + tl.fill({1, 1}, DType::f16, 1));
                      }),
            whose + "add: a tile is empty: it was never made");
  EXPECT_EQ(reason_of(bench,
                      [](Tl& tl) {
                        static_cast<void>(tl.fill({1, 1}, DType::f16, 1) / Tile());
                      }),
            whose + "div: a tile is empty: it was never made");
  EXPECT_EQ(reason_of(bench, [](Tl&) { static_cast<void>(Tile() * Tile()); }),
            whose + "mul: both tiles are empty: they were never made");
  EXPECT_EQ(reason_of(bench, [](Tl&) { static_cast<void>(Tile().shape()); }),
            whose + "Tile::shape: the tile is empty: it was never made");
  EXPECT_EQ(reason_of(bench, [](Tl&) { static_cast<void>(Tile().bytes()); }),
            whose + "Tile::bytes: the tile is empty: it was never made");
  EXPECT_EQ(reason_of(bench, [](Tl& tl) { tl.store(kMapped, Tile()); }),
            whose + "store: a tile is empty: it was never made");
}

TEST(PeFault, TcmThatDoesNotFitListsWhatOccupiesIt) {
  Bench::Options options;
  options.config.tcm.bytes = 1 << 20;
  options.config.cpu.kernel_contexts = 1;
  Bench bench(options);
  bench.map_hbm(0, 1 << 24);
  EXPECT_EQ(reason_of(bench,
                      [](Tl& tl) {
                        const Tile a = tl.load(kMapped, {256, 1024}, DType::f16), b = tl.fill({1, 64}, DType::f32, 0);
                        tl.alloc({512, 1024}, DType::f16);
                      }),
            "kernel 'k' on sip0.cube0.pe0: alloc(512x1024 f16): TCM cannot hold 1048576 B: 524032 B of this launch's "
            "1048576 B are free, the largest block 524032 B; occupied by load 256x1024 f16 (524288 B), fill 1x64 f32 "
            "(256 B)");
}

TEST(PeFault, RingsTakeTheirTcm) {
  Bench::Options options = two_pes();
  options.config.tcm.bytes = 64 << 10;
  options.config.cpu.kernel_contexts = 1;
  Bench bench(options);
  bench.join(0, 1);
  bench.launch([](Tl& tl) { tl.alloc({1, 48 << 10}, DType::i8); });
  EXPECT_EQ(
      reason_of(bench,
                [](Tl& tl) {
                  tl.alloc({1, (48 << 10) + 1}, DType::i8);
                }),
      "kernel 'k' on sip0.cube0.pe0: alloc(1x49153 i8): TCM cannot hold 49153 B: 49152 B of this launch's 49152 B "
      "are free, the largest block 49152 B; occupied by nothing");
}

TEST(PeFault, ADirectionWithoutANeighbourListsThoseThereAre) {
  Bench bench(two_pes());
  bench.join(0, 1);
  EXPECT_EQ(reason_of(bench,
                      [](Tl& tl) {
                        tl.send(Direction::north(), tl.alloc({1, 4}, DType::f16));
                      }),
            "kernel 'k' on sip0.cube0.pe0: send(N, 1x4 f16): group 0 has no neighbour in direction N; it has E");
  EXPECT_EQ(reason_of(bench,
                      [](Tl& tl) {
                        tl.recv(Direction::global(7), {1, 4}, DType::f16);
                      }),
            "kernel 'k' on sip0.cube0.pe0: recv(global(7), 1x4 f16): group 0 has no neighbour in direction global(7); "
            "it has E");
}

TEST(PeFault, ADirectionWhereThereAreNoQueuesSaysWhoGivesThem) {
  Bench bench(two_pes());
  EXPECT_EQ(reason_of(bench,
                      [](Tl& tl) {
                        tl.send(Direction::north(), tl.alloc({1, 4}, DType::f16));
                      }),
            "kernel 'k' on sip0.cube0.pe0: send(N, 1x4 f16): group 0 has no neighbour in direction N; it has none: "
            "init_process_group gives it queues, with ProcessGroupOptions::directions those of a kernel's own; "
            "LaunchOptions::cube_queues those inside cubes");
}

/// Not those of another kind.
TEST(PeFault, ADirectionThatHasNoNumberIsRefused) {
  EXPECT_EQ(Direction::local(0x2FFF).str(), "local(12287)");
  EXPECT_EQ(Direction::global(0xBFFF).str(), "global(49151)");
  const auto text = [](const std::function<void()>& make) -> std::string {
    try {
      make();
    } catch (const std::out_of_range& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(text([] { Direction::local(0x3001); }), "Direction::local(12289): give local(0) to local(12287)");
  EXPECT_EQ(text([] { Direction::local(0x3000); }), "Direction::local(12288): give local(0) to local(12287)");
  EXPECT_EQ(text([] { Direction::global(0xC000); }), "Direction::global(49152): give global(0) to global(49151)");
}

TEST(PeFault, MessagesOfAnotherSizeThanExpectedAreAFault) {
  Bench bench(two_pes());
  bench.join(0, 1);
  bench.ending = Bench::Ending::failed;
  Message& message = bench.launch({
      {std::uint16_t{0},
       [](Tl& tl) {
         tl.send(Direction::east(), tl.alloc({1, 8}, DType::f16));
       }},
      {std::uint16_t{1},
       [](Tl& tl) {
         tl.recv(Direction::west(), {1, 4}, DType::f16);
       }},
  });
  EXPECT_EQ(bench.answers(message, CommandKind::done), 1u);
  EXPECT_EQ(bench.answers(message, CommandKind::failed), 1u);
  ASSERT_EQ(message.faults.size(), 1u);
  EXPECT_EQ(message.faults[0].op, "recv(W, 1x4 f16)");
  EXPECT_EQ(message.faults[0].reason,
            "the next message from sip0.cube0.pe0 has 16 B, this recv takes 8 B; send and recv must agree in size");
}

/// A send of two slots is no two messages, and two sends of one are no message of two.
TEST(PeFault, ARecvOfMoreOrLessThanTheWholeSendNamesBothSizes) {
  Bench parts(two_pes()), more(two_pes());
  const auto slot = static_cast<std::int64_t>(parts.options.config.ipcq.slot_bytes);
  const auto reason = [](Bench& bench, std::int64_t sent, std::int64_t received) {
    bench.join(0, 1);
    bench.ending = Bench::Ending::failed;
    Message& message = bench.launch({
        {std::uint16_t{0},
         [=](Tl& tl) {
           tl.send(Direction::east(), tl.alloc({1, sent}, DType::i8));
         }},
        {std::uint16_t{1},
         [=](Tl& tl) {
           tl.recv(Direction::west(), {1, received}, DType::i8);
         }},
    });
    EXPECT_EQ(bench.answers(message, CommandKind::failed), 1u);
    return message.faults.empty() ? "" : message.faults[0].reason;
  };
  EXPECT_EQ(
      reason(parts, 2 * slot, slot),
      "the next message from sip0.cube0.pe0 has 8192 B, this recv takes 4096 B; send and recv must agree in size");
  EXPECT_EQ(
      reason(more, slot, 2 * slot),
      "the next message from sip0.cube0.pe0 has 4096 B, this recv takes 8192 B; send and recv must agree in size");
}

TEST(PeFault, AnErrorSurfacesAtTheSameInstantWhateverTheWindow) {
  Bench::Options options;
  options.run.recorder_window = 1;
  Bench narrow(options);
  options.run.recorder_window = 4096;
  Bench wide(options);
  std::vector<Ps> times;
  for (Bench* bench : {&narrow, &wide}) {
    bench->map_hbm(0, 1 << 20);
    bench->ending = Bench::Ending::failed;
    Message& message = bench->launch([](Tl& tl) {
      tl.store(kMapped, tl.fill({64, 64}, DType::f16, 4));
      tl.fence();
      tl.alloc({1, 4}, DType::f16) + tl.alloc({1, 5}, DType::f16);
    });
    ASSERT_EQ(message.faults.size(), 1u);
    times.push_back(message.faults[0].time);
    EXPECT_EQ(bench->get(kMapped, DType::f16, 1)[0], 4);
  }
  EXPECT_EQ(times[0], times[1]);
}

void fail_while_every_engine_works(const Bench::Options& options) {
  Bench bench(options);
  bench.map_hbm(0, 1 << 24);
  bench.join(0, 1);
  bench.ending = Bench::Ending::failed;
  Message& message = bench.launch([](Tl& tl) {
    CompositeGemm gemm;
    gemm.a = gemm.b = kMapped;
    gemm.c = 0x100000;
    gemm.m = gemm.n = gemm.k = 256;
    tl.composite_gemm(gemm);
    const Tile big = tl.fill({8, 2048}, DType::f16, 1);
    tl.send(Direction::east(), big);  // more than the ring holds
    const Tile never = tl.recv(Direction::east(), {1, 8}, DType::f16);
    tl.store(0x200000, never);
    for (int i = 0; i < 40; ++i) tl.load(kMapped + 0x1000 * static_cast<Va>(i), {16, 128}, DType::f16);
    tl.load(kUnmapped, {1, 8}, DType::f16);
    tl.fence();
  });
  EXPECT_EQ(bench.answers(message, CommandKind::failed), 1u);
  ASSERT_EQ(message.faults.size(), 1u);
  EXPECT_EQ(message.faults[0].kind, Fault::Kind::mmu);
  EXPECT_EQ(bench.pool.outstanding(), 0u);
  Message& next = bench.launch([](Tl& tl) { tl.store(kMappedToo, tl.load(kMapped, {1, 8}, DType::f16)); });
  EXPECT_EQ(bench.answers(next, CommandKind::done), 1u);
}

TEST(PeFault, AFailedKernelLetsGoOfEveryEngine) { fail_while_every_engine_works(two_pes()); }

TEST(PeFault, AFailedKernelLetsGoOfWhatTcmsLatencyKeeps) {
  Bench::Options options = two_pes();
  options.config.tcm.latency = 5'000'000;
  fail_while_every_engine_works(options);
}

TEST(PeFault, ACompositesTileMayFault) {
  Bench bench;
  bench.map_hbm(0, 0x40000);
  bench.ending = Bench::Ending::failed;
  Message& message = bench.launch([](Tl& tl) {
    CompositeGemm gemm;
    gemm.a = gemm.b = kMapped;
    gemm.c = kUnmapped;
    gemm.m = gemm.n = gemm.k = 64;
    tl.composite_gemm(gemm);
    tl.fence();
  });
  EXPECT_EQ(bench.answers(message, CommandKind::failed), 1u);
  ASSERT_EQ(message.faults.size(), 1u);
  EXPECT_EQ(message.faults[0].component, "sip0.cube0.pe0.dma_w");
  EXPECT_EQ(bench.pool.outstanding(), 0u);
}

TEST(PeFault, AbortEndsAWaitingKernel) {
  Bench bench(two_pes());
  bench.join(0, 1);
  bench.ending = Bench::Ending::waiting;
  Message& message = bench.launch([](Tl& tl) { tl.wait(tl.recv(Direction::east(), {1, 8}, DType::f16)); });
  EXPECT_FALSE(bench.completed(message));
  bench.send(0, CommandKind::abort, message);
  bench.queue.run_all();
  EXPECT_EQ(bench.answers(message, CommandKind::failed), 1u);
  bench.send(0, CommandKind::abort, message);  // answered already: ignored
  bench.queue.run_all();
  EXPECT_EQ(bench.answers(message, CommandKind::failed), 1u);
}

TEST(PeFault, ARingOutsideTcmIsRefused) {
  Bench bench(two_pes());
  NeighbourEntry entry;
  entry.self = bench.coord(0);
  entry.direction = Direction::east();
  entry.peer = entry.source = bench.coord(1);
  entry.ring_base = PhysicalAddress::tcm(bench.coord(0), bench.options.config.tcm.bytes - 4096);
  entry.peer_ring_base = PhysicalAddress::tcm(bench.coord(1), 0);
  Message message;
  message.body = SfrWriteMessage{{entry}};
  bench.send(0, CommandKind::sfr_write, message);
  bench.queue.run_all();
  EXPECT_EQ(bench.answers(message, CommandKind::finished), 1u);
  ASSERT_EQ(message.faults.size(), 1u);
  EXPECT_EQ(message.faults[0].component, "sip0.cube0.pe0.ipcq");
  EXPECT_EQ(message.faults[0].reason,
            "queue pair of group 0 in direction E: a ring of 16384 B at sip0.cube0.pe0.tcm+0xfff000 is not within this "
            "PE's TCM");
}

}  // namespace
}  // namespace kernbench
