#include "runtime/pipeline/export.h"

#include <fmt/format.h>

#include <stdexcept>

#include "runtime/pipeline/export_document.h"
#include "tlm/kernel/activation.h"

namespace kernbench::pipeline {

namespace {

class MlpWriter {
 public:
  explicit MlpWriter(const MlpExport& model)
      : model_(model),
        own_(model.hidden / model.tp),
        document_(fmt::format("mlp {}x{}-{}-{}, TP {}, PP {}", model.batch, model.in, model.hidden, model.out, model.tp,
                              model.pp),
                  model.tp * model.pp, model.dtype, model.weights_file) {}

  Exported write() {
    std::vector<std::pair<std::string, int>> inputs, outputs;
    std::vector<std::string> x, y;
    for (int rank = 0; rank < model_.tp; ++rank) {
      x.push_back(numbered("x", rank));
      y.push_back(numbered("y", rank));
      inputs.emplace_back(x.back(), rank);
      outputs.emplace_back(y.back(), second_slot(rank));
    }
    document_.whole("inputs", "x", {model_.batch, model_.in}, inputs);
    document_.whole("outputs", "y", {model_.batch, model_.out}, outputs);
    document_.boundary("input", x);
    for (int rank = 0; rank < model_.tp; ++rank) first(rank);
    for (int rank = 0; rank < model_.tp; ++rank) second(rank);
    document_.boundary("output", y);
    Exported exported;
    exported.document = document_.text();
    exported.weights["up"] = filled({model_.in, model_.hidden}, model_.dtype, model_.up);
    exported.weights["down"] = filled({model_.hidden, model_.out}, model_.dtype, model_.down);
    if (model_.bias) {
      exported.weights["up.bias"] = filled({model_.hidden}, model_.dtype, model_.up_bias);
      exported.weights["down.bias"] = filled({model_.out}, model_.dtype, model_.down_bias);
    }
    return exported;
  }

 private:
  static std::string numbered(const char* name, int rank) { return fmt::format("{}_{}", name, rank); }
  int second_slot(int rank) const { return model_.pp == 2 ? model_.tp + rank : rank; }

  /// The column-parallel layer: this rank's columns.
  void first(int rank) {
    const std::int64_t from = rank * own_, to = from + own_;
    const std::string x = document_.variable(numbered("x", rank), {model_.batch, model_.in}),
                      h = document_.variable(numbered("h", rank), {model_.batch, own_});
    std::vector<std::string> inputs{x, document_.constant(numbered("up", rank), "up", {{0, model_.in}, {from, to}})};
    FxWriter fx;
    fx.input("x");
    fx.constant("up");
    std::string result = fx.call("product", "mm.default", {fx.node("x"), fx.node("up")});
    if (model_.bias) {
      inputs.push_back(document_.constant(numbered("up.bias", rank), "up.bias", {{from, to}}));
      fx.constant("up.bias");
      result = fx.call("sum", "add.Tensor", {fx.node(result), fx.node("up.bias")});
    }
    if (model_.activation != Activation::none)
      result = fx.call("activation", fmt::format("{}.default", to_string(model_.activation)),
                       JsonDocument::array({fx.node(result)}));
    document_.compute(numbered("fc1", rank), rank, inputs, {h}, fx.end({result}));
    if (model_.pp == 2)
      document_.transfer(numbered("stage", rank), h, rank,
                         document_.variable(numbered("g", rank), {model_.batch, own_}), second_slot(rank));
  }

  /// The row-parallel layer: partial sums, added up over the ranks, then the bias.
  void second(int rank) {
    const std::int64_t from = rank * own_, to = from + own_;
    const std::vector<std::int64_t> shape{model_.batch, model_.out};
    const std::string partial = document_.variable(numbered("p", rank), shape), y = numbered("y", rank);
    const std::string down = document_.constant(numbered("down", rank), "down", {{from, to}, {0, model_.out}});
    FxWriter fx;
    fx.input("h");
    fx.constant("down");
    fx.call("product", "mm.default", {fx.node("h"), fx.node("down")});
    document_.compute(numbered("fc2", rank), second_slot(rank), {numbered(model_.pp == 2 ? "g" : "h", rank), down},
                      {partial}, fx.end({"product"}));
    const std::string reduced = document_.variable(model_.bias ? numbered("r", rank) : y, shape);
    document_.exchange(numbered("sum", rank), "all_reduce", {partial}, {reduced}, second_slot(rank), "sum", rank,
                       {{"reduce_op", "sum"}});
    if (!model_.bias) return;
    document_.variable(y, shape);
    const std::string bias = document_.constant(numbered("down.bias", rank), "down.bias", {{0, model_.out}});
    FxWriter add;
    add.input("r");
    add.constant("down.bias");
    add.call("sum", "add.Tensor", {add.node("r"), add.node("down.bias")});
    document_.compute(numbered("bias", rank), second_slot(rank), {reduced, bias}, {y}, add.end({"sum"}));
  }

  const MlpExport& model_;
  const std::int64_t own_;
  DocumentWriter document_;
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
