#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "runtime/pipeline/document.h"
#include "runtime/pipeline/export_document.h"
#include "tlm/kernel/activation.h"

namespace kernbench::pipeline {

namespace {

/// Writes layer after layer, in each the same for every rank. Tensors are listed in the order in which a direct run
/// places them: a slot's memory has that order.
class TransformerWriter {
 public:
  explicit TransformerWriter(const TransformerExport& model)
      : model_(model),
        rows_(model.batch * model.length),
        own_heads_(model.heads / model.tp),
        own_kv_heads_(std::max<std::int64_t>(1, model.kv_heads / model.tp)),
        document_(fmt::format("{} layers of {}, batch {} x {} tokens, TP {}, PP {}", model.layers, model.name,
                              model.batch, model.length, model.tp, model.pp),
                  model.tp * model.pp, model.dtype, model.weights_file) {}

  Exported write() {
    std::vector<std::pair<std::string, int>> inputs, outputs;
    std::vector<std::string> x, y;
    for (int rank = 0; rank < model_.tp; ++rank) {
      x.push_back(fmt::format("x_{}", rank));
      y.push_back(of("y", model_.layers - 1, rank));
      inputs.emplace_back(x.back(), rank);
      outputs.emplace_back(y.back(), slot(model_.layers - 1, rank));
    }
    document_.whole("inputs", "x", {rows_, model_.width}, inputs);
    document_.whole("outputs", "y", {rows_, model_.width}, outputs);
    document_.boundary("input", x);
    Names received = x;
    if (model_.rope_theta > 0) tables();
    for (layer_ = 0; layer_ < model_.layers; ++layer_) {
      if (layer_ > 0 && slot(layer_, 0) != slot(layer_ - 1, 0)) {
        next_stage(x);
        received.insert(received.end(), x.begin(), x.end());
      }
      for (rank_ = 0; rank_ < model_.tp; ++rank_) {
        const auto rank = static_cast<std::size_t>(rank_);
        // A layer's norms lie before its matrices.
        list_norm("attention_norm");
        list_norm("mlp_norm");
        const std::string attended = parallel("attention", "attention.out", attention(x[rank]));
        const std::string down = parallel("mlp", "mlp.down", mlp(x[rank], attended));
        x[rank] = add("residual", down, here("h"), here("y"));
      }
    }
    for (const std::string& name : received) document_.variable(name, {rows_, model_.width});
    document_.boundary("output", y);
    exported_.document = document_.text();
    return std::move(exported_);
  }

 private:
  using Sizes = std::vector<std::int64_t>;
  using Names = std::vector<std::string>;

  static std::string of(const std::string& name, std::int64_t layer, int rank) {
    return fmt::format("{}{}_{}", name, layer, rank);
  }
  std::string here(const std::string& name) const { return of(name, layer_, rank_); }
  int slot(std::int64_t layer, int rank) const {
    return static_cast<int>(layer * model_.pp / model_.layers) * model_.tp + rank;
  }
  int slot() const { return slot(layer_, rank_); }

  void next_stage(Names& x) {
    for (rank_ = 0; rank_ < model_.tp; ++rank_) {
      std::string& moved = x[static_cast<std::size_t>(rank_)];
      const std::string made = here("x");
      document_.transfer(here("stage"), moved, slot(layer_ - 1, rank_), made, slot());
      moved = made;
    }
  }

  /// A part of a whole weight of the layer, whose file entry comes to be with its first part: ranges of rows and
  /// columns, of a bias columns alone.
  std::string weight(const std::string& part, const Sizes& whole, const DocumentWriter::Ranges& ranges) {
    const std::string stored = fmt::format("layer{}.{}", layer_, part);
    if (exported_.weights.count(stored) == 0)
      exported_.weights[stored] = filled(whole, model_.dtype, model_.weights(stored));
    return document_.constant(fmt::format("{}_{}", stored, rank_), stored, ranges);
  }
  void list_norm(const std::string& part) {
    weight(part, {model_.width}, {{0, model_.width}});
    if (model_.norm == tp::NormKind::layer) weight(part + ".bias", {model_.width}, {{0, model_.width}});
  }
  std::string name_in_graph(const std::string& part) const { return fmt::format("layer{}.{}", layer_, part); }

