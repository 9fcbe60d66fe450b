#include "sc_main/workloads/serve/machine_steps.h"

#include <algorithm>
#include <utility>

#include "runtime/tp/pass.h"
#include "runtime/tp/pointwise.h"
#include "sc_main/check/numerics.h"

namespace kernbench::serve {

namespace {
constexpr std::int64_t kSimulatedLayers = 2;
}  // namespace

/// What one rank has and does.
class MachineSteps::Rank {
 public:
  Rank(MachineSteps& all, Context& ctx)
      : all_(all),
        ctx_(ctx),
        state_(tp::initialize_model_parallel(ctx, static_cast<int>(all.ranks_),
                                             ctx.world_size() / static_cast<int>(all.ranks_))),
        stage_(state_.pipeline_model_parallel_rank()) {}

  void start() { ctx_.barrier(); }
  /// The task of all; between barriers, so that rank 0's clock sees the slowest.
  void work() {
    const Task& task = all_.task_;
    if (!task.part) {
      return whole(task.step);
    }
    const Part& part = *task.part;
    switch (part.kind) {
      case Part::Kind::send:
        return send(part.size);
      case Part::Kind::prompt:
        return attention(1, part.size, part.past);
      case Part::Kind::decode:
        return attention(part.size, 1, part.past);
      default:
        return rows(part);
    }
  }

 private:
  /// A lap of the task: from here, or from where `work` says that it counts, to the end.
  template <class Work>
  void timed(const Work& work) {
    ctx_.barrier();
    lap_from_ = ctx_.now();
    const bool meters = ctx_.rank() == 0;
    const std::size_t entries = meters ? all_.runtime_->host_trace().size() : 0;
    const MachineWork before = meters ? all_.meter_->work(ctx_.now()) : MachineWork();
    work();
    ctx_.barrier();
    if (!meters) return;
    all_.laps_.push_back(all_.since(entries, before, ctx_.now() - lap_from_));
  }

  /// Of all layers: some are simulated, and the last of them stands for the rest.
  template <class Layer>
  void layers(const Layer& layer) {
    const auto simulated = static_cast<std::size_t>(std::min(kSimulatedLayers, all_.layers_));
    for (std::size_t made = 0; made < simulated; ++made) timed([&] { layer(made); });
    if (ctx_.rank() != 0) return;
    const Cost last = all_.laps_.back();
    all_.laps_.insert(all_.laps_.end(), static_cast<std::size_t>(all_.layers_) - simulated, last);
  }

  /// What parts are measured on.
  tp::Transformer& model() {
    if (model_) return *model_;
    // Parts go by the tokens of a step, whose positions no table has to hold but that of rotary embeddings.
    std::int64_t positions = all_.range_.positions + all_.range_.tokens;
    if (all_.model_.position == tp::PositionKind::learned) positions = std::min(positions, all_.model_.positions);
    tp::TransformerOptions options = all_.options_;
    options.last_logits = false;
    model_.emplace(state_, all_.model_, std::min(kSimulatedLayers, all_.layers_), 1, positions, options);
    return *model_;
  }

  /// A layer's input, as the one before leaves it: else layers would not be alike.
  Tensor input(const tp::TransformerTensors& tensors) const {
    const Tensor& result = tensors.layers.front().output();
    return ctx_.empty(result.shape(), all_.options_.dtype, result.policy(), "input");
  }

  void rows(const Part& part) {
    if (stage_ > 0) return part.kind == Part::Kind::dense ? layers([](std::size_t) {}) : timed([] {});
    const bool logits = part.kind == Part::Kind::logits;
    const tp::TransformerTensors tensors = model().place(part.size, logits);
    model().prepare(tensors);
    const Tensor x = input(tensors);
    if (logits) {
      timed([&] { model().logits(x, tensors); });
    } else if (part.kind == Part::Kind::embedding) {
      model().truncate(0);
      timed([&] { model().embed(tokens(part.size), tensors); });
    } else {
      layers(
          [&](std::size_t layer) { model().dense(layer, layer == 0 ? x : tensors.layers.front().output(), tensors); });
    }
  }

  void attention(std::int64_t batch, std::int64_t length, std::int64_t past) {
    if (stage_ > 0) return layers([](std::size_t) {});
    const tp::SelfAttention& attention = model().attention(0);
    tp::KvCache cache = attention.cache(batch, past + length);
    const tp::AttentionTensors tensors = attention.place(cache, length);
    const Tensor element = ctx_.empty({1, 1}, all_.options_.dtype, {}, "element");
    layers([&](std::size_t) {
      cache.truncate(0);
      cache.append(past);
      tp::Pass pass(state_);
      const Handle ahead = pass.add(tp::add(ctx_, "ahead", element, element));
      attention.core(tensors.qkv.output, cache, model().rotary(), tensors);
      pass.end();
      lap_from_ = ahead.completed();  // in a layer its launches follow others, and come to the machine meanwhile
    });
  }

