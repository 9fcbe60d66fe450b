#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "runtime/placement_units.h"
#include "runtime/tool_work.h"
#include "sc_main/check/numerics.h"
#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/workload.h"
#include "tlm/config/refusals.h"
#include "tlm/kernel/tl.h"
#include "tlm/machine/names.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

/// PE that begins every exchange, and that reads.
constexpr PeCoord kSelf{0, 0, 0};

/// A ping-pong: queues of kSelf to the other PE and back.
struct PingPong {
  Direction to, back;
  std::int64_t count = 0;  ///< bytes of the ball
  int iterations = 0;

  static bool is_first(const Tl& tl) {
    return tl.program_id(0) == kSelf.pe && tl.program_id(1) == kSelf.cube && tl.program_id(2) == kSelf.sip;
  }
};

void ping_pong_kernel(PingPong game, Tl& tl) {
  const bool first = PingPong::is_first(tl);
  const Direction peer = first ? game.to : game.back;
  Tile ball = first ? tl.fill({1, game.count}, DType::i8, 1) : Tile();
  for (int i = 0; i < game.iterations; ++i) {
    if (first) tl.send(peer, ball);
    ball = tl.recv(peer, {1, game.count}, DType::i8);
    tl.wait(ball);
    if (!first) tl.send(peer, ball);
  }
}

/// The same once, with data: the first one's part of `sent` goes there and back; both store what they got.
void check_kernel(Va sent, Va arrived, PingPong game, Tl& tl) {
  const bool first = PingPong::is_first(tl);
  const Direction peer = first ? game.to : game.back;
  const Shape shape{1, game.count};
  if (first) tl.send(peer, tl.load(tl.shard(sent).va, shape, DType::i8));
  const Tile ball = tl.recv(peer, shape, DType::i8);
  tl.store(tl.shard(arrived).va, ball);
  if (!first) tl.send(peer, ball);
}

void read_kernel(Va from, std::int64_t count, int iterations, Tl& tl) {
  for (int i = 0; i < iterations; ++i) tl.wait(tl.load(from, {1, count}, DType::i8));
}

void copy_kernel(Va from, std::int64_t count, Va to, Tl& tl) {
  tl.store(tl.shard(to).va, tl.load(from, {1, count}, DType::i8));
}