  /// Cosines and sines of every position, both halves of a head alike: x cos + rotate_half(x) sin, as transformers
  /// writes it. Source: transformers, modeling_llama.py, apply_rotary_pos_emb.
  void tables() {
    const std::int64_t dim = model_.head_dim;
    for (const bool cosine : {true, false}) {
      const char* name = cosine ? "rotary.cos" : "rotary.sin";
      // Of f32 accuracy, whatever the type that heads are turned in.
      HostTensor& table = exported_.weights[name];
      table = filled({model_.length, dim}, DType::f32, [&](std::int64_t position, std::int64_t i) {
        const double angle = static_cast<double>(position) *
                             tp::rotary_frequency(model_.rope_theta, model_.rope_scaling, i % (dim / 2), dim);
        return cosine ? std::cos(angle) : std::sin(angle);
      });
      document_.whole_constant(name, name, {model_.length, dim}, DType::f32);
    }
  }

  std::string normalised(FxWriter& fx, Names& inputs, const std::string& x, const std::string& part) {
    const Sizes width{model_.width};
    inputs.push_back(weight(part, width, {{0, model_.width}}));
    const std::string scale = fx.constant(name_in_graph(part));
    if (model_.norm == tp::NormKind::rms)
      return fx.call("norm", "rms_norm.default", {fx.node(x), width, fx.node(scale), model_.epsilon});
    inputs.push_back(weight(part + ".bias", width, {{0, model_.width}}));
    const std::string shift = fx.constant(name_in_graph(part + ".bias"));
    return fx.call("norm", "layer_norm.default", {fx.node(x), width, fx.node(scale), fx.node(shift), model_.epsilon});
  }

  /// x times this rank's columns of a matrix, and its bias.
  std::string columns(FxWriter& fx, Names& inputs, const std::string& x, const std::string& part, std::int64_t whole,
                      const char* name) {
    const std::int64_t own = whole / model_.tp, from = rank_ * own;
    inputs.push_back(weight(part, {model_.width, whole}, {{0, model_.width}, {from, from + own}}));
    const std::string matrix = fx.constant(name_in_graph(part));
    if (!model_.biases) return fx.call(name, "mm.default", {fx.node(x), fx.node(matrix)});
    inputs.push_back(weight(part + ".bias", {whole}, {{from, from + own}}));
    const std::string bias = fx.constant(name_in_graph(part + ".bias"));
    return fx.call(name, "addmm.default", {fx.node(bias), fx.node(x), fx.node(matrix)});
  }

  /// x times this rank's rows of a matrix: a partial sum.
  std::string partial(FxWriter& fx, Names& inputs, const std::string& x, const std::string& part, std::int64_t whole) {
    const std::int64_t own = whole / model_.tp, from = rank_ * own;
    inputs.push_back(weight(part, {whole, model_.width}, {{from, from + own}, {0, model_.width}}));
    const std::string matrix = fx.constant(name_in_graph(part));
    return fx.call("partial", "mm.default", {fx.node(x), fx.node(matrix)});
  }

  /// Sums the ranks' partial results and adds the bias.
  std::string parallel(const std::string& name, const std::string& part, const std::string& own) {
    const Sizes shape{rows_, model_.width};
    std::string reduced = document_.variable(here(name + "_sum"), shape);
    document_.exchange(here("reduce_" + name), "all_reduce", {own}, {reduced}, slot(),
                       fmt::format("{}{}", name, layer_), rank_, {{"reduce_op", "sum"}});
    if (!model_.biases) return reduced;
    const std::string bias = weight(part + ".bias", {model_.width}, {{0, model_.width}});
    std::string made = document_.variable(here(name + "_biased"), shape);
    FxWriter fx;
    fx.input("x");
    fx.constant(name_in_graph(part + ".bias"));
    fx.call("sum", "add.Tensor", {fx.node("x"), fx.node(name_in_graph(part + ".bias"))});
    document_.compute(here("bias_" + name), slot(), {reduced, bias}, {made}, fx.end({"sum"}));
    return made;
  }

  std::string add(const std::string& name, const std::string& a, const std::string& b, const std::string& made) {
    document_.variable(made, {rows_, model_.width});
    FxWriter fx;
    fx.input("a");
    fx.input("b");
    fx.call("sum", "add.Tensor", {fx.node("a"), fx.node("b")});
    document_.compute(here(name), slot(), {a, b}, {made}, fx.end({"sum"}));
    return made;
  }

