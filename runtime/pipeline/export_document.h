#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/pipeline/export.h"
#include "tlm/config/json_text.h"

namespace kernbench::pipeline {

using JsonDocument = nlohmann::ordered_json;

/// Writes down a graph as an FX node list.
class FxWriter {
 public:
  /// An argument that is the result of node `name`.
  static JsonDocument node(const std::string& name) { return {{"node", name}}; }

  std::string input(const std::string& name);
  std::string constant(const std::string& name_in_graph);
  /// target: "mm.default", of aten.
  std::string call(const std::string& name, const std::string& target, JsonDocument args,
                   JsonDocument kwargs = JsonDocument::object());
  std::string item(const std::string& name, const std::string& list, int index);
  /// The graph's text.
  std::string end(const std::vector<std::string>& results);

 private:
  JsonDocument nodes_ = JsonDocument::array();
};

/// A pipeline while it is written, section by section.
class DocumentWriter {
 public:
  using Sizes = std::vector<std::int64_t>;
  using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;
  using Names = std::vector<std::string>;

  /// Slots are npu0, npu1, ...
  DocumentWriter(std::string name, int slots, DType dtype, std::string weights_file);

  static std::string npu(int slot) { return "npu" + std::to_string(slot); }
  std::string variable(const std::string& name, const Sizes& shape);
  /// Tensor `name`: a part of the stored one.
  std::string constant(const std::string& name, const std::string& stored, const Ranges& ranges);
  /// The same of all of the stored one, of another type than the document's.
  std::string whole_constant(const std::string& name, const std::string& stored, const Sizes& shape, DType dtype);
  /// A tensor of the whole model, and the pipeline's that are all of it, on these slots.
  void whole(const char* side, const std::string& name, const Sizes& shape,
             const std::vector<std::pair<std::string, int>>& copies);
  /// First and last supertask.
  void boundary(const char* kind, const Names& tensors);
  void compute(const std::string& name, int slot, const Names& inputs, const Names& outputs, const std::string& data);
  void exchange(const std::string& name, const char* kind, const Names& inputs, const Names& outputs, int slot,
                const std::string& group, int index, const JsonDocument& metadata = JsonDocument::object());
  /// From one slot to another: a send and a recv that makes `made`.
  void transfer(const std::string& group, const std::string& tensor, int from, const std::string& made, int to);

  std::string text() const { return json_text(document_, 1) + "\n"; }

 private:
  JsonDocument document_;
  const DType dtype_;
  const std::string weights_file_;
};

/// A stored tensor; `element` by row and column, where columns are the last dimension.
HostTensor filled(std::vector<std::int64_t> shape, DType dtype, const WeightElement& element);

}  // namespace kernbench::pipeline
