#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tp/attention.h"
#include "runtime/tp/embedding.h"
#include "runtime/tp/mlp.h"
#include "runtime/tp/model.h"
#include "runtime/tp/moe.h"
#include "runtime/tp/norm.h"
#include "runtime/tp/vocabulary.h"

namespace kernbench::tp {

/// The weights of a model by name: "embedding", "positions", "layer3.attention.q", ".k", ".v", ".out",
/// "layer3.attention_norm", "layer3.mlp.up", ".gate", ".down", "layer3.mlp_norm", "norm", "output"; a bias has ".bias"
/// behind. Of experts "layer3.moe.router" and "layer3.moe.expert5.up", ".gate", ".down". Gives element (row, col) of
/// the whole matrix (in, out).
using ModelWeights = std::function<WeightPattern(const std::string& name)>;

/// Options of the layers of a model.
struct TransformerOptions {
  DType dtype = DType::f16;   ///< of weights, activations and cache
  std::int64_t page = 32;     ///< positions that a cache keeps together
  LinearPlacement placement;  ///< inside each SIP
  bool ends = true;           ///< embedding, last norm and output matrix; otherwise layers alone
  bool last_logits = false;   ///< logits of the last token of each sequence only
  /// Between attention and MLP each rank has its own rows: reduce-scatters and all-gathers in place of all-reduces, and
  /// norms and residuals of a rank's rows. Passes then take numbers of tokens that the ranks divide.
  bool sequence_parallel = false;
  int overlap_chunks = 1;  ///< of the rows of row-parallel matrices (LinearOptions)
  MoeRun moe;              ///< of models with experts
  // Of a stage of a pipeline: which part of the model it has.
  std::int64_t first_layer = 0;    ///< number of its first layer in the model
  bool begins = true;              ///< it has the embedding, if the model has its ends
  bool finishes = true;            ///< it has the last norm and the output matrix, if the model has its ends
  std::int64_t micro_batches = 1;  ///< that go through it one behind the other, each with caches of its own
};

/// What a pass of one layer writes, placed beforehand.
struct LayerTensors {
  Tensor attention_input;      ///< normalised
  AttentionTensors attention;  ///< of attention(norm(x))
  Tensor hidden, mlp_input;    ///< with the attention's result added; that, normalised
  MlpTensors mlp;              ///< of an MLP
  MoeTensors moe;              ///< of experts
  /// What forward returns: the MLP's or the experts' result with `hidden` added.
  const Tensor& output() const { return moe.output ? moe.output : mlp.down.output; }
};

/// One decoder layer, norms first: h = x + attention(norm(x)), y = h + mlp(norm(h)), where mlp may be a mixture of
/// experts.
class TransformerLayer {
 public:
  /// Places the rank's weights, zero-filled (norms: ones). Throws as its parts do.
  TransformerLayer(const ParallelState& state, const Model& model, std::string name, TransformerOptions options);

  void load(const ModelWeights& weights);  ///< takes this rank's parts of weights that begin with the layer's name
  /// Of this layer; throws as KvCache does.
  KvCache cache(std::int64_t batch, std::int64_t positions) const { return attention_.cache(batch, positions); }
  /// Of passes of `length` tokens a sequence. Throws std::invalid_argument if the layer is sequence-parallel and the
  /// ranks do not divide the tokens.
  LayerTensors place(const KvCache& cache, std::int64_t length) const;
  void prepare(const LayerTensors& tensors) const;  ///< every rank calls it

  // A pass in its two parts, so that each can be timed; forward is both.
  /// attention(norm(x)).
  Tensor attend(const Tensor& x, KvCache& cache, const RotaryTable& rotary, const LayerTensors& tensors) const;
  /// h = x + attended, then h + mlp(norm(h)): the layer's result.
  Tensor mlp(const Tensor& x, const Tensor& attended, const LayerTensors& tensors) const;

  /// x (batch * length, width) -> the same shape on every rank; waits (pass.h). Sequence-parallel: this rank's rows of
  /// both, (batch * length / ranks, width).
  Tensor forward(const Tensor& x, KvCache& cache, const RotaryTable& rotary, const LayerTensors& tensors) const;
  /// forward without the middle of its attention (SelfAttention::core): what goes by the number of tokens alone, for
  /// its time. The result's numbers mean nothing.
  Tensor dense(const Tensor& x, const LayerTensors& tensors) const;
  const SelfAttention& attention() const { return attention_; }  ///< its core and what stands around it

