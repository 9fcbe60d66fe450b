#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/workload.h"
#include "tlm/kernel/tl.h"
#include "tlm/machine/names.h"
#include "topology/plan.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

/// Issuers that each read `bytes` from one PE's HBM slice.
struct Case {
  std::string name;
  std::vector<PeCoord> issuers;
  PeCoord target;
};

/// Where the time of a read goes, in ns. Shares of the way come from the machine map, so they hold for a first packet
/// with nothing in its way; `hbm` is what one reader alone takes beyond them, `contention` what many take beyond one.
struct Breakdown {
  double setup = 0, mesh = 0, ucie = 0, fabric = 0, wire = 0, hbm = 0, contention = 0;
};

class Probe final : public Workload {
 public:
  std::string name() const override { return "probe"; }
  std::string help() const override {
    return "host to device, device to host, PE DMA near and far, hotspots: latency breakdown, utilisation";
  }
  std::string example() const override { return "kernbench run probe --bytes 16K"; }
  void add_options(po::options_description& options) override {
    options.add_options()("bytes", po::value(&bytes_)->default_value("16K"), "bytes that each issuer moves");
  }

  Report run(Session& session) override {
    const std::uint64_t bytes = parse_size("--bytes", bytes_);
    if (bytes < 256 || bytes % 256 != 0 || bytes > session.map().tcm.bytes / 8) {
      throw std::invalid_argument(fmt::format("--bytes is '{}'; give a multiple of 256 up to an eighth of TCM, {}",
                                              bytes_, readable_bytes(session.map().tcm.bytes / 8)));
    }
    Report report;
    report.text = fmt::format(
        "# probe: {} per issuer; util: of the narrowest edge on the way\n"
        "#{:>26} {:>7} {:>11} {:>9} {:>6} | {:>7} {:>7} {:>7} {:>7} {:>8} {:>8} {:>10}\n",
        readable_bytes(bytes), "case", "issuers", "time (ns)", "GB/s", "util", "setup", "mesh", "ucie", "fabric",
        "wire", "hbm", "contention");
    session.run(1, [&](Context& ctx) { rank_program(ctx, session, bytes, report); });
    return report;
  }

 private:
  void rank_program(Context& ctx, const Session& session, std::uint64_t bytes, Report& report) {
    const MachineMap& map = ctx.map();
    DPPolicy split;
    split.cube = CubeSplit::column_wise;
    split.pe = PeSplit::column_wise;
    const Tensor tensor = ctx.zeros({1, static_cast<std::int64_t>(bytes) * map.cubes_per_sip() * map.pes_per_cube},
                                    DType::i8, split, "probe");
    const Handle write = ctx.submit(MemoryWriteMessage{tensor.pa(0), std::vector<std::uint8_t>(bytes)});
    ctx.wait(write);
    host_row("h2d", write, bytes, report);
    MemoryReadMessage read;
    read.from = tensor.pa(0);
    read.bytes = bytes;
    const Handle back = ctx.submit(std::move(read));
    ctx.wait(back);
    host_row("d2h", back, bytes, report);
    for (const Case& c : cases(map)) measure(ctx, session, tensor, c, bytes, report);
  }

  static std::vector<Case> cases(const MachineMap& map) {
    const auto last_pe = static_cast<std::uint16_t>(map.pes_per_cube - 1);
    const auto last_cube = static_cast<std::uint16_t>(map.cubes_per_sip() - 1);
    std::vector<Case> all = {{"own_slice", {{0, 0, 0}}, {0, 0, 0}}};
    std::vector<PeCoord> of_cube;
    for (const PeCoord pe : map.pes(0)) {
      if (pe.cube == 0) of_cube.push_back(pe);
    }
    if (last_pe > 0) all.push_back({"same_cube_farthest_pe", {{0, 0, 0}}, {0, 0, last_pe}});
    if (map.cube_w > 1) all.push_back({"next_cube", {{0, 0, 0}}, {0, 1, 0}});
    if (last_cube > 0) all.push_back({"farthest_cube", {{0, 0, 0}}, {0, last_cube, last_pe}});
    if (last_pe > 0) all.push_back({"hotspot_cube_to_one_slice", of_cube, {0, 0, 0}});
    if (map.cube_w > 1) all.push_back({"hotspot_cube_to_next_cube", of_cube, {0, 1, 0}});
    if (last_cube > 0) all.push_back({"hotspot_sip_to_one_slice", map.pes(0), {0, 0, 0}});
    return all;
  }

  static double read_ns(Context& ctx, const Tensor& tensor, const std::vector<PeCoord>& issuers, PeCoord target,
                        std::uint64_t bytes) {
    Va va = 0;
    for (const ShardSpec& shard : tensor.shards()) {
      if (shard.cube == target.cube && shard.pe == target.pe) va = tensor.va() + shard.offset_bytes;
    }
    const auto count = static_cast<std::int64_t>(bytes);
    const Handle handle = ctx.launch(
        "probe",
        [=](Tl& tl) {
          tl.load(va, {1, count}, DType::i8);
        },
        {tensor}, issuers);
    return static_cast<double>(handle.kernel_end() - handle.kernel_start()) / 1e3;
  }

