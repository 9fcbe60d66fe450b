#include "sc_main/workloads/tp_transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sc_main/workloads/given.h"
#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/start_collective.h"
#include "sc_main/workloads/tp_transformer_ranks.h"
#include "tlm/config/units.h"
#include "topology/plan/event_rates.h"

namespace kernbench {

namespace po = boost::program_options;

void TpTransformer::add_options(po::options_description& options) {
  auto add = options.add_options();
  add("model", po::value(&model_)->default_value("llama3-8b"),
      "a preset (kernbench list), a YAML file of that form, or a config.json of Hugging Face (llama, mistral, "
      "mixtral)");
  add("weights", po::value(&weights_),
      "of llama, mistral and mixtral: a safetensors file, an index of several (model.safetensors.index.json), or their "
      "folder; otherwise a pattern");
  add("layers", po::value(&layers_), "layers of it; 0: all (default: 1; with --data off: all)");
  add("batch", po::value(&batch_)->default_value(1),
      "sequences; with --requests: that a replica runs at once, at most");
  add("requests", po::value(&serving_.requests),
      "serve requests, with --data off: a CSV file (TIMESTAMP,ContextTokens,GeneratedTokens or arrival,prompt,output), "
      "or a number of them, of --prompt and --decode tokens, that come by chance");
  add("rate", po::value(&serving_.rate)->default_value(0), "of --requests N: how many come in a second");
  add("lengths", po::value(&serving_.lengths)->default_value(serving_.lengths),
      "of --requests N: fixed (--prompt and --decode), or conversation (as a public trace has them)");
  add("scheduler", po::value(&serving_.scheduler)->default_value(serving_.scheduler),
      "of --requests: prefill_first (whole prompts, before decode) or chunked (parts of prompts beside decode)");
  add("chunk", po::value(&serving_.chunk)->default_value(0), "of --scheduler chunked: tokens of a step, at most");
  add("most-requests", po::value(&serving_.most)->default_value(0), "of a file those that arrive first; 0: all");
  add("prompt", value_if_given(&prompt_, &sizes_given_)->default_value(128),
      "tokens of each that the prefill takes at once; 0: no prefill");
  add("decode", value_if_given(&decode_, &sizes_given_)->default_value(1), "tokens of each that follow one by one");
  add("context", po::value(&context_)->default_value(0), "positions that the KV caches hold before, by a pattern");
  add("tp", po::value(&tp_)->default_value(0),
      "SIPs that share each layer; 0: all that --dp and --pp leave. The others stay idle");
  add("dp", po::value(&dp_)->default_value(1), "groups of SIPs that share the sequences, each with the whole model");
  add("pp", po::value(&pp_)->default_value(1),
      "stages of a pipeline, groups of SIPs that share the layers: rank = tp + TP (dp + DP pp), as Megatron's");
  add("micro-batches", po::value(&micro_)->default_value(0),
      "parts of the sequences of a data-parallel group that go through the stages one behind the other; 0: the least "
      "number from --pp to twice that which divides them, or else the largest below");
  add("ends", po::value(&ends_)->default_value(1),
      "embedding, last norm and output matrix (logits of last tokens), too: 0 or 1");
  add("page", po::value(&page_)->default_value(32), "positions that a KV cache keeps together");
  add("sequence-parallel", po::value(&sequence_)->default_value(0)->implicit_value(1),
      "between attention and MLP each rank has its own rows; the tokens of a step are a multiple of --tp: 0 or 1");
  add("overlap", po::value(&overlap_)->default_value(1),
      "chunks of rows of a row-parallel GEMM, each all-reduced while the next is multiplied; 1: one after the other");
  moe_.add(options);
  common_.add(options, true);
}

void TpTransformer::check_options() const {
  Refusals refusals;
  refusals.from([&] { moe_.check_into(refusals, model_, tp::load_model(model_).mixture()); });
  if (layers_ != kNoLayers) refusals.check_integer("--layers", layers_, 0, 1 << 16);
  refusals.check_integer("--batch", batch_, 1, 1 << 16);
  if (!serving_.asked()) {  // which has limits of its own
    refusals.check_integer("--prompt", prompt_, 0, 1 << 20);
    refusals.check_integer("--decode", decode_, 0, 1 << 20);
  }
  refusals.check_integer("--context", context_, 0, 1 << 24);
  refusals.check_integer("--tp", tp_, 0, 1 << 16);
  refusals.check_integer("--dp", dp_, 1, 1 << 16);
  refusals.check_integer("--pp", pp_, 1, 1 << 16);
  refusals.check_integer("--micro-batches", micro_, 0, 1 << 16);
  if (pp_ == 1 && micro_ > 1) refusals.add("--micro-batches is of the stages of --pp, which is 1");
  if (sequence_ == 1 && dp_ * pp_ > 1) refusals.add("--sequence-parallel goes with neither --dp nor --pp");
  refusals.check_integer("--page", page_, 1, 1 << 16);
  refusals.check_flag("--ends", ends_);
  refusals.check_flag("--sequence-parallel", sequence_);
  refusals.check_integer("--overlap", overlap_, 1, tp::kMostOverlapChunks);
  serving().check_into(refusals);
  if (serving_.asked() && (context_ != 0 || sequence_ == 1 || micro_ != 0))
    refusals.add("--requests goes with none of --context, --sequence-parallel and --micro-batches");
  if (serving_.asked() && common_.passes_given)
    refusals.add("-w and -n are of timed passes, and --requests has none: leave them out");
  if (serving_.asked() && !weights_.empty()) refusals.add("--weights are contents, and --requests computes nothing");
  if (sequence_ == 1 && overlap_ > 1) refusals.add("--overlap is of all-reduces, and --sequence-parallel has none");
  if (!serving_.asked() && prompt_ == 0 && decode_ == 0)
    refusals.add("--prompt and --decode are 0; give one of them a token");
  common_.check_into(refusals);
  refusals.throw_if_any();
}

std::vector<std::string> TpTransformer::files() const {
  std::vector<std::string> files = common_.files();
  const std::vector<tp::ModelPreset>& presets = tp::model_presets();
  if (std::none_of(presets.begin(), presets.end(), [&](const auto& preset) { return preset.name == model_; }))
    files.push_back(model_);
  if (!weights_.empty()) files.push_back(ModelWeightFiles::main_file(weights_));
  if (serving_.is_file()) files.push_back(serving_.requests);
  return files;
}

void TpTransformer::check_reach(const tp::Model& model, std::int64_t positions, Refusals& refusals) const {
  const auto refuse = [&](const char* what, std::int64_t most) {
    refusals.add(fmt::format("--context, --prompt and --decode are {} positions: model '{}' has {} {}: give {} at most",
                             positions, model.name, what, most, most));
  };
  if (model.position == tp::PositionKind::learned && positions > model.positions)
    refuse("a table of learned positions of", model.positions);
  if (model.window > 0 && positions > model.window) refuse("a sliding window of", model.window);
}

/// Uniform values of a scale that keeps activations around 1; norms around 1.
void TpTransformer::check_divides(const tp::Model& model) const {
  Refusals refusals;
  const auto check_shared = [&](const char* what, std::int64_t value) {
    if (value % tp_ == 0) return;
    refusals.add(fmt::format("model '{}', layer0.{} is {}: give a multiple of the {} that --tp makes share it",
                             model.name, what, value, counted(tp_, "SIP")));
  };
  check_shared("attention: heads", model.heads);
  if (model.mixture()) {
    moe_.check_divides(refusals, model, tp_, sequence_ == 1);
  } else {
    check_shared("mlp: mlp_width", model.mlp_width);
  }
  if (model.kv_heads % tp_ != 0 && tp_ % model.kv_heads != 0) {
    refusals.add(fmt::format(
        "model '{}', layer0.attention: kv_heads is {}: give a multiple or a divisor of the {} that --tp makes share it",
        model.name, model.kv_heads, counted(tp_, "SIP")));
  }
  if (serving_.asked() && moe_.ep != 0 && moe_.ep != tp_)
    refusals.add(fmt::format("--ep is {}: --requests deals experts to all of --tp, {}: leave it out", moe_.ep, tp_));
  if (!serving_.asked() && batch_ % (dp_ * std::max<std::int64_t>(micro_, 1)) != 0) {
    refusals.add(fmt::format("--batch is {}: give a multiple of the {} that --dp and --micro-batches make share it",
                             batch_, counted(dp_ * std::max<std::int64_t>(micro_, 1), "part")));
  }
  if (!serving_.asked()) check_reach(model, context_ + prompt_ + decode_, refusals);
  const std::int64_t layers = layers_ <= 0 ? model.layers : layers_;
  if (layers > model.layers)
    refusals.add(fmt::format("--layers is {}; model '{}' has {}", layers, model.name, model.layers));
  if (layers % pp_ != 0) {
    refusals.add(fmt::format("model '{}': {}: give a multiple of the {} that --pp makes share them", model.name,
                             counted(layers, "layer"), counted(pp_, "stage")));
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
  if (!weights_.empty()) {
    if (!session.options().run.data) throw std::invalid_argument("--weights are contents, and --data is off");
    run.files = std::make_shared<ModelWeightFiles>(weights_, run.model, host.layers, ends_ == 1);
    host.weights = [files = run.files, dtype = host.dtype](const std::string& name) {
      return files->weight(name, dtype);
    };
  }
  run.memory.emplace(run.model, session.map(), host.layers / pp_, tp_, batch_ / dp_, context_ + prompt_ + decode_,
                     batch_ / dp_ * std::max<std::int64_t>(prompt_, 1), host.dtype, ends_of_stage());
  // Before anything is made that goes by the number of tokens.
  run.memory->check(fmt::format("model '{}'", run.model.name));
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
  run.pieces = pp_ > 1 ? 1 : host.layers + (ends_ == 1 ? 2 : 0);
  run.outputs.assign(run.tokens.size(), std::vector<std::vector<std::uint8_t>>(static_cast<std::size_t>(tp_)));
  run.moe = moe_run(session);
  run.reads_take_time = session.options().run.timed_host_io;
  run.loads = session.options().run.data || run.reads_take_time;
  return run;
}

std::string TpTransformer::piece_name(std::int64_t piece) const {
  if (ends_ == 1 && piece == 0) return "embedding";
  const std::int64_t layer = piece - ends_;
  return layer < (layers_ == 0 ? tp::load_model(model_).layers : layers_) ? fmt::format("layer{}", layer) : "logits";
}

tp::TransformerOptions TpTransformer::transformer_options() const {
  tp::TransformerOptions options;
  options.dtype = common_.type();
  options.page = page_;
  options.placement = common_.placement();
  options.ends = ends_ == 1;
  options.last_logits = true;
  options.sequence_parallel = sequence_ == 1;
  options.overlap_chunks = overlap_;
  return options;
}

/// Without values nothing routes: what is assumed takes the router's place.
tp::MoeRun TpTransformer::moe_run(const Session& session) const {
  const bool data = session.options().run.data;
  if (moe_.skew && data)
    throw std::invalid_argument("--expert-skew takes the place of values that --data off leaves out, and --data is on");
  tp::MoeRun run;
  run.capacity_factor = moe_.capacity_factor;
  if (!data) run.assumed = tp::AssumedRouting{moe_.skew, session.options().seed};
  run.log = std::make_shared<tp::MoeLog>();
  return run;
}

serve::ServingOptions TpTransformer::serving() const {
  serve::ServingOptions serving = serving_;
  serving.sizes_given = sizes_given_;
  serving.prompt = prompt_;
  serving.output = decode_;
  serving.batch = batch_;
  serving.replicas = dp_;
  serving.stages = pp_;
  return serving;
}

/// Of a part of a step two layers are asked for, and what one occurrence says is off by less than what lies between
/// parts.
ReplayLong TpTransformer::long_work() const { return serving_.asked() ? ReplayLong{3e6, 1} : ReplayLong(); }

/// Requests instead of passes (docs/serving.md).
Report TpTransformer::serve(Session& session) const {
  if (session.options().run.data)
    throw std::invalid_argument("--requests measures steps and computes nothing: give --data off");
  const tp::Model model = tp::load_model(model_);
  check_divides(model);
  const std::uint64_t seed = session.options().seed;
  const serve::ServingOptions serving = this->serving();
  serve::Requests requests = serving.read(seed);
  const std::int64_t least_rows = serving.chunked() ? serving.chunk : batch_;
  std::int64_t rows = least_rows, reach = 1;
  for (const serve::Request& request : requests.list) {
    if (!serving.chunked()) rows = std::max(rows, request.prompt);
    reach = std::max(reach, request.prompt + request.output);
  }
  const std::int64_t layers = layers_ == 0 ? model.layers : layers_;
  const auto memory_for = [&](std::int64_t tokens, std::int64_t positions) {  // of tables; caches have what is left
    TpMemory made(model, session.map(), layers / pp_, tp_, 0, positions, tokens, common_.type(), ends_of_stage());
    made.terms.back().remedy = serving.chunked() ? "use more SIPs (--tp) or a smaller --chunk"
                                                 : "use more SIPs (--tp) or parts of prompts (--scheduler chunked)";
    return made;
  };
  const TpMemory memory = memory_for(rows, reach);
  const std::string who = fmt::format("model '{}'", model.name);
  memory_for(least_rows, 0).check(who);  // requests that are too long are named
  tp::TransformerOptions options = transformer_options();
  options.moe = moe_run(session);
  options.moe.log.reset();  // it reports steps
  serve::Serving program(session.map(), model, std::move(options), layers, tp_, serving, std::move(requests), seed,
                         memory.need(), memory.have, [&](std::int64_t prompt, const std::string& where) {
                           memory_for(std::max(prompt, least_rows), 0).check(where + who);
                         });
  const ProcessGroupOptions group = common_.group(session);
  const serve::MachineSteps::Meter meter{
      [&session](Ps now) { return MachineWork(now, session.options().energy(now)); },
      topology::most_per_second(*session.options().plan, static_cast<std::uint16_t>(tp_ * pp_))};
  // Replicas are alike: one is simulated.
  session.run(static_cast<int>(tp_ * pp_), [&](Context& ctx) {
    ctx.init_process_group(group);
    program.run(ctx, session.runtime(), meter);
  });
  return program.report();
}

Report TpTransformer::run(Session& session) {
  const std::int64_t sips = session.map().sips;
  if (tp_ == 0) tp_ = std::max<std::int64_t>(sips / (dp_ * pp_), 1);
  if (world() > sips) {
    throw std::invalid_argument(dp_ * pp_ == 1
                                    ? fmt::format("--tp is {}; the machine has {}", tp_, counted(sips, "SIP"))
                                    : fmt::format("--tp {} x --dp {} x --pp {} are {}; the machine has {}", tp_, dp_,
                                                  pp_, counted(world(), "rank"), counted(sips, "SIP")));
  }
  if (micro_ == 0) micro_ = batch_ % dp_ == 0 ? default_micro_batches(batch_ / dp_, pp_) : 1;
  const ProcessGroupOptions group = common_.group(session);
  if (layers_ < 0) layers_ = session.options().run.data ? 1 : 0;
  if (serving_.asked()) return serve(session);
  Case run = make_case(session);
  run.alike = adds_alike(group);
  run.of_phase.resize(run.phases.size());
  run.of_piece.resize(run.phases.size() * static_cast<std::size_t>(run.pieces));
  run.work = [&session](Ps now) { return MachineWork(now, session.options().energy(now)); };
  TpTimes times(run.tokens.size() * static_cast<std::size_t>(run.pieces), common_.warmup, common_.iterations);
  session.run(static_cast<int>(world()), [&](Context& ctx) {
    ctx.init_process_group(group);
    Rank(*this, ctx, run, times).program();
  });
  CollectiveBounds bounds(session.map(), moe_.groups(tp_));
  const std::vector<TpTimes::Row> rows = times.of_layers(session.runtime().host_trace(), bounds);
  return report(session, run, times, rows, common_.checks(session) ? compare(run) : Comparison());
}

std::int64_t default_micro_batches(std::int64_t sequences, std::int64_t stages) {
  const std::int64_t most = std::min(sequences, 2 * stages);
  for (std::int64_t parts = stages; parts <= most; ++parts)
    if (sequences % parts == 0) return parts;
  for (std::int64_t parts = std::min(sequences, stages);; --parts)
    if (sequences % parts == 0) return parts;
}

std::unique_ptr<Workload> make_tp_transformer() { return std::make_unique<TpTransformer>(); }

}  // namespace kernbench