  /// The parts of the query, key and value matrices that this rank has, side by side.
  std::string projection(FxWriter& fx, Names& inputs, const std::string& x, bool bias) {
    const std::int64_t dim = model_.head_dim;
    JsonDocument parts = JsonDocument::array();
    for (const char* part : {"q", "k", "v"}) {
      const bool query = *part == 'q';
      const std::int64_t heads = query ? model_.heads : model_.kv_heads, own = query ? own_heads_ : own_kv_heads_,
                         from = rank_ * heads / model_.tp * dim;
      const std::string name = fmt::format("attention.{}{}", part, bias ? ".bias" : "");
      const std::pair<std::int64_t, std::int64_t> range{from, from + own * dim};
      inputs.push_back(bias ? weight(name, {heads * dim}, {range})
                            : weight(name, {model_.width, heads * dim}, {{0, model_.width}, range}));
      parts.push_back(fx.node(fx.constant(name_in_graph(name))));
    }
    const char* made = bias ? "qkv.bias" : "qkv.weight";
    fx.call(made, "cat.default", {parts, bias ? 0 : 1});
    if (bias) return made;
    if (!model_.biases) return fx.call("qkv", "mm.default", {fx.node(x), fx.node(made)});
    projection(fx, inputs, x, true);
    return fx.call("qkv", "addmm.default", {fx.node("qkv.bias"), fx.node(x), fx.node(made)});
  }

  /// Heads of one kind out of the projection, (batch, heads, length, dim), turned by their positions.
  std::string heads_of(FxWriter& fx, const std::string& kind, int number, std::int64_t heads) {
    const std::int64_t dim = model_.head_dim;
    fx.item(kind, "parts", number);
    fx.call(kind + ".heads", "view.default", {fx.node(kind), Sizes{model_.batch, model_.length, heads, dim}});
    std::string made = fx.call(kind + ".turned", "transpose.int", {fx.node(kind + ".heads"), 1, 2});
    if (number < 2 && model_.rope_theta > 0) made = rotated(fx, kind, made);
    if (number == 0 || own_heads_ == own_kv_heads_) return made;
    const std::int64_t group = own_heads_ / own_kv_heads_;
    fx.call(kind + ".alone", "unsqueeze.default", {fx.node(made), 2});
    fx.call(kind + ".repeated", "expand.default",
            {fx.node(kind + ".alone"), Sizes{model_.batch, heads, group, model_.length, dim}});
    return fx.call(kind + ".grouped", "reshape.default",
                   {fx.node(kind + ".repeated"), Sizes{model_.batch, own_heads_, model_.length, dim}});
  }

  std::string rotated(FxWriter& fx, const std::string& kind, std::string x) {
    const std::int64_t half = model_.head_dim / 2;
    const DType wide = model_.dtype == DType::f64 ? DType::f64 : DType::f32;
    const auto as = [&](const std::string& name, const std::string& from, DType type) {
      return fx.call(name, "to.dtype", {fx.node(from), document_type(type)});
    };
    std::string cosines = "rotary.cos", sines = "rotary.sin";
    if (wide == DType::f64) {
      cosines = as(kind + ".cos", cosines, wide);
      sines = as(kind + ".sin", sines, wide);
    }
    if (model_.dtype != wide) x = as(kind + ".wide", x, wide);
    const JsonDocument in = fx.node(x);
    fx.call(kind + ".low", "slice.Tensor", {in, 3, 0, half});
    fx.call(kind + ".high", "slice.Tensor", {in, 3, half, 2 * half});
    fx.call(kind + ".minus", "neg.default", JsonDocument::array({fx.node(kind + ".high")}));
    fx.call(kind + ".rotated", "cat.default",
            {JsonDocument::array({fx.node(kind + ".minus"), fx.node(kind + ".low")}), 3});
    fx.call(kind + ".along", "mul.Tensor", {in, fx.node(cosines)});
    fx.call(kind + ".across", "mul.Tensor", {fx.node(kind + ".rotated"), fx.node(sines)});
    const std::string made =
        fx.call(kind + ".sum", "add.Tensor", {fx.node(kind + ".along"), fx.node(kind + ".across")});
    return model_.dtype != wide ? as(kind + ".rotary", made, model_.dtype) : made;
  }

