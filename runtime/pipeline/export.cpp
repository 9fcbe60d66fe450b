#include "runtime/pipeline/export.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "runtime/pipeline/document.h"

namespace kernbench::pipeline {

namespace {

using Document = nlohmann::ordered_json;
using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

HostTensor filled(std::vector<std::int64_t> shape, DType dtype, const MlpExport::Element& element) {
  HostTensor tensor{std::move(shape), dtype, {}};
  tensor.bytes.resize(static_cast<std::size_t>(tensor.count()) * size_of(dtype));
  const std::int64_t cols = tensor.shape.back();
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    store_element(tensor.bytes.data(), dtype, static_cast<std::size_t>(i), element(i / cols, i % cols));
  return tensor;
}

const char* word_of(Activation activation) {
  switch (activation) {
    case Activation::none:
      return nullptr;
    case Activation::relu:
      return "relu";
    case Activation::gelu:
      return "gelu";
    case Activation::silu:
      return "silu";
    case Activation::tanh:
      return "tanh";
    case Activation::sigmoid:
      break;
  }
  return "sigmoid";
}

/// Writes down a graph as an FX node list.
class FxWriter {
 public:
  std::string input(const std::string& name) {
    nodes_.push_back({{"name", name}, {"op", "placeholder"}});
    return name;
  }
  std::string constant(const std::string& name) {
    nodes_.push_back({{"name", name}, {"op", "get_attr"}, {"target", name}});
    return name;
  }
  std::string call(const std::string& name, const std::string& word, const std::vector<std::string>& args) {
    Document list = Document::array();
    for (const std::string& arg : args) list.push_back({{"node", arg}});
    nodes_.push_back({{"name", name}, {"op", "call_function"}, {"target", "aten." + word}, {"args", list}});
    return name;
  }
  std::string end(const std::string& result) {
    Document outputs = Document::array();
    outputs.push_back({{"node", result}});
    nodes_.push_back({{"name", "output"}, {"op", "output"}, {"args", Document::array({outputs})}});
    return Document{{"nodes", nodes_}}.dump();
  }

 private:
  Document nodes_ = Document::array();
};

class MlpWriter {
 public:
  explicit MlpWriter(const MlpExport& model) : model_(model), own_(model.hidden / model.tp) {}

  Exported write() {
    document_["name"] = fmt::format("mlp {}x{}-{}-{}, TP {}, PP {}", model_.batch, model_.in, model_.hidden, model_.out,
                                    model_.tp, model_.pp);
    for (int slot = 0; slot < model_.tp * model_.pp; ++slot)
      document_["devices"][npu(slot)] = {{"kind", "npu"}, {"idx", slot}};
    for (const char* key : {"tensors", "supertasks", "metadata"}) document_[key] = Document::object();
    whole("inputs", "x", {model_.batch, model_.in});
    whole("outputs", "y", {model_.batch, model_.out});
    Document inputs = Document::array(), outputs = Document::array();
    for (int rank = 0; rank < model_.tp; ++rank) inputs.push_back(numbered("x", rank));
    document_["supertasks"]["input"] = {{"kind", "input"}, {"inputs", Document::array()}, {"outputs", inputs}};
    for (int rank = 0; rank < model_.tp; ++rank) outputs.push_back(numbered("y", rank));
    for (int rank = 0; rank < model_.tp; ++rank) first(rank);
    for (int rank = 0; rank < model_.tp; ++rank) second(rank);
    document_["supertasks"]["output"] = {{"kind", "output"}, {"inputs", outputs}, {"outputs", Document::array()}};
    Exported exported;
    exported.document = document_.dump(1) + "\n";
    exported.weights["up"] = filled({model_.in, model_.hidden}, model_.dtype, model_.up);
    exported.weights["down"] = filled({model_.hidden, model_.out}, model_.dtype, model_.down);
    if (model_.bias) {
      exported.weights["up.bias"] = filled({model_.hidden}, model_.dtype,
                                           [this](std::int64_t, std::int64_t col) { return model_.up_bias(0, col); });
      exported.weights["down.bias"] = filled(
          {model_.out}, model_.dtype, [this](std::int64_t, std::int64_t col) { return model_.down_bias(0, col); });
    }
    return exported;
  }

 private:
  static std::string npu(int slot) { return fmt::format("npu{}", slot); }
  static std::string numbered(const char* name, int rank) { return fmt::format("{}_{}", name, rank); }
  int second_slot(int rank) const { return model_.pp == 2 ? model_.tp + rank : rank; }

