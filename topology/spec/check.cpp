#include "topology/spec/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/noc/virtual_channel.h"
#include "tlm/config/nearest.h"
#include "tlm/config/units.h"
#include "tlm/machine/address.h"

namespace kernbench::topology {

Location given_last(const std::vector<Location>& places, const std::vector<std::string>& layers) {
  Location last;
  std::ptrdiff_t last_rank = -1;
  for (const Location& place : places) {
    const auto found = std::find(layers.begin(), layers.end(), place.file);
    const std::ptrdiff_t rank = found == layers.end() ? 0 : found - layers.begin();
    if (rank <= last_rank) continue;
    last = place;
    last_rank = rank;
  }
  return last;
}

Location CheckContext::where(std::initializer_list<const char*> paths) const {
  std::vector<Location> places;
  for (const char* path : paths) {
    // A value that nobody gave stands where its section stands.
    std::string at = path;
    const ConfigNode* node = tree.at_path(at);
    while (node == nullptr && at.find('.') != std::string::npos) {
      at.erase(at.rfind('.'));
      node = tree.at_path(at);
    }
    places.push_back(node == nullptr ? tree.where : node->where);
  }
  return given_last(places, layer_files);
}

bool CheckContext::usable(const std::string& path) const {
  for (std::string at = path;; at.erase(at.rfind('.'))) {
    if (failed.count(at) != 0) return false;
    if (at.find('.') == std::string::npos) return true;
  }
}

void CheckContext::add(std::initializer_list<const char*> paths, const std::string& text,
                       const std::string& hint) const {
  if (std::all_of(paths.begin(), paths.end(), [&](const char* path) { return usable(path); })) {
    problems.add(where(paths), text, hint);
  }
}

namespace {

std::string size(std::uint64_t bytes) { return format_quantity(bytes, Dimension::bytes); }
std::string rate(std::uint64_t bytes_per_second) { return format_quantity(bytes_per_second, Dimension::bandwidth); }

/// Flits are looked ahead no farther than kMaxPipelineCycles, and a flow that may use any channel loses its order.
void check_network(const NocConfig& noc, const std::string& path, const CheckContext& context) {
  const auto limit = [&](std::uint64_t cycles, const char* last, const char* what) {
    if (cycles <= kMaxPipelineCycles) return;
    context.add({(path + ".pipeline." + last).c_str()}, fmt::format("{} in {} takes {} cycles", what, path, cycles),
                fmt::format("give stages that sum up to at most {}", kMaxPipelineCycles));
  };
  const std::uint64_t allocation = noc.sw_alloc_delay;
  limit(std::uint64_t{noc.routing_delay} + noc.vc_alloc_delay, "vc_allocation",
        "routing and virtual channel allocation");
  limit(allocation + noc.switch_delay + noc.link_delay, "link", "the way from switch allocation to the next buffer");
  limit(allocation + noc.credit_delay, "credit", "the way of a credit");
  if (noc.vc_choice == VcChoice::any) {
    context.add({(path + ".vc_choice").c_str()}, path + ".vc_choice is 'any', with which packets of a flow overtake",
                "set it to 'per_flow': IPCQ needs the order of a flow");
  }
}

void check_grid_of_sips(const SystemSpec& spec, const CheckContext& context) {
  const bool torus = spec.topology == SipTopology::torus_2d;
  if (!torus && spec.topology != SipTopology::mesh_2d_no_wrap) return;
  const char* name = to_string(spec.topology);
  if (spec.sip_w == 0 || spec.sip_h == 0) {
    const char* missing = spec.sip_w == 0 ? (spec.sip_h == 0 ? "w and h" : "w") : "h";
    context.add({"system.sips.topology", "system.sips.w", "system.sips.h"},
                fmt::format("system.sips.topology is '{}', but {} {} missing", name, missing,
                            spec.sip_w + spec.sip_h == 0 ? "are" : "is"),
                "give the width w and the height h of the grid, with w * h = count");
    return;
  }
  if (std::uint32_t{spec.sip_w} * spec.sip_h != spec.sips) {
    context.add({"system.sips.count", "system.sips.w", "system.sips.h", "system.sips.topology"},
                fmt::format("system.sips.count is {}, but w * h is {} * {} = {}", spec.sips, spec.sip_w, spec.sip_h,
                            std::uint32_t{spec.sip_w} * spec.sip_h),
                "make count equal to w * h");
  }
  for (const char* path : {"system.sips.w", "system.sips.h"}) {
    const unsigned extent = path[12] == 'w' ? spec.sip_w : spec.sip_h;
    if (torus && extent < 2) {
      context.add({path, "system.sips.topology"},
                  fmt::format("{} is {}: a torus is at least 2 wide and 2 high", path, extent),
                  "use mesh_2d_no_wrap or ring_1d");
    }
  }
}

/// Points of one list: inside the mesh, each once.
void check_points(const char* path, const std::vector<GridPoint>& points, const NocConfig& noc,
                  const CheckContext& context) {
  std::set<GridPoint> seen;
  for (const GridPoint point : points) {
    if (point.row >= noc.rows || point.col >= noc.cols) {
      context.add(
          {path, "cube.noc.rows", "cube.noc.cols"},
          fmt::format("{} names {}, which lies outside the {} x {} mesh", path, to_string(point), noc.rows, noc.cols),
          fmt::format("positions go from r0c0 to r{}c{}", noc.rows - 1, noc.cols - 1));
    }
    if (!seen.insert(point).second) {
      context.add({path}, fmt::format("{} names {} twice", path, to_string(point)), "give each position once");
    }
  }
}

/// Attachments stand on routers outside the exclusion zone.
void check_attachments(const char* path, const std::vector<GridPoint>& points, const PlacementHints& placement,
                       const CheckContext& context) {
  for (const GridPoint point : points) {
    if (contains(placement.holes, point)) {
      context.add({path, "cube.placement.holes"}, fmt::format("{} names {}, which is a hole", path, to_string(point)),
                  "give a position that has a router");
    } else if (contains(placement.exclusion, point)) {
      context.add({path, "cube.placement.exclusion"},
                  fmt::format("{} names {}, which lies in the exclusion zone", path, to_string(point)),
                  "give a position outside cube.placement.exclusion");
    }
  }
}

/// Routers that can be reached from the first one.
std::size_t connected_routers(const NocConfig& noc, const std::vector<GridPoint>& holes) {
  std::set<GridPoint> seen;
  std::vector<GridPoint> stack;
  const auto visit = [&](int row, int col) {
    const GridPoint point{static_cast<std::uint16_t>(row), static_cast<std::uint16_t>(col)};
    const bool inside = row >= 0 && col >= 0 && row < noc.rows && col < noc.cols;
    if (inside && !contains(holes, point) && seen.insert(point).second) stack.push_back(point);
  };
  for (int i = 0; i < noc.rows * noc.cols && stack.empty(); ++i) visit(i / noc.cols, i % noc.cols);
  while (!stack.empty()) {
    const GridPoint at = stack.back();
    stack.pop_back();
    visit(at.row - 1, at.col);
    visit(at.row + 1, at.col);
    visit(at.row, at.col - 1);
    visit(at.row, at.col + 1);
  }
  return seen.size();
}

void check_placement(const CubeSpec& cube, const CheckContext& context) {
  const PlacementHints& placement = cube.placement;
  for (const char* path : {"cube.noc.rows", "cube.noc.cols", "cube.placement"}) {
    if (!context.usable(path)) return;
  }
  check_points("cube.placement.holes", placement.holes, cube.noc, context);
  check_points("cube.placement.exclusion", placement.exclusion, cube.noc, context);
  check_points("cube.placement.pes", placement.pes, cube.noc, context);
  check_points("cube.placement.m_cpu", placement.m_cpu, cube.noc, context);
  check_points("cube.placement.sram", placement.sram, cube.noc, context);
  check_attachments("cube.placement.pes", placement.pes, placement, context);
  check_attachments("cube.placement.m_cpu", placement.m_cpu, placement, context);
  check_attachments("cube.placement.sram", placement.sram, placement, context);
  if (!placement.pes.empty() && placement.pes.size() != cube.pes) {
    context.add({"cube.placement.pes", "cube.pes"},
                fmt::format("cube.placement.pes has {} positions, but cube.pes is {}", placement.pes.size(), cube.pes),
                "give one position per PE, or none");
  }

  std::size_t routers = 0, free = 0;
  for (std::uint16_t row = 0; row < cube.noc.rows; ++row) {
    for (std::uint16_t col = 0; col < cube.noc.cols; ++col) {
      const bool router = !contains(placement.holes, {row, col});
      routers += router ? 1 : 0;
      free += router && !contains(placement.exclusion, {row, col}) ? 1 : 0;
    }
  }
  if (free < cube.pes) {
    context.add({"cube.pes", "cube.noc.rows", "cube.noc.cols", "cube.placement.holes", "cube.placement.exclusion"},
                fmt::format("cube.pes is {}, but the {} x {} mesh has only {} router{} for them", cube.pes,
                            cube.noc.rows, cube.noc.cols, free, free == 1 ? "" : "s"),
                "each PE needs a router of its own: give fewer PEs, or a larger mesh");
  }
  if (!placement.holes.empty() && cube.noc.routing != RoutingAlgorithm::table) {
    context.add({"cube.noc.routing", "cube.placement.holes"}, "a mesh with holes cannot be routed XY or YX",
                "set cube.noc.routing to 'table'");
  }
  if (const std::size_t reached = connected_routers(cube.noc, placement.holes); reached < routers) {
    context.add(
        {"cube.placement.holes", "cube.noc.rows", "cube.noc.cols"},
        fmt::format("cube.placement.holes cuts the mesh: only {} of {} routers reach each other", reached, routers),
        "leave a way between all routers");
  }
}

void check_hbm_slices(const HbmConfig& hbm, std::uint32_t pes, const CheckContext& context) {
  const std::uint32_t pseudo_channels = hbm.total_pseudo_channels();
  if (pseudo_channels % pes != 0) {
    context.add({"cube.hbm.channels", "cube.hbm.pseudo_channels", "cube.hbm.generation", "cube.pes"},
                fmt::format("cube.hbm has {} * {} = {} pseudo channels, which cannot be dealt evenly to {} PEs",
                            hbm.channels, hbm.pseudo_channels, pseudo_channels, pes),
                "make channels * pseudo_channels a multiple of cube.pes");
    return;
  }
  const std::uint64_t stripe = std::uint64_t{pseudo_channels / pes} * hbm.interleave_bytes;
  if (hbm.bytes % (stripe * pes) != 0) {
    context.add({"cube.hbm.size", "cube.hbm.generation", "cube.hbm.interleave", "cube.pes"},
                fmt::format("cube.hbm.size is {}, which {} PEs cannot share in whole stripes of {}", size(hbm.bytes),
                            pes, size(stripe)),
                fmt::format("give a multiple of {}", size(stripe * pes)));
  } else if (hbm.bytes / pes > PhysicalAddress::kMaxOffset + 1) {
    context.add({"cube.hbm.size", "cube.hbm.generation", "cube.pes"},
                fmt::format("cube.hbm.size is {}, which is {} per PE", size(hbm.bytes), size(hbm.bytes / pes)),
                fmt::format("a physical address reaches {} per PE: give a smaller stack, or more PEs",
                            size(PhysicalAddress::kMaxOffset + 1)));
  }
}

/// Each part of the mapping once, the pseudo channel at most once; rows at the top, or below the pseudo channel only:
/// they are what capacity changes.
void check_mapping(const HbmConfig& hbm, const CheckContext& context) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < hbm.mapping.size(); i += 2) parts.push_back(hbm.mapping.substr(i, 2));
  if (const auto pc = std::find(parts.begin(), parts.end(), "Pc"); pc != parts.end()) parts.erase(pc);
  const bool rows_first = !parts.empty() && parts.front() == "Ro";
  std::sort(parts.begin(), parts.end());
  if (rows_first && parts == std::vector<std::string>{"Ba", "Bg", "Co", "Ro", "Si"}) return;
  context.add({"cube.hbm.mapping"}, fmt::format("cube.hbm.mapping is {}", quote(hbm.mapping)),
              "give Ro, then Si, Ba, Bg and Co once each in any order, such as RoSiBaCoBg");
}

