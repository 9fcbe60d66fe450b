// Foreign modules in a whole machine: an initiator in a PE's place, a target in a memory's place, and the checker at
// every endpoint.
#include <gtest/gtest.h>
#include <memory>

#include "tests/interop/plain_initiator.h"
#include "tests/interop/plain_target.h"
#include "tests/interop/watched_machine.h"
#include "tests/support/in_copy.h"
#include "tests/support/protocol_checker.h"
#include "tests/topology/machines.h"
#include "topology/machine/machine.h"
#include "topology/plan/plan.h"

namespace kernbench::topology {
namespace {

using interop::PlainInitiator;
using interop::PlainMemory;
using interop::Transaction;
using test::ProtocolChecker;

constexpr PeCoord kPlace{0, 0, 3};

/// A machine with checkers at all its endpoints, hosts that say nothing, and a foreign initiator.
struct Bench {
  Bench(std::function<void(PlainInitiator&)> body, bool foreign_sram = false, unsigned at_once = 1)
      : plan(small_machine(1, 2, 1)),
        machine(plan, RunOptions{}, nullptr, parts(foreign_sram, at_once)),
        initiator("initiator", std::move(body)),
        at_initiator("at_initiator") {
    initiator.socket.bind(at_initiator.in);
    at_initiator.out.bind(machine.foreign_initiator(kPlace));
    if (foreign_sram) {
      memory = std::make_unique<PlainMemory>("memory", 1 << 16, sc_core::sc_time(30, sc_core::SC_NS));
      at_memory = std::make_unique<ProtocolChecker>("at_memory");
      machine.foreign_memory(plan.map.sram_of({0, 0})).bind(at_memory->in);
      at_memory->out.bind(memory->socket);
    }
  }
  ForeignParts parts(bool foreign_sram, unsigned at_once) {
    ForeignParts parts;
    parts.at_once = at_once;
    parts.initiators = {kPlace};
    if (foreign_sram) parts.memories = {plan.map.sram_of({0, 0})};
    parts.bind = [this](tlm::tlm_initiator_socket<>& from, tlm::tlm_target_socket<>& to) {
      const std::string name = "check" + std::to_string(checkers.size());
      checkers.push_back(std::make_unique<ProtocolChecker>(name.c_str(), is_one_way));
      from.bind(checkers.back()->in);
      checkers.back()->out.bind(to);
    };
    return parts;
  }
  void run() {
    sc_core::sc_start();
    EXPECT_TRUE(initiator.finished);
    EXPECT_EQ(machine.pool().outstanding(), 0u);
    std::uint64_t finished = 0;
    for (const auto& checker : checkers) {
      EXPECT_EQ(checker->open(), 0u) << checker->name();
      finished += checker->finished;
    }
    EXPECT_GT(finished, 0u);
    EXPECT_EQ(at_initiator.open(), 0u);
  }

