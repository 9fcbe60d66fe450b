#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/workload.h"
#include "tlm/kernel/tl.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

/// Every PE works on its own HBM slice, block by block; all PEs of SIP 0 at once. Bytes count what is read and written.
class Stream final : public Workload {
 public:
  std::string name() const override { return "stream"; }
  std::string help() const override { return "HBM bandwidth (read, write, copy, triad on all PEs) and latency"; }
  std::string example() const override { return "kernbench run stream --bytes 256K"; }
  void add_options(po::options_description& options) override {
    options.add_options()("bytes", po::value(&bytes_)->default_value("256K"), "bytes of each array on each PE")(
        "block", po::value(&block_)->default_value("16K"), "bytes of one load or store");
  }

  Report run(Session& session) override {
    const std::uint64_t bytes = parse_size("--bytes", bytes_), block = std::min(parse_size("--block", block_), bytes);
    if (block == 0 || block % 4 != 0 || bytes % block != 0) {
      throw std::invalid_argument(fmt::format(
          "--bytes {} and --block {}: give a block of whole 4 B elements that divides the bytes", bytes_, block_));
    }
    Report report;
    report.text = fmt::format(
        "# stream on all PEs of sip0, each in its own HBM slice, blocks of {}\n#{:>9} {:>12} {:>12} {:>10} {:>7} "
        "{:>12}\n",
        readable_bytes(block), "pattern", "bytes", "time (ns)", "GB/s", "peak", "latency (ns)");
    session.run(1, [&](Context& ctx) { rank_program(ctx, bytes, block, report); });
    return report;
  }

 private:
  struct Pattern {
    const char* name;
    int reads, writes;
  };

  void rank_program(Context& ctx, std::uint64_t bytes, std::uint64_t block, Report& report) {
    constexpr Pattern kPatterns[] = {{"read", 1, 0}, {"write", 0, 1}, {"copy", 1, 1}, {"triad", 2, 1}};
    const auto count = static_cast<std::int64_t>(bytes / 4), per_block = static_cast<std::int64_t>(block / 4);
    const std::size_t pes = ctx.map().pes(0).size();
    DPPolicy split;
    split.cube = CubeSplit::column_wise;
    split.pe = PeSplit::column_wise;
    const std::int64_t units = std::int64_t{ctx.map().cubes_per_sip()} * ctx.map().pes_per_cube;
    const Tensor a = ctx.zeros({1, count * units}, DType::f32, split, "a"),
                 b = ctx.zeros({1, count * units}, DType::f32, split, "b");
    const Tensor c = ctx.zeros({1, count * units}, DType::f32, split, "c");
    const Va va = a.va(), vb = b.va(), vc = c.va();
    const double peak =
        static_cast<double>(ctx.map().hbm_slice.peak.bytes_per_second()) / 1e9 * static_cast<double>(pes);
    for (const Pattern& pattern : kPatterns) {
      const KernelBody body = [=](Tl& tl) {
        const Va own_a = tl.shard(va).va, own_b = tl.shard(vb).va, own_c = tl.shard(vc).va;
        const Tile constant = pattern.reads == 0 ? tl.fill({1, per_block}, DType::f32, 1) : Tile();
        for (std::int64_t i = 0; i < count; i += per_block) {
          const Va at = static_cast<Va>(i) * 4;
          Tile value = constant;
          if (pattern.reads > 0) value = tl.load(own_a + at, {1, per_block}, DType::f32);
          if (pattern.reads > 1) value = value + tl.load(own_b + at, {1, per_block}, DType::f32);
          if (pattern.writes > 0) tl.store(own_c + at, value);
        }
      };
      const Handle handle = ctx.launch(pattern.name, body, {a, b, c});
      const double ns = static_cast<double>(handle.kernel_end() - handle.kernel_start()) / 1e3;
      const std::uint64_t moved = bytes * static_cast<std::uint64_t>(pattern.reads + pattern.writes) * pes;
      add_row(pattern.name, moved, ns, static_cast<double>(moved) / ns / peak, {}, report);
    }
    // One element after the other on one PE, each waited for, 4 KiB apart.
    constexpr std::int64_t kLoads = 64;
    const std::int64_t stride = std::max<std::int64_t>(std::min<std::int64_t>(1024, count / kLoads), 1);
    const KernelBody chase = [=](Tl& tl) {
      const Va own = tl.shard(va).va;
      for (std::int64_t i = 0; i < kLoads && i * stride < count; ++i) {
        tl.wait(tl.load(own + static_cast<Va>(i * stride) * 4, {1, 1}, DType::f32));
      }
    };
    const std::int64_t loads = std::min(kLoads, (count + stride - 1) / stride);
    const Handle handle = ctx.launch("latency", chase, {a, b, c}, {ctx.map().pes(0).front()});
    const double ns = static_cast<double>(handle.kernel_end() - handle.kernel_start()) / 1e3;
    add_row("latency", static_cast<std::uint64_t>(loads) * 4, ns, {}, ns / static_cast<double>(loads), report);
  }

  static void add_row(const std::string& pattern, std::uint64_t bytes, double ns, std::optional<double> fraction,
                      std::optional<double> latency, Report& report) {
    Json row;
    row["op"] = "stream";
    row["pattern"] = pattern;
    row["bytes"] = bytes;
    row["time_ns"] = ns;
    row["gbps"] = static_cast<double>(bytes) / ns;
    row["fraction_of_peak"] = fraction ? Json(*fraction) : Json();
    row["avg_latency_ns"] = latency ? Json(*latency) : Json();
    report.text += fmt::format(" {:>9} {:>12} {:>12.1f} {:>10.1f} {:>7} {:>12}\n", pattern, bytes, ns,
                               static_cast<double>(bytes) / ns, fraction ? fmt::format("{:.3f}", *fraction) : "-",
                               latency ? fmt::format("{:.1f}", *latency) : "-");
    report.results.push_back(std::move(row));
  }

  std::string bytes_, block_;
};

}  // namespace

std::unique_ptr<Workload> make_stream() { return std::make_unique<Stream>(); }

}  // namespace kernbench
