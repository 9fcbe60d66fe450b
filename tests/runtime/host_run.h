#pragma once
#include <memory>
#include <utility>

#include "runtime/runtime.h"
#include "tests/io/fake_machine.h"
#include "tlm/sim/main_stack.h"

namespace kernbench::testing {

/// A fake machine with the host on it; one run.
struct HostRun {
  explicit HostRun(const FakeMachine::Shape& shape, const RunOptions& options = {})
      : machine(shape, options), runtime("runtime", machine.map(), machine.dispatcher(), options, nullptr) {
    for (std::uint16_t sip = 0; sip < shape.sips; ++sip) runtime.pcie[sip]->bind(machine.host_socket(sip));
  }
  /// Runs the program to its end; returns the outcome.
  Runtime::Outcome run(std::function<void(Context&)> program, int nprocs) {
    runtime.spawn(std::move(program), nprocs);
    sc_core::sc_start();
    back_on_main_stack();
    return runtime.outcome();
  }
  FakeMachine machine;
  Runtime runtime;
};

inline const KernelBody kNoBody = [](Tl&) {};

}  // namespace kernbench::testing