  void send(std::int64_t rows) {
    const Tensor x = stage_ <= 1 ? input(model().place(rows)) : Tensor();
    const Group& stages = state_.pipeline_model_parallel_group();
    const auto go = [&] {
      if (stage_ == 0) ctx_.send(x, 1, stages);
      if (stage_ == 1) ctx_.recv(x, 0, stages);
    };
    go();  // installs the queues
    timed(go);
  }

  std::vector<std::int64_t> tokens(std::int64_t count) const {
    std::vector<std::int64_t> tokens;
    std::uint64_t random = splitmix64(all_.seed_ + 7);
    for (std::int64_t i = 0; i < count; ++i) {
      random = splitmix64(random);
      tokens.push_back(static_cast<std::int64_t>(random % static_cast<std::uint64_t>(all_.model_.vocabulary)));
    }
    return tokens;
  }

  void whole(const Step& step) {
    const bool ends = all_.options_.ends;
    if (stage_ > 0) {
      if (ends) timed([] {});
      layers([](std::size_t) {});
      if (ends) timed([] {});
      return;
    }
    const bool prompt = !step.prompts.empty();
    const std::int64_t batch = prompt ? 1 : step.batch, length = prompt ? step.prompts.front().tokens : 1,
                       past = prompt ? step.prompts.front().past : static_cast<std::int64_t>(step.fullest);
    model_.reset();  // its weights and caches: both need not fit
    tp::Transformer model(state_, all_.model_, std::min(kSimulatedLayers, all_.layers_), batch, past + length,
                          all_.options_);
    const tp::TransformerTensors tensors = model.place(length);
    model.skip(past);
    model.prepare(tensors);
    Tensor x;
    if (ends) {
      timed([&] { x = model.embed(tokens(batch * length), tensors); });
    } else {
      x = input(tensors);
    }
    layers([&](std::size_t layer) { x = model.layer(layer, x, tensors); });
    if (ends) timed([&] { model.logits(x, tensors); });
  }

  MachineSteps& all_;
  Context& ctx_;
  const tp::ParallelState state_;
  const int stage_;
  Ps lap_from_ = 0;
  std::optional<tp::Transformer> model_;
};

MachineSteps::MachineSteps(tp::Model model, tp::TransformerOptions options, std::int64_t layers, std::int64_t ranks,
                           const StepRange& range, std::uint64_t seed)
    : model_(std::move(model)),
      options_(std::move(options)),
      layers_(layers),
      ranks_(ranks),
      range_(range),
      seed_(seed) {}

void MachineSteps::run(Context& ctx, const Runtime& runtime, const Meter& meter, const std::function<void()>& body) {
  Rank rank(*this, ctx);
  if (ctx.rank() != 0) {
    for (ctx.barrier(); !task_.ends; ctx.barrier()) rank.work();
    return;
  }
  first_ = &rank;
  runtime_ = &runtime;
  meter_ = &meter;
  body();
  task_.ends = true;
  ctx.barrier();
}

Cost MachineSteps::since(std::size_t entries, const MachineWork& before, Ps time) const {
  Cost cost;
  const std::vector<HostTraceEntry>& trace = runtime_->host_trace();
  const auto ranks = static_cast<double>(ranks_);
  for (std::size_t i = entries; i < trace.size(); ++i) {
    if (trace[i].kind != "launch") continue;
    cost.flops += trace[i].bound.flops / ranks;
    cost.bytes += trace[i].bound.bytes / ranks;
  }
  cost.time = static_cast<double>(time);
  MachineWork done = meter_->work(before.time + time);
  done.add(before, -1);
  done.time = time;
  cost.pj = done.pj - done.standing_pj;
  cost.busy = done.shares(meter_->most);
  for (double& part : cost.busy) part *= cost.time;
  return cost;
}

Cost MachineSteps::part(const Part& part) {
  task_.part = part;
  return simulate();
}

Cost MachineSteps::whole(const Step& step) {
  task_.part.reset();
  task_.step = step;
  return simulate();
}

/// Of all layers.
Cost MachineSteps::simulate() {
  laps_.clear();
  first_->start();
  first_->work();
  Cost sum;
  for (const Cost& lap : laps_) sum += lap;
  return sum;
}

}  // namespace kernbench::serve
