#include "runtime/pipeline/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "runtime/pipeline/emit.h"

namespace kernbench::pipeline {

namespace {

using Doubles = std::vector<double>;

/// Elements as T computes with them: double of floats, std::int64_t of integers. Neither loses a bit.
template <class T>
T element_of(const HostTensor& tensor, std::size_t i) {
  if constexpr (std::is_same_v<T, double>)
    return load_element(tensor.bytes.data(), tensor.dtype, i);
  else
    return load_integer(tensor.bytes.data(), tensor.dtype, i);
}
template <class T>
void set_element(HostTensor& tensor, std::size_t i, T value) {
  if constexpr (std::is_same_v<T, double>)
    store_element(tensor.bytes.data(), tensor.dtype, i, value);
  else
    store_integer(tensor.bytes.data(), tensor.dtype, i, value);
}

/// Calls body(a value of the type that computes with elements of `dtype`).
template <class Body>
HostTensor in_type_of(DType dtype, const Body& body) {
  return is_float(dtype) ? body(double{}) : body(std::int64_t{});
}

template <class T = double>
std::vector<T> decode(const HostTensor& tensor) {
  std::vector<T> values(static_cast<std::size_t>(tensor.count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = element_of<T>(tensor, i);
  return values;
}

HostTensor empty_like(const TensorType& type) {
  HostTensor tensor{type.shape, type.dtype, {}};
  tensor.bytes.resize(static_cast<std::size_t>(type.count()) * size_of(type.dtype));
  return tensor;
}

template <class T>
HostTensor encode(const TensorType& type, const std::vector<T>& values) {
  HostTensor tensor = empty_like(type);
  for (std::size_t i = 0; i < values.size(); ++i) set_element(tensor, i, values[i]);
  return tensor;
}

// Integers wrap by way of the unsigned type.
std::uint64_t raw(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::int64_t wrap(std::uint64_t value) { return static_cast<std::int64_t>(value); }

std::int64_t value_of(Unary op, std::int64_t x) {
  if (op == Unary::neg) return wrap(0 - raw(x));
  if (op == Unary::relu) return std::max<std::int64_t>(x, 0);
  throw std::logic_error("an operation of integers that graphs do not have");
}

double value_of(Unary op, double x) {
  switch (op) {
    case Unary::relu:
      return x > 0 || std::isnan(x) ? x : 0;
    case Unary::gelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Unary::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Unary::silu:
      return x / (1 + std::exp(-x));
    case Unary::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Unary::tanh:
      return std::tanh(x);
    case Unary::rsqrt:
      return 1 / std::sqrt(x);
    case Unary::sqrt:
      return std::sqrt(x);
    case Unary::neg:
      return -x;
    case Unary::exp:
      return std::exp(x);
  }
  return 0;
}

double value_of(Binary op, double a, double b) {
  switch (op) {
    case Binary::add:
      return a + b;
    case Binary::sub:
      return a - b;
    case Binary::mul:
      return a * b;
    case Binary::div:
      return a / b;
    case Binary::pow:
      return std::pow(a, b);
  }
  return 0;
}

std::int64_t value_of(Binary op, std::int64_t a, std::int64_t b) {
  return wrap(op == Binary::add ? raw(a) + raw(b) : op == Binary::sub ? raw(a) - raw(b) : raw(a) * raw(b));
}

/// For each element of a row-major array of `shape`, the element of one of shape `from` that is broadcast to it.
std::vector<std::size_t> broadcast_places(const std::vector<std::int64_t>& from,
                                          const std::vector<std::int64_t>& shape) {
  const std::vector<std::int64_t> strides = dense_strides(from);
  std::vector<std::size_t> places{0};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::size_t back = shape.size() - 1 - d;
    const bool has = back < from.size() && from[from.size() - 1 - back] > 1;
    const auto stride = has ? static_cast<std::size_t>(strides[from.size() - 1 - back]) : 0;
    std::vector<std::size_t> next;
    next.reserve(places.size() * static_cast<std::size_t>(shape[d]));
    for (const std::size_t place : places) {
      for (std::int64_t i = 0; i < shape[d]; ++i) next.push_back(place + static_cast<std::size_t>(i) * stride);
    }
    places = std::move(next);
  }
  return places;
}

HostTensor evaluate_unary(const Node& node, const HostTensor& x) {
  return in_type_of(x.dtype, [&](auto number) {
    auto values = decode<decltype(number)>(x);
    for (auto& value : values) value = value_of(node.unary, value);
    return encode(node.type, values);
  });
}

HostTensor evaluate_binary(const Node& node, const HostTensor& a, const HostTensor* b) {
  const std::vector<std::size_t> left = broadcast_places(a.shape, node.type.shape);
  const std::vector<std::size_t> right =
      b != nullptr ? broadcast_places(b->shape, node.type.shape) : std::vector<std::size_t>();
  return in_type_of(a.dtype, [&](auto number) {
    using T = decltype(number);
    std::vector<T> values(left.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      const T y = b != nullptr ? element_of<T>(*b, right[i]) : static_cast<T>(node.number);
      values[i] = value_of(node.binary, element_of<T>(a, left[i]), y);
    }
    return encode(node.type, values);
  });
}

/// Rows of `length` elements, one after the other: dimensions `last` moved behind all others.
template <class T>
struct Rows {
  std::vector<T> values;
  std::size_t length;
};
template <class T>
Rows<T> rows_of(const HostTensor& x, const std::vector<std::int64_t>& last) {
  std::vector<std::int64_t> shape, strides;
  const std::vector<std::int64_t> dense = dense_strides(x.shape);
  std::size_t length = 1;
  for (const bool behind : {false, true}) {
    for (std::size_t d = 0; d < x.shape.size(); ++d) {
      const bool is_last = std::find(last.begin(), last.end(), static_cast<std::int64_t>(d)) != last.end();
      if (is_last != behind) continue;
      shape.push_back(x.shape[d]);
      strides.push_back(dense[d]);
      if (behind) length *= static_cast<std::size_t>(x.shape[d]);
    }
  }
  HostTensor moved{shape, x.dtype, std::vector<std::uint8_t>(x.bytes.size())};
  copy_strided(shape, size_of(x.dtype), x.bytes.data(), strides, moved.bytes.data(), dense_strides(shape));
  return {decode<T>(moved), length};
}

double reduced(Reduction op, const double* row, std::size_t length) {
  double value = op == Reduction::amax ? row[0] : 0;
  for (std::size_t i = 0; i < length; ++i)
    value = op != Reduction::amax ? value + row[i] : row[i] > value || std::isnan(row[i]) ? row[i] : value;
  return op == Reduction::mean ? value / static_cast<double>(length) : value;
}

/// The graph has no mean of integers.
std::int64_t reduced(Reduction op, const std::int64_t* row, std::size_t length) {
  if (op == Reduction::amax) return *std::max_element(row, row + length);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < length; ++i) sum += raw(row[i]);
  return wrap(sum);
}

HostTensor evaluate_reduce(const Node& node, const HostTensor& x) {
  return in_type_of(x.dtype, [&](auto number) {
    using T = decltype(number);
    const Rows<T> rows = rows_of<T>(x, node.dims);
    std::vector<T> result;
    for (std::size_t row = 0; row < rows.values.size(); row += rows.length)
      result.push_back(reduced(node.reduction, &rows.values[row], rows.length));
    return encode(node.type, result);
  });
}

void soften(double* row, std::size_t n, std::size_t stride) {
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::size_t i = 0; i < n; ++i) most = std::max(most, row[i * stride]);
  for (std::size_t i = 0; i < n; ++i) sum += row[i * stride] = std::exp(row[i * stride] - most);
  for (std::size_t i = 0; i < n; ++i) row[i * stride] /= sum;
}

HostTensor evaluate_softmax(const Node& node, const HostTensor& x) {
  Doubles values = decode(x);
  const auto dim = static_cast<std::size_t>(node.dims.front());
  const auto stride = static_cast<std::size_t>(dense_strides(x.shape)[dim]), n = static_cast<std::size_t>(x.shape[dim]);
  for (std::size_t outer = 0; outer < values.size(); outer += stride * n) {
    for (std::size_t inner = 0; inner < stride; ++inner) soften(&values[outer + inner], n, stride);
  }
  return encode(node.type, values);
}

HostTensor evaluate_norm(const Node& node, const std::vector<const HostTensor*>& inputs) {
  Doubles values = decode(*inputs[0]);
  const auto width = static_cast<std::size_t>(std::accumulate(
      node.type.shape.end() - node.dims.front(), node.type.shape.end(), std::int64_t{1}, std::multiplies<>()));
  const Doubles weight = node.has_weight ? decode(*inputs[1]) : Doubles(width, 1);
  const Doubles bias = node.has_bias ? decode(*inputs[node.has_weight ? 2 : 1]) : Doubles(width, 0);
  for (std::size_t row = 0; row < values.size(); row += width) {
    double mean = 0, square = 0;
    for (std::size_t i = 0; i < width && !node.rms; ++i) mean += values[row + i];
    mean /= static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i) square += (values[row + i] - mean) * (values[row + i] - mean);
    const double factor = 1 / std::sqrt(square / static_cast<double>(width) + node.epsilon);
    for (std::size_t i = 0; i < width; ++i) values[row + i] = (values[row + i] - mean) * factor * weight[i] + bias[i];
  }
  return encode(node.type, values);
}

HostTensor evaluate_matmul(const Node& node, const HostTensor& a, const HostTensor& b) {
  const auto m = static_cast<std::size_t>(a.shape[a.shape.size() - 2]), k = static_cast<std::size_t>(a.shape.back());
  const auto n = static_cast<std::size_t>(node.type.shape.back());
  const Doubles left = decode(a), right = decode(b);
  const std::vector<std::int64_t> batch(node.type.shape.begin(), node.type.shape.end() - 2);
  const auto a_at = broadcast_places({a.shape.begin(), a.shape.end() - 2}, batch);
  const auto b_at = broadcast_places({b.shape.begin(), b.shape.end() - 2}, batch);
  Doubles result(static_cast<std::size_t>(node.type.count()));
  for (std::size_t i = 0; i < a_at.size(); ++i) {
    for (std::size_t row = 0; row < m; ++row) {
      for (std::size_t col = 0; col < n; ++col) {
        double sum = 0;
        for (std::size_t l = 0; l < k; ++l)
          sum += left[(a_at[i] * m + row) * k + l] *
                 right[b_at[i] * k * n + (node.transposed ? col * k + l : l * n + col)];
        result[(i * m + row) * n + col] = sum;
      }
    }
  }
  return encode(node.type, result);
}

HostTensor evaluate_attention(const Node& node, const std::vector<const HostTensor*>& inputs) {
  const HostTensor &query = *inputs[0], &key = *inputs[1];
  const auto l = static_cast<std::size_t>(query.shape[query.shape.size() - 2]),
             e = static_cast<std::size_t>(query.shape.back());
  const auto s = static_cast<std::size_t>(key.shape[key.shape.size() - 2]),
             ev = static_cast<std::size_t>(node.type.shape.back());
  const Doubles q = decode(query), k = decode(key), v = decode(*inputs[2]);
  const Doubles mask = node.has_mask ? decode(*inputs[3]) : Doubles();
  Doubles result(static_cast<std::size_t>(node.type.count()), 0);
  for (std::size_t row = 0; row < q.size() / e; ++row) {
    const std::size_t head = row / l;
    Doubles scores(s);
    for (std::size_t j = 0; j < s; ++j) {
      for (std::size_t i = 0; i < e; ++i) scores[j] += q[row * e + i] * k[(head * s + j) * e + i];
      scores[j] *= node.scale;
      if (node.has_mask) scores[j] += mask[row * s + j];
      if (node.causal && j > row % l) scores[j] = -std::numeric_limits<double>::infinity();
    }
    soften(scores.data(), s, 1);
    for (std::size_t j = 0; j < s; ++j) {
      for (std::size_t i = 0; i < ev; ++i) result[row * ev + i] += scores[j] * v[(head * s + j) * ev + i];
    }
  }
  return encode(node.type, result);
}

HostTensor evaluate_embedding(const Node& node, const HostTensor& table, const HostTensor& indices) {
  HostTensor result = empty_like(node.type);
  const std::size_t row = static_cast<std::size_t>(table.shape[1]) * size_of(table.dtype);
  for (std::size_t i = 0; i < static_cast<std::size_t>(indices.count()); ++i) {
    const std::int64_t index = load_integer(indices.bytes.data(), indices.dtype, i);
    if (index < 0 || index >= table.shape[0])
      throw std::invalid_argument("node '" + node.name + "': index " + std::to_string(index) +
                                  " is outside of the table's " + std::to_string(table.shape[0]) + " rows");
    std::memcpy(result.bytes.data() + i * row, table.bytes.data() + static_cast<std::size_t>(index) * row, row);
  }
  return result;
}

HostTensor evaluate_cat(const Node& node, const std::vector<const HostTensor*>& inputs) {
  HostTensor result = empty_like(node.type);
  const std::vector<std::int64_t> strides = dense_strides(node.type.shape);
  const auto dim = static_cast<std::size_t>(node.dims.front());
  const std::size_t item = size_of(node.type.dtype);
  std::size_t at = 0;
  for (const HostTensor* part : inputs) {
    copy_strided(part->shape, item, part->bytes.data(), dense_strides(part->shape), result.bytes.data() + at * item,
                 strides);
    at += static_cast<std::size_t>(part->shape[dim] * strides[dim]);
  }
  return result;
}

HostTensor evaluate_where(const Node& node, const std::vector<const HostTensor*>& inputs) {
  HostTensor result = empty_like(node.type);
  const std::size_t item = size_of(node.type.dtype);
  std::vector<std::vector<std::size_t>> places;
  for (const HostTensor* input : inputs) places.push_back(broadcast_places(input->shape, node.type.shape));
  for (std::size_t i = 0; i < places[0].size(); ++i) {
    const std::size_t side = load_integer(inputs[0]->bytes.data(), DType::boolean, places[0][i]) != 0 ? 1 : 2;
    std::memcpy(result.bytes.data() + i * item, inputs[side]->bytes.data() + places[side][i] * item, item);
  }
  return result;
}

}  // namespace

