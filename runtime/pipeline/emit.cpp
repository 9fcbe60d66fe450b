#include "runtime/pipeline/emit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

namespace kernbench::pipeline {

namespace {
std::string sizes_text(const std::vector<std::int64_t>& sizes) { return fmt::format("[{}]", fmt::join(sizes, ", ")); }

Node node_of(Op op, std::vector<std::size_t> inputs, TensorType type) {
  Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.type = std::move(type);
  return node;
}
}  // namespace

std::optional<std::vector<std::int64_t>> broadcast(const std::vector<std::int64_t>& a,
                                                   const std::vector<std::int64_t>& b) {
  std::vector<std::int64_t> shape(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    shape[shape.size() - 1 - i] = x == 1 ? y : x;
  }
  return shape;
}

std::int64_t TensorType::count() const { return count_of(shape); }

std::string TensorType::str() const { return kernbench::to_string(dtype) + sizes_text(shape); }

TensorType type_of(const TensorInfo& tensor) {
  TensorType type;
  type.dtype = tensor.dtype.value;
  for (const std::uint64_t size : tensor.shape.value) type.shape.push_back(static_cast<std::int64_t>(size));
  return type;
}

std::size_t Graph::uses(std::size_t node) const {
  auto uses = static_cast<std::size_t>(std::count(outputs.begin(), outputs.end(), node));
  for (const Node& reader : nodes)
    uses += static_cast<std::size_t>(std::count(reader.inputs.begin(), reader.inputs.end(), node));
  return uses;
}

Emitter::Id Emitter::add(Node node) {
  constexpr double kMostElements = 1e13;  // their bytes still fit an address space
  double count = 1;
  for (const std::int64_t size : node.type.shape) count *= static_cast<double>(size);
  if (count > kMostElements)
    throw EmitError{fmt::format("its result {} has too many elements", node.type.str()), "10^13 at most"};
  node.name = name;
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.size() - 1;
}

std::int64_t Emitter::dim(Id x, std::int64_t dim, const char* what) const {
  const std::int64_t ranks = rank(x);
  if (dim < -ranks || dim >= ranks)
    throw EmitError{fmt::format("{} is {}, but {} has {} dimensions", what, dim, type(x).str(), ranks),
                    ranks == 0 ? "view it as [1] before" : fmt::format("give {} to {}", -ranks, ranks - 1)};
  return dim < 0 ? dim + ranks : dim;
}

void Emitter::need_float(Id x, const char* what) const {
  if (!is_float(type(x).dtype))
    throw EmitError{fmt::format("{} is {}, no floating-point type", what, type(x).str()), "cast it before"};
}

void Emitter::need_same_type(Id a, Id b) const {
  if (type(a).dtype != type(b).dtype)
    throw EmitError{fmt::format("operands are {} and {}, of different types", type(a).str(), type(b).str()),
                    "cast one of them before"};
}

Emitter::Id Emitter::input(std::size_t number, const TensorType& type) {
  Node node = node_of(Op::input, {}, type);
  node.number_of = number;
  return add(std::move(node));
}

Emitter::Id Emitter::view(Id x, Sizes shape) {
  const std::int64_t count = type(x).count();
  std::int64_t known = 1, open = -1;
  const EmitError refused{fmt::format("{} cannot be seen as {}", type(x).str(), sizes_text(shape)),
                          "the product of the sizes is the number of elements; one of them may be -1"};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1 && open < 0) {
      open = static_cast<std::int64_t>(i);
    } else if (shape[i] < 1 || shape[i] > count) {
      throw refused;
    } else {
      known *= shape[i];
    }
  }
  if (open >= 0 && known > 0 && count % known == 0) {
    shape[static_cast<std::size_t>(open)] = count / known;
    known = count;
  }
  if (known != count) throw refused;
  return add(node_of(Op::view, {x}, {std::move(shape), type(x).dtype}));
}

Emitter::Id Emitter::strided(Id x, Sizes shape, Sizes strides, std::int64_t offset) {
  Node node = node_of(Op::strided, {x}, {std::move(shape), type(x).dtype});
  node.strides = std::move(strides);
  node.offset = offset;
  return add(std::move(node));
}

