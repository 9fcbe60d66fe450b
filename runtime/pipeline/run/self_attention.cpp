#include "runtime/pipeline/run/self_attention.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "runtime/pipeline/emit.h"

namespace kernbench::pipeline {

namespace {

using Sizes = std::vector<std::int64_t>;

/// Element (i, j, ...) of a node is element offset + i strides[0] + j strides[1] + ... of `base`.
struct Layout {
  std::size_t base = 0;
  Sizes shape, strides;
  std::int64_t offset = 0;
};

/// Dimensions of a layout put together and apart, where that needs no copy.
std::optional<Layout> seen_as(const Layout& from, const Sizes& shape) {
  Layout made{from.base, shape, Sizes(shape.size(), 0), from.offset};
  std::size_t d = from.shape.size(), to = shape.size();
  while (d > 0) {
    // A run of dimensions whose elements follow each other at one distance.
    std::int64_t count = from.shape[--d], step = from.strides[d];
    while (d > 0 && (from.shape[d - 1] == 1 || count == 1 || from.strides[d - 1] == step * count)) {
      if (count == 1) step = from.strides[d - 1];
      count *= from.shape[--d];
    }
    while (to > 0 && count > 1) {
      const std::int64_t size = shape[--to];
      if (count % size != 0) return std::nullopt;
      made.strides[to] = step;
      step *= size;
      count /= size;
    }
    if (count > 1) return std::nullopt;
  }
  return made;
}

/// Elements of `from` at distances of its own dense order, as permutations, slices and expansions have them.
std::optional<Layout> strided(const Layout& from, const Node& node) {
  const Sizes dense = dense_strides(from.shape);
  Layout made{from.base, node.type.shape, Sizes(node.strides.size(), 0), from.offset};
  std::int64_t offset = node.offset;
  for (std::size_t d = 0; d < dense.size(); ++d) {
    made.offset += offset / dense[d] * from.strides[d];
    offset %= dense[d];
  }
  for (std::size_t i = 0; i < node.strides.size(); ++i) {
    if (node.strides[i] == 0 || node.type.shape[i] == 1) continue;
    std::size_t d = 0;
    while (d < dense.size() && (from.shape[d] == 1 || node.strides[i] % dense[d] != 0)) ++d;
    if (d == dense.size() || (node.type.shape[i] - 1) * (node.strides[i] / dense[d]) >= from.shape[d])
      return std::nullopt;
    made.strides[i] = node.strides[i] / dense[d] * from.strides[d];
  }
  return made;
}

/// Where a node's elements lie in what movements that copy nothing were made of.
std::optional<Layout> layout_of(const Graph& graph, std::size_t number) {
  const Node& node = graph.nodes[number];
  if (node.op != Op::view && node.op != Op::strided)
    return Layout{number, node.type.shape, dense_strides(node.type.shape), 0};
  const auto from = layout_of(graph, node.inputs[0]);
  if (!from) return std::nullopt;
  return node.op == Op::view ? seen_as(*from, node.type.shape) : strided(*from, node);
}

/// x cos + rotate_half(x) sin in at least f32, rounded once.
struct Rotation {
  std::size_t x = 0, cosines = 0, sines = 0;
};

class Matcher {
 public:
  explicit Matcher(const Graph& graph) : graph_(graph) {}

  std::optional<SelfAttentionMatch> match(std::size_t number) {
    const Node& attention = at(number);
    const Sizes& shape = attention.type.shape;
    if (attention.op != Op::attention || !attention.causal || attention.has_mask || shape.size() != 4 ||
        !is_float(attention.type.dtype) || size_of(attention.type.dtype) == 1)
      return std::nullopt;
    SelfAttentionMatch& made = match_;
    made.batch = shape[0];
    made.heads = shape[1];
    made.length = shape[2];
    made.head_dim = shape[3];
    if (at(attention.inputs[0]).type.shape != shape || at(attention.inputs[1]).type.shape != shape ||
        std::abs(attention.scale * std::sqrt(static_cast<double>(made.head_dim)) - 1) > 1e-12)
      return std::nullopt;
    std::size_t q = attention.inputs[0], k = ungrouped(attention.inputs[1]), v = ungrouped(attention.inputs[2]);
    made.kv_heads = at(k).type.shape[1];
    if (at(v).type.shape != at(k).type.shape) return std::nullopt;
    if (!unrotated(q, k) || !projected(q, k, v) || !side_by_side(number)) return std::nullopt;
    return absorb() ? std::optional(made) : std::nullopt;
  }