/// Refresh must leave time for an access.
void check_refresh(const HbmConfig& hbm, const CheckContext& context) {
  const HbmTiming& t = hbm.timing;
  if (hbm.refresh == RefreshPolicy::all_bank && (t.t_rfc_ab == 0 || t.t_refi <= t.t_rfc_ab + t.t_rc)) {
    context.add({"cube.hbm.refresh", "cube.hbm.timing.t_refi", "cube.hbm.timing.t_rfc_ab", "cube.hbm.timing.t_rc"},
                fmt::format("cube.hbm.refresh is 'all_bank', but t_refi is {}, t_rfc_ab {} and t_rc {}", t.t_refi,
                            t.t_rfc_ab, t.t_rc),
                "give t_rfc_ab above 0 and t_refi above t_rfc_ab + t_rc, or 'refresh: none'");
  }
  if (hbm.refresh != RefreshPolicy::per_bank) return;
  const std::uint64_t due = hbm.refreshes_due();
  if (t.t_rfc_pb == 0 || t.t_refi_pb <= due * t.t_rc) {
    context.add({"cube.hbm.refresh", "cube.hbm.timing.t_refi_pb", "cube.hbm.timing.t_rfc_pb", "cube.hbm.timing.t_rc"},
                fmt::format("cube.hbm.refresh is 'per_bank', but t_refi_pb is {}, t_rfc_pb {} and t_rc {}", t.t_refi_pb,
                            t.t_rfc_pb, t.t_rc),
                fmt::format("give t_rfc_pb above 0 and t_refi_pb above {} * t_rc, or 'refresh: none'", due));
  }
}