HostWork work_of(const Graph& graph, const Node& node) {
  const auto count = static_cast<double>(node.type.count());
  HostWork work;
  if (node.op == Op::input || node.op == Op::view) return work;
  work.bytes = count * static_cast<double>(size_of(node.type.dtype));
  for (const std::size_t input : node.inputs) {
    const TensorType& type = graph.nodes[input].type;
    const bool looks_up = node.op == Op::embedding && input == node.inputs.front();
    work.bytes += (looks_up ? count : static_cast<double>(type.count())) * static_cast<double>(size_of(type.dtype));
  }
  const auto operand = [&](std::size_t i) { return graph.nodes[node.inputs[i]].type; };
  switch (node.op) {
    case Op::matmul:
      work.flops = 2 * count * static_cast<double>(operand(0).shape.back());
      break;
    case Op::attention:
      work.flops = 2 * (static_cast<double>(operand(0).count()) + count) *
                   static_cast<double>(operand(1).shape[operand(1).shape.size() - 2]);
      break;
    case Op::strided:
    case Op::cat:
    case Op::embedding:
      break;
    case Op::norm:
    case Op::softmax:
      work.flops = 5 * count;  // assumed: two passes of a reduction, a shift, an exponential or product, a scale
      break;
    default:
      work.flops = static_cast<double>(operand(0).count());
  }
  return work;
}

