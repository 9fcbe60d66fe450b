#include "topology/show/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "tlm/config/units.h"
#include "tlm/machine/names.h"
#include "topology/plan/graph.h"
#include "topology/plan/plan.h"
#include "topology/show/drawing.h"
#include "topology/show/show.h"

namespace kernbench::topology {

namespace {

constexpr double kPi = 3.14159265358979323846;

void explain_all(Drawing& drawing) {
  for (int kind = 0; kind < kEdgeKinds; ++kind) {
    const auto edge = static_cast<EdgeKind>(kind);
    drawing.explain(to_string(edge), to_string(edge));
  }
}

std::optional<double> utilisation(const ViewOptions& options, const std::string& a, const std::string& b) {
  std::optional<double> most;
  for (const std::string& key : {fmt::format("{} {}", a, b), fmt::format("{} {}", b, a)}) {
    const auto found = options.utilisation.find(key);
    if (found != options.utilisation.end()) most = std::max(most.value_or(0), found->second);
  }
  return most;
}

/// SIPs of a picture: centres, a step apart, and what lies between them.
class SipPlaces {
 public:
  explicit SipPlaces(const Plan& plan) {
    const MachineMap& map = plan.map;
    const unsigned sips = map.sips;
    if (map.sip_w > 0) {
      fold(map.sip_w, map.sip_h);
    } else if (plan.has_fabric() || sips <= 2) {
      const unsigned wide = sips <= kMostInRow ? sips : columns_of(sips, 1);
      for (unsigned sip = 0; sip < sips; ++sip) add(sip % wide, sip / wide);
    } else if (map.sip_topology == SipTopology::ring_1d && sips > kMostInCircle) {
      const unsigned rows =
          2 * std::max(1U, (sips / columns_of(sips, 1) + 1) / 2);  // so that the ring ends where it began
      snake(sips, (sips + rows - 1) / rows);
    } else {
      const double radius = std::max(180.0, sips * 190 / (2 * kPi));
      for (unsigned sip = 0; sip < sips; ++sip) {
        const double angle = 2 * kPi * sip / sips - kPi / 2;
        at_.push_back({radius * 1.3 * std::cos(angle), radius * std::sin(angle)});
      }
    }
  }

  struct Point {
    double x = 0, y = 0;
  };
  const Point& operator[](std::size_t sip) const { return at_[sip]; }
  const std::vector<Point>& all() const { return at_; }

  /// Sideways offset of a line that would run through other SIPs of its row or column; 0: it does not.
  double bend(std::size_t a, std::size_t b) const {
    const Point &from = at_[a], &to = at_[b];
    const bool row = from.y == to.y, column = from.x == to.x;
    const bool hides = (row || column) && std::any_of(at_.begin(), at_.end(), [&](const Point& p) {
                         const bool inside = row ? p.y == from.y && (p.x - from.x) * (p.x - to.x) < 0
                                                 : p.x == from.x && (p.y - from.y) * (p.y - to.y) < 0;
                         return inside;
                       });
    if (!hides || row) return hides ? 110 : 0;
    const bool outside = from.x == 0 && to.y > from.y;  // left of the first column; right of the others
    return outside ? 230 : -230;
  }

  static constexpr double kDx = 260, kDy = 170;

 private:
  static constexpr unsigned kMostInRow = 8, kMostInCircle = 16;
  static constexpr double kAspect = 1.6;  // of a picture that fits a screen

