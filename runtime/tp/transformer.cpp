#include "runtime/tp/transformer.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "runtime/tp/load_part.h"
#include "runtime/tp/pass.h"
#include "runtime/tp/pointwise.h"
#include "runtime/tp/regions.h"

namespace kernbench::tp {

namespace {
NormOptions norm_options(const Model& model, const TransformerOptions& options, std::string name) {
  NormOptions norm;
  norm.name = std::move(name);
  norm.kind = model.norm;
  norm.dtype = options.dtype;
  norm.epsilon = model.epsilon;
  return norm;
}

AttentionOptions attention_options(const Model& model, const TransformerOptions& options, std::string name) {
  AttentionOptions attention;
  attention.name = std::move(name);
  attention.dtype = options.dtype;
  attention.heads = model.heads;
  attention.kv_heads = model.kv_heads;
  attention.head_dim = model.head_dim;
  attention.bias = model.biases;
  attention.page = options.page;
  attention.sequence_parallel = options.sequence_parallel;
  attention.overlap_chunks = options.overlap_chunks;
  attention.placement = options.placement;
  return attention;
}

MlpOptions mlp_options(const Model& model, const TransformerOptions& options, std::string name) {
  MlpOptions mlp;
  mlp.name = std::move(name);
  mlp.dtype = options.dtype;
  mlp.gated = model.gated;
  mlp.activation = model.activation;
  mlp.bias = model.biases;
  mlp.sequence_parallel = options.sequence_parallel;
  mlp.overlap_chunks = options.overlap_chunks;
  mlp.placement = options.placement;
  return mlp;
}

MoeOptions moe_options(const Model& model, const TransformerOptions& options, std::string name) {
  MoeOptions moe;
  moe.name = std::move(name);
  moe.dtype = options.dtype;
  moe.experts = model.experts;
  moe.per_token = model.experts_per_token;
  moe.activation = model.activation;
  moe.sequence_parallel = options.sequence_parallel;
  moe.placement = options.placement;
  moe.run = options.moe;
  return moe;
}

void load_norm(Norm& norm, NormKind kind, const ModelWeights& weights, const std::string& name) {
  norm.load_weight(weights(name));
  if (kind == NormKind::layer) norm.load_bias(weights(name + ".bias"));
}
}  // namespace

TransformerLayer::TransformerLayer(const ParallelState& state, const Model& model, std::string name,
                                   TransformerOptions options)
    : state_(state),
      name_(std::move(name)),
      options_(std::move(options)),
      biases_(model.biases),
      gated_(model.gated),
      norm_kind_(model.norm),
      attention_norm_(state, model.width, norm_options(model, options_, name_ + ".attention_norm")),
      mlp_norm_(state, model.width, norm_options(model, options_, name_ + ".mlp_norm")),
      attention_(state, model.width, attention_options(model, options_, name_ + ".attention")),
      experts_(model.experts) {
  if (model.mixture()) {
    moe_.emplace(state, model.width, model.mlp_width, moe_options(model, options_, name_ + ".moe"));
  } else {
    mlp_.emplace(state, model.width, model.mlp_width, mlp_options(model, options_, name_ + ".mlp"));
  }
}

void TransformerLayer::load(const ModelWeights& weights) {
  load_norm(attention_norm_, norm_kind_, weights, name_ + ".attention_norm");
  load_norm(mlp_norm_, norm_kind_, weights, name_ + ".mlp_norm");
  const auto attention = [&](const char* part) { return weights(name_ + ".attention." + part); };
  const auto mlp = [&](const char* part) { return weights(name_ + ".mlp." + part); };
  attention_.load_weights(attention("q"), attention("k"), attention("v"), attention("out"));
  if (moe_) {
    moe_->load_router(weights(name_ + ".moe.router"));
    for (std::int64_t i = 0; i < experts_; ++i) {
      if (!moe_->owns(i)) continue;
      const std::string expert = fmt::format("{}.moe.expert{}", name_, i);
      moe_->load_expert(i, weights(expert + ".up"), weights(expert + ".gate"), weights(expert + ".down"));
    }
  } else {
    mlp_->load_weights(mlp("up"), gated_ ? mlp("gate") : WeightPattern(), mlp("down"));
  }
  if (!biases_) return;
  attention_.load_biases(attention("q.bias"), attention("k.bias"), attention("v.bias"), attention("out.bias"));
  mlp_->load_biases(mlp("up.bias"), gated_ ? mlp("gate.bias") : WeightPattern(), mlp("down.bias"));
}

LayerTensors TransformerLayer::place(const KvCache& cache, std::int64_t length) const {
  const std::int64_t rows = cache.options().batch * length;
  const int shares = options_.sequence_parallel ? state_.tensor_model_parallel_world_size() : 1;
  if (rows % shares != 0) {
    throw std::invalid_argument(
        fmt::format("TransformerLayer '{}': batch {} x length {} are {} tokens: sequence parallelism takes a multiple "
                    "of the tensor-parallel world size {}",
                    name_, cache.options().batch, length, rows, shares));
  }
  LayerTensors tensors;
  tensors.attention_input = attention_norm_.place(rows / shares);
  tensors.attention = attention_.place(cache, length);
  tensors.hidden = mlp_norm_.place(rows / shares);
  tensors.mlp_input = mlp_norm_.place(rows / shares);
  if (moe_) {
    tensors.moe = moe_->place(rows);
  } else {
    tensors.mlp = mlp_->place(rows);
  }
  return tensors;
}

void TransformerLayer::prepare(const LayerTensors& tensors) const {
  attention_.prepare(tensors.attention_input, tensors.attention);
  if (moe_) {
    moe_->prepare(tensors.moe);
  } else {
    mlp_->prepare(tensors.mlp_input, tensors.mlp);
  }
}

Tensor TransformerLayer::attend(const Tensor& x, KvCache& cache, const RotaryTable& rotary,
                                const LayerTensors& tensors) const {
  Pass pass(state_);
  attention_norm_.forward(x, tensors.attention_input);
  Tensor attended = attention_.forward(tensors.attention_input, cache, rotary, tensors.attention);
  pass.end();
  return attended;
}

Tensor TransformerLayer::mlp(const Tensor& x, const Tensor& attended, const LayerTensors& tensors) const {
  Pass pass(state_);
  mlp_norm_.forward(attended, x, tensors.hidden, tensors.mlp_input);
  Tensor down = moe_ ? moe_->forward(tensors.mlp_input, tensors.moe) : mlp_->forward(tensors.mlp_input, tensors.mlp);
  pass.add(add(state_.context(), name_ + ".residual", down, tensors.hidden));
  pass.end();
  return down;
}

Tensor TransformerLayer::forward(const Tensor& x, KvCache& cache, const RotaryTable& rotary,
                                 const LayerTensors& tensors) const {
  Pass pass(state_);
  Tensor output = mlp(x, attend(x, cache, rotary, tensors), tensors);
  pass.end();
  return output;
}

Tensor TransformerLayer::dense(const Tensor& x, const LayerTensors& tensors) const {
  Pass pass(state_);
  attention_norm_.forward(x, tensors.attention_input);
  attention_.project(tensors.attention_input, tensors.attention);
  Tensor output = mlp(x, attention_.output(tensors.attention), tensors);
  pass.end();
  return output;
}

Transformer::Transformer(const ParallelState& state, const Model& model, std::int64_t layers, std::int64_t batch,
                         std::int64_t positions, TransformerOptions options)
    : state_(state), model_(model), batch_(batch), options_(std::move(options)) {
  if (layers < 1)
    throw std::invalid_argument(fmt::format("transformer '{}': layers is {}: give 1 or more", model.name, layers));
  if (model.position == PositionKind::learned && positions > model.positions) {
    throw std::invalid_argument(fmt::format("transformer '{}': positions is {}: its table of learned positions has {}",
                                            model.name, positions, model.positions));
  }
  Context& context = state_.context();
  const std::int64_t vocabulary = model.padded_vocabulary(state_.tensor_model_parallel_world_size());
  if (model.position == PositionKind::rotary) {
    rotary_ = RotaryTable(state_, positions, model.head_dim, model.rope_theta, options_.dtype, model.rope_scaling);
  } else if (embeds()) {
    positions_ = context.zeros({positions, model.width}, options_.dtype, LinearPlacement::split(), "positions");
  }
  if (embeds()) {
    EmbeddingOptions embedding;
    embedding.dtype = options_.dtype;
    embedding.placement = options_.placement;
    embedding.placement.many_over_cubes = true;
    embedding.sequence_parallel = options_.sequence_parallel;
    embedding_.emplace(state_, vocabulary, model.width, embedding);
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    layers_.emplace_back(state_, model, fmt::format("layer{}", options_.first_layer + i), options_);
  }
  for (std::int64_t micro = 0; micro < options_.micro_batches; ++micro) {
    for (const TransformerLayer& layer : layers_) caches_.push_back(layer.cache(batch, positions));
  }
  if (!gives_logits()) return;
  norm_.emplace(state_, model.width, norm_options(model, options_, "norm"));
  LinearOptions output;
  output.name = "output";
  output.dtype = options_.dtype;
  output.placement = options_.placement;
  output.sequence_parallel = options_.sequence_parallel && !options_.last_logits;
  output_.emplace(state_, model.width, vocabulary, output);
}

void Transformer::load(const ModelWeights& weights) {
  for (TransformerLayer& layer : layers_) layer.load(weights);
  // Rows and columns of the padding are zero: no token looks them up, and soft max and arg max leave them out.
  const std::int64_t vocabulary = model_.vocabulary;
  const WeightPattern table = options_.ends ? weights("embedding") : WeightPattern();
  if (embeds()) {
    embedding_->load_weight(
        [=](std::int64_t row, std::int64_t col) { return row < vocabulary ? table(row, col) : 0.0; });
    if (positions_) load_part(positions_, weights("positions"), 0, 0);
  }
  if (!gives_logits()) return;
  const WeightPattern output = model_.tied
                                   ? WeightPattern([=](std::int64_t row, std::int64_t col) { return table(col, row); })
                                   : weights("output");
  output_->load_weight([=](std::int64_t row, std::int64_t col) { return col < vocabulary ? output(row, col) : 0.0; });
  load_norm(*norm_, model_.norm, weights, "norm");
}

TransformerTensors Transformer::place(std::int64_t length, bool logits) const {
  TransformerTensors tensors;
  if (embeds()) tensors.embedded = embedding_->place(batch_ * length);
  // One layer after the other uses the same ones: its input is read for the last time before its output is written.
  tensors.layers.assign(layers_.size(), layers_.front().place(caches_.front(), length));
  if (!gives_logits() || !logits) return tensors;
  const std::int64_t rows = options_.last_logits ? batch_ : batch_ * length;
  if (options_.last_logits && length > 1) tensors.last = norm_->place(rows);
  const bool own_rows = options_.sequence_parallel;
  if (own_rows && options_.last_logits) tensors.gathered = norm_->place(batch_ * length);
  tensors.normalised = norm_->place(own_rows ? batch_ * length / state_.tensor_model_parallel_world_size() : rows);
  tensors.logits = output_->place(rows);
  return tensors;
}

void Transformer::prepare(const TransformerTensors& tensors) const {
  if (embeds()) embedding_->prepare(tensors.embedded);
  for (std::size_t i = 0; i < layers_.size(); ++i) layers_[i].prepare(tensors.layers[i]);
  if (!tensors.normalised) return;
  if (tensors.gathered) prepare_gather_from_sequence_region(state_, tensors.normalised, tensors.gathered);
  output_->prepare(tensors.output_input(), tensors.logits);
}

void Transformer::truncate(std::int64_t length) {
  for (KvCache& cache : caches_) cache.truncate(length);
}

void Transformer::fill(std::int64_t count, const Contents& keys, const Contents& values) {
  for (std::size_t cache = 0; cache < caches_.size(); ++cache) {
    const std::size_t layer = cache % layers_.size();
    const std::int64_t first = static_cast<std::int64_t>(cache / layers_.size()) * batch_;
    const auto of = [layer, first](const Contents& contents) {
      return [&contents, layer, first](std::int64_t entry, std::int64_t head, std::int64_t position, std::int64_t i) {
        return contents(layer, first + entry, head, position, i);
      };
    };
    caches_[cache].fill(count, of(keys), of(values));
  }
}

void Transformer::skip(std::int64_t count) {
  for (KvCache& cache : caches_) {
    cache.truncate(0);
    cache.append(count);
  }
}

std::uint64_t Transformer::cache_bytes() const {
  std::uint64_t bytes = 0;
  for (const KvCache& cache : caches_) bytes += cache.bytes();
  return bytes;
}

Tensor Transformer::embed(const std::vector<std::int64_t>& tokens, const TransformerTensors& tensors,
                          std::size_t micro_batch) const {
  Pass pass(state_);
  Tensor x = embedding_->forward(tokens, tensors.embedded);
  if (positions_) {
    const std::int64_t from = options_.sequence_parallel ? state_.tensor_model_parallel_rank() * x.shape().rows : 0;
    pass.add(add_positions(state_.context(), "positions", x, positions_,
                           static_cast<std::int64_t>(tokens.size()) / batch_,
                           caches_[micro_batch * layers_.size()].length(), from));
  }
  pass.end();
  return x;
}

Tensor Transformer::layer(std::size_t number, const Tensor& x, const TransformerTensors& tensors,
                          std::size_t micro_batch) {
  return layers_[number].forward(x, caches_[micro_batch * layers_.size() + number], rotary_, tensors.layers[number]);
}

Tensor Transformer::dense(std::size_t number, const Tensor& x, const TransformerTensors& tensors) const {
  return layers_[number].dense(x, tensors.layers[number]);
}

Tensor Transformer::logits(const Tensor& input, const TransformerTensors& tensors) const {
  Pass pass(state_);
  const auto copy_last = [&](const Tensor& x) {
    if (tensors.last) pass.add(copy_last_rows(state_.context(), "last", x, x.shape().rows / batch_, tensors.last));
  };
  if (tensors.gathered) {
    // Normalised rows lie whole on PEs: so they are gathered soonest.
    norm_->forward(input, tensors.normalised);
    gather_from_sequence_region(state_, tensors.normalised, tensors.gathered);
    copy_last(tensors.gathered);
  } else {
    copy_last(input);
    norm_->forward(tensors.last ? tensors.last : input, tensors.normalised);
  }
  Tensor logits = output_->forward(tensors.output_input(), tensors.logits);
  pass.end();
  return logits;
}

Tensor Transformer::forward(const std::vector<std::int64_t>& tokens, const TransformerTensors& tensors) {
  Pass pass(state_);
  Tensor x = embed(tokens, tensors);
  for (std::size_t i = 0; i < layers_.size(); ++i) x = layer(i, x, tensors);
  Tensor result = logits(x, tensors);
  pass.end();
  return result;
}

}  // namespace kernbench::tp