Emitter::Id Emitter::permute(Id x, const Sizes& dims) {
  const Sizes strides = dense_strides(type(x).shape);
  std::set<std::int64_t> seen;
  Sizes shape, moved;
  for (const std::int64_t given : dims) {
    const auto at = static_cast<std::size_t>(dim(x, given, "dims"));
    seen.insert(static_cast<std::int64_t>(at));
    shape.push_back(type(x).shape[at]);
    moved.push_back(strides[at]);
  }
  if (seen.size() != type(x).shape.size() || dims.size() != seen.size())
    throw EmitError{
        fmt::format("dims is {}, no order of the {} dimensions of {}", sizes_text(dims), rank(x), type(x).str()),
        "name each dimension once"};
  return strided(x, std::move(shape), std::move(moved), 0);
}

Emitter::Id Emitter::transpose(Id x, std::int64_t dim0, std::int64_t dim1) {
  Sizes dims(type(x).shape.size());
  std::iota(dims.begin(), dims.end(), 0);
  std::swap(dims[static_cast<std::size_t>(dim(x, dim0, "dim0"))], dims[static_cast<std::size_t>(dim(x, dim1, "dim1"))]);
  return permute(x, dims);
}

Emitter::Id Emitter::expand(Id x, const Sizes& size) {
  const Sizes& from = type(x).shape;
  const Sizes strides = dense_strides(from);
  const EmitError refused{fmt::format("{} cannot be expanded to {}", type(x).str(), sizes_text(size)),
                          "only dimensions of size 1, and new ones in front, grow"};
  if (size.size() < from.size()) throw refused;
  Sizes shape = size, moved(size.size(), 0);
  for (std::size_t i = 0; i < size.size(); ++i) {
    const std::size_t back = size.size() - 1 - i;  // from the last one
    const std::int64_t old = back < from.size() ? from[from.size() - 1 - back] : 0;
    if (shape[i] == -1 && old > 0) shape[i] = old;
    if (shape[i] < 1 || (old > 1 && shape[i] != old)) throw refused;
    if (old > 1) moved[i] = strides[from.size() - 1 - back];
  }
  return strided(x, std::move(shape), std::move(moved), 0);
}

Emitter::Id Emitter::slice(Id x, std::int64_t given, std::int64_t begin, std::int64_t end, std::int64_t step) {
  const auto at = static_cast<std::size_t>(dim(x, given));
  Sizes shape = type(x).shape, strides = dense_strides(shape);
  const std::int64_t size = shape[at];
  const auto clamp = [size](std::int64_t value) {
    return std::clamp<std::int64_t>(value < 0 ? value + size : value, 0, size);
  };
  begin = clamp(begin);
  end = clamp(end);
  if (step < 1 || begin >= end)
    throw EmitError{
        fmt::format("elements {} to {} by {} of dimension {} of {} are none", begin, end, step, at, type(x).str()),
        "give a begin below the end, and a step of 1 or more"};
  shape[at] = (end - begin + step - 1) / step;
  const std::int64_t offset = begin * strides[at];
  strides[at] *= step;
  return strided(x, std::move(shape), std::move(strides), offset);
}

Emitter::Id Emitter::select(Id x, std::int64_t given, std::int64_t index) {
  const auto at = dim(x, given);
  const std::int64_t size = type(x).shape[static_cast<std::size_t>(at)];
  if (index < -size || index >= size)
    throw EmitError{fmt::format("index is {}, but dimension {} of {} has {} elements", index, at, type(x).str(), size),
                    fmt::format("give {} to {}", -size, size - 1)};
  Sizes shape = type(x).shape, strides = dense_strides(shape);
  const std::int64_t offset = (index < 0 ? index + size : index) * strides[static_cast<std::size_t>(at)];
  shape.erase(shape.begin() + at);
  strides.erase(strides.begin() + at);
  return strided(x, std::move(shape), std::move(strides), offset);
}