  /// Columns of a picture of `count` things that are each `lines` rows high.
  static unsigned columns_of(unsigned count, unsigned lines) {
    return std::max(1U, static_cast<unsigned>(std::lround(std::sqrt(kAspect * kDy * lines * count / kDx))));
  }
  void add(unsigned column, unsigned line) { at_.push_back({column * kDx, line * kDy}); }
  /// Line after line, every second one backwards: neighbours stay neighbours.
  void snake(unsigned count, unsigned wide) {
    for (unsigned i = 0; i < count; ++i) {
      const unsigned line = i / wide, place = i % wide;
      add(line % 2 == 0 ? place : wide - 1 - place, line);
    }
  }
  /// A grid as it is; one that is much longer than high in bands, every second one mirrored, and the same of one that
  /// is much higher than long.
  void fold(unsigned w, unsigned h) {
    const bool tall = h > w;
    const unsigned length = tall ? h : w, depth = tall ? w : h;
    const double ratio = tall ? length * kDy / (depth * kDx) : length * kDx / (depth * kDy);
    const unsigned wide = length <= kMostInRow || ratio <= 6 ? length : std::max(2U, columns_of(length, depth));
    for (unsigned sip = 0; sip < w * h; ++sip) {
      const unsigned along = tall ? sip / w : sip % w, across = tall ? sip % w : sip / w;
      const unsigned band = along / wide, place = along % wide;
      add(band % 2 == 0 ? place : wide - 1 - place, band * depth + across);
    }
  }

  std::vector<Point> at_;
};

/// A switch of few SIPs above them; of many at their side, with an arm above every row, on which each SIP has its port.
class SwitchDrawing {
 public:
  SwitchDrawing(Drawing& drawing, const Plan& plan, const SipPlaces& places)
      : drawing_(drawing), name_(names::parent(names::fabric_crossbar())) {
    const SipPlaces::Point last = places.all().back();
    arms_ = last.y > 0;
    double right = 0;
    for (const SipPlaces::Point& point : places.all()) right = std::max(right, point.x);
    if (!arms_) {
      drawing_.add(Drawing::Box{name_, name_, "switch", "fabric", last.x / 2, -170, 130, 56});
      return;
    }
    constexpr double kLeft = -SipPlaces::kDx * 0.6, kBody = 130;
    const double bottom = last.y - kUp;
    drawing_.add(Drawing::Box{name_, name_, "switch", "fabric", kLeft, (bottom - kUp) / 2, kBody, bottom + kUp + kArm});
    for (double y = 0; y <= last.y; y += SipPlaces::kDy) {
      const double begin = kLeft + kBody / 2, end = right + 65;
      drawing_.add(Drawing::Box{fmt::format("{} row {:g}", name_, y / SipPlaces::kDy), "", "", "fabric",
                                (begin + end) / 2, y - kUp, end - begin, kArm});
    }
    for (std::uint16_t sip = 0; sip < plan.map.sips; ++sip)
      drawing_.add(
          Drawing::Box{names::fabric_link(sip), "", "", "fabric", places[sip].x, places[sip].y - kUp, 26, kArm});
  }
  /// What a SIP's line ends at.
  std::string port(std::uint16_t sip) const { return arms_ ? names::fabric_link(sip) : name_; }

 private:
  static constexpr double kUp = 76, kArm = 16;

