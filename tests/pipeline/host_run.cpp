#include "tests/pipeline/host_run.h"

#include <algorithm>

#include "runtime/pipeline/emit.h"
#include "runtime/pipeline/run/plan.h"

namespace kernbench::pipeline {

namespace {

using Sizes = std::vector<std::int64_t>;

HostTensor empty(const TensorType& type) {
  return {type.shape, type.dtype,
          std::vector<std::uint8_t>(static_cast<std::size_t>(type.count()) * size_of(type.dtype))};
}

/// Copies the block of `shape` at `from` to the place `to`.
void copy_block(const HostTensor& source, const Sizes& from, HostTensor& target, const Sizes& to, const Sizes& shape) {
  const Sizes a = dense_strides(source.shape), b = dense_strides(target.shape), own = dense_strides(shape);
  const std::size_t item = size_of(source.dtype);
  for (std::int64_t i = 0; i < TensorType{shape, source.dtype}.count(); ++i) {
    std::int64_t at = 0, into = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t place = i / own[d] % shape[d];
      at += (from[d] + place) * a[d];
      into += (to[d] + place) * b[d];
    }
    std::copy_n(source.bytes.begin() + at * static_cast<std::int64_t>(item), item,
                target.bytes.begin() + into * static_cast<std::int64_t>(item));
  }
}

HostTensor reduced(const std::vector<HostTensor>& in, const std::string& op) {
  HostTensor out = in.front();
  const auto count = static_cast<std::size_t>(out.count());
  for (std::size_t i = 0; i < count; ++i) {
    if (is_float(out.dtype)) {
      double value = load_element(out.bytes.data(), out.dtype, i);
      for (std::size_t m = 1; m < in.size(); ++m) {
        const double other = load_element(in[m].bytes.data(), out.dtype, i);
        value = op == "max" ? std::max(value, other) : op == "min" ? std::min(value, other) : value + other;
      }
      store_element(out.bytes.data(), out.dtype, i, op == "avg" ? value / static_cast<double>(in.size()) : value);
    } else {
      std::int64_t value = load_integer(out.bytes.data(), out.dtype, i);
      for (std::size_t m = 1; m < in.size(); ++m) {
        const std::int64_t other = load_integer(in[m].bytes.data(), out.dtype, i);
        value = op == "max" ? std::max(value, other)
                : op == "min"
                    ? std::min(value, other)
                    : static_cast<std::int64_t>(static_cast<std::uint64_t>(value) + static_cast<std::uint64_t>(other));
      }
      store_integer(out.bytes.data(), out.dtype, i, value);
    }
  }
  return out;
}

}  // namespace

std::map<std::string, HostTensor> run_on_host(const Pipeline& pipeline, const Checked& checked,
                                              std::map<std::string, HostTensor> inputs, const std::string& folder) {
  std::map<std::string, HostTensor> values = std::move(inputs);
  PlanOptions where;
  where.folder = folder;
  for (const TensorInfo& tensor : pipeline.tensors) {
    if (tensor.value) values[tensor.name] = load_constant(tensor, where, *checked.weights);
  }
  std::map<std::string, bool> exchanged;
  for (const std::size_t number : checked.order) {
    const SuperTask& task = pipeline.supertasks[number];
    if (checked.graphs[number]) {
      std::vector<HostTensor> in;
      for (const Text& name : task.inputs.value) in.push_back(values.at(name.value));
      const std::vector<HostTensor> out = evaluate(*checked.graphs[number], in);
      for (std::size_t i = 0; i < out.size(); ++i) values[task.outputs.value[i].value] = out[i];
      continue;
    }
    if (!task.group.given || exchanged[task.group.value]) continue;
    exchanged[task.group.value] = true;
    const auto& members = checked.groups.at(task.group.value);
    std::vector<HostTensor> in;
    for (const SuperTask* member : members) {
      for (const Text& name : member->inputs.value) in.push_back(values.at(name.value));
    }
    const auto count = static_cast<std::int64_t>(members.size());
    const auto dim_of = [&](const char* key) { return std::stoull(task.entry(key)->text); };
    for (std::size_t m = 0; m < members.size(); ++m) {
      if (members[m]->outputs.value.empty()) continue;
      const std::string& name = members[m]->outputs.value.front().value;
      HostTensor out = empty(type_of(*pipeline.tensor(name)));
      const Sizes origin(out.shape.size(), 0);
      switch (task.kind.value) {
        case TaskKind::send:
        case TaskKind::recv:
        case TaskKind::broadcast:
          out = in.front();
          break;
        case TaskKind::reduce:
        case TaskKind::all_reduce:
          out = reduced(in, task.entry("reduce_op")->text);
          break;
        case TaskKind::all_gather:
          for (std::size_t i = 0; i < in.size(); ++i) {
            Sizes to = origin;
            to[dim_of("dim")] = static_cast<std::int64_t>(i) * in[i].shape[dim_of("dim")];
            copy_block(in[i], origin, out, to, in[i].shape);
          }
          break;
        case TaskKind::reduce_scatter: {
          Sizes from = origin;
          from[dim_of("dim")] = static_cast<std::int64_t>(m) * out.shape[dim_of("dim")];
          copy_block(reduced(in, task.entry("reduce_op")->text), from, out, origin, out.shape);
          break;
        }
        case TaskKind::all_to_all:
          for (std::size_t i = 0; i < in.size(); ++i) {
            Sizes piece = in[i].shape, from = origin, to = origin;
            piece[dim_of("src_dim")] /= count;
            from[dim_of("src_dim")] = static_cast<std::int64_t>(m) * piece[dim_of("src_dim")];
            to[dim_of("dst_dim")] = static_cast<std::int64_t>(i) * piece[dim_of("dst_dim")];
            copy_block(in[i], from, out, to, piece);
          }
          break;
        default:
          break;
      }
      values[name] = std::move(out);
    }
  }
  return values;
}

}  // namespace kernbench::pipeline