  std::string attention(const std::string& x) {
    const std::int64_t dim = model_.head_dim;
    Names inputs{x};
    FxWriter fx;
    fx.input("x");
    if (model_.rope_theta > 0) {
      for (const char* table : {"rotary.cos", "rotary.sin"}) {
        inputs.push_back(table);
        fx.constant(table);
      }
    }
    projection(fx, inputs, normalised(fx, inputs, "x", "attention_norm"), false);
    fx.call("parts", "split_with_sizes.default",
            {fx.node("qkv"), Sizes{own_heads_ * dim, own_kv_heads_ * dim, own_kv_heads_ * dim}, 1});
    const std::string q = heads_of(fx, "q", 0, own_heads_), k = heads_of(fx, "k", 1, own_kv_heads_),
                      v = heads_of(fx, "v", 2, own_kv_heads_);
    fx.call("attended", "scaled_dot_product_attention.default", {fx.node(q), fx.node(k), fx.node(v)},
            {{"is_causal", true}});
    fx.call("back", "transpose.int", {fx.node("attended"), 1, 2});
    fx.call("context", "reshape.default", {fx.node("back"), Sizes{rows_, own_heads_ * dim}});
    std::string made = document_.variable(here("attention_part"), {rows_, model_.width});
    const std::string result = partial(fx, inputs, "context", "attention.out", model_.heads * dim);
    document_.compute(here("attention"), slot(), inputs, {made}, fx.end({result}));
    return made;
  }

  std::string mlp(const std::string& x, const std::string& attended) {
    Names inputs{attended, x};
    FxWriter fx;
    fx.input("attended");
    fx.input("x");
    fx.call("h", "add.Tensor", {fx.node("attended"), fx.node("x")});
    const std::string in = normalised(fx, inputs, "h", "mlp_norm");
    std::string hidden = columns(fx, inputs, in, "mlp.up", model_.mlp_width, "up");
    const auto activated = [&](const std::string& of) {
      return model_.activation == Activation::none
                 ? of
                 : fx.call("activation", fmt::format("{}.default", to_string(model_.activation)),
                           JsonDocument::array({fx.node(of)}));
    };
    if (model_.gated) {
      const std::string gate = activated(columns(fx, inputs, in, "mlp.gate", model_.mlp_width, "gate"));
      hidden = fx.call("hidden", "mul.Tensor", {fx.node(hidden), fx.node(gate)});
    } else {
      hidden = activated(hidden);
    }
    const std::string result = partial(fx, inputs, hidden, "mlp.down", model_.mlp_width);
    std::string made = document_.variable(here("mlp_part"), {rows_, model_.width}),
                sum = document_.variable(here("h"), {rows_, model_.width});
    document_.compute(here("mlp"), slot(), inputs, {made, sum}, fx.end({result, "h"}));
    return made;
  }

  const TransformerExport& model_;
  const std::int64_t rows_, own_heads_, own_kv_heads_;
  DocumentWriter document_;
  Exported exported_;
  std::int64_t layer_ = 0;
  int rank_ = 0;
};

}  // namespace

Exported export_transformer(const TransformerExport& model) {
  for (const std::int64_t size : {model.layers, model.batch, model.length, model.width, model.heads, model.kv_heads,
                                  model.head_dim, model.mlp_width}) {
    if (size < 1) throw std::invalid_argument(fmt::format("a size of the model is {}: give 1 or more", size));
  }
  for (const auto& [what, size] : {std::pair("heads", model.heads), std::pair("columns of the MLP", model.mlp_width)}) {
    if (model.tp < 1 || size % model.tp != 0)
      throw std::invalid_argument(fmt::format("--tp is {}: give a divisor of the {} {}", model.tp, size, what));
  }
  if (model.kv_heads % model.tp != 0 && model.tp % model.kv_heads != 0)
    throw std::invalid_argument(
        fmt::format("--tp is {}: give a divisor or a multiple of the {} key/value heads", model.tp, model.kv_heads));
  if (model.heads % model.kv_heads != 0)
    throw std::invalid_argument(
        fmt::format("{} heads, but {} key/value heads: give a divisor of the heads", model.heads, model.kv_heads));
  if (model.rope_theta > 0 && model.head_dim % 2 != 0)
    throw std::invalid_argument(
        fmt::format("heads of {} elements cannot be turned: give an even number", model.head_dim));
  if (model.pp < 1 || model.pp > model.layers)
    throw std::invalid_argument(fmt::format("--pp is {}: give 1 to {}, the number of layers", model.pp, model.layers));
  return TransformerWriter(model).write();
}

}  // namespace kernbench::pipeline
