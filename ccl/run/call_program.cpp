#include "ccl/run/call_program.h"

#include <cstring>

namespace kernbench::ccl {
namespace {

std::size_t argument_bytes(ArgumentType type) { return type == ArgumentType::int32 ? 4 : 8; }

/// What every PE of a collective's launch begins with.
void run_collective(KernelEntry::Code, const std::uint8_t* bytes, Tl& tl) {
  const CallProgram& program = CallProgram::of(tl);
  const Kernel& kernel = program.kernel();
  std::vector<Argument> arguments(kernel.count);
  for (std::uint32_t i = 0; i < kernel.count; ++i) {
    Argument& argument = arguments[i];
    argument.type = kernel.types[i];
    std::memcpy(&argument.int64, bytes, argument_bytes(argument.type));  // of the union, all of which begin there
    bytes += argument_bytes(argument.type);
  }
  program.start(arguments.data(), tl);
}

}  // namespace

const CallProgram& CallProgram::of(const Tl& tl) {
  return static_cast<const CallProgram&>(tl.program(tl.call().program));
}

BoundKernel bind_collective(const Algorithm& algorithm, const std::vector<Argument>& arguments) {
  BoundKernel bound{{reinterpret_cast<KernelEntry::Code>(algorithm.kernel.call), &run_collective}, {}};
  for (const Argument& argument : arguments) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&argument.int64);
    bound.arguments.insert(bound.arguments.end(), bytes, bytes + argument_bytes(argument.type));
  }
  return bound;
}

std::tuple<std::int64_t, int, int, int> schedule_kernel_args(int world_size, std::int64_t n_elem, int cube_w,
                                                             int cube_h) {
  return {n_elem, cube_w, cube_h, world_size};
}

/// For a backend that launches a module by its symbols alone: run_collective has no need of it.
void schedule_kernel(Va, std::int64_t, int, int, int, int, int, int, int, Tl& tl) {
  const CallProgram& program = CallProgram::of(tl);
  if (!program.has_steps()) throw KernelError("schedule_kernel: this algorithm has no schedule");
  program.start(nullptr, tl);
}

}  // namespace kernbench::ccl
