#include "sc_main/rigs/traffic_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "tlm/config/nearest.h"
#include "tlm/sim/random.h"

namespace kernbench {
namespace {
unsigned parse_node(const std::string& text, unsigned limit, const std::string& what) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value >= limit)
    throw std::invalid_argument(
        fmt::format("hotspot: {} is {}\n  hint: give an integer below {}", what, quote(text), limit));
  return value;
}

unsigned log2_of(unsigned nodes, const std::string& name) {
  unsigned bits = 0;
  while ((1U << bits) < nodes) ++bits;
  if ((1U << bits) != nodes)
    throw std::invalid_argument(fmt::format(
        "pattern '{}' needs a power of two of nodes, not {}\n  hint: give another --pattern or size", name, nodes));
  return bits;
}

unsigned reversed(unsigned value, unsigned bits) {
  unsigned out = 0;
  for (unsigned i = 0; i < bits; ++i) out |= ((value >> i) & 1U) << (bits - 1 - i);
  return out;
}
}  // namespace

Random::Random(std::uint64_t seed, std::uint64_t stream) {
  std::uint64_t state = seed;
  state = next_splitmix64(state) + stream * 0xD1342543DE82EF95;
  for (std::uint64_t& word : state_) word = next_splitmix64(state);
}

const std::vector<std::string>& TrafficPattern::names() {
  static const std::vector<std::string> names = {"uniform",        "transpose",   "neighbor", "tornado",
                                                 "bit_complement", "bit_reverse", "shuffle",  "hotspot"};
  return names;
}

TrafficPattern::TrafficPattern(const std::string& text, unsigned cols, unsigned rows)
    : cols_(cols), nodes_(cols * rows) {
  const std::size_t bracket = text.find('(');
  std::string name = text.substr(0, bracket);
  std::replace(name.begin(), name.end(), '-', '_');
  if (name == "hotspot") {
    if (bracket == std::string::npos || text.back() != ')')
      throw std::invalid_argument(fmt::format(
          "pattern {} names no nodes\n  hint: e.g. 'hotspot(0,15)', with weights 'hotspot(0:3,15:1)'", quote(text)));
    make_hotspot(text.substr(bracket + 1, text.size() - bracket - 2));
    return;
  }
  if (std::find(names().begin(), names().end(), name) == names().end() || bracket != std::string::npos)
    throw std::invalid_argument(
        fmt::format("unknown pattern {}\n  hint: {}", quote(text), suggest(name, names(), "patterns")));
  if (name != "uniform") make_fixed(name, rows);
}

void TrafficPattern::make_fixed(const std::string& name, unsigned rows) {
  kind_ = Kind::fixed;
  const bool bitwise = name == "bit_complement" || name == "bit_reverse" || name == "shuffle";
  const unsigned bits = bitwise ? log2_of(nodes_, name) : 0;
  if (name == "transpose" && cols_ != rows)
    throw std::invalid_argument(fmt::format("pattern 'transpose' needs a square mesh, not {} x {}", cols_, rows));
  const unsigned dx = name == "tornado" ? (cols_ + 1) / 2 - 1 : 1, dy = name == "tornado" ? (rows + 1) / 2 - 1 : 1;
  for (unsigned node = 0; node < nodes_; ++node) {
    const unsigned x = node % cols_, y = node / cols_;
    unsigned to = (x + dx) % cols_ + cols_ * ((y + dy) % rows);
    if (name == "transpose") to = y + cols_ * x;
    if (name == "bit_complement") to = nodes_ - 1 - node;
    if (name == "bit_reverse") to = reversed(node, bits);
    if (name == "shuffle") to = bits == 0 ? node : ((node << 1) | (node >> (bits - 1))) & (nodes_ - 1);
    fixed_.push_back(to);
  }
}

void TrafficPattern::make_hotspot(const std::string& list) {
  kind_ = Kind::hotspot;
  std::uint32_t sum = 0;
  for (const std::string& item : split(list, ',')) {
    const std::size_t colon = item.find(':');
    hot_.push_back(parse_node(item.substr(0, colon), nodes_, "a node"));
    const unsigned weight = colon == std::string::npos ? 1 : parse_node(item.substr(colon + 1), 1'000'000, "a weight");
    if (sum + weight == 0) throw std::invalid_argument("hotspot: the first weight is 0\n  hint: leave the node out");
    upto_.push_back(sum += weight);
  }
}

unsigned TrafficPattern::hotspot(Random& random) const {
  if (hot_.size() == 1) return hot_.front();
  const std::uint32_t drawn = random.below(upto_.back());
  std::size_t i = 0;
  while (drawn >= upto_[i]) ++i;
  return hot_[i];
}

double TrafficPattern::links(unsigned source, unsigned destination) const {
  const auto distance = [](unsigned a, unsigned b) { return a > b ? a - b : b - a; };
  return distance(source % cols_, destination % cols_) + distance(source / cols_, destination / cols_);
}

template <class Visit>
void TrafficPattern::visit_pairs(const Visit& visit) const {
  for (unsigned source = 0; source < nodes_; ++source) {
    if (kind_ == Kind::fixed) visit(source, fixed_[source], 1.0);
    for (unsigned to = 0; kind_ == Kind::uniform && to < nodes_; ++to) visit(source, to, 1.0 / nodes_);
    for (std::size_t i = 0; i < hot_.size(); ++i) {
      const std::uint32_t weight = upto_[i] - (i == 0 ? 0 : upto_[i - 1]);
      visit(source, hot_[i], static_cast<double>(weight) / upto_.back());
    }
  }
}

double TrafficPattern::mean_links() const {
  double sum = 0;
  visit_pairs([&](unsigned source, unsigned to, double share) { sum += links(source, to) * share; });
  return sum / nodes_;
}

TrafficPattern::Busiest TrafficPattern::busiest() const {
  enum Way : unsigned { kEast, kWest, kSouth, kNorth, kOut, kWays };
  std::vector<double> asked(std::size_t{kWays} * nodes_);
  visit_pairs([&](unsigned source, unsigned to, double share) {
    unsigned at = source;
    const auto go = [&](Way way, unsigned next) {
      asked[kWays * at + way] += share;
      at = next;
    };
    while (at % cols_ < to % cols_) go(kEast, at + 1);
    while (at % cols_ > to % cols_) go(kWest, at - 1);
    while (at < to) go(kSouth, at + cols_);
    while (at > to) go(kNorth, at - cols_);
    go(kOut, to);
  });
  Busiest most;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    double& kind = i % kWays == kOut ? most.node : most.link;
    kind = std::max(kind, asked[i]);
  }
  return most;
}

}  // namespace kernbench