Emitter::Id Emitter::cat(const std::vector<Id>& parts, std::int64_t given) {
  if (parts.empty()) throw EmitError{"there is nothing to set side by side", "give a list of tensors"};
  const std::int64_t at = dim(parts.front(), given);
  Node node = node_of(Op::cat, parts, type(parts.front()));
  node.dims = {at};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    Sizes shape = type(parts[i]).shape;
    need_same_type(parts.front(), parts[i]);
    const bool ranks = shape.size() == node.type.shape.size();
    std::int64_t own = 0;
    if (ranks) std::swap(own, shape[static_cast<std::size_t>(at)]);
    Sizes first = type(parts.front()).shape;
    first[static_cast<std::size_t>(at)] = 0;
    if (shape != first)
      throw EmitError{fmt::format("{} does not stand beside {} along dimension {}", type(parts[i]).str(),
                                  type(parts.front()).str(), at),
                      "all other dimensions are equal"};
    node.type.shape[static_cast<std::size_t>(at)] += own;
  }
  return add(std::move(node));
}

Emitter::Sizes Emitter::split_sizes(Id x, const Sizes& sizes, bool one_size, std::int64_t dim) const {
  const std::int64_t whole = type(x).shape[static_cast<std::size_t>(dim)];
  Sizes parts;
  if (one_size && sizes.front() > 0) {
    for (std::int64_t left = whole; left > 0; left -= sizes.front()) parts.push_back(std::min(left, sizes.front()));
    return parts;
  }
  std::int64_t sum = 0;
  bool good = !one_size;
  for (const std::int64_t size : sizes) {
    good = good && size > 0;
    sum += size;
  }
  if (!good || sum != whole)
    throw EmitError{fmt::format("{} does not split dimension {} of {}", sizes_text(sizes), dim, type(x).str()),
                    fmt::format("give sizes of 1 or more that add up to {}", whole)};
  return sizes;
}

Emitter::Id Emitter::cast(Id x, DType dtype) { return add(node_of(Op::cast, {x}, {type(x).shape, dtype})); }

Emitter::Id Emitter::unary(Id x, Unary op) {
  if (op == Unary::relu || op == Unary::neg) {
    if (type(x).dtype == DType::boolean) throw EmitError{"its operand is bool", "cast it before"};
  } else {
    need_float(x, "its operand");
  }
  Node node = node_of(Op::unary, {x}, type(x));
  node.unary = op;
  return add(std::move(node));
}

Emitter::Id Emitter::binary(Id a, Id b, Binary op) {
  need_same_type(a, b);
  if (op == Binary::div || op == Binary::pow) need_float(a, "its operand");
  if (op == Binary::sub && type(a).dtype == DType::boolean)
    throw EmitError{"its operands are bool", "cast them before"};
  const auto shape = broadcast(type(a).shape, type(b).shape);
  if (!shape)
    throw EmitError{fmt::format("{} and {} do not broadcast to one shape", type(a).str(), type(b).str()),
                    "from the last on, dimensions are equal or one of them is 1"};
  Node node = node_of(Op::binary, {a, b}, {*shape, type(a).dtype});
  node.binary = op;
  return add(std::move(node));
}

Emitter::Id Emitter::with_number(Id a, double number, Binary op) {
  if (op == Binary::div || op == Binary::pow) need_float(a, "its operand");
  if (type(a).dtype == DType::boolean) throw EmitError{"its operand is bool", "cast it before"};
  if (!is_float(type(a).dtype)) {
    // Of i64 those that a double holds.
    const double bits = std::min(8.0 * static_cast<double>(size_of(type(a).dtype)) - 1, 53.0), limit = std::exp2(bits);
    if (number != std::floor(number) || number < -limit || number > limit - 1)
      throw EmitError{fmt::format("{} with the number {}", type(a).str(), number), "cast the tensor before"};
  }
  Node node = node_of(Op::binary, {a}, type(a));
  node.binary = op;
  node.number = number;
  return add(std::move(node));
}