 private:
  ParallelState state_;
  std::string name_;
  TransformerOptions options_;
  bool biases_, gated_;
  NormKind norm_kind_;
  Norm attention_norm_, mlp_norm_;
  SelfAttention attention_;
  std::optional<Mlp> mlp_;  // or
  std::optional<MoeMlp> moe_;
  std::int64_t experts_;
};

/// What a pass of a whole model writes.
struct TransformerTensors {
  ForwardTensors embedded;           ///< of tokens
  std::vector<LayerTensors> layers;  ///< in order
  Tensor normalised;                 ///< of the last layer
  Tensor gathered;        ///< of sequence-parallel layers, if logits are of last tokens only: all rows, normalised
  Tensor last;            ///< the last row of each sequence, if logits are of those only
  ForwardTensors logits;  ///< this rank's columns of the padded vocabulary

  /// What the output matrix is multiplied by.
  const Tensor& output_input() const { return !gathered ? normalised : last ? last : gathered; }
};

/// Tokens to logits: embedding, layers, norm, output matrix; or layers alone.
class Transformer {
 public:
  /// Places the weights of `layers` layers of the model (all of them: model.layers), zero-filled.
  ///
  /// batch      sequences that run at once, of one micro-batch
  /// positions  that each may have; caches for as many are placed
  /// Throws     as its parts do; std::invalid_argument on more positions than a table of learned ones has
  Transformer(const ParallelState& state, const Model& model, std::int64_t layers, std::int64_t batch,
              std::int64_t positions, TransformerOptions options = {});

  void load(const ModelWeights& weights);  ///< takes this rank's parts
  /// Of passes of `length` tokens a sequence; `logits`: up to the last norm and the output matrix.
  TransformerTensors place(std::int64_t length, bool logits = true) const;
  void prepare(const TransformerTensors& tensors) const;  ///< every rank calls it

  std::size_t layers() const { return layers_.size(); }             ///< that were made
  std::int64_t length() const { return caches_.front().length(); }  ///< positions that the caches hold
  void truncate(std::int64_t length);                               ///< forgets what is beyond
  /// As of KvCache; the layer comes first.
  using Contents = std::function<double(std::size_t layer, std::int64_t entry, std::int64_t head, std::int64_t position,
                                        std::int64_t i)>;
  /// Of every layer's cache; layers and entries count from the first of this stage and of the first micro-batch. Throws
  /// as KvCache::fill.
  void fill(std::int64_t count, const Contents& keys, const Contents& values);
  void skip(std::int64_t count);      ///< the caches hold so many positions, whatever their contents
  std::uint64_t cache_bytes() const;  ///< of this rank

  // The parts of a pass. forward is all of them.
  /// Rows of the table, and positions where they are learned. REQUIRES: the model has its ends.
  Tensor embed(const std::vector<std::int64_t>& tokens, const TransformerTensors& tensors,
               std::size_t micro_batch = 0) const;
  /// One layer of this stage. Sequence-parallel: of this rank's rows.
  Tensor layer(std::size_t number, const Tensor& x, const TransformerTensors& tensors, std::size_t micro_batch = 0);
  /// As TransformerLayer::dense.
  Tensor dense(std::size_t number, const Tensor& x, const TransformerTensors& tensors) const;
  const SelfAttention& attention(std::size_t number) const { return layers_[number].attention(); }  ///< of a layer
  const RotaryTable& rotary() const { return rotary_; }                                             ///< of all layers
  /// Last norm and output matrix. REQUIRES: the model has its ends.
  Tensor logits(const Tensor& x, const TransformerTensors& tensors) const;

  /// tokens: batch * length of them, sequence after sequence, which follow what the caches hold -> logits
  /// (batch * length, or batch if of the last tokens only, padded vocabulary / ranks), this rank's columns.
  Tensor forward(const std::vector<std::int64_t>& tokens, const TransformerTensors& tensors);

 private:
  bool embeds() const { return options_.ends && options_.begins; }
  bool gives_logits() const { return options_.ends && options_.finishes; }

  ParallelState state_;
  Model model_;
  std::int64_t batch_;
  TransformerOptions options_;
  std::optional<VocabParallelEmbedding> embedding_;
  Tensor positions_;  // learned ones
  RotaryTable rotary_;
  std::vector<TransformerLayer> layers_;
  std::vector<KvCache> caches_;  // of the layers, micro-batch after micro-batch
  std::optional<Norm> norm_;
  std::optional<ColumnParallelLinear> output_;
};

}  // namespace kernbench::tp
