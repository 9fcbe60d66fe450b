#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include "runtime/tp/transformer.h"
#include "sc_main/check/tp_reference.h"
#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/tp_model.h"
#include "sc_main/workloads/tp_summary.h"
#include "sc_main/workloads/tp_times.h"
#include "sc_main/workloads/workload.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kShownLayers = 8;

/// Prefill, or the decode steps: `steps` passes over `length` tokens of each sequence.
struct TransformerPhase {
  std::string name;
  std::int64_t steps = 0, length = 0;
};

class TpTransformer final : public Workload {
 public:
  std::string name() const override { return "tp_transformer"; }
  std::string help() const override {
    return "layers of a language model, prefill and decode, tensor-parallel, checked";
  }
  std::string example() const override {
    return "kernbench run tp_transformer --model llama3-8b --layers 1 --ends 0 --prompt 0 --context 128 -w 0 --data "
           "off "
           "--fidelity fast";
  }
  void add_options(po::options_description& options) override;
  void check_options() const override;
  std::vector<std::string> files() const override;
  Report run(Session& session) override;

 private:
  /// What all ranks of a run share.
  struct Case {
    tp::Model model;
    HostTransformer host;
    std::vector<TransformerPhase> phases;
    std::vector<std::vector<std::int64_t>> tokens;                ///< of each step of each phase, one after the other
    std::vector<std::vector<std::vector<std::uint8_t>>> outputs;  ///< by step and rank
    std::int64_t pieces = 0;                                      ///< of a step
    std::uint64_t cache_bytes = 0;                                ///< of a rank
    bool loads = true;                                            ///< contents are there, or take time
    std::optional<TpMemory> memory;
  };
  Case make_case(const Session& session) const;
  void check_divides(const tp::Model& model) const;
  HostTransformer::Values input(const Case& run, std::size_t step) const;
  void rank_program(Context& ctx, Case& run, TpTimes& times) const;
  Comparison compare(const Case& run) const;
  Report report(Session& session, const Case& run, const TpTimes& times, const std::vector<TpTimes::Row>& rows,
                const Comparison& comparison) const;
  std::string piece_name(std::int64_t piece) const;

  std::string model_;
  std::int64_t layers_ = -1, batch_ = 1, prompt_ = 128, decode_ = 1, context_ = 0, page_ = 32, tp_ = 0;
  int ends_ = 1, overlap_ = 1, sequence_ = 0;
  TpOptions common_;
};

void TpTransformer::add_options(po::options_description& options) {
  auto add = options.add_options();
  add("model", po::value(&model_)->default_value("llama3-8b"),
      "a preset (kernbench list), a YAML file of that form, or a config.json of Hugging Face (llama, mistral)");
  add("layers", po::value(&layers_), "layers of it; 0: all (default: 1; with --data off: all)");
  add("batch", po::value(&batch_)->default_value(1), "sequences");
  add("prompt", po::value(&prompt_)->default_value(128),
      "tokens of each that the prefill takes at once; 0: no prefill");
  add("decode", po::value(&decode_)->default_value(1), "tokens of each that follow one by one");
  add("context", po::value(&context_)->default_value(0), "positions that the KV caches hold before, by a pattern");
  add("tp", po::value(&tp_)->default_value(0), "SIPs that share each layer; 0: all. The others stay idle");
  add("ends", po::value(&ends_)->default_value(1),
      "embedding, last norm and output matrix (logits of last tokens), too: 0 or 1");
  add("page", po::value(&page_)->default_value(32), "positions that a KV cache keeps together");
  add("sequence-parallel", po::value(&sequence_)->default_value(0)->implicit_value(1),
      "between attention and MLP each rank has its own rows; the tokens of a step are a multiple of --tp: 0 or 1");
  add("overlap", po::value(&overlap_)->default_value(1),
      "chunks of rows of a row-parallel GEMM, each all-reduced while the next is multiplied; 1: one after the other");
  common_.add(options, true);
}

