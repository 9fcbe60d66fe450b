#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/runtime.h"
#include "tests/topology/machines.h"
#include "tlm/kernel/tl.h"
#include "topology/machine/machine.h"
#include "topology/plan/plan.h"

namespace kernbench::testing {

/// Counts op records by kernel.
class OpCounter final : public OpObserver {
 public:
  void op(const OpRecord& record) override {
    if (record.kind != "host") ++ops[record.kernel];
    if (record.name == "host_call") host_calls.push_back(record);
  }
  std::map<std::string, std::size_t> ops;
  std::vector<OpRecord> host_calls;
};

/// The whole machine with the host on it.
struct MachineRun {
  explicit MachineRun(topology::SystemSpec spec, const RunOptions& options = {}, Observer* observer = nullptr)
      : plan(std::move(spec)),
        machine(plan, options, observer),
        runtime("host", machine.map(), machine.dispatcher(), options, observer) {
    for (std::uint16_t sip = 0; sip < machine.map().sips; ++sip) runtime.pcie[sip]->bind(machine.host_socket(sip));
    runtime.set_explain([this](std::vector<Blocked>& blocked) { machine.explain(blocked); });
  }
  const topology::Plan plan;
  topology::Machine machine;
  Runtime runtime;
};

inline std::string failure_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

/// A small machine whose cubes have `pes` PEs.
inline topology::SystemSpec machine_of(std::uint16_t sips, std::uint16_t cubes, std::uint16_t pes,
                                       IpcqBuffer rings = IpcqBuffer::tcm) {
  topology::SystemSpec spec = topology::small_machine(sips, cubes, 1);
  spec.cube.pes = pes;
  spec.cube.pe.ipcq.buffer = rings;
  return spec;
}

/// Where rings lie, and how ranks are scheduled.
using BufferCase = std::tuple<IpcqBuffer, SchedulingKind>;
inline auto every_buffer_and_scheduling() {
  return ::testing::Combine(::testing::Values(IpcqBuffer::tcm, IpcqBuffer::sram, IpcqBuffer::hbm),
                            ::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds));
}
inline std::string name_of(const ::testing::TestParamInfo<BufferCase>& info) {
  const IpcqBuffer buffer = std::get<0>(info.param);
  return std::string(buffer == IpcqBuffer::tcm    ? "tcm"
                     : buffer == IpcqBuffer::sram ? "sram"
                                                  : "hbm") +
         (std::get<1>(info.param) == SchedulingKind::rounds ? "_rounds" : "_concurrent");
}

/// Columns over all cubes and PEs.
inline DPPolicy spread() { return DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise); }

inline RunOptions scheduled(SchedulingKind kind) {
  RunOptions options;
  options.scheduling = kind;
  return options;
}

inline ProcessGroupOptions ring_algorithm() {
  ProcessGroupOptions options;
  options.algorithm = "ring_allreduce";
  return options;
}

}  // namespace kernbench::testing
