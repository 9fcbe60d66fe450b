#include "topology/plan/layout.h"
#include "topology/plan/machine_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <tuple>

namespace kernbench::topology {

namespace {

/// Routers that may carry attachments, row-major.
std::vector<GridPoint> usable_routers(const CubeSpec& spec) {
  std::vector<GridPoint> list;
  for (std::uint16_t row = 0; row < spec.noc.rows; ++row) {
    for (std::uint16_t col = 0; col < spec.noc.cols; ++col) {
      const GridPoint point{row, col};
      if (!contains(spec.placement.holes, point) && !contains(spec.placement.exclusion, point)) list.push_back(point);
    }
  }
  if (list.empty()) {
    throw MachineError("cube.placement", "no router of a cube may carry attachments",
                       "leave a router out of cube.placement's holes and exclusion zone");
  }
  return list;
}

/// `count` of `line`, evenly; an entry is used repeatedly if there are more than it holds.
std::vector<GridPoint> spread(const std::vector<GridPoint>& line, std::size_t count) {
  std::vector<GridPoint> list;
  for (std::size_t i = 0; i < count; ++i) list.push_back(line[(2 * i + 1) * line.size() / (2 * count)]);
  return list;
}

/// 0, 1/2, 1/4, 3/4, 1/8... of `width`: the bits of `turn` as a binary fraction, the lowest first; rounded down.
std::size_t halving(unsigned turn, std::size_t width) {
  std::size_t parts = 1, reversed = 0;
  for (; turn > 0; turn /= 2) {
    parts *= 2;
    reversed = 2 * reversed + turn % 2;
  }
  return reversed * width / parts;
}

/// PEs without hints, row by row. A row takes the routers with the fewest PEs, of those the columns with the fewest, of
/// those the nearest to where its PEs would lie evenly: at the ends of equal parts of the columns, moved back by row.
class PeSpread {
 public:
  explicit PeSpread(unsigned cols) : cols_(cols), in_column_(cols) {}

  void add_row(const std::vector<GridPoint>& routers, std::size_t count) {
    const std::size_t shift = halving(rows_++, cols_ / count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t wanted = ((i + 1) * cols_ / count + cols_ - 1 - shift) % cols_;
      const auto key = [&](GridPoint point) {
        const std::size_t right = (point.col + cols_ - wanted) % cols_;
        return std::tuple(std::count(pes_.begin(), pes_.end(), point), in_column_[point.col],
                          std::min(right, cols_ - right), point.col);
      };
      const auto nearer = [&](GridPoint a, GridPoint b) { return key(a) < key(b); };
      pes_.push_back(*std::min_element(routers.begin(), routers.end(), nearer));
      ++in_column_[pes_.back().col];
    }
  }
  const std::vector<GridPoint>& pes() const { return pes_; }