void TpTransformer::check_options() const {
  Refusals refusals;
  refusals.from([this] { tp::load_model(model_); });
  if (layers_ != -1) refusals.check_integer("--layers", layers_, 0, 1 << 16);
  refusals.check_integer("--batch", batch_, 1, 1 << 16);
  refusals.check_integer("--prompt", prompt_, 0, 1 << 20);
  refusals.check_integer("--decode", decode_, 0, 1 << 20);
  refusals.check_integer("--context", context_, 0, 1 << 24);
  refusals.check_integer("--tp", tp_, 0, 1 << 16);
  refusals.check_integer("--page", page_, 1, 1 << 16);
  refusals.check_flag("--ends", ends_);
  refusals.check_flag("--sequence-parallel", sequence_);
  refusals.check_integer("--overlap", overlap_, 1, tp::kMostOverlapChunks);
  if (sequence_ == 1 && overlap_ > 1) refusals.add("--overlap is of all-reduces, and --sequence-parallel has none");
  if (prompt_ == 0 && decode_ == 0) refusals.add("--prompt and --decode are 0; give one of them a token");
  common_.check_into(refusals);
  refusals.throw_if_any();
}

std::vector<std::string> TpTransformer::files() const {
  for (const tp::ModelPreset& preset : tp::model_presets()) {
    if (preset.name == model_) return {};
  }
  return {model_};
}

/// Uniform values of a scale that keeps activations around 1; norms around 1.
void TpTransformer::check_divides(const tp::Model& model) const {
  Refusals refusals;
  for (const auto& [what, value] :
       {std::pair("attention: heads", model.heads), std::pair("mlp: mlp_width", model.mlp_width)}) {
    if (value % tp_ == 0) continue;
    refusals.add(fmt::format("model '{}', layer0.{} is {}: give a multiple of the {} that --tp makes share it",
                             model.name, what, value, counted(tp_, "SIP")));
  }
  if (model.kv_heads % tp_ != 0 && tp_ % model.kv_heads != 0) {
    refusals.add(fmt::format(
        "model '{}', layer0.attention: kv_heads is {}: give a multiple or a divisor of the {} that --tp makes share it",
        model.name, model.kv_heads, counted(tp_, "SIP")));
  }
  for (const auto& [option, tokens] :
       {std::pair("--prompt", prompt_), std::pair("--decode", std::min<std::int64_t>(decode_, 1))}) {
    if (sequence_ == 0 || batch_ * tokens % tp_ == 0) continue;
    refusals.add(fmt::format("a step of {} has {}: with --sequence-parallel give a multiple of --tp, {}", option,
                             counted(batch_ * tokens, "token"), tp_));
  }
  refusals.throw_if_any();
}

TpTransformer::Case TpTransformer::make_case(const Session& session) const {
  Case run;
  run.model = tp::load_model(model_);
  check_divides(run.model);
  const std::uint64_t seed = session.options().seed;
  HostTransformer& host = run.host;
  host.model = run.model;
  host.layers = layers_ == 0 ? run.model.layers : layers_;
  host.dtype = common_.type();
  host.weights = transformer_weights(run.model, common_.type(), seed);
  host.context = context_;
  const auto contents = [&](std::uint64_t stream) -> tp::Transformer::Contents {
    return [=, heads = run.model.kv_heads, context = context_, dtype = host.dtype](
               std::size_t layer, std::int64_t entry, std::int64_t head, std::int64_t position, std::int64_t i) {
      return weight_pattern(seed, stream + 16 * layer, dtype, 1)((entry * heads + head) * context + position, i);
    };
  };
  host.keys = contents(5);
  host.values = contents(6);
  if (prompt_ > 0) run.phases.push_back({"prefill", 1, prompt_});
  if (decode_ > 0) run.phases.push_back({"decode", decode_, 1});
  std::uint64_t random = splitmix64(seed + 7);
  for (const TransformerPhase& phase : run.phases) {
    for (std::int64_t step = 0; step < phase.steps; ++step) {
      std::vector<std::int64_t>& tokens = run.tokens.emplace_back();
      for (std::int64_t i = 0; i < batch_ * phase.length; ++i) {
        random = splitmix64(random);
        tokens.push_back(static_cast<std::int64_t>(random % static_cast<std::uint64_t>(run.model.vocabulary)));
      }
    }
  }
  run.pieces = host.layers + (ends_ == 1 ? 2 : 0);
  run.outputs.assign(run.tokens.size(), std::vector<std::vector<std::uint8_t>>(static_cast<std::size_t>(tp_)));
  run.loads = session.options().run.data || session.options().run.timed_host_io;
  return run;
}