/// The model of a channel keeps gaps between commands in few bits.
void check_gaps(const HbmConfig& hbm, const CheckContext& context) {
  const std::uint64_t most = kLargestGap / (hbm.half_clock_commands ? 2 : 1) - 1;
  const HbmTiming& t = hbm.timing;
  struct Gap {
    const char *path, *formula;
    std::uint64_t clocks;
  };
  const std::uint64_t written = std::uint64_t{t.t_cwl} + hbm.burst_ck;
  for (const Gap& gap : {Gap{"cube.hbm.timing.t_rfc_ab", "t_rfc_ab", t.t_rfc_ab},
                         Gap{"cube.hbm.timing.t_rfc_pb", "t_rfc_pb", t.t_rfc_pb},
                         Gap{"cube.hbm.timing.t_faw", "t_faw", t.t_faw}, Gap{"cube.hbm.timing.t_rc", "t_rc", t.t_rc},
                         Gap{"cube.hbm.timing.t_wr", "t_cwl + burst + t_wr", written + t.t_wr},
                         Gap{"cube.hbm.timing.t_wtr_l", "t_cwl + burst + t_wtr_l", written + t.t_wtr_l}}) {
    if (gap.clocks <= most) continue;
    context.add({gap.path, "cube.hbm.timing.t_cwl"},
                fmt::format("cube.hbm.timing: {} is {} cycles", gap.formula, gap.clocks),
                fmt::format("give at most {}", most));
  }
}

