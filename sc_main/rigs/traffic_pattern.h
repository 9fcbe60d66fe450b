#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace kernbench {

/// A small fast generator of random numbers with the state of one stream (xoshiro256**, Blackman and Vigna 2018; seeded
/// by splitmix64). Same numbers on every platform.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream);
  std::uint64_t next() {
    const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate(state_[3], 45);
    return result;
  }
  /// Below `bound`, without bias that could be seen: bound <= 2^32.
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32); }
  /// In (0, 1].
  double unit() { return static_cast<double>((next() >> 11) + 1) * 0x1p-53; }

 private:
  static std::uint64_t rotate(std::uint64_t x, int n) { return (x << n) | (x >> (64 - n)); }
  std::uint64_t state_[4];
};

/// Who sends to whom on a mesh of cols x rows nodes; node = x + cols * y.
///
/// uniform: every node, the source included, equally likely. transpose: (x, y) to (y, x). neighbor: to (x + 1, y + 1).
/// tornado: to (x + d, y + d), d = ceil(k / 2) - 1 of each dimension's size k. All three modulo the size.
/// bit_complement, bit_reverse, shuffle: on the bits of the node number, for 2^n nodes. hotspot: to one of a list of
/// nodes, with weights.
class TrafficPattern {
 public:
  /// `text`: "uniform", ..., "hotspot(5)", "hotspot(0,3,12,15)", "hotspot(0:3,15:1)" with weights. Throws
  /// std::invalid_argument with what is wrong: also if the pattern does not exist on such a mesh.
  TrafficPattern(const std::string& text, unsigned cols, unsigned rows);

  /// Draws the destination of a packet of `source`.
  unsigned destination(unsigned source, Random& random) const {
    if (kind_ == Kind::fixed) return fixed_[source];
    if (kind_ == Kind::uniform) return random.below(nodes_);
    return hotspot(random);
  }
  /// Mean number of links between source and destination under XY routing; exact.
  double mean_links() const;
  /// Flits per cycle that the busiest link, and the busiest node's way out, are asked for at a load of one flit per
  /// node and cycle, under XY routing; exact. No load above the reciprocal of the larger one is accepted.
  struct Busiest {
    double link = 0, node = 0;
  };
  Busiest busiest() const;

  static const std::vector<std::string>& names();

 private:
  enum class Kind : std::uint8_t { uniform, fixed, hotspot };
  void make_fixed(const std::string& name, unsigned rows);
  void make_hotspot(const std::string& list);
  unsigned hotspot(Random& random) const;
  double links(unsigned source, unsigned destination) const;
  /// visit(source, destination, share of the source's packets) for all pairs.
  template <class Visit>
  void visit_pairs(const Visit& visit) const;

  Kind kind_ = Kind::uniform;
  unsigned cols_, nodes_;
  std::vector<unsigned> fixed_;      // by source
  std::vector<unsigned> hot_;        // nodes
  std::vector<std::uint32_t> upto_;  // sum of the weights up to each hot node
};

}  // namespace kernbench