std::string TpTransformer::piece_name(std::int64_t piece) const {
  if (ends_ == 1 && piece == 0) return "embedding";
  const std::int64_t layer = piece - ends_;
  return layer < (layers_ == 0 ? tp::load_model(model_).layers : layers_) ? fmt::format("layer{}", layer) : "logits";
}

/// What the first layer gets where there is no embedding: by the tokens, too.
HostTransformer::Values TpTransformer::input(const Case& run, std::size_t step) const {
  const tp::WeightPattern table = run.host.weights("embedding");
  HostTransformer::Values x;
  for (const std::int64_t token : run.tokens[step]) {
    for (std::int64_t c = 0; c < run.model.width; ++c) x.push_back(table(token, c));
  }
  return x;
}

void TpTransformer::rank_program(Context& ctx, Case& run, TpTimes& times) const {
  using SetUp = TpTimes::SetUp;
  const tp::ParallelState state = tp::initialize_model_parallel(ctx, ctx.world_size());
  tp::TransformerOptions options;
  options.dtype = run.host.dtype;
  options.page = page_;
  options.placement = common_.placement();
  options.ends = ends_ == 1;
  options.last_logits = true;
  options.sequence_parallel = sequence_ == 1;
  options.overlap_chunks = overlap_;
  std::optional<tp::Transformer> model;
  std::vector<tp::TransformerTensors> tensors;  // by phase
  std::vector<Tensor> inputs;                   // by step, where there is no embedding
  times.set_up(ctx, SetUp::mapping, [&] {
    model.emplace(state, run.model, run.host.layers, batch_, context_ + prompt_ + decode_, options);
    for (const TransformerPhase& phase : run.phases) {
      tensors.push_back(model->place(phase.length));
      for (std::int64_t step = 0; !options.ends && step < phase.steps; ++step) {
        inputs.push_back(ctx.empty({batch_ * phase.length / (sequence_ == 1 ? tp_ : 1), run.model.width}, options.dtype,
                                   options.placement.output, "input"));
      }
    }
  });
  times.set_up(ctx, SetUp::loading, [&] {
    const std::int64_t first = ctx.rank() * run.model.kv_heads / tp_;
    const auto of_rank = [&](const tp::Transformer::Contents& contents) -> tp::Transformer::Contents {
      return [&contents, first](std::size_t layer, std::int64_t entry, std::int64_t head, std::int64_t position,
                                std::int64_t i) { return contents(layer, entry, first + head, position, i); };
    };
    if (!run.loads) return model->skip(context_);
    model->load(run.host.weights);
    model->fill(context_, of_rank(run.host.keys), of_rank(run.host.values));
    for (std::size_t step = 0; step < inputs.size(); ++step) {
      std::vector<std::uint8_t> bytes(inputs[step].bytes());
      const HostTransformer::Values values = input(run, step);
      const std::size_t count = bytes.size() / size_of(options.dtype);
      const std::size_t own = sequence_ == 1 ? static_cast<std::size_t>(ctx.rank()) * count : 0;
      for (std::size_t i = 0; i < count; ++i) store_element(bytes.data(), options.dtype, i, values[own + i]);
      inputs[step].write_bytes(bytes);
    }
  });
  times.set_up(ctx, SetUp::queues, [&] {
    for (const tp::TransformerTensors& of_phase : tensors) model->prepare(of_phase);
  });
  if (ctx.rank() == 0) run.cache_bytes = model->cache_bytes();
  const auto layers = static_cast<std::int64_t>(model->layers());
  Tensor x;
  const auto piece = [&](std::size_t number) {
    const auto step = number / static_cast<std::size_t>(run.pieces);
    const std::int64_t at = static_cast<std::int64_t>(number) % run.pieces;
    const tp::TransformerTensors& into = tensors[prompt_ > 0 && step == 0 ? 0 : tensors.size() - 1];
    if (number == 0) model->truncate(context_);
    if (at == 0) x = options.ends ? model->embed(run.tokens[step], into) : inputs[step];
    const std::int64_t layer = at - ends_;
    if (layer >= 0 && layer < layers) x = model->layer(static_cast<std::size_t>(layer), x, into);
    if (layer == layers) x = model->logits(x, into);
  };
  times.run(ctx, piece);
  if (common_.check == 0 || !run.loads) return;
  // A pass more, of which every step's result is read.
  for (std::size_t number = 0; number < run.tokens.size() * static_cast<std::size_t>(run.pieces); ++number) {
    piece(number);
    const std::size_t step = number / static_cast<std::size_t>(run.pieces);
    if ((number + 1) % static_cast<std::size_t>(run.pieces) == 0)
      run.outputs[step][static_cast<std::size_t>(ctx.rank())] = x.bytes_to_host();
  }
}