Emitter::Id Emitter::where(Id mask, Id a, Id b) {
  if (type(mask).dtype != DType::boolean)
    throw EmitError{fmt::format("the condition is {}, not bool", type(mask).str()), "cast it before"};
  need_same_type(a, b);
  auto shape = broadcast(type(a).shape, type(b).shape);
  if (shape) shape = broadcast(*shape, type(mask).shape);
  if (!shape)
    throw EmitError{
        fmt::format("{}, {} and {} do not broadcast to one shape", type(mask).str(), type(a).str(), type(b).str()),
        "from the last on, dimensions are equal or 1"};
  return add(node_of(Op::where, {mask, a, b}, {*shape, type(a).dtype}));
}

Emitter::Id Emitter::reduce(Id x, Sizes dims, bool keep, Reduction reduction) {
  if (reduction == Reduction::mean) need_float(x, "its operand");
  // Integers are counted in i64.
  if (reduction == Reduction::sum && !is_float(type(x).dtype) && type(x).dtype != DType::i64) x = cast(x, DType::i64);
  std::set<std::int64_t> gone;
  for (const std::int64_t given : dims) {
    if (!gone.insert(dim(x, given)).second)
      throw EmitError{fmt::format("dim is {}, which names a dimension twice", sizes_text(dims)), "name each once"};
  }
  if (dims.empty()) {
    for (std::int64_t i = 0; i < rank(x); ++i) gone.insert(i);
  }
  Node node = node_of(Op::reduce, {x}, {{}, type(x).dtype});
  node.reduction = reduction;
  for (std::int64_t i = 0; i < rank(x); ++i) {
    const bool reduced = gone.count(i) > 0;
    if (!reduced) node.type.shape.push_back(type(x).shape[static_cast<std::size_t>(i)]);
    if (reduced && keep) node.type.shape.push_back(1);
  }
  node.dims.assign(gone.begin(), gone.end());
  return add(std::move(node));
}

Emitter::Id Emitter::softmax(Id x, std::int64_t given) {
  need_float(x, "its operand");
  Node node = node_of(Op::softmax, {x}, type(x));
  node.dims = {dim(x, given)};
  return add(std::move(node));
}

Emitter::Id Emitter::norm(Id x, const Sizes& shape, const Id* weight, const Id* bias, double epsilon, bool rms) {
  need_float(x, "its operand");
  const Sizes& whole = type(x).shape;
  if (shape.empty() || shape.size() > whole.size() ||
      !std::equal(shape.begin(), shape.end(), whole.end() - static_cast<std::ptrdiff_t>(shape.size())))
    throw EmitError{fmt::format("normalized_shape is {}, but its operand is {}", sizes_text(shape), type(x).str()),
                    "give the operand's last dimensions"};
  Node node = node_of(Op::norm, {x}, type(x));
  for (const Id* factor : {weight, bias}) {
    if (factor == nullptr) continue;
    need_same_type(x, *factor);
    if (type(*factor).shape != shape)
      throw EmitError{fmt::format("{} is {}, but normalized_shape is {}", factor == weight ? "weight" : "bias",
                                  type(*factor).str(), sizes_text(shape)),
                      fmt::format("give the shape {}", sizes_text(shape))};
    node.inputs.push_back(*factor);
  }
  node.dims = {static_cast<std::int64_t>(shape.size())};
  node.epsilon = epsilon;
  node.rms = rms;
  node.has_weight = weight != nullptr;
  node.has_bias = bias != nullptr;
  return add(std::move(node));
}

