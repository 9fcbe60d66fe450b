// A program on the runtime, with a monitor on every base-protocol socket of its machine: the host is ahead of the
// queues and behind them by turns.
#include <gtest/gtest.h>

#include "runtime/runtime.h"
#include "tests/interop/watched_machine.h"

namespace kernbench::topology {
namespace {

class Programs : public ::testing::TestWithParam<WatchedCase> {};
INSTANTIATE_TEST_SUITE_P(Machine, Programs, every_grade_and_stepping(), &name_of);

TEST_P(Programs, KeepToTheProtocolAtTheTimesThatTheHostHears) {
  const auto& [grade, observed] = GetParam();
  RunOptions options;
  options.fidelity = Fidelity::all(grade);
  OpLog ops;
  Observer* const observer = observed ? &ops : nullptr;
  WatchedMachine bench(small_machine(2, 2, 1), options, observer);
  Runtime runtime("host", bench.machine.map(), bench.machine.dispatcher(), options, observer);
  for (std::uint16_t sip = 0; sip < 2; ++sip) bench.bind_host(sip, *runtime.pcie[sip]);
  int checked = 0;
  runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        EXPECT_EQ(sc_core::sc_get_current_process_handle().name(), "host.rank" + std::to_string(ctx.rank()));
        const DPPolicy policy = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise);
        const Tensor tensor = ctx.full(ctx.rank() + 1, {4, 4096}, DType::f16, policy, "t");
        for (int i = 0; i < 2; ++i) ctx.all_reduce(tensor);
        for (const double value : tensor.to_host()) ASSERT_EQ(value, 6);
        ++checked;
      },
      std::tuple<>(), 2);
  EXPECT_EQ(checked, 2);
  bench.expect_finished();
  EXPECT_GT(bench.checkers.at(WatchedMachine::host_socket(0))->debugs, 0u) << "contents go through the back door";
  ASSERT_EQ(runtime.host_trace().size(), 4u);
  for (const HostTraceEntry& entry : runtime.host_trace()) {
    const auto& seen = bench.seen.at(WatchedMachine::host_socket(static_cast<std::uint16_t>(entry.sip)));
    const auto at = [&](const tlm::tlm_phase& phase, Ps time) {
      return std::any_of(seen.begin(), seen.end(),
                         [&](const SeenPhase& other) { return other.phase == phase && other.at == time; });
    };
    EXPECT_TRUE(at(tlm::BEGIN_REQ, entry.t_submit)) << entry.t_submit;
    EXPECT_TRUE(at(tlm::BEGIN_RESP, entry.t_complete)) << entry.t_complete;
  }
}

}  // namespace
}  // namespace kernbench::topology
