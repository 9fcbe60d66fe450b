// kernbench run --plugin build/axpy.so axpy --elements 4096
#include <kernbench/kernbench.h>

#include <fmt/format.h>

namespace po = boost::program_options;
using namespace kernbench;

/// y = factor * x + y on this PE's shards, in chunks that fit TCM several times over.
void axpy(Va x_base, Va y_base, double factor, Tl& tl) {
  constexpr std::int64_t kChunk = 2048;
  const ShardView x = tl.shard(x_base), y = tl.shard(y_base);
  for (std::int64_t i = 0; i < x.count(); i += kChunk) {
    const std::int64_t n = std::min(kChunk, x.count() - i);
    const Va shift = static_cast<Va>(i) * size_of(DType::f32);
    const Tile scaled = tl.load(x.va + shift, {1, n}, DType::f32) * tl.fill({1, 1}, DType::f32, factor);
    tl.store(y.va + shift, scaled + tl.load(y.va + shift, {1, n}, DType::f32));
  }
}

class Axpy final : public Workload {
 public:
  std::string name() const override { return "axpy"; }
  std::string help() const override { return "y = a x + y over all PEs of every SIP, then summed over the SIPs"; }
  std::string example() const override { return "kernbench run --plugin ./axpy.so axpy --elements 4096"; }
  void add_options(po::options_description& options) override {
    options.add_options()("elements", po::value(&elements_)->default_value(4096), "of x and y");
  }

  Report run(Session& session) override {
    if (elements_ < 1) throw std::invalid_argument(fmt::format("--elements is {}; give at least 1", elements_));
    Report report;
    const int ranks = session.map().sips;
    ProcessGroupOptions group;
    group.ccl_file = session.options().ccl_file;
    session.runtime().init_process_group(group);
    session.run(ranks, [&](Context& ctx) {
      const DPPolicy policy = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise);
      const Tensor x = ctx.full(ctx.rank() + 1, {1, elements_}, DType::f32, policy, "x");
      const Tensor y = ctx.full(0.5, {1, elements_}, DType::f32, policy, "y");
      const Handle handle = ctx.launch("axpy", axpy, x, y, 2.0);
      ctx.all_reduce(y);
      const double expected = ranks * (ranks + 1) + 0.5 * ranks;  // sum over ranks r of 2 (r + 1) + 0.5
      std::uint64_t wrong = 0;
      for (const double value : y.to_host()) wrong += value != expected ? 1 : 0;
      if (!session.options().run.data) wrong = 0;
      report.wrong = report.wrong || wrong > 0;
      const double ns = static_cast<double>(handle.kernel_end() - handle.kernel_start()) / 1e3;
      report.text += fmt::format("rank {}: {:.1f} ns, {} wrong\n", ctx.rank(), ns, wrong);
      report.results.push_back({{"op", "axpy"}, {"rank", ctx.rank()}, {"time_ns", ns}, {"mismatches", wrong}});
    });
    return report;
  }

 private:
  std::int64_t elements_ = 0;
};

KERNBENCH_WORKLOAD_PLUGIN(Axpy)