void check_hbm(const HbmConfig& hbm, std::uint32_t pes, const CheckContext& context) {
  if (hbm.write_high < hbm.write_low) {
    context.add({"cube.hbm.write_high", "cube.hbm.write_low"},
                fmt::format("cube.hbm.write_high is {}, below write_low, {}", hbm.write_high, hbm.write_low),
                "batches of writes start above write_high and end below write_low: give a larger write_high");
  }
  check_hbm_slices(hbm, pes, context);
  check_mapping(hbm, context);
  if (hbm.interleave_bytes % hbm.burst_bytes != 0) {
    context.add({"cube.hbm.interleave", "cube.hbm.burst_size"},
                fmt::format("cube.hbm.interleave is {}, smaller than a burst of {}", size(hbm.interleave_bytes),
                            size(hbm.burst_bytes)),
                fmt::format("give at least {}", size(hbm.burst_bytes)));
  }
  if (hbm.row_bytes % hbm.burst_bytes != 0) {
    context.add(
        {"cube.hbm.row_size", "cube.hbm.burst_size"},
        fmt::format("cube.hbm.row_size is {}, smaller than a burst of {}", size(hbm.row_bytes), size(hbm.burst_bytes)),
        fmt::format("give at least {}", size(hbm.burst_bytes)));
  }
  const std::uint64_t of_channel = hbm.channel_banks(), banks = hbm.channels * of_channel;
  if (hbm.bytes % (banks * hbm.row_bytes) != 0) {
    context.add({"cube.hbm.size", "cube.hbm.generation"},
                fmt::format("cube.hbm.size is {}, which does not fill whole rows of {} in {} banks", size(hbm.bytes),
                            size(hbm.row_bytes), banks),
                fmt::format("give a multiple of {}", size(banks * hbm.row_bytes)));
  }
  if (of_channel > kMostBanks) {
    context.add({"cube.hbm.banks_per_group", "cube.hbm.bank_groups", "cube.hbm.stack_ids", "cube.hbm.pseudo_channels"},
                fmt::format("cube.hbm has {} banks per channel", of_channel),
                fmt::format("pseudo_channels * stack_ids * bank_groups * banks_per_group is at most {}", kMostBanks));
  }
  check_refresh(hbm, context);
  check_gaps(hbm, context);
}

