#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "ccl/contract/contract.h"
#include "tlm/kernel/launch.h"
#include "tlm/kernel/program.h"

namespace kernbench::ccl {

/// Of every program on a PE, beside its steps and tables.   assumed: lengths, numbers of nodes and rounds
inline constexpr std::uint64_t kProgramHeaderBytes = 64;

/// What the PEs of one rank keep for all calls of one shape: the step list of each, and the tables that say where its
/// data lie. Bases, data type and reduction come with the call.
class CallProgram : public Program {
 public:
  explicit CallProgram(std::shared_ptr<const Algorithm> algorithm) : algorithm_(std::move(algorithm)) {}

  /// The installed program of a collective's launch.
  static const CallProgram& of(const Tl& tl);
  /// Runs the call on one PE. `arguments`: the kernel's; steps need none.
  virtual void start(const Argument* arguments, Tl& tl) const = 0;
  const Kernel& kernel() const { return algorithm_->kernel; }
  bool has_steps() const { return algorithm_->kind() != AlgorithmKind::kernel; }

 private:
  const std::shared_ptr<const Algorithm> algorithm_;
};

/// The calls of a schedule algorithm, or of one that runs PE to PE.
template <class Steps>
class StepsProgram final : public CallProgram {
 public:
  StepsProgram(std::shared_ptr<const Algorithm> algorithm, Steps steps)
      : CallProgram(std::move(algorithm)), steps_(std::move(steps)) {}
  void start(const Argument*, Tl& tl) const override { steps_.run(tl); }
  std::uint64_t bytes(PeCoord pe) const override { return steps_.bytes(pe.cube, pe.pe); }

 private:
  const Steps steps_;
};

/// A launch of the algorithm's kernel, with its positional parameters.
BoundKernel bind_collective(const Algorithm& algorithm, const std::vector<Argument>& arguments);

}  // namespace kernbench::ccl