/// PE to PE: IPCQ messages back and forth (latency is half a round trip, as in the OSU benchmarks), and DMA reads of
/// the other PE's HBM slice. Always from sip0.cube0.pe0. What arrives is checked by an untimed launch of its own, which
/// takes known bytes the same way and stores them where the host reads them.
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

  void check_options() const override {
    Refusals refusals;
    refusals.from([this] { sizes_.sizes(); });
    if (iterations_ < 1 || iterations_ > 100'000) refusals.add(fmt::format("-n is {}; give 1 to 100000", iterations_));
    refusals.throw_if_any();
  }

  Report run(Session& session) override {
    const auto sizes = sizes_.sizes();
    if (sizes.back() > session.map().tcm.bytes / 8) {
      throw std::invalid_argument(
          fmt::format("-e {} is more than an eighth of TCM ({}), which holds the tiles in flight", sizes_.most,
                      readable_bytes(session.map().tcm.bytes)));
    }
    const MachineMap& map = session.map();
    if (!has_part(map, kSelf))
      throw std::invalid_argument("p2p begins at sip0.cube0.pe0, which this machine does not have or leaves idle");
    session.runtime().init_process_group({"ring_allreduce", "", Scope::sip, {}});
    Report report;
    report.text = fmt::format(
        "# p2p from sip0.cube0.pe0, {} iterations; IPCQ: half a round trip; DMA: read of the peer's HBM slice\n"
        "#{:>5} {:>12} {:>20} {:>10} {:>12} {:>9} {:>8}\n",
        iterations_, "how", "distance", "peer", "size (B)", "time (ns)", "GB/s", "check");
    data_ = session.options().run.data;
    copies_ = makes_copies(session);
    seed_ = session.options().seed;
    session.run(map.sips, [&](Context& ctx) {
      for (const std::uint64_t bytes : sizes) {
        measure_ipcq(ctx, bytes, report);
        measure_dma(ctx, bytes, report);
      }
    });
    return report;
  }

 private:
  /// Bytes of a tensor that has one part of equal size on every PE.
  struct Parts {
    Tensor tensor;
    std::vector<std::uint8_t> host;  ///< what was put into it; empty with data off
    std::uint64_t bytes = 0;         ///< of a part

    const ShardSpec* find(PeCoord pe) const {
      for (const ShardSpec& shard : tensor.shards()) {
        if (shard.cube == pe.cube && shard.pe == pe.pe) return &shard;
      }
      return nullptr;  // where PEs are missing, some stay idle
    }
    const ShardSpec& shard(PeCoord pe) const {
      if (const ShardSpec* shard = find(pe)) return *shard;
      throw std::invalid_argument(fmt::format("{} has no part of tensor '{}'", names::pe(pe), tensor.name()));
    }
  };

  /// `pattern` 0: zeros.
  Parts make_parts(Context& ctx, std::uint64_t bytes, const char* name, std::uint64_t pattern) const {
    const DPPolicy split = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise);
    const Shape shape{1, static_cast<std::int64_t>(bytes * ctx.map().cubes_per_sip()) * ctx.map().pes_per_cube};
    Parts parts;
    parts.bytes = bytes;
    if (pattern == 0 || !copies_) {
      parts.tensor = ctx.zeros(shape, DType::i8, split, name);
      return parts;
    }
    parts.tensor = ctx.empty(shape, DType::i8, split, name);
    const ToolWork filling(ctx);
    parts.host =
        Pattern(seed_, DType::i8, Pattern::Range::unit).bytes(pattern, static_cast<std::size_t>(shape.count()));
    parts.tensor.write_bytes(parts.host);
    return parts;
  }

  /// Bytes of the part of `arrived` on `pe` that differ from the part of `sent` on `owner`; nothing with data off.
  std::optional<std::uint64_t> differing(Context& ctx, const Parts& arrived, PeCoord pe, const Parts& sent,
                                         PeCoord owner) const {
    if (!copies_) return {};
    const ToolWork checking(ctx);
    const std::vector<std::uint8_t> all = arrived.tensor.bytes_to_host();
    if (!data_) return {};
    const auto at = static_cast<std::uint64_t>(arrived.shard(pe).region.col),
               from = static_cast<std::uint64_t>(sent.shard(owner).region.col);
    std::uint64_t count = 0;
    for (std::uint64_t i = 0; i < sent.bytes; ++i) count += all[at + i] != sent.host[from + i] ? 1 : 0;
    return count;
  }

  /// What a PE receives is checked in its part of a tensor, which it has not where other cubes have fewer PEs.
  static bool has_part(const MachineMap& map, PeCoord pe) {
    const PlacementUnits units = placement_units(map);
    for (std::size_t i = 0; i < units.cubes.size(); ++i) {
      const std::vector<int>& pes = units.pes[i];
      if (units.cubes[i] == pe.cube) return std::find(pes.begin(), pes.end(), pe.pe) != pes.end();
    }
    return false;
  }

  void measure_ipcq(Context& ctx, std::uint64_t bytes, Report& report) {
    const MachineMap& map = ctx.map();
    if (ctx.rank() == 0) {
      if (has_part(map, {0, 0, 1}))
        ping_pong(ctx, bytes, {0, 0, 1}, Direction::local(1), Direction::local(0), "same cube", report);
      if (map.cube_w > 1 && has_part(map, {0, 1, 0}))
        ping_pong(ctx, bytes, {0, 1, 0}, Direction::east(), Direction::west(), "next cube", report);
    }
    ctx.barrier();
    if (map.sips < 2 || !has_part(map, {1, 0, 0})) return;
    if (ctx.rank() <= 1) ping_pong_other_sip(ctx, bytes);
    ctx.barrier();
    if (ctx.rank() > 0) return;
    std::optional<std::uint64_t> wrong = wrong_[0];
    if (wrong) *wrong += *wrong_[1];
    add_row("ipcq", "other SIP", {1, 0, 0}, bytes, ends_[0] - std::max(starts_[0], starts_[1]), 2 * iterations_, wrong,
            report);
  }

  /// Two launches, submitted in one instant; the later start counts.
  void ping_pong_other_sip(Context& ctx, std::uint64_t bytes) {
    const bool grid = ctx.map().sip_w == 1, first = ctx.rank() == 0;  // a grid of one column: rank 1 is south
    const Direction to = first ? (grid ? Direction::global_s() : Direction::global_e())
                               : (grid ? Direction::global_n() : Direction::global_w());
    const PeCoord self{static_cast<std::uint16_t>(ctx.rank()), 0, 0};
    const LaunchOptions on{{self}};
    const PingPong game{to, to, static_cast<std::int64_t>(bytes), iterations_};
    const Handle handle = ctx.launch("p2p_ipcq", on, ping_pong_kernel, game);
    starts_[ctx.rank()] = handle.kernel_start();
    ends_[ctx.rank()] = handle.kernel_end();
    const Parts sent = make_parts(ctx, bytes, "p2p_sent", 1), arrived = make_parts(ctx, bytes, "p2p_arrived", 0);
    ctx.launch("p2p_check", on, check_kernel, sent.tensor, arrived.tensor, game);
    wrong_[ctx.rank()] = differing(ctx, arrived, self, sent, {0, 0, 0});  // both ranks made the same bytes
  }

  void ping_pong(Context& ctx, std::uint64_t bytes, PeCoord peer, Direction to, Direction back, const char* distance,
                 Report& report) {
    const LaunchOptions on{{kSelf, peer}};
    const PingPong game{to, back, static_cast<std::int64_t>(bytes), iterations_};
    const Handle handle = ctx.launch("p2p_ipcq", on, ping_pong_kernel, game);
    const Parts sent = make_parts(ctx, bytes, "p2p_sent", 1), arrived = make_parts(ctx, bytes, "p2p_arrived", 0);
    ctx.launch("p2p_check", on, check_kernel, sent.tensor, arrived.tensor, game);
    std::optional<std::uint64_t> wrong = differing(ctx, arrived, kSelf, sent, kSelf);
    const std::optional<std::uint64_t> there = differing(ctx, arrived, peer, sent, kSelf);
    if (wrong && there) *wrong += *there;
    add_row("ipcq", distance, peer, bytes, handle.kernel_end() - handle.kernel_start(), 2 * iterations_, wrong, report);
  }

  void measure_dma(Context& ctx, std::uint64_t bytes, Report& report) {
    const MachineMap& map = ctx.map();
    const Parts parts = make_parts(ctx, bytes, "p2p", 2 + static_cast<std::uint64_t>(ctx.rank()));
    if (ctx.rank() == 1) remote_ = parts;
    ctx.barrier();
    if (ctx.rank() == 0) {
      const auto last_cube = static_cast<std::uint16_t>(map.cubes_per_sip() - 1);
      const auto last_pe = static_cast<std::uint16_t>(map.pes_per_cube - 1);
      const auto local = [&](PeCoord owner, const char* distance) {
        if (parts.find(owner) == nullptr) return;
        read(ctx, parts, owner, parts.tensor.va() + parts.shard(owner).offset_bytes, distance, report);
      };
      local({0, 0, 0}, "own slice");
      if (last_pe > 0) local({0, 0, last_pe}, "same cube");
      if (map.cube_w > 1) local({0, 1, 0}, "next cube");
      if (last_cube > 0) local({0, last_cube, last_pe}, "farthest cube");
      if (remote_ && remote_->find({1, 0, 0}) != nullptr) {
        constexpr Va kWindow = Va{1} << 46;  // beyond what tensors are given
        const auto shard = static_cast<std::size_t>(&remote_->shard({1, 0, 0}) - remote_->tensor.shards().data());
        ctx.wait(ctx.submit(MmuMapMessage{{{kWindow, bytes, remote_->tensor.pa(shard), {}}}}));
        read(ctx, *remote_, {1, 0, 0}, kWindow, "other SIP", report);
        ctx.wait(ctx.submit(MmuUnmapMessage{kWindow, bytes}));
      }
    }
    ctx.barrier();
    if (ctx.rank() == 1) remote_.reset();
  }

  /// Reads of the owner's part, which stands at `va`.
  void read(Context& ctx, const Parts& parts, PeCoord owner, Va va, const char* distance, Report& report) {
    const auto count = static_cast<std::int64_t>(parts.bytes);
    const LaunchOptions on{{kSelf}};
    const Parts arrived = make_parts(ctx, parts.bytes, "p2p_arrived", 0);
    const Handle handle = ctx.launch("p2p_dma", on, read_kernel, va, count, iterations_);
    ctx.launch("p2p_check", on, copy_kernel, va, count, arrived.tensor);
    add_row("dma", distance, owner, parts.bytes, handle.kernel_end() - handle.kernel_start(), iterations_,
            differing(ctx, arrived, kSelf, parts, owner), report);
  }

  static void add_row(const char* how, const char* distance, PeCoord peer, std::uint64_t bytes, Ps time, int times,
                      std::optional<std::uint64_t> wrong, Report& report) {
    const double ns = static_cast<double>(time) / 1e3 / times;
    Json row;
    row["op"] = "p2p";
    row["how"] = how;
    row["distance"] = distance;
    row["peer"] = names::pe(peer);
    row["bytes"] = bytes;
    row["time_ns"] = ns;
    row["gbps"] = static_cast<double>(bytes) / ns;
    row["check"] = !wrong ? "skipped" : *wrong == 0 ? "ok" : "wrong";
    row["mismatches"] = wrong ? Json(*wrong) : Json();
    report.text += fmt::format(" {:>5} {:>13} {:>20} {:>10} {:>12.1f} {:>9.3f} {:>8}\n", how, distance, names::pe(peer),
                               bytes, ns, static_cast<double>(bytes) / ns, row["check"].get<std::string>());
    report.wrong = report.wrong || wrong.value_or(0) > 0;
    report.results.push_back(std::move(row));
  }

  SizeRange sizes_;
  int iterations_ = 4;
  bool data_ = true, copies_ = true;
  std::uint64_t seed_ = 1;
  Ps starts_[2] = {}, ends_[2] = {};
  std::optional<std::uint64_t> wrong_[2];  ///< other SIP, by rank
  std::optional<Parts> remote_;            ///< rank 1's
};

}  // namespace

std::unique_ptr<Workload> make_p2p() { return std::make_unique<PeerToPeer>(); }

}  // namespace kernbench
