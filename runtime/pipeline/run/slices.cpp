#include "runtime/pipeline/run/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/pipeline/emit.h"
#include "tlm/config/nearest.h"

namespace kernbench::pipeline {

namespace {

TensorType whole_type(const WholeTensor& whole) {
  TensorType type{{}, whole.dtype.value};
  for (const std::uint64_t size : whole.shape.value) type.shape.push_back(static_cast<std::int64_t>(size));
  return type;
}

const WholeTensor& find_origin(const std::vector<WholeTensor>& wholes, const TensorSlice& slice) {
  return *std::find_if(wholes.begin(), wholes.end(),
                       [&](const WholeTensor& whole) { return whole.name == slice.origin.value; });
}

/// The tensor of that name, which has to be of that type.
const Safetensors::Entry& entry_of_type(const Safetensors& file, const std::string& path, const std::string& name,
                                        const TensorType& type) {
  const Safetensors::Entry* entry = file.find(name);
  if (entry == nullptr)
    throw ConfigError({path, 0, 0}, fmt::format("holds no tensor {}", quote(name)),
                      suggest(name, file.names(), "it holds"));
  const TensorType stored{entry->shape, entry->dtype};
  if (stored != type)
    throw ConfigError({path, 0, 0},
                      fmt::format("tensor {} is {}, but the pipeline says {}", quote(name), stored.str(), type.str()));
  return *entry;
}

double allowed_error(DType dtype, double expected) {
  const double tolerance = dtype == DType::f64 || dtype == DType::f32 ? 1e-5
                           : dtype == DType::f16                      ? 1e-2
                           : dtype == DType::bf16                     ? 8e-2
                                                                      : 0.3;  // f8: two or three bits of mantissa
  return tolerance * (1 + std::abs(expected));
}

}  // namespace

HostTensors cut_inputs(const Pipeline& pipeline, const Safetensors& file, const std::string& path) {
  HostTensors inputs;
  for (const TensorSlice& slice : pipeline.metadata.slices.inputs) {
    const WholeTensor& whole = find_origin(pipeline.metadata.tensors.inputs, slice);
    const Safetensors::Entry& entry = entry_of_type(file, path, whole.name, whole_type(whole));
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    for (const Range& range : slice.placements.value)
      ranges.emplace_back(static_cast<std::int64_t>(range.begin), static_cast<std::int64_t>(range.end));
    inputs[slice.name] = file.read(entry, ranges);
  }
  return inputs;
}

HostTensors cut_inputs(const Pipeline& pipeline, const HostTensors& wholes) {
  HostTensors inputs;
  for (const TensorSlice& slice : pipeline.metadata.slices.inputs) {
    const HostTensor& whole = wholes.at(slice.origin.value);
    const std::vector<std::int64_t> strides = dense_strides(whole.shape);
    const std::size_t item = size_of(whole.dtype);
    HostTensor& part = inputs[slice.name];
    part.dtype = whole.dtype;
    std::size_t offset = 0;
    for (std::size_t d = 0; d < strides.size(); ++d) {
      const Range& range = slice.placements.value[d];
      part.shape.push_back(static_cast<std::int64_t>(range.end - range.begin));
      offset += static_cast<std::size_t>(range.begin) * static_cast<std::size_t>(strides[d]);
    }
    part.bytes.resize(static_cast<std::size_t>(part.count()) * item);
    copy_strided(part.shape, item, whole.bytes.data() + offset * item, strides, part.bytes.data(),
                 dense_strides(part.shape));
  }
  return inputs;
}

HostTensors stitch_outputs(const Pipeline& pipeline, const HostTensors& parts, std::uint64_t& conflicts) {
  HostTensors outputs;
  std::map<std::string, std::vector<std::uint8_t>> written;
  conflicts = 0;
  for (const TensorSlice& slice : pipeline.metadata.slices.outputs) {
    const WholeTensor& whole = find_origin(pipeline.metadata.tensors.outputs, slice);
    const TensorType type = whole_type(whole);
    const auto count = static_cast<std::size_t>(type.count());
    const std::size_t item = size_of(type.dtype);
    HostTensor& output = outputs[whole.name];
    std::vector<std::uint8_t>& seen = written[whole.name];
    if (output.bytes.empty()) output = {type.shape, type.dtype, std::vector<std::uint8_t>(count * item)};
    seen.resize(count, 0);
    const HostTensor& part = parts.at(slice.name);
    const std::vector<std::int64_t> strides = dense_strides(type.shape), own = dense_strides(part.shape);
    for (std::size_t i = 0; i < static_cast<std::size_t>(part.count()); ++i) {
      std::size_t at = 0;
      for (std::size_t d = 0; d < strides.size(); ++d) {
        const std::int64_t place = static_cast<std::int64_t>(i) / own[d] % part.shape[d];
        at +=
            static_cast<std::size_t>((place + static_cast<std::int64_t>(slice.placements.value[d].begin)) * strides[d]);
      }
      std::uint8_t* to = output.bytes.data() + at * item;
      const std::uint8_t* from = part.bytes.data() + i * item;
      if (seen[at] != 0 && std::memcmp(to, from, item) != 0) ++conflicts;
      std::memcpy(to, from, item);
      seen[at] = 1;
    }
  }
  return outputs;
}

void check_expected(const Pipeline& pipeline, const Safetensors& file, const std::string& path) {
  for (const TensorSlice& slice : pipeline.metadata.slices.outputs) {
    const WholeTensor& whole = find_origin(pipeline.metadata.tensors.outputs, slice);
    entry_of_type(file, path, whole.name, whole_type(whole));
  }
}

OutputDifference compare_outputs(const HostTensors& outputs, const Safetensors& file, const std::string& path) {
  OutputDifference difference;
  for (const auto& [name, output] : outputs) {
    const HostTensor expected = file.read(entry_of_type(file, path, name, {output.shape, output.dtype}));
    for (std::size_t i = 0; i < static_cast<std::size_t>(output.count()); ++i) {
      if (!is_float(output.dtype)) {
        difference.mismatches +=
            load_integer(output.bytes.data(), output.dtype, i) != load_integer(expected.bytes.data(), output.dtype, i)
                ? 1
                : 0;
        continue;
      }
      const double got = load_element(output.bytes.data(), output.dtype, i),
                   wanted = load_element(expected.bytes.data(), output.dtype, i);
      if (got == wanted || (std::isnan(got) && std::isnan(wanted))) continue;
      const double error = std::abs(got - wanted);
      if (!(error <= allowed_error(output.dtype, wanted))) ++difference.mismatches;
      if (std::isfinite(error)) difference.max_abs_error = std::max(difference.max_abs_error, error);
    }
  }
  return difference;
}

}  // namespace kernbench::pipeline
