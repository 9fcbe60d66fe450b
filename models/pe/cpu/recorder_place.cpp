// Where a kernel runs: its PE and neighbours, its parts of tensors, what is installed.
#include <fmt/format.h>

#include "models/pe/cpu/recorder.h"
#include "models/pe/ipcq/directions.h"

namespace kernbench::pe {

std::int64_t Recorder::program_id(int axis) const {
  switch (axis) {
    case 0:
      return env_.self.pe;
    case 1:
      return env_.self.cube;
    case 2:
      return env_.self.sip;
    default:
      fail("program_id", fmt::format("axis is {}; give 0 (PE), 1 (cube) or 2 (SIP)", axis));
  }
}

std::uint64_t Recorder::tcm() const { return env_.map.tcm.bytes / env_.map.engines.kernel_contexts; }

std::int64_t Recorder::num_programs(int axis) const {
  switch (axis) {
    case 0:
      return env_.map.pes_per_cube;
    case 1:
      return env_.map.cubes_per_sip();
    case 2:
      return env_.map.sips;
    default:
      fail("num_programs", fmt::format("axis is {}; give 0 (PE), 1 (cube) or 2 (SIP)", axis));
  }
}

const LaunchMessage::TensorArg& Recorder::argument_at(const char* call, Va tensor) const {
  for (const LaunchMessage::TensorArg& argument : env_.launch.tensors) {
    if (argument.base == tensor) return argument;
  }
  fail(fmt::format("{}({:#x})", call, tensor), "no tensor argument of this launch begins there");
}

ShardView Recorder::shard(Va tensor) const {
  for (const TensorShard& shard : argument_at("shard", tensor).shards) {
    if (shard.owner == env_.self) return {tensor + shard.offset_bytes, shard.rows, shard.cols};
  }
  return {tensor, 0, 0};
}

unsigned Recorder::cube_place(Va tensor) const {
  unsigned before = 0;
  std::uint16_t last = env_.self.cube;
  for (const TensorShard& shard : argument_at("cube_place", tensor).shards) {  // cube by cube
    if (shard.owner.cube >= env_.self.cube || shard.rows == 0 || shard.cols == 0) continue;
    if (shard.owner.cube != last) ++before;
    last = shard.owner.cube;
  }
  return before;
}

const Program& Recorder::program(ProgramId id) const {
  for (const InstalledProgram& installed : env_.programs) {
    if (installed.id == id) return *used_.emplace_back(installed.program);
  }
  fail(fmt::format("program({:#x})", static_cast<std::uint32_t>(id)), "this PE has no program of that number");
}

const CollectiveCall& Recorder::call() const {
  if (!env_.launch.call) fail("call", "this launch is not part of a collective");
  return *env_.launch.call;
}

void Recorder::check_direction(const char* op, Direction direction, Shape shape, DType dtype) const {
  if (env_.directions.find(env_.launch.group, direction) != nullptr) return;
  const std::string others = env_.directions.list(env_.launch.group);
  fail(fmt::format("{}({}, {} {})", op, direction.str(), shape.str(), to_string(dtype)),
       fmt::format("group {} has no neighbour in direction {}; it has {}", env_.launch.group, direction.str(),
                   others.empty() ? "none: init_process_group gives it queues, with ProcessGroupOptions::directions "
                                    "those of a kernel's own; LaunchOptions::cube_queues those inside cubes"
                                  : others));
}

}  // namespace kernbench::pe