Emitter::Id Emitter::matmul(Id a, Id b, bool transposed) {
  need_float(a, "its operand");
  need_same_type(a, b);
  const bool row = rank(a) == 1, column = rank(b) == 1 && !transposed;
  if (rank(a) == 0 || rank(b) == 0) throw EmitError{"its operand is a single element", "use mul"};
  if (row) a = view(a, {1, type(a).shape[0]});
  if (column) b = view(b, {type(b).shape[0], 1});
  const Sizes &left = type(a).shape, &right = type(b).shape;
  const std::int64_t m = left[left.size() - 2], k = left.back();
  const std::int64_t depth = transposed ? right.back() : right[right.size() - 2];
  const std::int64_t n = transposed ? right[right.size() - 2] : right.back();
  const auto batch = broadcast({left.begin(), left.end() - 2}, {right.begin(), right.end() - 2});
  if (k != depth || !batch)
    throw EmitError{
        fmt::format(
            "{} and {} cannot be multiplied{}", type(a).str(), type(b).str(),
            k != depth ? fmt::format(": {} columns meet {} {}", k, depth, transposed ? "columns" : "rows") : ""),
        k != depth ? "change one of the shapes, or transpose it" : "dimensions before the matrices are equal or 1"};
  Node node = node_of(Op::matmul, {a, b}, {*batch, type(a).dtype});
  node.type.shape.push_back(m);
  node.type.shape.push_back(n);
  node.transposed = transposed;
  Id result = add(std::move(node));
  if (!row && !column) return result;
  Sizes shape = type(result).shape;
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  return view(result, std::move(shape));
}

Emitter::Id Emitter::embedding(Id table, Id indices) {
  if (rank(table) != 2)
    throw EmitError{fmt::format("the table is {}, no matrix", type(table).str()), "give a row for each index"};
  const DType index = type(indices).dtype;
  if (index != DType::i64 && index != DType::i32)
    throw EmitError{fmt::format("the indices are {}", type(indices).str()), "give i64 or i32"};
  Node node = node_of(Op::embedding, {table, indices}, {type(indices).shape, type(table).dtype});
  node.type.shape.push_back(type(table).shape[1]);
  return add(std::move(node));
}

Emitter::Id Emitter::attention(Id q, Id k, Id v, const Id* mask, bool causal, double scale) {
  need_float(q, "query");
  need_same_type(q, k);
  need_same_type(q, v);
  const Sizes &qs = type(q).shape, &ks = type(k).shape, &vs = type(v).shape;
  const bool ranks = qs.size() >= 2 && ks.size() == qs.size() && vs.size() == qs.size();
  if (!ranks || !std::equal(qs.begin(), qs.end() - 2, ks.begin()) ||
      !std::equal(ks.begin(), ks.end() - 1, vs.begin()) || qs.back() != ks.back())
    throw EmitError{
        fmt::format("query {}, key {} and value {} do not fit", type(q).str(), type(k).str(), type(v).str()),
        "give [..., L, E], [..., S, E] and [..., S, Ev] with the same dimensions in front"};
  Node node = node_of(Op::attention, {q, k, v}, {qs, type(q).dtype});
  node.type.shape.back() = vs.back();
  node.causal = causal;
  node.scale = scale;
  if (mask != nullptr) {
    if (causal) throw EmitError{"attn_mask together with is_causal", "give one of them"};
    Sizes scores(qs.begin(), qs.end() - 1);
    scores.push_back(ks[ks.size() - 2]);
    const auto shape = broadcast(type(*mask).shape, scores);
    const bool fits = type(*mask).dtype == DType::boolean || type(*mask).dtype == type(q).dtype;
    if (!fits || shape != scores)
      throw EmitError{fmt::format("attn_mask is {}, but the scores are {}", type(*mask).str(), sizes_text(scores)),
                      "give bool, or the queries' type, of a shape that broadcasts to the scores'"};
    Id whole = *mask;
    if (type(whole).dtype == DType::boolean) {  // as numbers that are added: 0, or what no exponent survives
      const DType dtype = type(q).dtype;
      const double far = dtype == DType::f8e4m3 ? 400 : dtype == DType::f16 || dtype == DType::f8e5m2 ? 5e4 : 1e30;
      whole = with_number(with_number(cast(whole, dtype), -1, Binary::add), far, Binary::mul);
    }
    if (type(whole).shape != scores) whole = expand(whole, scores);
    node.inputs.push_back(whole);
    node.has_mask = true;
  }
  return add(std::move(node));
}

}  // namespace kernbench::pipeline