 private:
  const Node& at(std::size_t number) const { return graph_.nodes[number]; }
  bool is_binary(std::size_t number, Binary op) const {
    return at(number).op == Op::binary && at(number).binary == op && at(number).inputs.size() == 2;
  }

  /// What heads were before each was repeated for its group of queries.
  std::size_t ungrouped(std::size_t number) const {
    const Node& grouped = at(number);
    if (grouped.op != Op::view || grouped.type.shape.size() != 4) return number;
    const Node& repeated = at(grouped.inputs[0]);
    const Sizes& shape = repeated.type.shape;
    if (repeated.op != Op::strided || repeated.offset != 0 || shape.size() != 5 || shape[0] != match_.batch ||
        shape[1] * shape[2] != match_.heads)
      return number;
    Sizes strides = dense_strides({shape[0], shape[1], 1, shape[3], shape[4]});
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (d != 2 && shape[d] > 1 && repeated.strides[d] != strides[d]) return number;
    }
    if (repeated.strides[2] != 0) return number;
    const Node& alone = at(repeated.inputs[0]);
    if (alone.op != Op::view) return number;
    const Sizes before{shape[0], shape[1], shape[3], shape[4]};
    return at(alone.inputs[0]).type.shape == before ? alone.inputs[0] : number;
  }

  std::optional<Rotation> rotation(std::size_t number) const {
    const DType dtype = at(number).type.dtype;
    const bool narrow = size_of(dtype) < 4;
    if (narrow && (at(number).op != Op::cast || at(at(number).inputs[0]).type.dtype != DType::f32)) return std::nullopt;
    const std::size_t sum = narrow ? at(number).inputs[0] : number;
    if (!is_binary(sum, Binary::add)) return std::nullopt;
    for (const std::size_t first : {0, 1}) {
      const std::size_t along = at(sum).inputs[first], across = at(sum).inputs[1 - first];
      if (!is_binary(along, Binary::mul) || !is_binary(across, Binary::mul)) continue;
      const std::size_t x = at(along).inputs[0], halves = at(across).inputs[0];
      if (!halves_of(halves, x) || (narrow && at(x).op != Op::cast)) continue;
      const auto cosines = table(at(along).inputs[1]), sines = table(at(across).inputs[1]);
      const std::size_t before = narrow ? at(x).inputs[0] : x;
      if (cosines && sines && at(before).type.dtype == dtype) return Rotation{before, *cosines, *sines};
    }
    return std::nullopt;
  }

  /// [-high half, low half] of each row of x.
  bool halves_of(std::size_t number, std::size_t x) const {
    const Node& node = at(number);
    if (node.op != Op::cat || node.inputs.size() != 2 || node.dims != Sizes{3}) return false;
    const Node &minus = at(node.inputs[0]), &low = at(node.inputs[1]);
    if (minus.op != Op::unary || minus.unary != Unary::neg) return false;
    const Node& high = at(minus.inputs[0]);
    const Sizes& whole = at(x).type.shape;
    const std::int64_t half = whole.back() / 2;
    const auto part = [&](const Node& of, std::int64_t offset) {
      return of.op == Op::strided && of.inputs[0] == x && of.offset == offset && of.strides == dense_strides(whole) &&
             of.type.shape == Sizes{whole[0], whole[1], whole[2], half};
    };
    return whole.back() % 2 == 0 && part(low, 0) && part(high, half);
  }

  /// An input with a row for each position.
  std::optional<std::size_t> table(std::size_t number) const {
    const Sizes& shape = at(number).type.shape;
    const Sizes rows{match_.length, match_.head_dim};
    const bool leading = shape.size() >= 2 && std::equal(shape.end() - 2, shape.end(), rows.begin()) &&
                         std::all_of(shape.begin(), shape.end() - 2, [](std::int64_t size) { return size == 1; });
    if (!leading) return std::nullopt;
    while (at(number).op == Op::view || at(number).op == Op::cast) number = at(number).inputs[0];
    if (at(number).op != Op::input || at(number).type.dtype != DType::f32) return std::nullopt;
    return number;
  }