/// Every rank's results of every step, against the whole sequences on the host.
Comparison TpTransformer::compare(const Case& run) const {
  const std::int64_t length = prompt_ + decode_, width = run.model.width, vocabulary = run.model.vocabulary;
  const auto steps = run.tokens.size();
  // Sequence after sequence: the prompt's tokens, then one of each decode step.
  HostTransformer::Values x;
  std::vector<HostTransformer::Values> of_step;
  for (std::size_t step = 0; step < steps; ++step)
    of_step.push_back(ends_ == 1 ? HostTransformer::Values() : input(run, step));
  std::vector<std::int64_t> tokens;
  for (std::int64_t entry = 0; entry < batch_; ++entry) {
    for (std::size_t step = 0; step < steps; ++step) {
      const auto here = static_cast<std::int64_t>(run.tokens[step].size()) / batch_;
      const auto begin = run.tokens[step].begin() + entry * here;
      tokens.insert(tokens.end(), begin, begin + here);
      if (ends_ == 1) continue;
      const auto row = of_step[step].begin() + entry * here * width;
      x.insert(x.end(), row, row + here * width);
    }
  }
  if (ends_ == 1) x = run.host.embed(tokens, length);
  x = run.host.run(std::move(x), length);
  const std::int64_t columns = ends_ == 1 ? vocabulary : width;
  const std::int64_t own = ends_ == 1 ? run.model.padded_vocabulary(static_cast<int>(tp_)) / tp_ : width;
  Comparison comparison;
  std::int64_t first = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    const auto here = static_cast<std::int64_t>(run.tokens[step].size()) / batch_;
    HostTransformer::Values wanted;
    for (std::int64_t entry = 0; entry < batch_; ++entry) {
      const std::int64_t begin = entry * length + first + (ends_ == 1 ? here - 1 : 0),
                         end = entry * length + first + here;
      wanted.insert(wanted.end(), x.begin() + begin * width, x.begin() + end * width);
    }
    first += here;
    if (ends_ == 1) wanted = run.host.logits(wanted);
    const double tolerance = transformer_tolerance(run.host.dtype, run.host.layers, wanted);
    for (std::int64_t rank = 0; rank < tp_; ++rank) {
      const std::vector<std::uint8_t>& bytes = run.outputs[step][static_cast<std::size_t>(rank)];
      const bool own_rows = ends_ == 0 && sequence_ == 1;
      const std::int64_t rows = static_cast<std::int64_t>(wanted.size()) / columns / (own_rows ? tp_ : 1),
                         left = ends_ == 1 ? rank * own : 0, top = own_rows ? rank * rows : 0;
      if (static_cast<std::int64_t>(bytes.size() / size_of(run.host.dtype)) != rows * own) ++comparison.mismatches;
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t col = 0; col < own; ++col) {
          const std::int64_t column = left + col;  // padding of the vocabulary is zero
          const double want = column < columns ? wanted[static_cast<std::size_t>((top + row) * columns + column)] : 0;
          comparison.add(load_element(bytes.data(), run.host.dtype, static_cast<std::size_t>(row * own + col)), want,
                         tolerance);
        }
      }
      // What every rank has, all have to the bit.
      if (ends_ == 0 && !own_rows && bytes != run.outputs[step].front()) ++comparison.mismatches;
    }
  }
  return comparison;
}