 private:
  const unsigned cols_;
  unsigned rows_ = 0;
  std::vector<unsigned> in_column_;
  std::vector<GridPoint> pes_;
};

std::vector<GridPoint> place_pes(const CubeSpec& spec, const std::vector<GridPoint>& usable) {
  if (!spec.placement.pes.empty()) return spec.placement.pes;
  PeSpread by_row(spec.noc.cols);
  const std::vector<GridPoint> even = spread(usable, spec.pes);  // row-major: how many PEs a row gets
  for (std::uint16_t row = 0; row < spec.noc.rows; ++row) {
    const auto on_row = [&](GridPoint point) { return point.row == row; };
    std::vector<GridPoint> routers;
    std::copy_if(usable.begin(), usable.end(), std::back_inserter(routers), on_row);
    const auto count = std::count_if(even.begin(), even.end(), on_row);
    if (count > 0) by_row.add_row(routers, static_cast<std::size_t>(count));
  }
  std::vector<GridPoint> pes = by_row.pes();
  std::sort(pes.begin(), pes.end());
  return pes;
}

/// The usable router nearest to the middle of the grid; of several the one with least of `taken`.
GridPoint near_middle(const CubeSpec& spec, const std::vector<GridPoint>& usable, const std::vector<GridPoint>& taken) {
  const auto key = [&](GridPoint point) {
    const long dr = 2L * point.row - (spec.noc.rows - 1), dc = 2L * point.col - (spec.noc.cols - 1);
    return std::tuple(dr * dr + dc * dc, std::count(taken.begin(), taken.end(), point), point.row, point.col);
  };
  return *std::min_element(usable.begin(), usable.end(), [&](GridPoint a, GridPoint b) { return key(a) < key(b); });
}

std::vector<GridPoint> place_ucie(const CubeSpec& spec, const std::vector<GridPoint>& usable, Side side) {
  const bool horizontal = side == Side::north || side == Side::south;
  const unsigned at = side == Side::south ? spec.noc.rows - 1u : side == Side::east ? spec.noc.cols - 1u : 0u;
  std::vector<GridPoint> edge;
  for (const GridPoint point : usable) {
    if ((horizontal ? point.row : point.col) == at) edge.push_back(point);
  }
  if (edge.empty()) {
    throw MachineError("cube.placement",
                       fmt::format("no router of a cube's {} edge can take its UCIe connections", letter(side)),
                       "leave a router of that edge out of cube.placement's holes and exclusion zone");
  }
  return spread(edge, spec.ucie.connections);
}

}  // namespace

const char* letter(Side side) {
  constexpr std::array<const char*, kSides> kLetters = {"n", "s", "e", "w"};
  return kLetters[static_cast<std::size_t>(side)];
}

std::string to_string(const std::vector<GridPoint>& points) {
  std::string text = "[";
  for (const GridPoint point : points) text += (text.size() > 1 ? ", " : "") + to_string(point);
  return text + "]";
}

CubeMesh place(const CubeSpec& spec) {
  const std::vector<GridPoint> usable = usable_routers(spec);
  CubeMesh mesh;
  mesh.pes = place_pes(spec, usable);
  mesh.hbm_ports = mesh.pes;
  std::vector<GridPoint> taken = mesh.pes;
  const auto& hints = spec.placement;
  mesh.m_cpu = hints.m_cpu.empty() ? near_middle(spec, usable, taken) : hints.m_cpu.front();
  taken.push_back(mesh.m_cpu);
  mesh.sram = hints.sram.empty() ? near_middle(spec, usable, taken) : hints.sram.front();
  Mismatches found;
  for (int side = 0; side < kSides; ++side)
    found.tell([&] { mesh.ucie[side] = place_ucie(spec, usable, static_cast<Side>(side)); });
  found.throw_if_any();
  return mesh;
}

Spot hang(CubeLayout& layout, GridPoint point, LocalPort local) {
  const bool inside = point.row < layout.rows && point.col < layout.cols;
  const std::uint16_t router = inside ? layout.at(point) : kNoRouter;
  if (router == kNoRouter) {
    throw MachineError("cube.noc", fmt::format("a cube has no router {}", to_string(point)),
                       fmt::format("it has {} x {}, without its holes", layout.rows, layout.cols));
  }
  auto& locals = layout.locals[router];
  if (kFirstLocalPort + locals.size() >= kNoPort) {
    throw MachineError("cube.noc",
                       fmt::format("router {} of a cube would need more than {} ports", to_string(point), kNoPort),
                       "use a larger mesh or fewer UCIe connections");
  }
  locals.push_back(local);
  return {router, static_cast<std::uint8_t>(kFirstLocalPort + locals.size() - 1)};
}

CubeLayout attach(const CubeSpec& spec, CubeMesh mesh) {
  CubeLayout layout;
  layout.rows = spec.noc.rows;
  layout.cols = spec.noc.cols;
  for (std::uint16_t row = 0; row < layout.rows; ++row) {
    for (std::uint16_t col = 0; col < layout.cols; ++col) {
      const bool hole = contains(spec.placement.holes, {row, col});
      layout.number.push_back(hole ? kNoRouter : static_cast<std::uint16_t>(layout.routers.size()));
      if (!hole) layout.routers.push_back({row, col});
    }
  }
  for (const GridPoint p : layout.routers) {
    const auto neighbour = [&](int row, int col) {
      const bool inside = row >= 0 && col >= 0 && row < layout.rows && col < layout.cols;
      return inside ? layout.at({static_cast<std::uint16_t>(row), static_cast<std::uint16_t>(col)}) : kNoRouter;
    };
    layout.neighbours.push_back({neighbour(p.row - 1, p.col), neighbour(p.row + 1, p.col), neighbour(p.row, p.col + 1),
                                 neighbour(p.row, p.col - 1)});
  }
  layout.locals.resize(layout.routers.size());
  const auto hang_all = [&](const std::vector<GridPoint>& points, LocalKind kind, Side side) {
    std::vector<Spot> spots;
    spots.reserve(points.size());
    for (const GridPoint point : points)
      spots.push_back(hang(layout, point, {kind, static_cast<std::uint16_t>(spots.size()), side}));
    return spots;
  };
  layout.pes = hang_all(mesh.pes, LocalKind::pe, Side::north);
  layout.hbm_ports = hang_all(mesh.hbm_ports, LocalKind::hbm_port, Side::north);
  layout.m_cpu = hang(layout, mesh.m_cpu, {LocalKind::m_cpu, 0, Side::north});
  layout.sram = hang(layout, mesh.sram, {LocalKind::sram, 0, Side::north});
  for (int side = 0; side < kSides; ++side) {
    layout.ucie[side] = hang_all(mesh.ucie[side], LocalKind::ucie, static_cast<Side>(side));
  }
  layout.mesh = std::move(mesh);
  return layout;
}

std::uint16_t CubeLayout::nearest_connection(Side side, std::uint16_t row_or_col) const {
  const auto& points = mesh.ucie[static_cast<std::size_t>(side)];
  const bool by_row = side == Side::east || side == Side::west;
  std::size_t best = 0;
  const auto apart = [&](std::size_t i) { return std::abs((by_row ? points[i].row : points[i].col) - row_or_col); };
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (apart(i) < apart(best)) best = i;
  }
  return static_cast<std::uint16_t>(best);
}

const std::array<const char*, Determinants::kCount>& Determinants::names() {
  static constexpr std::array<const char*, kCount> kNames = {"mesh", "pes", "hbm", "placement", "ucie"};
  return kNames;
}

Determinants determinants(const CubeSpec& spec) {
  const auto& hints = spec.placement;
  return {{fmt::format("{} x {} without {}", spec.noc.rows, spec.noc.cols, to_string(hints.holes)),
           fmt::format("{} at {}", spec.pes, to_string(hints.pes)),
           fmt::format("{} ports, zone {}", spec.pes, to_string(hints.exclusion)),
           fmt::format("m_cpu at {}, sram at {}", to_string(hints.m_cpu), to_string(hints.sram)),
           fmt::format("{} per side", spec.ucie.connections)}};
}

std::string Determinants::hash() const {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, 64 bits
  for (const std::string& text : value) {
    for (const char c : text + "\n") hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace kernbench::topology
