#include "sc_main/workloads/tp_transformer_ranks.h"

#include <algorithm>

namespace kernbench {

/// What the first layer gets where there is no embedding: by the tokens, too.
HostTransformer::Values TpTransformer::input(const Case& run, const std::vector<std::int64_t>& tokens) const {
  const tp::WeightPattern table = run.host.weights("embedding");
  HostTransformer::Values x;
  for (const std::int64_t token : tokens) {
    for (std::int64_t c = 0; c < run.model.width; ++c) x.push_back(table(token, c));
  }
  return x;
}

TpTransformer::Rank::Rank(const TpTransformer& work, Context& ctx, Case& run, TpTimes& times)
    : work_(work),
      ctx_(ctx),
      run_(run),
      times_(times),
      state_(tp::initialize_model_parallel(ctx, static_cast<int>(work.tp_), static_cast<int>(work.pp_),
                                           tp::on_first_use(), work.moe_.ranks(work.tp_))),
      tensor_(state_.tensor_model_parallel_rank()),
      data_(state_.data_parallel_rank()),
      stage_(state_.pipeline_model_parallel_rank()),
      micro_(static_cast<std::size_t>(work.micro_)),
      options_(work.transformer_options()) {
  options_.moe = run.moe;
  options_.first_layer = stage_ * (run.host.layers / work.pp_);
  options_.begins = first();
  options_.finishes = last();
  options_.micro_batches = work.micro_;
}

std::vector<std::int64_t> TpTransformer::Rank::tokens(std::size_t step, std::size_t micro) const {
  const std::vector<std::int64_t>& all = run_.tokens[step];
  const std::int64_t length = static_cast<std::int64_t>(all.size()) / work_.batch_;
  const auto begin = all.begin() + first_entry(micro) * length;
  return {begin, begin + work_.entries() * length};
}

void TpTransformer::Rank::place() {
  model_.emplace(state_, run_.model, run_.host.layers / work_.pp_, work_.entries(),
                 work_.context_ + work_.prompt_ + work_.decode_, options_);
  for (const TransformerPhase& phase : run_.phases) {
    tensors_.emplace_back();
    received_.emplace_back();
    // A layer's input lies as the one before leaves it: layers are alike.
    const auto place_input = [&](const char* name) {
      const Tensor& result = tensors_.back().back().layers.back().output();
      return ctx_.empty(result.shape(), options_.dtype, result.policy(), name);
    };
    for (std::size_t micro = 0; micro < micro_; ++micro) {
      tensors_.back().push_back(model_->place(phase.length));
      if (!first()) received_.back().push_back(place_input("received"));
    }
    for (std::int64_t step = 0; first() && !options_.ends && step < phase.steps; ++step) {
      inputs_.emplace_back();
      for (std::size_t micro = 0; micro < micro_; ++micro) inputs_.back().push_back(place_input("input"));
    }
  }
}

void TpTransformer::Rank::load() {
  if (!run_.loads) return model_->skip(work_.context_);
  const std::int64_t head = tensor_ * run_.model.kv_heads / work_.tp_, entry = first_entry(0);
  const auto layer = static_cast<std::size_t>(options_.first_layer);
  const auto of_rank = [&](const tp::Transformer::Contents& contents) -> tp::Transformer::Contents {
    return [&contents, head, entry, layer](std::size_t l, std::int64_t e, std::int64_t h, std::int64_t position,
                                           std::int64_t i) {
      return contents(layer + l, entry + e, head + h, position, i);
    };
  };
  model_->load(run_.host.weights);
  model_->fill(work_.context_, of_rank(run_.host.keys), of_rank(run_.host.values));
  for (std::size_t step = 0; step < inputs_.size(); ++step) {
    for (std::size_t micro = 0; micro < micro_; ++micro) {
      Tensor into = inputs_[step][micro];
      std::vector<std::uint8_t> bytes(into.bytes());
      const HostTransformer::Values values = work_.input(run_, tokens(step, micro));
      const std::size_t count = bytes.size() / size_of(options_.dtype);
      const std::size_t own = work_.sequence_ == 1 ? static_cast<std::size_t>(tensor_) * count : 0;
      for (std::size_t i = 0; i < count; ++i) store_element(bytes.data(), options_.dtype, i, values[own + i]);
      into.write_bytes(bytes);
    }
  }
}

/// The queues of all that passes use; those between stages by a transfer, which the first pass overwrites.
void TpTransformer::Rank::prepare() {
  const Group& stages = state_.pipeline_model_parallel_group();
  for (std::size_t phase = 0; phase < tensors_.size(); ++phase) {
    for (const tp::TransformerTensors& of_micro : tensors_[phase]) model_->prepare(of_micro);
    if (!first()) ctx_.recv(received_[phase].front(), static_cast<int>(stage_) - 1, stages);
    if (last()) continue;
    Tensor sent = tensors_[phase].front().layers.back().output();
    // Nobody wrote it yet; where that takes no time.
    if (run_.loads && !run_.reads_take_time) sent.write_bytes(std::vector<std::uint8_t>(sent.bytes()));
    ctx_.send(sent, static_cast<int>(stage_) + 1, stages);
  }
}

/// Before every piece of a pass, and behind the last one: what the machine has done.
void TpTransformer::Rank::meter(std::size_t number) {
  const std::size_t phases = run_.phases.size(), of_step = static_cast<std::size_t>(run_.pieces),
                    pieces = run_.tokens.size() * of_step;
  const bool second = phases == 2 && number == static_cast<std::size_t>(run_.phases.front().steps) * of_step;
  const bool begins = number == 0 || number == pieces || second;
  if (ctx_.rank() == 0 && (begins || !staged())) {
    const MachineWork now = run_.work(ctx_.now());
    const std::size_t pass = begun_ == 0 ? 0 : (begun_ - 1) / phases, phase = begun_ == 0 ? 0 : (begun_ - 1) % phases;
    const bool timed = begun_ > 0 && pass >= static_cast<std::size_t>(work_.common_.warmup);
    const std::size_t last = number == 0 ? pieces - 1 : number - 1;
    if (timed && !staged()) run_.of_piece[phase * of_step + last % of_step].add(now).add(piece_before_, -1);
    if (timed && begins) run_.of_phase[phase].add(now).add(before_, -1);
    piece_before_ = now;
    if (begins) before_ = now;
    if (begins) ++begun_;
  }
  if (begins) ctx_.barrier();  // nobody begins before it is read
}

void TpTransformer::Rank::keep(std::size_t step, std::size_t micro, const Tensor& x) {
  if (!last()) return;
  const std::vector<std::uint8_t> part = x.bytes_to_host();
  std::vector<std::uint8_t>& all = run_.outputs[step][static_cast<std::size_t>(tensor_)];
  all.resize(part.size() * static_cast<std::size_t>(work_.dp_) * micro_);
  const std::size_t place = static_cast<std::size_t>(data_) * micro_ + micro;
  std::copy(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(place * part.size()));
}

/// A micro-batch after the other goes through this stage; what the next one gets is sent while the following one is
/// computed.
void TpTransformer::Rank::whole_step(std::size_t step, bool keeps) {
  const Group& stages = state_.pipeline_model_parallel_group();
  const std::size_t phase = phase_of(step);
  if (step == 0) model_->truncate(work_.context_);
  std::vector<Handle> sent;
  for (std::size_t micro = 0; micro < micro_; ++micro) {
    const tp::TransformerTensors& into = tensors_[phase][micro];
    Tensor x;
    if (!first()) {
      x = received_[phase][micro];
      ctx_.recv(x, static_cast<int>(stage_) - 1, stages);
    } else {
      x = options_.ends ? model_->embed(tokens(step, micro), into, micro) : inputs_[step][micro];
    }
    for (std::size_t layer = 0; layer < model_->layers(); ++layer) x = model_->layer(layer, x, into, micro);
    if (!last()) sent.push_back(ctx_.send_async(x, static_cast<int>(stage_) + 1, stages));
    if (last() && options_.ends) x = model_->logits(x, into);
    if (keeps) keep(step, micro, x);
  }
  for (const Handle& handle : sent) ctx_.wait(handle);
}

/// Of a step of one stage and micro-batch: the embedding, a layer, or the logits.
void TpTransformer::Rank::piece(std::size_t number, bool keeps) {
  if (staged()) {
    whole_step(number, keeps);
    if (keeps && run_.reads_take_time) ctx_.barrier();
    return;
  }
  const std::size_t step = number / static_cast<std::size_t>(run_.pieces);
  const std::int64_t at = static_cast<std::int64_t>(number) % run_.pieces, layer = at - work_.ends_;
  const auto layers = static_cast<std::int64_t>(model_->layers());
  const tp::TransformerTensors& into = tensors_[phase_of(step)].front();
  if (number == 0) model_->truncate(work_.context_);
  if (at == 0) x_ = options_.ends ? model_->embed(tokens(step, 0), into) : inputs_[step].front();
  if (layer >= 0 && layer < layers) x_ = model_->layer(static_cast<std::size_t>(layer), x_, into);
  if (layer == layers) x_ = model_->logits(x_, into);
  if (keeps && at == run_.pieces - 1) keep(step, 0, x_);
}

void TpTransformer::Rank::program() {
  using SetUp = TpTimes::SetUp;
  times_.set_up(ctx_, SetUp::mapping, [&] { place(); });
  times_.set_up(ctx_, SetUp::loading, [&] { load(); });
  times_.set_up(ctx_, SetUp::queues, [&] { prepare(); });
  if (ctx_.rank() == 0) run_.cache_bytes = model_->cache_bytes();
  const std::size_t pieces = run_.tokens.size() * static_cast<std::size_t>(run_.pieces);
  const bool checks = work_.common_.check != 0 && run_.loads;
  int left = work_.common_.warmup + work_.common_.iterations;
  times_.run(ctx_, [&](std::size_t number) {
    meter(number);
    if (number == 0) --left;
    // Of the last pass every step's result is read, and the choices of experts.
    const bool keeps = checks && left == 0 && !run_.reads_take_time;
    if (keeps) run_.moe.log->keeps = true;
    piece(number, keeps);
  });
  meter(pieces);
  if (!checks || !run_.reads_take_time) return;
  run_.moe.log->keeps = true;  // of a pass more: reading is no part of those that are timed
  for (std::size_t number = 0; number < pieces; ++number) piece(number, true);
}

}  // namespace kernbench