  Drawing& drawing_;
  std::string name_;
  bool arms_ = false;
};

Drawing system_view(const Plan& plan, const ViewOptions& options) {
  const MachineMap& map = plan.map;
  const LinkConfig& link = plan.spec.links.link;
  Drawing drawing("System: " + plan.spec.name,
                  map.sips == 1
                      ? "1 SIP"
                      : fmt::format("{} SIPs, {}; links {} each way, {}", map.sips, to_string(map.sip_topology),
                                    format_rate(link.rate().bytes_per_second() * plan.spec.links.links_per_neighbour),
                                    format_time(link.latency)));
  const SipPlaces places(plan);
  for (std::uint16_t sip = 0; sip < map.sips; ++sip) {
    drawing.add(Drawing::Box{
        names::sip(sip), names::sip(sip),
        counted(map.cubes_per_sip(), "cube") + ", " + counted(static_cast<std::int64_t>(map.pes(sip).size()), "PE"),
        "cube", places[sip].x, places[sip].y, 130, 56});
  }
  std::optional<SwitchDrawing> fabric;
  if (plan.has_fabric()) fabric.emplace(drawing, plan, places);
  for (std::uint32_t id = 0; id < plan.ends.size(); ++id) {
    const LinkEnd& end = plan.ends[id];
    if (!end.kind->between_sips || id > end.peer) continue;
    const Network& there = plan.networks[plan.ends[end.peer].network];
    const std::uint16_t a = plan.networks[end.network].sip;
    Drawing::Line line;
    line.from = names::sip(a);
    line.to = there.kind == NetworkKind::fabric ? fabric->port(a) : names::sip(there.sip);
    line.kind = to_string(EdgeKind::inter_sip);
    line.label = fmt::format("{} - {}", names::leaf(plan.end_name(id)), names::leaf(plan.end_name(end.peer)));
    line.utilisation = utilisation(options, plan.end_name(id), plan.end_name(end.peer));
    line.ends = plan.end_name(id) + " " + plan.end_name(end.peer);
    if (there.kind != NetworkKind::fabric) {  // such as wrap links of a torus
      line.bend = places.bend(a, there.sip);
      if (line.bend != 0) line.label_at = 0.25;
    }
    drawing.add(line);
  }
  drawing.explain("cube", "SIP (device, rank)");
  drawing.explain("fabric", "switch");
  explain_all(drawing);
  return drawing;
}

Drawing sip_view(const Plan& plan, const ViewOptions& options) {
  const std::uint16_t sip = options.at.sip, w = plan.map.cube_w, h = plan.map.cube_h;
  const LinkConfig ucie = plan.spec.cube.ucie.link();
  const std::size_t connections = plan.spec.cube.ucie.connections;
  Drawing drawing(names::sip(sip),
                  fmt::format("{} x {} cubes; UCIe {} connections of {} each way, {}", w, h, connections,
                              format_rate(ucie.rate().bytes_per_second()), format_time(ucie.latency)));
  constexpr double kDx = 170, kDy = 130;
  const double middle = (w - 1) * kDx / 2, width = std::max((w - 1) * kDx + 130, 420.0);
  drawing.add(Drawing::Box{names::io(sip), "io0", "", "chiplet", middle, -kDy, width, 70, 0.15});
  const auto inside = [&](const std::string& name, double x) {
    drawing.add(Drawing::Box{name, names::leaf(name), "", "cpu", x, -kDy + 12, 88, 30});
  };
  inside(names::pcie_ep(sip), middle - 110);
  inside(names::crossbar(sip), middle);
  inside(names::io_cpu(sip), middle + 110);
  drawing.add(Drawing::Line{names::pcie_ep(sip), names::crossbar(sip), to_string(EdgeKind::io), "", 0, {}});
  drawing.add(Drawing::Line{names::io_cpu(sip), names::crossbar(sip), to_string(EdgeKind::cpu_port), "", 0, {}});
  drawing.add(Drawing::Box{"host", "host", "", "outside", middle - 110, -2 * kDy + 10, 88, 30});
  drawing.add(Drawing::Line{"host",
                            names::pcie_ep(sip),
                            to_string(EdgeKind::pcie),
                            format_rate(plan.spec.sip.io.pcie.bytes_per_second),
                            0,
                            {}});
  const auto& neighbours = plan.crossbars[sip].neighbours;
  const auto links = static_cast<int>(neighbours.size());
  const int per_row = std::max<int>(6, w);  // of many links
  for (int i = 0; i < links; ++i) {
    const std::uint32_t end = plan.networks[plan.io_network(sip)].ends[static_cast<std::size_t>(w + i)];
    if (end == kNoEnd) continue;
    const std::string to = plan.end_name(plan.ends[end].peer), name = plan.end_name(end);
    drawing.add(Drawing::Box{to, names::leaf(name), "to " + names::parent(to), "outside",
                             middle + 10 + i % per_row * 110, -2 * kDy + 10 - i / per_row * 60, 100, 40});
    drawing.add(Drawing::Line{to, names::crossbar(sip), to_string(EdgeKind::inter_sip), "", 0,
                              utilisation(options, name, to), 0.5, name + " " + to});
  }
  for (std::uint16_t cube = 0; cube < plan.map.cubes_per_sip(); ++cube) {
    const std::string name = names::cube({sip, cube});
    std::int64_t pes = 0;
    for (std::uint16_t pe = 0; pe < plan.map.pes_per_cube; ++pe) pes += plan.map.has({sip, cube, pe}) ? 1 : 0;
    const double gib = static_cast<double>(plan.spec.cube_at({sip, cube}).hbm.bytes) / (1u << 30);
    const unsigned column = cube % w, line = cube / w;
    drawing.add(Drawing::Box{name, names::leaf(name), fmt::format("{}, HBM {:g} GiB", counted(pes, "PE"), gib), "cube",
                             column * kDx, line * kDy, 118, 64});
  }
  for (std::uint16_t cube = 0; cube < plan.map.cubes_per_sip(); ++cube) {
    for (const Side side : {Side::north, Side::east, Side::south}) {
      const std::uint32_t end = plan.networks[plan.cube_network({sip, cube})].ends[static_cast<std::size_t>(side)];
      if (end == kNoEnd || (side == Side::north && cube >= w)) continue;
      const Network& there = plan.networks[plan.ends[plan.ends[end].peer].network];
      const std::string to = there.kind == NetworkKind::io ? names::io(sip) : names::cube({sip, there.cube});
      Drawing::Line line{names::cube({sip, cube}),
                         to,
                         to_string(EdgeKind::ucie),
                         "",
                         0,
                         utilisation(options, plan.end_name(end), plan.end_name(plan.ends[end].peer)),
                         0.5,
                         plan.end_name(end) + " " + plan.end_name(plan.ends[end].peer)};
      if (there.kind == NetworkKind::io) {  // straight up, not to the chiplet's middle
        const std::string port = plan.end_name(plan.ends[end].peer);
        drawing.add(Drawing::Box{port, names::leaf(port), "", "ucie", cube * kDx, -kDy + 35, 56, 20});
        line.to = port;
      }
      drawing.add(line);
    }
  }
  drawing.explain("cube", "cube");
  drawing.explain("chiplet", "IO chiplet");
  drawing.explain("outside", "outside the SIP");
  explain_all(drawing);
  return drawing;
}

/// Where the i-th of `count` attachments sits around its router.
std::pair<double, double> around(std::size_t i, std::size_t count) {
  constexpr std::array<std::pair<double, double>, 4> kCorners = {{{1, -1}, {-1, -1}, {1, 1}, {-1, 1}}};
  const auto& corner = kCorners[i % 4];
  const std::size_t turn = i / 4;
  const double out = count > 4 ? 1.0 + 0.55 * static_cast<double>(turn) : 1.0;
  return {corner.first * 42, corner.second * 32 * out};
}

Drawing cube_view(const Plan& plan, const ViewOptions& options) {
  const CubeCoord at = options.at.in_cube();
  const std::uint32_t id = plan.cube_network(at);
  const CubeLayout& layout = *plan.layout_of.at(id);
  const NocConfig& noc = *plan.networks[id].noc;
  Drawing drawing(names::cube(at), fmt::format("{} x {} routers, {} B flits at {:g} GHz: {} per port", layout.rows,
                                               layout.cols, noc.flit_bytes, static_cast<double>(noc.clock_hz) / 1e9,
                                               format_rate(noc.link_rate().bytes_per_second())));
  constexpr double kCell = 150;
  for (const GridPoint point : plan.spec.cube_at(at).placement.exclusion) {
    drawing.add(Drawing::Box{"zone " + to_string(point), "", "", "zone", point.col * kCell, point.row * kCell, kCell,
                             kCell, 0.1});
  }
  const auto routers = static_cast<std::uint16_t>(layout.routers.size());
  for (std::uint16_t r = 0; r < routers; ++r) {
    const GridPoint p = layout.routers[r];
    drawing.add(
        Drawing::Box{plan.router_name(id, r), to_string(p), "", "router", p.col * kCell, p.row * kCell, 40, 28});
  }
  for (int side = 0; side < kSides; ++side) {
    const std::uint32_t end = plan.networks[id].ends[static_cast<std::size_t>(side)];
    if (end == kNoEnd) continue;
    const double w = (layout.cols - 1) * kCell, h = (layout.rows - 1) * kCell;
    const bool wide = side < 2;
    Drawing::Box box{plan.end_name(end), names::leaf(plan.end_name(end)), "", "ucie", w / 2, h / 2, wide ? w + 60 : 54,
                     wide ? 24 : h + 60};
    if (side == 0) box.y = -100;
    if (side == 1) box.y = h + 100;
    if (side == 2) box.x = w + 120;
    if (side == 3) box.x = -120;
    drawing.add(box);
    // A mark on the port for each connection, so that lines run straight.
    for (std::size_t i = 0; i < layout.mesh.ucie[static_cast<std::size_t>(side)].size(); ++i) {
      const GridPoint p = layout.mesh.ucie[static_cast<std::size_t>(side)][i];
      const std::string mark = fmt::format("{}[{}]", plan.end_name(end), i);
      const auto same = std::count(layout.mesh.ucie[static_cast<std::size_t>(side)].begin(),
                                   layout.mesh.ucie[static_cast<std::size_t>(side)].begin() + static_cast<long>(i), p);
      const double shift = 18.0 * static_cast<double>(same);
      drawing.add(Drawing::Box{mark, std::to_string(i), "", "ucie", wide ? p.col * kCell + shift : box.x,
                               wide ? box.y : p.row * kCell + shift, 16, 16});
      drawing.add(Drawing::Line{plan.router_name(id, layout.at(p)), mark, to_string(EdgeKind::ucie), "", 0, {}});
    }
  }
  for (std::uint16_t r = 0; r < routers; ++r) {
    const GridPoint p = layout.routers[r];
    for (const std::uint8_t port : {kEastPort, kSouthPort}) {
      const std::uint16_t next = layout.neighbours[r][port];
      if (next == kNoRouter) continue;
      const std::string a = plan.router_name(id, r), b = plan.router_name(id, next);
      drawing.add(Drawing::Line{a, b, to_string(EdgeKind::noc), "", 0, utilisation(options, a, b)});
    }
    std::vector<std::pair<NodeId, LocalKind>> locals;
    for (unsigned port = kFirstLocalPort; port < layout.ports(r); ++port) {
      const Beyond beyond = plan.beyond(id, r, static_cast<std::uint8_t>(port));
      if (beyond.kind == Beyond::Kind::node)
        locals.push_back({beyond.node, layout.locals[r][port - kFirstLocalPort].kind});
    }
    for (std::size_t i = 0; i < locals.size(); ++i) {
      const auto [node, kind] = locals[i];
      const std::string name = plan.map.name(node);
      const auto [dx, dy] = around(i, locals.size());
      const char* style = kind == LocalKind::pe         ? "pe"
                          : kind == LocalKind::hbm_port ? "hbm"
                          : kind == LocalKind::sram     ? "sram"
                                                        : "cpu";
      const EdgeKind edge = kind == LocalKind::pe         ? EdgeKind::pe_local
                            : kind == LocalKind::hbm_port ? EdgeKind::hbm_port
                            : kind == LocalKind::sram     ? EdgeKind::sram_port
                                                          : EdgeKind::cpu_port;
      const std::string label =
          kind == LocalKind::hbm_port ? "hbm " + std::to_string(plan.map.node(node).unit) : names::leaf(name);
      drawing.add(Drawing::Box{name, label, "", style, p.col * kCell + dx, p.row * kCell + dy, 46, 22});
      const std::string router = plan.router_name(id, r);
      drawing.add(Drawing::Line{router, name, to_string(edge), "", 0, utilisation(options, router, name)});
    }
  }
  drawing.explain("pe", "PE");
  drawing.explain("hbm", "HBM port, by slice");
  drawing.explain("sram", "shared SRAM");
  drawing.explain("cpu", "M_CPU");
  drawing.explain("zone", "exclusion zone (HBM PHY)");
  explain_all(drawing);
  return drawing;
}

Drawing pe_view(const Plan& plan, const ViewOptions& options) {
  const NodeId node = plan.map.pe(options.at);
  const PeConfig& pe = plan.spec.pe_at(options.at);
  const std::string self = plan.map.name(node);
  Drawing drawing(self, fmt::format("at {}", plan.router_name(plan.network_of(node), plan.map.node(node).at.router)));
  const auto ghz = [](std::uint64_t hz) { return fmt::format("{:g} GHz", static_cast<double>(hz) / 1e9); };
  const auto part = [&](const char* name, const std::string& label, const std::string& note, const char* style,
                        double x, double y, double w = 150) {
    drawing.add(Drawing::Box{names::pe_part(options.at, name), label, note, style, x, y, w, 50});
  };
  drawing.add(Drawing::Box{self, "port", "to router", "router", -300, 130, 90, 50});
  part("cpu", "PE_CPU", fmt::format("{} contexts, {} per op", pe.cpu.kernel_contexts, format_time(pe.cpu.dispatch)),
       "cpu", 60, -60);
  part("dma_r", "DMA read", fmt::format("{} bursts of {} B", pe.dma.outstanding, pe.dma.burst_bytes), "engine", -90,
       10);
  part("dma_w", "DMA write", fmt::format("{} bursts of {} B", pe.dma.outstanding, pe.dma.burst_bytes), "engine", -90,
       170);
  part("ipcq", "IPCQ", fmt::format("{} slots of {} KiB", pe.ipcq.slots, pe.ipcq.slot_bytes / 1024), "engine", -90, 250);
  part("gemm", "GEMM", fmt::format("{} x {} at {}", pe.gemm.rows, pe.gemm.cols, ghz(pe.gemm.clock_hz)), "engine", 400,
       80);
  part("math", "math", fmt::format("{} lanes at {}", pe.math.lanes, ghz(pe.math.clock_hz)), "engine", 400, 180);
  part("tcm", "TCM", fmt::format("{} MiB, {}", pe.tcm.bytes >> 20, format_rate(pe.tcm.bytes_per_second)), "memory", 160,
       130);
  part("mmu", "MMU", fmt::format("{} entries of {} KiB", pe.mmu.tlb_entries, pe.mmu.page_bytes / 1024), "engine", -90,
       90);
  const Graph graph(plan);
  for (const GraphEdge& edge : graph.edges) {
    const GraphNode &a = graph.nodes[edge.from], &b = graph.nodes[edge.to];
    if (a.endpoint != node || b.endpoint != node) continue;
    const bool one_way = edge.kind == EdgeKind::command;
    if (!one_way && edge.from > edge.to) continue;
    const bool rated = edge.bytes_per_second > 0 && a.kind == PartKind::pe_part;
    drawing.add(Drawing::Line{a.name, b.name, to_string(edge.kind), rated ? format_rate(edge.bytes_per_second) : "", 0,
                              utilisation(options, a.name, b.name)});
  }
  drawing.explain("engine", "engine");
  drawing.explain("memory", "memory");
  drawing.explain("cpu", "PE_CPU");
  explain_all(drawing);
  return drawing;
}

}  // namespace

std::string show_view(const Plan& plan, const std::string& view, const std::string& format,
                      const ViewOptions& options) {
  if (format != "svg" && format != "dot" && format != "json")
    throw std::invalid_argument(fmt::format("format is '{}'; give svg, dot or json", format));
  if (!(options.at.sip < plan.map.sips && options.at.cube < plan.map.cubes_per_sip())) {
    throw std::out_of_range(fmt::format("the machine has no {}", names::cube(options.at.in_cube())));
  }
  const auto write = [&](const Drawing& drawing) {
    return format == "svg" ? drawing.svg() : format == "dot" ? drawing.dot() : drawing.json();
  };
  if (view == "system") return write(system_view(plan, options));
  if (view == "sip") return write(sip_view(plan, options));
  if (view == "cube") return write(cube_view(plan, options));
  if (view == "pe") return write(pe_view(plan, options));
  throw std::invalid_argument(fmt::format("view is '{}'; give system, sip, cube or pe", view));
}

}  // namespace kernbench::topology
