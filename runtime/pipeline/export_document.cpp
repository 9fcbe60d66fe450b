#include "runtime/pipeline/export_document.h"

#include "runtime/pipeline/document.h"
#include "tlm/config/json_text.h"

namespace kernbench::pipeline {

std::string FxWriter::input(const std::string& name) {
  nodes_.push_back({{"name", name}, {"op", "placeholder"}});
  return name;
}

std::string FxWriter::constant(const std::string& name_in_graph) {
  nodes_.push_back({{"name", name_in_graph}, {"op", "get_attr"}, {"target", name_in_graph}});
  return name_in_graph;
}

std::string FxWriter::call(const std::string& name, const std::string& target, JsonDocument args, JsonDocument kwargs) {
  JsonDocument made = {
      {"name", name}, {"op", "call_function"}, {"target", "aten." + target}, {"args", std::move(args)}};
  if (!kwargs.empty()) made["kwargs"] = std::move(kwargs);
  nodes_.push_back(std::move(made));
  return name;
}

std::string FxWriter::item(const std::string& name, const std::string& list, int index) {
  nodes_.push_back({{"name", name},
                    {"op", "call_function"},
                    {"target", "operator.getitem"},
                    {"args", JsonDocument::array({node(list), index})}});
  return name;
}

std::string FxWriter::end(const std::vector<std::string>& results) {
  JsonDocument outputs = JsonDocument::array();
  for (const std::string& result : results) outputs.push_back(node(result));
  nodes_.push_back({{"name", "output"}, {"op", "output"}, {"args", JsonDocument::array({outputs})}});
  return json_text(JsonDocument{{"nodes", nodes_}});
}

DocumentWriter::DocumentWriter(std::string name, int slots, DType dtype, std::string weights_file)
    : dtype_(dtype), weights_file_(std::move(weights_file)) {
  document_["name"] = std::move(name);
  for (int slot = 0; slot < slots; ++slot) document_["devices"][npu(slot)] = {{"kind", "npu"}, {"idx", slot}};
  for (const char* key : {"tensors", "supertasks", "metadata"}) document_[key] = JsonDocument::object();
  for (const char* key : {"tensors", "tensor_slices"}) {
    for (const char* side : {"inputs", "outputs"}) document_["metadata"][key][side] = JsonDocument::object();
  }
}

std::string DocumentWriter::variable(const std::string& name, const Sizes& shape) {
  document_["tensors"][name] = {{"shape", shape}, {"dtype", document_type(dtype_)}};
  return name;
}

std::string DocumentWriter::constant(const std::string& name, const std::string& stored, const Ranges& ranges) {
  Sizes shape;
  JsonDocument placements = JsonDocument::array();
  for (const auto& [begin, end] : ranges) {
    shape.push_back(end - begin);
    placements.push_back({begin, end});
  }
  variable(name, shape);
  document_["tensors"][name]["value"] = {{"path", weights_file_},
                                         {"format", "safetensors"},
                                         {"name", stored},
                                         {"name_in_graph", stored},
                                         {"placements", placements}};
  return name;
}

std::string DocumentWriter::whole_constant(const std::string& name, const std::string& stored, const Sizes& shape,
                                           DType dtype) {
  Ranges all;
  for (const std::int64_t size : shape) all.emplace_back(0, size);
  constant(name, stored, all);
  document_["tensors"][name]["dtype"] = document_type(dtype);
  return name;
}

void DocumentWriter::whole(const char* side, const std::string& name, const Sizes& shape,
                           const std::vector<std::pair<std::string, int>>& copies) {
  JsonDocument& metadata = document_["metadata"];
  const std::size_t idx = metadata["tensors"][side].size();
  metadata["tensors"][side][name] = {{"shape", shape}, {"dtype", document_type(dtype_)}, {"idx", idx}};
  JsonDocument placements = JsonDocument::array();
  for (const std::int64_t size : shape) placements.push_back({0, size});
  for (const auto& [copy, slot] : copies) {
    metadata["tensor_slices"][side][copy] = {
        {"placements", placements}, {"origin", name}, {"dtype", document_type(dtype_)}, {"device", npu(slot)}};
  }
}

void DocumentWriter::boundary(const char* kind, const Names& tensors) {
  const bool emits = std::string(kind) == "input";
  document_["supertasks"][kind] = {
      {"kind", kind}, {"inputs", emits ? Names() : tensors}, {"outputs", emits ? tensors : Names()}};
}

void DocumentWriter::compute(const std::string& name, int slot, const Names& inputs, const Names& outputs,
                             const std::string& data) {
  document_["supertasks"][name] = {
      {"kind", "FX"}, {"inputs", inputs}, {"outputs", outputs}, {"device", npu(slot)}, {"data", data}};
}

void DocumentWriter::exchange(const std::string& name, const char* kind, const Names& inputs, const Names& outputs,
                              int slot, const std::string& group, int index, const JsonDocument& metadata) {
  document_["supertasks"][name] = {{"kind", kind},        {"inputs", inputs}, {"outputs", outputs},
                                   {"device", npu(slot)}, {"group", group},   {"device_idx", index},
                                   {"metadata", metadata}};
}

void DocumentWriter::transfer(const std::string& group, const std::string& tensor, int from, const std::string& made,
                              int to) {
  exchange("send_" + group, "send", {tensor}, {}, from, group, 0);
  exchange("recv_" + group, "recv", {}, {made}, to, group, 1);
}

HostTensor filled(std::vector<std::int64_t> shape, DType dtype, const WeightElement& element) {
  HostTensor tensor{std::move(shape), dtype, {}};
  tensor.bytes.resize(static_cast<std::size_t>(tensor.count()) * size_of(dtype));
  const std::int64_t cols = tensor.shape.back();
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    store_element(tensor.bytes.data(), dtype, static_cast<std::size_t>(i), element(i / cols, i % cols));
  return tensor;
}

}  // namespace kernbench::pipeline