void check_sram(const SramConfig& sram, const CheckContext& context) {
  const std::uint64_t stripe = std::uint64_t{sram.banks} * sram.bank_interleave_bytes;
  if (sram.bytes % stripe != 0) {
    context.add({"cube.sram.size", "cube.sram.banks", "cube.sram.interleave"},
                fmt::format("cube.sram.size is {}, no multiple of {} banks of {}", size(sram.bytes), sram.banks,
                            size(sram.bank_interleave_bytes)),
                fmt::format("give a multiple of {}", size(stripe)));
  }
}

void check_errors(const UcieConfig& ucie, const char* errors, const char* flit, const CheckContext& context) {
  if (ucie.bit_errors == 0 || ucie.flit != UcieFlit::raw) return;
  context.add({errors, flit}, fmt::format("{} is {}, but {} is raw, which has no check", errors, ucie.bit_errors, flit),
              "give another flit format, or no bit errors");
}

}  // namespace

void check_system(const SystemSpec& spec, const CheckContext& context) {
  check_grid_of_sips(spec, context);
  if (const unsigned cubes = unsigned{spec.sip.cube_w} * spec.sip.cube_h; cubes > 256) {
    context.add({"sip.cube_mesh.w", "sip.cube_mesh.h"},
                fmt::format("sip.cube_mesh is {} x {} = {} cubes", spec.sip.cube_w, spec.sip.cube_h, cubes),
                "a SIP has at most 256 cubes");
  }
  check_network(spec.sip.io.crossbar, "sip.io.crossbar", context);
  check_network(spec.links.switch_crossbar, "system.links.switch", context);
  check_errors(spec.sip.io.ucie, "sip.io.ucie.bit_errors", "sip.io.ucie.flit", context);
  const LinkConfig& link = spec.links.link;
  if (link.bit_errors > 0 && link.flit_bytes == 0) {
    context.add({"system.links.bit_errors", "system.links.flit_size"},
                fmt::format("system.links.bit_errors is {}, but there are no flits to check", link.bit_errors),
                "give system.links.flit_size, such as '256 B', or no bit errors");
  }
  if (link.latency == 0) {
    context.add({"system.links.latency", "system.links.serdes", "system.links.propagation"},
                "system.links has no latency",
                "give system.links.serdes, propagation or latency: at least 1 ps in all");
  }
  const PcieConfig& pcie = spec.sip.io.pcie;
  if (const std::uint64_t most = pcie.bandwidth_of_lanes(); pcie.bytes_per_second > most) {
    context.add({"sip.io.pcie.bandwidth", "sip.io.pcie.generation", "sip.io.pcie.lanes"},
                fmt::format("sip.io.pcie.bandwidth is {}, more than PCIe {}.0 x{} gives", rate(pcie.bytes_per_second),
                            pcie.generation, pcie.lanes),
                fmt::format("give at most {}, or leave it out", rate(most)));
  }
}

void check_cube(const CubeSpec& cube, const CheckContext& context) {
  check_network(cube.noc, "cube.noc", context);
  check_placement(cube, context);
  check_hbm(cube.hbm, cube.pes, context);
  check_sram(cube.sram, context);
  check_errors(cube.ucie, "cube.ucie.bit_errors", "cube.ucie.flit", context);
  check_pe(cube.pe, cube, context);
}

void check_pe(const PeConfig& pe, const CubeSpec& cube, const CheckContext& context) {
  // Rings of a PE: N, S, E, W, four global ones, and one per other PE of the cube.
  const std::uint64_t rings = 8 + (cube.pes - 1u);
  const std::uint64_t bytes = rings * pe.ipcq.slots * pe.ipcq.slot_bytes;
  const auto report = [&](const char* memory, std::uint64_t all, std::uint64_t capacity, const char* whose) {
    if (all <= capacity) return;
    context.add({"pe.ipcq.slots", "pe.ipcq.slot_size", "pe.ipcq.buffer", memory},
                fmt::format("the IPCQ slots of {} take {} ({} rings of {} * {}), but {} is {}", whose, size(all), rings,
                            pe.ipcq.slots, size(pe.ipcq.slot_bytes), memory, size(capacity)),
                "give fewer or smaller slots, or another pe.ipcq.buffer");
  };
  switch (pe.ipcq.buffer) {
    case IpcqBuffer::tcm:
      report("pe.tcm.size", bytes, pe.tcm.bytes, "a PE");
      break;
    case IpcqBuffer::sram:
      report("cube.sram.size", bytes * cube.pes, cube.sram.bytes, "a cube's PEs");
      break;
    case IpcqBuffer::hbm:
      report("cube.hbm.size", bytes * cube.pes, cube.hbm.bytes, "a cube's PEs");
      break;
  }
}

}  // namespace kernbench::topology
