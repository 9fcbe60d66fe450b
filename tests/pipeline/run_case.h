#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/pipeline/run/run.h"
#include "runtime/pipeline/run/slices.h"
#include "tests/runtime/machine_run.h"

/// Documents of a few lines, and their runs on a small machine.
namespace kernbench::pipeline {

inline std::string type_text(const TensorType& type) {
  std::string text = "{shape: [";
  for (const std::int64_t size : type.shape) text += (text.back() == '[' ? "" : ", ") + std::to_string(size);
  return text + "], dtype: " + document_type(type.dtype) + "}";
}

/// Deterministic values that differ between neighbours; floats in [-1, 1), indices of rows of a table of 8.
inline HostTensor values_of(const TensorType& type, std::uint64_t stream) {
  HostTensor tensor{type.shape, type.dtype,
                    std::vector<std::uint8_t>(static_cast<std::size_t>(type.count()) * size_of(type.dtype))};
  for (std::size_t i = 0; i < static_cast<std::size_t>(type.count()); ++i) {
    const std::uint64_t mixed = (i * 2654435761U + stream * 40503U) % 997;
    if (is_float(type.dtype)) {
      store_element(tensor.bytes.data(), type.dtype, i, static_cast<double>(mixed) / 499 - 1);
    } else {
      store_integer(tensor.bytes.data(), type.dtype, i,
                    static_cast<std::int64_t>(mixed % (type.dtype == DType::boolean ? 2 : 8)));
    }
  }
  return tensor;
}

/// REQUIRES: there is one of that name.
inline const SuperTask& supertask(const Pipeline& pipeline, const std::string& name) {
  return *std::find_if(pipeline.supertasks.begin(), pipeline.supertasks.end(),
                       [&](const SuperTask& task) { return task.name == name; });
}

/// All cases in one document: a supertask each.
inline std::string document_of(const std::map<std::string, TensorType>& inputs,
                               const std::vector<std::pair<std::string, TensorType>>& outputs,
                               const std::vector<std::string>& graphs, const char* device) {
  std::string text = std::string("name: cases\ndevices: {d: {kind: ") + device + ", idx: 0}}\ntensors:\n", tasks,
              slices[2], wholes[2], in, out;
  const auto boundary = [&](int side, const std::string& name, const TensorType& type, std::size_t idx) {
    std::string ranges;
    for (const std::int64_t size : type.shape)
      ranges += (ranges.empty() ? "" : ", ") + std::string("[0, ") + std::to_string(size) + "]";
    text += "  " + name + ": " + type_text(type) + "\n";
    wholes[side] += "      " + name + ": " + type_text(type).substr(0, type_text(type).size() - 1) +
                    ", idx: " + std::to_string(idx) + "}\n";
    slices[side] += "      " + name + ": {placements: [" + ranges + "], origin: " + name +
                    ", dtype: " + document_type(type.dtype) + ", device: d}\n";
    std::string& list = side == 0 ? in : out;
    list += (list.empty() ? "" : ", ") + name;
  };
  std::size_t idx = 0;
  for (const auto& [name, type] : inputs) boundary(0, name, type, idx++);
  for (std::size_t i = 0; i < outputs.size(); ++i) boundary(1, outputs[i].first, outputs[i].second, i);
  for (std::size_t i = 0; i < graphs.size(); ++i)
    tasks += "  t" + std::to_string(i) + ": {kind: dfg, device: d, inputs: [" + in + "], outputs: [" +
             outputs[i].first + "], data: \"" + graphs[i] + "\"}\n";
  return text + "supertasks:\n  in: {kind: input, inputs: [], outputs: [" + in + "]}\n" + tasks +
         "  out: {kind: output, inputs: [" + out + "], outputs: []}\nmetadata:\n  tensors:\n    inputs:\n" + wholes[0] +
         "    outputs:\n" + wholes[1] + "  tensor_slices:\n    inputs:\n" + slices[0] + "    outputs:\n" + slices[1];
}

/// A document on a machine, to the end.
inline RunOutcome run_document(const std::string& text, const HostTensors& inputs, int sips,
                               const PlanOptions& plan = {}, int requests = 1, DType f8 = DType::f8e4m3) {
  Problems problems, warnings;
  static Pipeline pipeline;  // the outcome names its supertasks
  ReadOptions read;
  read.f8 = f8;
  pipeline = read_pipeline(parse_config(text, "p.yaml"), read, problems);
  kernbench::testing::MachineRun machine(kernbench::testing::machine_of(static_cast<std::uint16_t>(sips), 2, 2));
  CheckOptions check;
  check.folder = plan.folder;
  check.sips = sips;
  check.cubes = 2;
  check.pes = 2;
  const Checked checked = check_pipeline(pipeline, check, problems, warnings);
  problems.throw_if_any();
  RunSettings settings;
  settings.inputs = cut_inputs(pipeline, inputs);
  settings.requests = requests;
  settings.group.install_at_once = false;
  machine.runtime.init_process_group(settings.group);
  PipelineRun run(pipeline, checked, make_slot_plans(pipeline, checked, plan), settings, sips);
  machine.runtime.spawn([&run](Context& context) { run.rank_program(context); }, std::tuple<>(), run.ranks());
  return std::move(run.outcome());
}

}  // namespace kernbench::pipeline