HostTensor evaluate_node(const Graph& graph, const Node& node, const std::vector<const HostTensor*>& inputs) {
  switch (node.op) {
    case Op::input:
      break;
    case Op::view:
      return {node.type.shape, node.type.dtype, inputs[0]->bytes};
    case Op::strided: {
      HostTensor result = empty_like(node.type);
      const std::size_t item = size_of(node.type.dtype);
      copy_strided(node.type.shape, item, inputs[0]->bytes.data() + static_cast<std::size_t>(node.offset) * item,
                   node.strides, result.bytes.data(), dense_strides(node.type.shape));
      return result;
    }
    case Op::cast: {
      const DType to = node.type.dtype;
      if (is_float(inputs[0]->dtype) && !is_float(to) && to != DType::boolean) {
        Doubles values = decode(*inputs[0]);
        for (double& value : values) value = std::trunc(value);
        return encode(node.type, values);
      }
      HostTensor result = empty_like(node.type);
      convert(inputs[0]->bytes.data(), inputs[0]->dtype, result.bytes.data(), to,
              static_cast<std::size_t>(node.type.count()));
      return result;
    }
    case Op::unary:
      return evaluate_unary(node, *inputs[0]);
    case Op::binary:
      return evaluate_binary(node, *inputs[0], inputs.size() > 1 ? inputs[1] : nullptr);
    case Op::where:
      return evaluate_where(node, inputs);
    case Op::reduce:
      return evaluate_reduce(node, *inputs[0]);
    case Op::softmax:
      return evaluate_softmax(node, *inputs[0]);
    case Op::norm:
      return evaluate_norm(node, inputs);
    case Op::matmul:
      return evaluate_matmul(node, *inputs[0], *inputs[1]);
    case Op::embedding:
      return evaluate_embedding(node, *inputs[0], *inputs[1]);
    case Op::attention:
      return evaluate_attention(node, inputs);
    case Op::cat:
      return evaluate_cat(node, inputs);
  }
  static_cast<void>(graph);
  throw std::logic_error("an input is not computed");
}

std::vector<HostTensor> evaluate(const Graph& graph, const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> values(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op == Op::input) {
      values[i] = inputs[node.number_of];
      continue;
    }
    std::vector<const HostTensor*> operands;
    for (const std::size_t input : node.inputs) operands.push_back(&values[input]);
    values[i] = evaluate_node(graph, node, operands);
  }
  std::vector<HostTensor> outputs;
  for (const std::size_t output : graph.outputs) outputs.push_back(values[output]);
  return outputs;
}

}  // namespace kernbench::pipeline