Report TpTransformer::run(Session& session) {
  if (tp_ == 0) tp_ = session.map().sips;
  if (tp_ > session.map().sips) {
    throw std::invalid_argument(fmt::format("--tp is {}; the machine has {}", tp_, counted(session.map().sips, "SIP")));
  }
  const ProcessGroupOptions group = common_.group(session);
  if (layers_ < 0) layers_ = session.options().run.data ? 1 : 0;
  Case run = make_case(session);
  run.memory.emplace(run.model, session.map(), run.host.layers, tp_, batch_, context_ + prompt_ + decode_,
                     batch_ * std::max<std::int64_t>(prompt_, 1), run.host.dtype, ends_ == 1);
  run.memory->check(run.model.name);
  TpTimes times(run.tokens.size() * static_cast<std::size_t>(run.pieces), common_.warmup, common_.iterations);
  session.run(static_cast<int>(tp_), [&](Context& ctx) {
    ctx.init_process_group(group);
    rank_program(ctx, run, times);
  });
  CollectiveBounds bounds(session.map(), static_cast<int>(tp_));
  const std::vector<TpTimes::Row> rows = times.of_layers(session.runtime().host_trace(), bounds);
  return report(session, run, times, rows, common_.checks(session) ? compare(run) : Comparison());
}

