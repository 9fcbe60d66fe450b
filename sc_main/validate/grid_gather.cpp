#include "sc_main/validate/grid_gather.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/runtime.h"
#include "topology/machine/machine.h"
#include "topology/plan/plan.h"
#include "topology/spec/resolve.h"

namespace kernbench::validate {

double run_grid_gather(const GridGather& gather) {
  const unsigned ranks = gather.w * gather.h;
  const topology::Plan plan(
      topology::resolve("astra", {fmt::format("system.sips.count={}", ranks),
                                  fmt::format("system.sips.topology={}", gather.wraps ? "torus_2d" : "mesh_2d_no_wrap"),
                                  fmt::format("system.sips.w={}", gather.w), fmt::format("system.sips.h={}", gather.h),
                                  fmt::format("system.links.bandwidth={} B/s", gather.bytes_per_second),
                                  fmt::format("system.links.propagation={:.0f} ps", gather.latency_ns * 1e3),
                                  "system.links.serdes=0 ps"})
          .spec);
  RunOptions options;
  options.data = false;
  options.fidelity = gather.fidelity;
  // Its process ends without taking the machine down.
  auto& machine = *new topology::Machine(plan, options, nullptr);
  auto& runtime = *new Runtime("host", machine.map(), machine.dispatcher(), options, nullptr);
  for (std::uint16_t sip = 0; sip < machine.map().sips; ++sip) runtime.pcie[sip]->bind(machine.host_socket(sip));
  Ps start = kNever, end = 0;
  runtime.init_process_group({});
  runtime.spawn(
      [&](Context& ctx) {
        const auto block = static_cast<std::int64_t>(std::max<std::uint64_t>(gather.bytes / ranks / 2, 1));
        const Tensor in = ctx.empty({1, block}, DType::f16, {}, "block"),
                     out = ctx.empty({1, block * ranks}, DType::f16, {}, "all");
        ctx.barrier();
        const Handle handle = ctx.all_gather_async(in, out);
        ctx.wait(handle);
        start = std::min(start, handle.kernel_start());
        end = std::max(end, handle.kernel_end());
      },
      std::tuple<>(), static_cast<int>(ranks));
  return static_cast<double>(end - start) / 1e3;
}

}  // namespace kernbench::validate