  /// Capacity of the narrowest edge between issuer and target, in bytes per ns, and latency of the links between cubes.
  static std::pair<double, double> way(const MachineMap& map, PeCoord from, PeCoord to) {
    double narrowest = std::min(static_cast<double>(map.pe_port.bytes_per_second()),
                                static_cast<double>(map.hbm_slice.peak.bytes_per_second()));
    double latency = 0;
    const auto cross = [&](int a, int b) {
      for (const LinkBundle& link : map.cube_links) {
        if (std::minmax<int>(link.a, link.b) != std::minmax(a, b)) continue;
        narrowest = std::min(narrowest, static_cast<double>(link.capacity.bytes_per_second()));
        latency += static_cast<double>(link.latency) / 1e3;
      }
    };
    int x = from.cube % map.cube_w, y = from.cube / map.cube_w;  // XY over cubes
    const int tx = to.cube % map.cube_w, ty = to.cube / map.cube_w;
    while (x != tx || y != ty) {
      const int before = y * map.cube_w + x;
      (x != tx ? x : y) += (x != tx ? tx > x : ty > y) ? 1 : -1;
      cross(before, y * map.cube_w + x);
    }
    return {narrowest / 1e9, latency};
  }

  void measure(Context& ctx, const Session& session, const Tensor& tensor, const Case& c, std::uint64_t bytes,
               Report& report) {
    const MachineMap& map = ctx.map();
    constexpr std::uint32_t kBurst = 256;
    PeCoord farthest = c.issuers.front();
    for (const PeCoord pe : c.issuers) {
      if (map.packet_latency(map.pe(pe), map.hbm_port(c.target), 0) >
          map.packet_latency(map.pe(farthest), map.hbm_port(c.target), 0))
        farthest = pe;
    }
    const double alone = read_ns(ctx, tensor, {farthest}, c.target, bytes);
    const double all = c.issuers.size() == 1 ? alone : read_ns(ctx, tensor, c.issuers, c.target, bytes);

    const auto [narrowest, link_latency] = way(map, farthest, c.target);
    const NodeId self = map.pe(farthest), hbm = map.hbm_port(c.target);
    const double network =
        static_cast<double>(map.packet_latency(self, hbm, 0) + map.packet_latency(hbm, self, kBurst)) / 1e3;
    Breakdown b;
    if (const topology::Plan* plan = session.options().plan) {
      const PeConfig& pe = plan->spec.pe_at(farthest);
      b.setup = static_cast<double>(pe.cpu.dispatch + pe.dma.setup) / 1e3;
    }
    b.ucie = 2 * link_latency;  // there and back
    b.mesh = network - b.ucie;
    b.wire = static_cast<double>(bytes - kBurst) / narrowest;
    b.hbm = alone - b.setup - network - b.wire;
    b.contention = all - alone;
    const double moved = static_cast<double>(bytes) * static_cast<double>(c.issuers.size());
    // All issuers share the target's slice; those of one cube share the way to it.
    const double slice = static_cast<double>(map.hbm_slice.peak.bytes_per_second()) / 1e9;
    add_row(
        c.name, names::pe(c.target), c.issuers.size(), bytes, all,
        moved / all /
            (c.issuers.size() == 1 ? narrowest : std::min(slice, narrowest * static_cast<double>(c.issuers.size()))),
        b, report);
  }

  static void host_row(const std::string& name, const Handle& handle, std::uint64_t bytes, Report& report) {
    add_row(name, "sip0.cube0.pe0", 1, bytes, static_cast<double>(handle.completed() - handle.submitted()) / 1e3, {},
            {}, report);
  }

  static void add_row(const std::string& name, const std::string& target, std::size_t issuers, std::uint64_t bytes,
                      double ns, std::optional<double> utilisation, const std::optional<Breakdown>& b, Report& report) {
    const double gbps = static_cast<double>(bytes) * static_cast<double>(issuers) / ns;
    Json row;
    row["op"] = "probe";
    row["case"] = name;
    row["target"] = target;
    row["issuers"] = issuers;
    row["bytes"] = bytes;
    row["time_ns"] = ns;
    row["gbps"] = gbps;
    row["utilisation"] = utilisation ? Json(*utilisation) : Json();
    Json parts;
    const auto part = [&](const char* key, double Breakdown::*field) { parts[key] = b ? Json((*b).*field) : Json(); };
    part("setup_ns", &Breakdown::setup);
    part("mesh_ns", &Breakdown::mesh);
    part("ucie_ns", &Breakdown::ucie);
    part("fabric_ns", &Breakdown::fabric);
    part("wire_ns", &Breakdown::wire);
    part("hbm_ns", &Breakdown::hbm);
    part("contention_ns", &Breakdown::contention);
    row["breakdown"] = std::move(parts);
    report.text += fmt::format(" {:>26} {:>7} {:>11.1f} {:>9.2f} {:>6}", name, issuers, ns, gbps,
                               utilisation ? fmt::format("{:.3f}", *utilisation) : "-");
    if (b) {
      report.text += fmt::format(" | {:>7.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>8.1f} {:>8.1f} {:>10.1f}", b->setup,
                                 b->mesh, b->ucie, b->fabric, b->wire, b->hbm, b->contention);
    }
    report.text += "\n";
    report.results.push_back(std::move(row));
  }

  std::string bytes_;
};

}  // namespace

std::unique_ptr<Workload> make_probe() { return std::make_unique<Probe>(); }

}  // namespace kernbench
