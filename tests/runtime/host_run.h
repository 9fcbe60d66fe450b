#pragma once
#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "runtime/runtime.h"
#include "tests/io/fake_machine.h"

namespace kernbench::testing {

/// How a program has to end.
enum class Ending {
  finished,    ///< every rank returned and all that it submitted is complete, without a fault
  failure,     ///< ranks throw, or faults that nobody waited for
  unfinished,  ///< ranks wait for what never comes
};

inline std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

/// A fake machine with the host on it; one run.
struct HostRun {
  explicit HostRun(const FakeMachine::Shape& shape, const RunOptions& options = {})
      : machine(shape, options), runtime("runtime", machine.map(), machine.dispatcher(), options, nullptr) {
    for (std::uint16_t sip = 0; sip < shape.sips; ++sip) runtime.pcie[sip]->bind(machine.host_socket(sip));
  }
  /// Runs the program and returns the outcome. That it ends otherwise than `ending` says is a failure of the test: what
  /// a program checks after the line at which it threw or stopped was not checked.
  Runtime::Outcome run(std::function<void(Context&)> program, int nprocs, Ending ending = Ending::finished) {
    runtime.program(std::move(program), nprocs);
    runtime.run();
    const Runtime::Outcome outcome = runtime.outcome();
    EXPECT_EQ(outcome.failures.empty(), ending != Ending::failure) << how(outcome);
    EXPECT_EQ(outcome.unfinished.empty(), ending != Ending::unfinished) << how(outcome);
    return outcome;
  }
  FakeMachine machine;
  Runtime runtime;

 private:
  std::string how(const Runtime::Outcome& outcome) const {
    std::string text = outcome.finished ? "the program reached its end" : "the program did not reach its end";
    for (const auto& [rank, error] : outcome.failures) {
      text += "\n  rank " + std::to_string(rank) + ": " + text_of(error);
    }
    for (const BlockedRank& blocked : runtime.blocked_ranks()) {
      text += "\n  rank " + std::to_string(blocked.rank) + " waits: " + blocked.waits_for;
    }
    return text;
  }
};

// Kernels that do nothing, of no tensor, one and two.
inline constexpr auto kNoBody = [](Tl&) {};
inline constexpr auto kNoBodyOf = [](Va, Tl&) {};
inline constexpr auto kNoBodyOfTwo = [](Va, Va, Tl&) {};

}  // namespace kernbench::testing