  std::vector<std::unique_ptr<ProtocolChecker>> checkers;
  const Plan plan;
  Machine machine;
  const SilentHost host{"host", machine};
  PlainInitiator initiator;
  ProtocolChecker at_initiator;
  std::unique_ptr<PlainMemory> memory;
  std::unique_ptr<ProtocolChecker> at_memory;
};

std::vector<unsigned char> pattern(std::size_t bytes) {
  std::vector<unsigned char> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(i * 7 + i / 256);
  return data;
}

std::uint64_t hbm(std::uint16_t cube, std::uint16_t pe, std::uint64_t offset) {
  return PhysicalAddress::hbm({0, cube, pe}, offset).encode();
}

TEST(Interop, AForeignInitiatorReachesEveryMemoryOfTheMachine) {
  Bench bench([](PlainInitiator& self) {
    for (const std::uint64_t address : {hbm(0, 3, 100), hbm(1, 6, 4096), PhysicalAddress::sram({0, 1}, 37).encode(),
                                        PhysicalAddress::tcm({0, 1, 2}, 70'000).encode()}) {
      const auto data = pattern(1000);
      Transaction write(tlm::TLM_WRITE_COMMAND, address, data);
      EXPECT_EQ(self.access(write), tlm::TLM_OK_RESPONSE);
      Transaction read(tlm::TLM_READ_COMMAND, address, std::vector<unsigned char>(1000));
      EXPECT_EQ(self.access(read), tlm::TLM_OK_RESPONSE);
      EXPECT_EQ(read.data, data);
    }
  });
  bench.run();
}

TEST(DocsSnippets, AMachineWithForeignPartsIsBuiltAsTheTlmPageSays) {
  const SystemSpec my_machine = small_machine(1, 2, 1);
  const RunOptions options;
  PlainInitiator my_other_initiator("my_other_initiator", [](PlainInitiator& self) {
    Transaction write(tlm::TLM_WRITE_COMMAND, PhysicalAddress::sram({0, 0}, 340).encode(), pattern(100));
    EXPECT_EQ(self.access(write), tlm::TLM_OK_RESPONSE);
  });
  PlainInitiator my_initiator("my_initiator", [](PlainInitiator& self) {
    Transaction write(tlm::TLM_WRITE_COMMAND, PhysicalAddress::sram({0, 0}, 40).encode(), pattern(100));
    EXPECT_EQ(self.access(write), tlm::TLM_OK_RESPONSE);
  });
  PlainMemory my_memory("my_memory", 1 << 16, sc_core::sc_time(30, sc_core::SC_NS));
#include "snippets/tlm_1.inc"
  const SilentHost host("host", machine);
  sc_core::sc_start();
  EXPECT_TRUE(my_initiator.finished);
  EXPECT_TRUE(my_other_initiator.finished);
  for (const int at : {40, 340}) {
    EXPECT_EQ(std::vector<unsigned char>(my_memory.contents.begin() + at, my_memory.contents.begin() + at + 100),
              pattern(100));
  }
}

/// A caller that is ahead of the kernel stays there where nothing has to happen first.
TEST(Interop, WhatIsRefusedNeedsNoTimeAndLeavesTheDelay) {
  Bench bench([](PlainInitiator& self) {
    Transaction nowhere(tlm::TLM_READ_COMMAND, ~std::uint64_t{0}, std::vector<unsigned char>(64));
    sc_core::sc_time delay(500, sc_core::SC_NS);
    const sc_core::sc_time begin = sc_core::sc_time_stamp();
    self.socket->b_transport(nowhere, delay);
    EXPECT_EQ(nowhere.get_response_status(), tlm::TLM_ADDRESS_ERROR_RESPONSE);
    EXPECT_EQ(delay, sc_core::sc_time(500, sc_core::SC_NS));
    EXPECT_EQ(sc_core::sc_time_stamp(), begin);
    Transaction read(tlm::TLM_READ_COMMAND, hbm(0, 3, 0), std::vector<unsigned char>(64));
    self.socket->b_transport(read, delay);
    EXPECT_EQ(sc_core::sc_time_stamp(), begin);
    EXPECT_GT(delay, sc_core::sc_time(520, sc_core::SC_NS)) << "one that is served adds its time";
  });
  bench.run();
}

/// What a loosely timed initiator's reads, one after the other, have seen.
struct Reads {
  std::vector<std::uint64_t> ended;    ///< ps: each one's time
  std::vector<std::uint64_t> resumed;  ///< ps: the kernel's time when the call returned
  std::uint64_t ticks = 0;             ///< of another process
};
/// `tick`: another process is due each time this has passed; zero: there is none. `keeps_delay`: the initiator goes on
/// ahead of the kernel, as a temporally decoupled one does, and waits at its end alone.
Reads reads_of(bool keeps_delay, const sc_core::sc_time& tick) {
  Reads reads;
  Dispatcher* dispatcher = nullptr;
  Bench bench([&](PlainInitiator& self) {
    sc_core::wait(sc_core::sc_time(3, sc_core::SC_NS));
    sc_core::sc_time delay;
    for (unsigned i = 0; i < 8; ++i) {
      Transaction read(tlm::TLM_READ_COMMAND, hbm(i % 2, 3, i * 4096), std::vector<unsigned char>(64 + i * 700));
      self.socket->b_transport(read, delay);
      EXPECT_EQ(read.get_response_status(), tlm::TLM_OK_RESPONSE);
      reads.resumed.push_back(sc_core::sc_time_stamp().value());
      reads.ended.push_back((sc_core::sc_time_stamp() + delay).value());
      EXPECT_EQ(dispatcher->now(), reads.ended.back()) << "the models are where the initiator is";
      if (keeps_delay) continue;
      sc_core::wait(delay);
      delay = sc_core::SC_ZERO_TIME;
    }
    sc_core::wait(delay);
  });
  dispatcher = &bench.machine.dispatcher();
  if (tick != sc_core::SC_ZERO_TIME) {
    sc_core::sc_spawn([&] {
      while (!bench.initiator.finished) {
        sc_core::wait(tick);
        ++reads.ticks;
        EXPECT_LE(dispatcher->latest(), sc_core::sc_time_stamp().value()) << "it found the models ahead of it";
      }
    });
  }
  bench.run();
  return reads;
}

/// Temporal decoupling: where nothing else is due, a whole sequence of accesses passes at one instant of the kernel.
TEST(Interop, LooselyTimedCallsMoveTheKernelOnlyAsFarAsOthersAreDue) {
  const auto in_copy = [](bool keeps_delay, const sc_core::sc_time& tick) {
    const auto flat = kernbench::testing::in_copy([&] {
      const Reads reads = reads_of(keeps_delay, tick);
      std::vector<std::uint64_t> numbers = reads.ended;
      numbers.insert(numbers.end(), reads.resumed.begin(), reads.resumed.end());
      numbers.push_back(reads.ticks);
      return numbers;
    });
    Reads reads;
    if (flat.size() != 17) return reads;
    reads.ended.assign(flat.begin(), flat.begin() + 8);
    reads.resumed.assign(flat.begin() + 8, flat.begin() + 16);
    reads.ticks = flat.back();
    return reads;
  };
  const sc_core::sc_time tick(7, sc_core::SC_NS);
  const Reads waits = in_copy(false, sc_core::SC_ZERO_TIME), ahead = in_copy(true, sc_core::SC_ZERO_TIME),
              watched = in_copy(true, tick);
  ASSERT_EQ(waits.ended.size(), 8U);
  EXPECT_EQ(ahead.ended, waits.ended) << "each access takes the time that it takes";
  EXPECT_EQ(watched.ended, waits.ended);
  EXPECT_EQ(ahead.resumed, std::vector<std::uint64_t>(8, 3000)) << "the kernel's time has not moved";
  for (std::size_t i = 0; i < watched.resumed.size(); ++i) {
    EXPECT_LE(watched.resumed[i], watched.ended[i]);
    EXPECT_LT(watched.ended[i] - watched.resumed[i], tick.value()) << "as far as the other process";
  }
  EXPECT_GE(watched.ticks, watched.ended.back() / tick.value());
}

TEST(Interop, ItsTimeIsThatOfTheNetworkAndGrowsWithTheDistance) {
  Bench bench([](PlainInitiator& self) {
    const auto time = [&](std::uint64_t address, sc_core::sc_time delay = sc_core::SC_ZERO_TIME) {
      const sc_core::sc_time begin = sc_core::sc_time_stamp();
      Transaction read(tlm::TLM_READ_COMMAND, address, std::vector<unsigned char>(64));
      EXPECT_EQ(self.access(read, delay), tlm::TLM_OK_RESPONSE);
      return sc_core::sc_time_stamp() - begin;
    };
    const sc_core::sc_time near = time(hbm(0, 3, 0)), far = time(hbm(1, 3, 0));
    EXPECT_GT(near, sc_core::sc_time(20, sc_core::SC_NS));        // the HBM alone takes longer
    EXPECT_GT(far, near + sc_core::sc_time(70, sc_core::SC_NS));  // two crossings of 35 ns
    const sc_core::sc_time later(500, sc_core::SC_NS);
    const sc_core::sc_time delayed = time(hbm(1, 3, 256), later);  // a closed row of another channel
    EXPECT_GE(delayed, far + later);
    EXPECT_LT(delayed, far + later + sc_core::sc_time(1, sc_core::SC_NS));  // the next edges of NoC and HBM clocks
  });
  bench.run();
}

TEST(Interop, ApproximatelyTimedAccessesOverlap) {
  Bench bench([](PlainInitiator& self) {
    self.end_response_later = true;
    const auto data = pattern(256);
    std::vector<std::unique_ptr<Transaction>> writes, reads;
    for (std::uint64_t i = 0; i < 20; ++i) {
      writes.push_back(std::make_unique<Transaction>(tlm::TLM_WRITE_COMMAND, hbm(1, 5, i * 256), data));
      self.begin(*writes.back(), sc_core::sc_time(static_cast<double>(i % 3), sc_core::SC_NS));
    }
    self.wait_for_all();
    const sc_core::sc_time begin = sc_core::sc_time_stamp();
    for (std::uint64_t i = 0; i < 20; ++i) {
      reads.push_back(
          std::make_unique<Transaction>(tlm::TLM_READ_COMMAND, hbm(1, 5, i * 256), std::vector<unsigned char>(256)));
      self.begin(*reads.back());
    }
    self.wait_for_all();
    EXPECT_LT(sc_core::sc_time_stamp() - begin, sc_core::sc_time(1, sc_core::SC_US));  // one by one: above 2 us
    sc_core::wait(sc_core::sc_time(1, sc_core::SC_US));                                // the last END_RESP
    for (const auto& read : reads) {
      EXPECT_EQ(read->get_response_status(), tlm::TLM_OK_RESPONSE);
      EXPECT_EQ(read->data, data);
    }
  });
  bench.run();
  EXPECT_EQ(bench.at_initiator.finished, 40u);
}

TEST(Interop, ByteEnablesAndErrorsComeThroughTheNetwork) {
  Bench bench([](PlainInitiator& self) {
    Transaction zero(tlm::TLM_WRITE_COMMAND, hbm(1, 0, 0), std::vector<unsigned char>(600, 1));
    EXPECT_EQ(self.access(zero), tlm::TLM_OK_RESPONSE);
    unsigned char enables[3] = {TLM_BYTE_DISABLED, TLM_BYTE_ENABLED, TLM_BYTE_DISABLED};
    Transaction some(tlm::TLM_WRITE_COMMAND, hbm(1, 0, 0), std::vector<unsigned char>(600, 9));
    some.set_byte_enable_ptr(enables);
    some.set_byte_enable_length(3);
    EXPECT_EQ(self.access(some), tlm::TLM_OK_RESPONSE);
    Transaction read(tlm::TLM_READ_COMMAND, hbm(1, 0, 0), std::vector<unsigned char>(600));
    EXPECT_EQ(self.access(read), tlm::TLM_OK_RESPONSE);
    for (std::size_t i = 0; i < 600; ++i) ASSERT_EQ(read.data[i], i % 3 == 1 ? 9 : 1) << i;

    Transaction nowhere(tlm::TLM_READ_COMMAND, PhysicalAddress::sram({0, 200}, 0).encode(), {1, 2});
    EXPECT_EQ(self.access(nowhere), tlm::TLM_ADDRESS_ERROR_RESPONSE);
    Transaction beyond(tlm::TLM_READ_COMMAND, PhysicalAddress::sram({0, 0}, (32u << 20) - 1).encode(), {1, 2});
    EXPECT_EQ(self.access(beyond), tlm::TLM_ADDRESS_ERROR_RESPONSE);
    Transaction streamed(tlm::TLM_WRITE_COMMAND, hbm(0, 0, 0), std::vector<unsigned char>(8));
    streamed.set_streaming_width(4);
    EXPECT_EQ(self.access(streamed), tlm::TLM_BURST_ERROR_RESPONSE);
    Transaction failing(tlm::TLM_READ_COMMAND, PhysicalAddress::sram({0, 200}, 0).encode(), {1, 2});
    self.begin(failing);
    self.wait_for_all();
    EXPECT_EQ(failing.get_response_status(), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  });
  bench.run();
}

TEST(Interop, TheBackDoorTakesNoTimeAndThereIsNoDirectOne) {
  Bench bench([](PlainInitiator& self) {
    const auto data = pattern(5000);
    Transaction write(tlm::TLM_WRITE_COMMAND, hbm(1, 2, 64), data);
    EXPECT_EQ(self.socket->transport_dbg(write), 5000u);
    Transaction peek(tlm::TLM_READ_COMMAND, hbm(1, 2, 64), std::vector<unsigned char>(5000));
    EXPECT_EQ(self.socket->transport_dbg(peek), 5000u);
    EXPECT_EQ(peek.data, data);
    EXPECT_EQ(sc_core::sc_time_stamp(), sc_core::SC_ZERO_TIME);
    tlm::tlm_dmi dmi;
    EXPECT_FALSE(self.socket->get_direct_mem_ptr(peek, dmi));
    Transaction read(tlm::TLM_READ_COMMAND, hbm(1, 2, 64), std::vector<unsigned char>(5000));
    EXPECT_EQ(self.access(read), tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(read.data, data);
  });
  bench.run();
}

TEST(Interop, AForeignTargetTakesTheSramsPlaceAndMayWait) {
  Bench bench(
      [](PlainInitiator& self) {
        const std::uint64_t sram = PhysicalAddress::sram({0, 0}, 0).encode();
        const auto data = pattern(700);
        Transaction write(tlm::TLM_WRITE_COMMAND, sram + 40, data);
        EXPECT_EQ(self.access(write), tlm::TLM_OK_RESPONSE);
        Transaction read(tlm::TLM_READ_COMMAND, sram + 40, std::vector<unsigned char>(700));
        const sc_core::sc_time begin = sc_core::sc_time_stamp();
        EXPECT_EQ(self.access(read), tlm::TLM_OK_RESPONSE);
        EXPECT_GE(sc_core::sc_time_stamp() - begin, 3 * sc_core::sc_time(30, sc_core::SC_NS));  // 3 packets, in turn
        EXPECT_EQ(read.data, data);
        Transaction beyond(tlm::TLM_READ_COMMAND, sram + (1 << 16), {1});
        EXPECT_EQ(self.access(beyond), tlm::TLM_ADDRESS_ERROR_RESPONSE);
        Transaction peek(tlm::TLM_READ_COMMAND, sram + 40, std::vector<unsigned char>(700));
        EXPECT_EQ(self.socket->transport_dbg(peek), 700u);
        EXPECT_EQ(peek.data, data);
        std::vector<std::unique_ptr<Transaction>> many;  // more than its queue holds
        for (std::uint64_t i = 0; i < 40; ++i) {
          many.push_back(std::make_unique<Transaction>(tlm::TLM_WRITE_COMMAND, sram + 256 * i, pattern(256)));
          self.begin(*many.back());
        }
        self.wait_for_all();
        for (const auto& one : many) EXPECT_EQ(one->get_response_status(), tlm::TLM_OK_RESPONSE);
      },
      true);
  bench.run();
  EXPECT_EQ(bench.memory->accesses, 3u + 3 + 1 + 40);
}

/// 40 writes of one packet each to a memory of 30 ns: one by one they take 40 times as long; it holds four at once.
sc_core::sc_time time_of_forty(unsigned at_once) {
  sc_core::sc_time took;
  Bench bench(
      [&](PlainInitiator& self) {
        const std::uint64_t sram = PhysicalAddress::sram({0, 0}, 0).encode();
        std::vector<std::unique_ptr<Transaction>> many;
        const sc_core::sc_time begin = sc_core::sc_time_stamp();
        for (std::uint64_t i = 0; i < 40; ++i) {
          many.push_back(std::make_unique<Transaction>(tlm::TLM_WRITE_COMMAND, sram + 256 * i, pattern(256)));
          self.begin(*many.back());
        }
        self.wait_for_all();
        took = sc_core::sc_time_stamp() - begin;
        for (const auto& one : many) EXPECT_EQ(one->get_response_status(), tlm::TLM_OK_RESPONSE);
        Transaction read(tlm::TLM_READ_COMMAND, sram + 256 * 39, std::vector<unsigned char>(256));
        EXPECT_EQ(self.access(read), tlm::TLM_OK_RESPONSE);
        EXPECT_EQ(read.data, pattern(256));
      },
      true, at_once);
  bench.run();
  EXPECT_EQ(bench.memory->accesses, 41u);
  return took;
}
constexpr double kLatency = 30;  // ns, of the foreign SRAM
TEST(Interop, AForeignTargetIsCalledWithOneRequestAfterTheOther) {
  EXPECT_GE(time_of_forty(1), sc_core::sc_time(40 * kLatency, sc_core::SC_NS));
}
TEST(Interop, AForeignTargetThatTakesFourRequestsAtOnceServesThemInAFourthOfTheTime) {
  const sc_core::sc_time took = time_of_forty(4);
  EXPECT_GE(took, sc_core::sc_time(10 * kLatency, sc_core::SC_NS));
  EXPECT_LT(took, sc_core::sc_time(10 * kLatency + 150, sc_core::SC_NS)) << "and the way there and back";
}

}  // namespace
}  // namespace kernbench::topology
