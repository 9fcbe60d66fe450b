#include "runtime/pipeline/emit.h"
#include "runtime/pipeline/run/plan.h"
#include "runtime/tp/own_shard.h"

namespace kernbench::pipeline {

DPPolicy Lowering::dense() { return tp::dense_rows(); }

bool Buffer::linear() const {
  const std::string text = to_string(policy);
  return shape.rows == 1 || text == to_string(Lowering::dense()) || text == to_string(DPPolicy());
}

int Lowering::add_buffer(const std::string& name, const TensorType& type, const DPPolicy& policy) {
  Buffer made;
  made.name = name;
  made.shape = fold_of(type.shape);
  made.dtype = type.dtype;
  made.policy = policy;
  slot_.buffers.push_back(std::move(made));
  return static_cast<int>(slot_.buffers.size()) - 1;
}

int Lowering::placed(const Value& value, const DPPolicy& policy, std::vector<Step>&) {
  if (value.buffer >= 0) return value.buffer;
  const auto key = std::pair(value.constant.get(), to_string(policy) + value.type.str());
  const auto found = slot_.placed.find(key);
  if (found != slot_.placed.end()) return found->second;
  const int made = add_buffer("constant" + std::to_string(slot_.placed.size()), value.type, policy);
  slot_.buffers.back().contents = value.constant;
  slot_.buffers.back().tensor = value.tensor;
  slot_.placed.emplace(key, made);
  return made;
}

int Lowering::linear(const Value& value, std::vector<Step>& steps) {
  if (value.buffer < 0) return placed(value, fold_of(value.type.shape).rows == 1 ? DPPolicy() : dense(), steps);
  const Buffer& from = buffer(value.buffer);
  if (from.linear()) return value.buffer;
  const TensorType type{{from.shape.rows, from.shape.cols}, from.dtype};
  const std::string name = from.name + ".rows";
  const int made = add_buffer(name, type, dense());
  add_step(steps, Step::Kind::point, name, {value.buffer}, made);
  return made;
}

int Lowering::shaped(const Value& value, Shape shape, const DPPolicy& policy, std::vector<Step>& steps) {
  if (value.buffer < 0) {
    Value same = value;
    same.type.shape = {shape.rows, shape.cols};
    return placed(same, policy, steps);
  }
  if (buffer(value.buffer).shape == shape) return value.buffer;
  const int from = linear(value, steps);
  const TensorType type{{shape.rows, shape.cols}, value.type.dtype};
  return moved(buffer(from).name + ".shaped", from, type.shape, dense_strides(type.shape), 0, type, steps);
}

int Lowering::moved(const std::string& name, int from, const std::vector<std::int64_t>& dims,
                    const std::vector<std::int64_t>& strides, std::int64_t offset, const TensorType& type,
                    std::vector<Step>& steps) {
  const int made = add_buffer(name, type, dense());
  Step& step = add_step(steps, Step::Kind::move, name, {from}, made);
  step.move = move_of(dims, strides, dense_strides(dims));
  step.move.from_offset = offset;
  return made;
}

HostTensor load_constant(const TensorInfo& tensor, const PlanOptions& options, WeightFiles& files) {
  CheckOptions where;
  where.folder = options.folder;
  const WeightFile& file = files.open(weight_path(where, *tensor.value), tensor.value->format.value);
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const Range& range : tensor.value->placements.value)
    ranges.emplace_back(static_cast<std::int64_t>(range.begin), static_cast<std::int64_t>(range.end));
  return file.read(*file.find(tensor.value->name.value), ranges);
}

}  // namespace kernbench::pipeline