Report TpTransformer::report(Session& session, const Case& run, const TpTimes& times,
                             const std::vector<TpTimes::Row>& rows, const Comparison& comparison) const {
  const bool checked = common_.checks(session);
  const std::string check = !checked ? "skipped" : comparison.mismatches == 0 ? "ok" : "wrong";
  Report report;
  report.wrong = checked && comparison.mismatches > 0;
  report.text = fmt::format(
      "# tp_transformer, {}: {} of {}, batch {}, context {}, prompt {}, decode {}, {}, TP {} of {}, all-reduce {}\n"
      "# warm-up {}, iterations {}; times in ns of one step, of rank 0: launch, coll. (exposed) and waiting add up to "
      "time, parts to all; hidden: communication beside launches; kernels: in launches, on the PEs\n"
      "#{:>8} {:>10} {:>7} {:>15} {:>15} {:>14} {:>12} {:>12} {:>15} {:>14} {:>6} {:>8}  {}\n",
      run.model.name, counted(run.host.layers, "layer"), run.model.layers, batch_, context_, prompt_, decode_,
      common_.dtype, tp_, counted(session.map().sips, "SIP"), session.runtime().algorithm(), common_.warmup,
      common_.iterations, "phase", "part", "tokens", "time", "launch", "coll.", "hidden", "waiting", "kernels", "bound",
      "share", "check", "bound by");
  const auto head = [&](const std::string& phase, const std::string& part) {
    Json row;
    row["op"] = "tp_transformer";
    row["phase"] = phase;
    row["layer"] = part;
    row["model"] = run.model.name;
    row["batch"] = batch_;
    row["ranks"] = tp_;
    row["dtype"] = to_string(run.host.dtype);
    return row;
  };
  Json set_up = head("set-up", "set-up");
  times.add_set_up_to(set_up);
  set_up["cache_bytes"] = run.cache_bytes;
  set_up["hbm_need_bytes"] = run.memory->need();
  set_up["hbm_bytes"] = run.memory->have;
  report.results.push_back(std::move(set_up));
  report.text += fmt::format(" {:>8} {:>10} {:>7} {:>15.3f}\n", "set-up", "-", "-", in_ns(times.of_set_up().time));
  std::string details;
  std::size_t first = 0;
  for (const TransformerPhase& phase : run.phases) {
    const int passes = common_.iterations * static_cast<int>(phase.steps);
    TpTimes::Row all;
    const auto add_row = [&](const std::string& part, const TpTimes::Row& row, bool shown) {
      Json json = head(phase.name, part);
      json["tokens"] = batch_ * phase.length;
      json["steps"] = phase.steps;
      json["time_ns"] = static_cast<double>(row.time) / passes / 1e3;
      TpTimes::add_to(row, passes, json);
      json["check"] = check;
      json["mismatches"] = checked ? Json(comparison.mismatches) : Json();
      json["max_abs_err"] = checked ? Json(comparison.max_abs_error) : Json();
      const auto ns = [&](const char* key) { return json[key].get<double>(); };
      if (shown)
        report.text += fmt::format(
            " {:>8} {:>10} {:>7} {:>15.3f} {:>15.3f} {:>14.3f} {:>12.3f} {:>12.3f} {:>15.3f} {:>14.3f} {:>6.3f} {:>8}  "
            "{}\n",
            phase.name, part, batch_ * phase.length, ns("time_ns"), ns("launch_ns"), ns("collective_ns"),
            ns("hidden_ns"), ns("waiting_ns"), ns("kernel_ns"), ns("bound_ns"), ns("bound_share"), check,
            json["bound_binds"].get<std::string>());
      report.results.push_back(std::move(json));
    };
    for (std::int64_t piece = 0; piece < run.pieces; ++piece) {
      TpTimes::Row sum;
      for (std::int64_t step = 0; step < phase.steps; ++step)
        sum += rows[first + static_cast<std::size_t>(step * run.pieces + piece)];
      all += sum;
      // Of many layers, which are alike, the terminal shows the first.
      add_row(piece_name(piece), sum,
              run.host.layers <= kShownLayers || piece <= ends_ || piece >= ends_ + run.host.layers);
    }
    all.join_layers();
    add_row("all", all, true);
    Json& whole = report.results.back();
    whole["tokens_per_s"] = static_cast<double>(batch_ * phase.length) / whole["time_ns"].get<double>() * 1e9;
    details += fmt::format("# {}: {:.0f} tokens per second, {:.3f} us {}\n", phase.name,
                           whole["tokens_per_s"].get<double>(), whole["time_ns"].get<double>() / 1e3,
                           phase.name == "decode" ? "per output token" : "to the first token");
    whole["where"] = where_time_goes(all, passes);
    const auto share = [&](const char* part) {
      return 100 * whole["where"][part].get<double>() / whole["time_ns"].get<double>();
    };
    details += fmt::format(
        "# {}: of the time {:.1f} % compute-bound kernels, {:.1f} % HBM-bound ones, {:.1f} % kernels bound by latency, "
        "{:.1f} % "
        "launching, {:.1f} % exposed communication, {:.1f} % waiting for other ranks\n",
        phase.name, share("compute_ns"), share("hbm_ns"), share("latency_ns"), share("host_ns"), share("exposed_ns"),
        share("waiting_ns"));
    details += TpTimes::kernels_text(whole);
    first += static_cast<std::size_t>(phase.steps * run.pieces);
  }
  report.text += times.set_up_text() + details;
  report.text +=
      fmt::format("# KV caches of a rank: {} B; HBM needed on a SIP: {:.3f} of {:.3f} GB\n", run.cache_bytes,
                  static_cast<double>(run.memory->need()) / 1e9, static_cast<double>(run.memory->have) / 1e9);
  return report;
}

}  // namespace

std::unique_ptr<Workload> make_tp_transformer() { return std::make_unique<TpTransformer>(); }

}  // namespace kernbench