  std::string tensor(const std::string& name, const std::vector<std::int64_t>& shape) {
    document_["tensors"][name] = {{"shape", shape}, {"dtype", document_type(model_.dtype)}};
    return name;
  }
  std::string constant(const char* name, int rank, const Ranges& ranges) {
    std::vector<std::int64_t> shape;
    Document placements = Document::array();
    for (const auto& [begin, end] : ranges) {
      shape.push_back(end - begin);
      placements.push_back({begin, end});
    }
    const std::string made = tensor(fmt::format("{}_{}", name, rank), shape);
    document_["tensors"][made]["value"] = {{"path", model_.weights_file},
                                           {"format", "safetensors"},
                                           {"name", name},
                                           {"name_in_graph", name},
                                           {"placements", placements}};
    return made;
  }
  void whole(const char* side, const char* name, const std::vector<std::int64_t>& shape) {
    Document& metadata = document_["metadata"];
    metadata["tensors"][side][name] = {{"shape", shape}, {"dtype", document_type(model_.dtype)}, {"idx", 0}};
  }
  void slice(const char* side, const std::string& name, const char* origin, const std::vector<std::int64_t>& shape,
             int slot) {
    Document placements = Document::array();
    for (const std::int64_t size : shape) placements.push_back({0, size});
    document_["metadata"]["tensor_slices"][side][name] = {
        {"placements", placements}, {"origin", origin}, {"dtype", document_type(model_.dtype)}, {"device", npu(slot)}};
  }
  void compute(const std::string& name, int slot, const std::vector<std::string>& inputs, const std::string& output,
               const std::string& data) {
    document_["supertasks"][name] = {{"kind", "FX"},
                                     {"inputs", inputs},
                                     {"outputs", Document::array({output})},
                                     {"device", npu(slot)},
                                     {"data", data}};
  }
  void exchange(const std::string& name, const char* kind, const Document& inputs, const Document& outputs, int slot,
                const std::string& group, int index, const Document& metadata) {
    document_["supertasks"][name] = {{"kind", kind},        {"inputs", inputs}, {"outputs", outputs},
                                     {"device", npu(slot)}, {"group", group},   {"device_idx", index},
                                     {"metadata", metadata}};
  }

  /// The column-parallel layer: this rank's columns.
  void first(int rank) {
    const std::int64_t from = rank * own_, to = from + own_;
    const std::string x = tensor(numbered("x", rank), {model_.batch, model_.in}),
                      h = tensor(numbered("h", rank), {model_.batch, own_});
    slice("inputs", x, "x", {model_.batch, model_.in}, rank);
    std::vector<std::string> inputs{x, constant("up", rank, {{0, model_.in}, {from, to}})};
    FxWriter fx;
    fx.input("x");
    fx.constant("up");
    std::string result = fx.call("product", "mm.default", {"x", "up"});
    if (model_.bias) {
      inputs.push_back(constant("up.bias", rank, {{from, to}}));
      result = fx.call("sum", "add.Tensor", {result, fx.constant("up.bias")});
    }
    if (const char* word = word_of(model_.activation))
      result = fx.call("activation", fmt::format("{}.default", word), {result});
    compute(numbered("fc1", rank), rank, inputs, h, fx.end(result));
    if (model_.pp == 1) return;
    const std::string group = numbered("stage", rank), moved = tensor(numbered("g", rank), {model_.batch, own_});
    exchange(numbered("send", rank), "send", {h}, Document::array(), rank, group, 0, Document::object());
    exchange(numbered("recv", rank), "recv", Document::array(), {moved}, second_slot(rank), group, 1,
             Document::object());
  }

  /// The row-parallel layer: partial sums, added up over the ranks, then the bias.
  void second(int rank) {
    const std::int64_t from = rank * own_, to = from + own_;
    const std::vector<std::int64_t> shape{model_.batch, model_.out};
    const std::string partial = tensor(numbered("p", rank), shape), y = numbered("y", rank);
    FxWriter fx;
    fx.input("h");
    fx.constant("down");
    compute(numbered("fc2", rank), second_slot(rank),
            {numbered(model_.pp == 2 ? "g" : "h", rank), constant("down", rank, {{from, to}, {0, model_.out}})},
            partial, fx.end(fx.call("product", "mm.default", {"h", "down"})));
    const std::string reduced = tensor(model_.bias ? numbered("r", rank) : y, shape);
    exchange(numbered("sum", rank), "all_reduce", {partial}, {reduced}, second_slot(rank), "sum", rank,
             {{"reduce_op", "sum"}});
    if (model_.bias) {
      tensor(y, shape);
      FxWriter add;
      add.input("r");
      add.constant("down.bias");
      compute(numbered("bias", rank), second_slot(rank), {reduced, constant("down.bias", rank, {{0, model_.out}})}, y,
              add.end(add.call("sum", "add.Tensor", {"r", "down.bias"})));
    }
    slice("outputs", y, "y", shape, second_slot(rank));
  }

  const MlpExport& model_;
  const std::int64_t own_;
  Document document_;
};

}  // namespace

Exported export_mlp(const MlpExport& model) {
  for (const std::int64_t size : {model.batch, model.in, model.hidden, model.out}) {
    if (size < 1) throw std::invalid_argument(fmt::format("a size of the model is {}: give 1 or more", size));
  }
  if (model.tp < 1 || model.hidden % model.tp != 0)
    throw std::invalid_argument(
        fmt::format("--tp is {}: give a divisor of the {} hidden columns", model.tp, model.hidden));
  if (model.pp != 1 && model.pp != 2)
    throw std::invalid_argument(fmt::format("--pp is {}: a perceptron has two layers, give 1 or 2", model.pp));
  return MlpWriter(model).write();
}

}  // namespace kernbench::pipeline
