#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/workload.h"
#include "tlm/kernel/tl.h"
#include "tlm/machine/names.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

/// PE to PE: IPCQ messages back and forth (latency is half a round trip, as in the OSU benchmarks), and DMA reads of
/// the other PE's HBM slice. Always from sip0.cube0.pe0.
class PeerToPeer final : public Workload {
 public:
  std::string name() const override { return "p2p"; }
  std::string help() const override {
    return "PE to PE over IPCQ and DMA: latency and bandwidth by size, near, far, other SIP";
  }
  std::string example() const override { return "kernbench run p2p -b 64 -e 64K -f 4"; }
  void add_options(po::options_description& options) override {
    auto add = options.add_options();
    add("minbytes,b", po::value(&sizes_.least)->default_value("64"), "smallest size");
    add("maxbytes,e", po::value(&sizes_.most)->default_value("64K"), "largest size");
    add("stepfactor,f", po::value(&sizes_.factor)->default_value(4), "factor from size to size");
    add("stepbytes,i", po::value(&sizes_.step), "bytes from size to size, instead of a factor");
    add("iters,n", po::value(&iterations_)->default_value(4), "round trips, or reads, of which the mean is taken");
  }

  Report run(Session& session) override {
    const auto sizes = sizes_.sizes();
    if (iterations_ < 1 || iterations_ > 100'000)
      throw std::invalid_argument(fmt::format("-n is {}; give 1 to 100000", iterations_));
    if (sizes.back() > session.map().tcm.bytes / 8) {
      throw std::invalid_argument(
          fmt::format("-e {} is more than an eighth of TCM ({}), which holds the tiles in flight", sizes_.most,
                      readable_bytes(session.map().tcm.bytes)));
    }
    const MachineMap& map = session.map();
    session.runtime().init_process_group({"ring_allreduce", "", Scope::sip, {}});
    Report report;
    report.text = fmt::format(
        "# p2p from sip0.cube0.pe0, {} iterations; IPCQ: half a round trip; DMA: read of the peer's HBM slice\n"
        "#{:>5} {:>12} {:>20} {:>10} {:>12} {:>9}\n",
        iterations_, "how", "distance", "peer", "size (B)", "time (ns)", "GB/s");
    session.run(map.sips, [&](Context& ctx) {
      for (const std::uint64_t bytes : sizes) {
        measure_ipcq(ctx, bytes, report);
        measure_dma(ctx, bytes, report);
      }
    });
    return report;
  }

 private:
  static constexpr PeCoord kSelf{0, 0, 0};

  void measure_ipcq(Context& ctx, std::uint64_t bytes, Report& report) {
    const MachineMap& map = ctx.map();
    if (ctx.rank() == 0) {
      if (map.has({0, 0, 1}))
        ping_pong(ctx, bytes, {0, 0, 1}, Direction::local(1), Direction::local(0), "same cube", report);
      if (map.cube_w > 1 && map.has({0, 1, 0}))
        ping_pong(ctx, bytes, {0, 1, 0}, Direction::east(), Direction::west(), "next cube", report);
    }
    ctx.barrier();
    if (map.sips < 2 || !map.has({1, 0, 0}) || ctx.rank() > 1) {
      ctx.barrier();
      return;
    }
    // Two launches, submitted in one instant; the later start counts.
    const bool grid = map.sip_w == 1;  // a grid of one column: rank 1 is south
    const Direction to = ctx.rank() == 0 ? (grid ? Direction::global_s() : Direction::global_e())
                                         : (grid ? Direction::global_n() : Direction::global_w());
    const Handle handle =
        ctx.launch("p2p_ipcq", side(bytes, to, ctx.rank() == 0), {}, {{static_cast<std::uint16_t>(ctx.rank()), 0, 0}});
    starts_[ctx.rank()] = handle.kernel_start();
    ends_[ctx.rank()] = handle.kernel_end();
    ctx.barrier();
    if (ctx.rank() == 0) {
      add_row("ipcq", "other SIP", {1, 0, 0}, bytes, ends_[0] - std::max(starts_[0], starts_[1]), 2 * iterations_,
              report);
    }
  }

  /// One end of a ping-pong.
  KernelBody side(std::uint64_t bytes, Direction peer, bool first) const {
    const auto count = static_cast<std::int64_t>(bytes);
    const int iterations = iterations_;
    return [=](Tl& tl) {
      Tile ball = first ? tl.fill({1, count}, DType::i8, 1) : Tile();
      for (int i = 0; i < iterations; ++i) {
        if (first) tl.send(peer, ball);
        ball = tl.recv(peer, {1, count}, DType::i8);
        tl.wait(ball);
        if (!first) tl.send(peer, ball);
      }
    };
  }

  void ping_pong(Context& ctx, std::uint64_t bytes, PeCoord peer, Direction to, Direction back, const char* distance,
                 Report& report) {
    const KernelBody here = side(bytes, to, true), there = side(bytes, back, false);
    const KernelBody both = [=](Tl& tl) {
      const bool first = tl.program_id(0) == kSelf.pe && tl.program_id(1) == kSelf.cube;
      (first ? here : there)(tl);
    };
    const Handle handle = ctx.launch("p2p_ipcq", both, {}, {kSelf, peer});
    add_row("ipcq", distance, peer, bytes, handle.kernel_end() - handle.kernel_start(), 2 * iterations_, report);
  }

  void measure_dma(Context& ctx, std::uint64_t bytes, Report& report) {
    const MachineMap& map = ctx.map();
    DPPolicy split;
    split.cube = CubeSplit::column_wise;
    split.pe = PeSplit::column_wise;
    const auto count = static_cast<std::int64_t>(bytes);
    const Tensor tensor = ctx.zeros({1, count * map.cubes_per_sip() * map.pes_per_cube}, DType::i8, split, "p2p");
    std::optional<PhysicalAddress>& remote = remote_;
    if (ctx.rank() == 1) remote = tensor.pa(0);
    ctx.barrier();
    if (ctx.rank() == 0) {
      const auto last_cube = static_cast<std::uint16_t>(map.cubes_per_sip() - 1);
      const auto last_pe = static_cast<std::uint16_t>(map.pes_per_cube - 1);
      read(ctx, bytes, tensor, {0, 0, 0}, "own slice", report);
      if (last_pe > 0) read(ctx, bytes, tensor, {0, 0, last_pe}, "same cube", report);
      if (map.cube_w > 1) read(ctx, bytes, tensor, {0, 1, 0}, "next cube", report);
      if (last_cube > 0) read(ctx, bytes, tensor, {0, last_cube, last_pe}, "farthest cube", report);
      if (remote) {
        constexpr Va kWindow = Va{1} << 46;  // beyond what tensors are given
        ctx.wait(ctx.submit(MmuMapMessage{{{kWindow, bytes, *remote, {}}}}));
        read_at(ctx, bytes, tensor, kWindow, {remote->sip, remote->cube, remote->unit}, "other SIP", report);
        ctx.wait(ctx.submit(MmuUnmapMessage{kWindow, bytes}));
      }
    }
    ctx.barrier();
  }

  void read(Context& ctx, std::uint64_t bytes, const Tensor& tensor, PeCoord owner, const char* distance,
            Report& report) {
    for (const ShardSpec& shard : tensor.shards()) {
      if (shard.cube == owner.cube && shard.pe == owner.pe)
        read_at(ctx, bytes, tensor, tensor.va() + shard.offset_bytes, owner, distance, report);
    }
  }

  void read_at(Context& ctx, std::uint64_t bytes, const Tensor& tensor, Va va, PeCoord owner, const char* distance,
               Report& report) {
    const auto count = static_cast<std::int64_t>(bytes);
    const int iterations = iterations_;
    const KernelBody body = [=](Tl& tl) {
      for (int i = 0; i < iterations; ++i) tl.wait(tl.load(va, {1, count}, DType::i8));
    };
    const Handle handle = ctx.launch("p2p_dma", body, {tensor}, {kSelf});
    add_row("dma", distance, owner, bytes, handle.kernel_end() - handle.kernel_start(), iterations_, report);
  }

  static void add_row(const char* how, const char* distance, PeCoord peer, std::uint64_t bytes, Ps time, int times,
                      Report& report) {
    const double ns = static_cast<double>(time) / 1e3 / times;
    Json row;
    row["op"] = "p2p";
    row["how"] = how;
    row["distance"] = distance;
    row["peer"] = names::pe(peer);
    row["bytes"] = bytes;
    row["time_ns"] = ns;
    row["gbps"] = static_cast<double>(bytes) / ns;
    report.text += fmt::format(" {:>5} {:>13} {:>20} {:>10} {:>12.1f} {:>9.3f}\n", how, distance, names::pe(peer),
                               bytes, ns, static_cast<double>(bytes) / ns);
    report.results.push_back(std::move(row));
  }

  SizeRange sizes_;
  int iterations_ = 4;
  Ps starts_[2] = {}, ends_[2] = {};
  std::optional<PhysicalAddress> remote_;
};

}  // namespace

std::unique_ptr<Workload> make_p2p() { return std::make_unique<PeerToPeer>(); }

}  // namespace kernbench