  bool unrotated(std::size_t& q, std::size_t& k) {
    const auto of_q = rotation(q), of_k = rotation(k);
    if (!of_q && !of_k) return true;
    if (!of_q || !of_k || of_q->cosines != of_k->cosines || of_q->sines != of_k->sines) return false;
    q = of_q->x;
    k = of_k->x;
    match_.cosines = of_q->cosines;
    match_.sines = of_q->sines;
    return true;
  }

  /// All three are heads of one projection.
  bool projected(std::size_t q, std::size_t k, std::size_t v) {
    const std::int64_t dim = match_.head_dim, own = (match_.heads + 2 * match_.kv_heads) * dim;
    std::int64_t first = 0;
    std::optional<std::size_t> base;
    for (const std::size_t number : {q, k, v}) {
      const auto layout = layout_of(graph_, number);
      if (!layout || (base && layout->base != *base) || layout->offset != first) return false;
      base = layout->base;
      const Sizes strides{match_.length * own, dim, own, 1};
      for (std::size_t d = 0; d < strides.size(); ++d) {
        if (layout->shape[d] > 1 && layout->strides[d] != strides[d]) return false;
      }
      first += layout->shape[1] * dim;
    }
    match_.projection = *base;
    return at(*base).type.shape == Sizes{match_.batch * match_.length, own};
  }

  /// (batch, heads, length, dim) -> (batch * length, heads * dim).
  bool side_by_side(std::size_t number) {
    const auto reader = [&](std::size_t of) -> std::optional<std::size_t> {
      for (std::size_t i = of + 1; i < graph_.nodes.size(); ++i) {
        const auto& inputs = at(i).inputs;
        if (std::find(inputs.begin(), inputs.end(), of) != inputs.end()) return i;
      }
      return std::nullopt;
    };
    const auto back = reader(number);
    if (!back || at(*back).op != Op::strided || at(*back).offset != 0) return false;
    const auto& [batch, length, heads, dim] = std::tie(match_.batch, match_.length, match_.heads, match_.head_dim);
    const Sizes dense = dense_strides({batch, heads, length, dim}), strides{dense[0], dense[2], dense[1], dense[3]};
    if (at(*back).type.shape != Sizes{batch, length, heads, dim} || at(*back).strides != strides) return false;
    const auto joined = reader(*back);
    if (!joined || at(*joined).op != Op::view || at(*joined).type.shape != Sizes{batch * length, heads * dim})
      return false;
    match_.result = *joined;
    return true;
  }

  /// Everything between projection and result, which nobody else may read.
  bool absorb() {
    std::set<std::size_t> between{match_.result};
    std::vector<std::size_t> open{match_.result};
    while (!open.empty()) {
      const std::size_t number = open.back();
      open.pop_back();
      for (const std::size_t input : at(number).inputs) {
        if (input == match_.projection || at(input).op == Op::input) continue;
        if (input < match_.projection && !from_table(input)) return false;
        if (between.insert(input).second) open.push_back(input);
      }
    }
    for (const std::size_t number : between) {
      if (number == match_.result) continue;
      std::size_t inside = 0;
      for (const std::size_t reader : between)
        inside += static_cast<std::size_t>(std::count(at(reader).inputs.begin(), at(reader).inputs.end(), number));
      if (graph_.uses(number) != inside) return false;
      match_.absorbed.push_back(number);
    }
    return true;
  }
  bool from_table(std::size_t number) const {
    while (at(number).op == Op::view || at(number).op == Op::cast) number = at(number).inputs[0];
    return at(number).op == Op::input;
  }

  const Graph& graph_;
  SelfAttentionMatch match_;
};

}  // namespace

std::optional<SelfAttentionMatch> match_self_attention(const Graph& graph, std::size_t node) {
  return Matcher(graph).match(node);
}

}  // namespace kernbench::pipeline
