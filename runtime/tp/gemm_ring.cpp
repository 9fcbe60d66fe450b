#include "runtime/tp/gemm_ring.h"

#include <algorithm>

#include "ccl/contract/grid.h"

namespace kernbench::tp {

namespace {
/// The side on which `to` lies, if the two are neighbours.
std::optional<Direction> way(const ccl::Grid& mesh, int from, int to) {
  for (const Side side : {Side::north, Side::south, Side::east, Side::west}) {
    if (mesh.neighbour(from, side) == to) return ccl::direction_of(side, false);
  }
  return std::nullopt;
}

/// The order of the cubes, and how many blocks each place of it gets from those behind and ahead.
class Ring {
 public:
  Ring(int w, int h)
      : mesh_(ccl::Grid::mesh(w, w * h)),
        size_(w * h),
        order_(ccl::ring_order(ccl::kMesh2d, w, h, w * h)),
        closed_(way(mesh_, order_.back(), order_.front()).has_value()) {}

  int size() const { return size_; }
  int place_of(int cube) const {
    return static_cast<int>(std::distance(order_.begin(), std::find(order_.begin(), order_.end(), cube)));
  }
  /// Blocks that the place gets from those behind it, and from those ahead; none of a place beyond the end of a line.
  int behind(int place) const { return closed_ ? size_ / 2 : place < size_ ? place : 0; }
  int ahead(int place) const { return closed_ ? (size_ - 1) / 2 : place >= 0 ? size_ - 1 - place : 0; }
  int at(int place) const { return order_[static_cast<std::size_t>((place + size_) % size_)]; }
  Direction to(int place, int neighbour) const { return way(mesh_, at(place), at(neighbour)).value(); }

 private:
  const ccl::Grid mesh_;
  const int size_;
  const std::vector<int> order_;
  const bool closed_;
};
}  // namespace

std::vector<RingTurn> ring_turns(int w, int h, int self) {
  const Ring ring(w, h);
  const int place = ring.place_of(self), next = place + 1, previous = place - 1;
  std::vector<RingTurn> turns;
  for (int distance = 1; distance < ring.size(); ++distance) {
    RingTurn forth, back;
    if (distance <= ring.behind(place)) forth.comes = {ring.at(place - distance), ring.to(place, previous)};
    if (distance <= ring.behind(next)) forth.goes = {ring.at(next - distance), ring.to(place, next)};
    if (distance <= ring.ahead(place)) back.comes = {ring.at(place + distance), ring.to(place, next)};
    if (distance <= ring.ahead(previous)) back.goes = {ring.at(previous + distance), ring.to(place, previous)};
    for (const RingTurn& turn : {forth, back}) {
      if (turn.comes || turn.goes) turns.push_back(turn);
    }
  }
  return turns;
}

int most_over_a_link(int w, int h) {
  const Ring ring(w, h);
  int most = 0;
  for (int place = 0; place < ring.size(); ++place) most = std::max({most, ring.behind(place), ring.ahead(place)});
  return most;
}

}  // namespace kernbench::tp
