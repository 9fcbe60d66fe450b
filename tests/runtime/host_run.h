#pragma once
#include <memory>
#include <utility>

#include "runtime/runtime.h"
#include "tests/io/fake_machine.h"

namespace kernbench::testing {

/// A fake machine with the host on it; one run.
struct HostRun {
  explicit HostRun(const FakeMachine::Shape& shape, const RunOptions& options = {})
      : machine(shape, options), runtime("runtime", machine.map(), machine.dispatcher(), options, nullptr) {
    for (std::uint16_t sip = 0; sip < shape.sips; ++sip) runtime.pcie[sip]->bind(machine.host_socket(sip));
  }
  /// Runs the program to its end; returns the outcome.
  Runtime::Outcome run(std::function<void(Context&)> program, int nprocs) {
    runtime.program(std::move(program), nprocs);
    runtime.run();
    return runtime.outcome();
  }
  FakeMachine machine;
  Runtime runtime;
};

inline const KernelBody kNoBody = [](Tl&) {};

}  // namespace kernbench::testing
