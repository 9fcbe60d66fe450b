#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "runtime/pipeline/check.h"
#include "runtime/pipeline/export.h"
#include "runtime/pipeline/table.h"
#include "sc_main/cli/tool.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/file_identity.h"
#include "sc_main/run/options.h"
#include "sc_main/run/plan_of.h"
#include "sc_main/run/run.h"
#include "sc_main/run/terminal.h"
#include "sc_main/workloads/tp_model.h"
#include "tlm/config/nearest.h"
#include "topology/plan/plan.h"
#include "topology/show/drawing.h"
#include "topology/spec/resolve.h"
#include "waves/output_file.h"

namespace kernbench {
namespace {

/// The supertasks of each slot, a column a slot, in the order in which they run; members of an exchange stand side by
/// side. Lines: tensors. `format`: svg or dot. REQUIRES: a document without problems.
std::string draw_pipeline(const pipeline::Pipeline& pipeline, const pipeline::Checked& checked,
                          const std::string& format) {
  using pipeline::KindRule;
  constexpr double kColumn = 220, kRow = 70, kWidth = 170, kHeight = 44;
  // Bends of lines, whose middles are off by half as much: into the gaps between columns and between rows.
  constexpr double kAround = -kColumn, kBelow = kRow;
  topology::Drawing drawing(
      "Pipeline " + pipeline.name.value,
      fmt::format("{} slots, {} supertasks", pipeline.devices.size(), pipeline.supertasks.size()));
  const auto column_of = [&](const pipeline::SuperTask& task) {
    // The boundary stands over the middle.
    if (!task.device.given) return (static_cast<double>(pipeline.devices.size()) - 1) / 2;
    return static_cast<double>(pipeline.device(task.device.value) - pipeline.devices.data());
  };
  std::map<const pipeline::SuperTask*, double> row_of;
  std::map<std::string, double> row_of_group;
  double next = 1;
  for (const std::size_t number : checked.order) {
    const pipeline::SuperTask& task = pipeline.supertasks[number];
    if (task.kind.value == pipeline::TaskKind::output) continue;
    const auto found = task.group.given ? row_of_group.find(task.group.value) : row_of_group.end();
    if (found != row_of_group.end()) {
      row_of[&task] = found->second;
      continue;
    }
    // A row further than what feeds it, and than its slot's last one.
    double row = 1;
    for (const auto& [other, at] : row_of) {
      const bool same = other->device.given && task.device.given && other->device.value == task.device.value;
      const bool feeds =
          std::any_of(task.inputs.value.begin(), task.inputs.value.end(), [&other = other](const pipeline::Text& name) {
            return std::any_of(other->outputs.value.begin(), other->outputs.value.end(),
                               [&](const pipeline::Text& made) { return made.value == name.value; });
          });
      if (same || feeds) row = std::max(row, at + 1);
    }
    if (task.group.given) {
      for (const pipeline::SuperTask* member : checked.groups.at(task.group.value)) {
        for (const auto& [other, at] : row_of) {
          if (other->device.given && member->device.given && other->device.value == member->device.value)
            row = std::max(row, at + 1);
        }
      }
      row_of_group[task.group.value] = row;
    }
    row_of[&task] = row;
    next = std::max(next, row + 1);
  }
  for (std::size_t i = 0; i < pipeline.devices.size(); ++i) {
    const pipeline::Device& device = pipeline.devices[i];
    drawing.add(topology::Drawing::Box{"slot " + device.name, device.name,
                                       fmt::format("{} {}", to_string(device.kind.value), device.idx.value), "sip",
                                       static_cast<double>(i) * kColumn, 0, kWidth, kHeight});
  }
  std::set<std::string> named;
  for (const pipeline::SuperTask& task : pipeline.supertasks) {
    const KindRule& rule = rule_of(task.kind.value);
    const double row = row_of.count(&task) > 0 ? row_of[&task] : next;
    const std::string note = task.group.given
                                 ? fmt::format("{}, group {}", to_string(task.kind.value), task.group.value)
                                 : to_string(task.kind.value);
    const char* style = rule.is == KindRule::Class::compute         ? "engine"
                        : rule.is == KindRule::Class::communication ? "ucie"
                                                                    : "outside";
    drawing.add(topology::Drawing::Box{task.name, task.name, note, style, column_of(task) * kColumn, row * kRow, kWidth,
                                       kHeight});
    for (const pipeline::Text& name : task.inputs.value) {
      const auto origin = checked.origins.find(name.value);
      if (origin == checked.origins.end() || origin->second.producer == nullptr) continue;
      const pipeline::SuperTask& producer = *origin->second.producer;
      // Around what stands between them in a column. A tensor has its name once.
      const bool over = column_of(producer) == column_of(task) && row > row_of[&producer] + 1.5;
      drawing.add(topology::Drawing::Line{producer.name,
                                          task.name,
                                          "command",
                                          named.insert(name.value).second ? name.value : "",
                                          over ? kAround : 0,
                                          {},
                                          0.5});
    }
  }
  for (const auto& [group, members] : checked.groups) {
    for (std::size_t i = 1; i < members.size(); ++i) {
      const double step = column_of(*members[i]) - column_of(*members[i - 1]);
      const double below = step > 1.5 ? kBelow : step < -1.5 ? -kBelow : 0;  // under the slots between them
      drawing.add(topology::Drawing::Line{members[i - 1]->name, members[i]->name, "inter_sip", "", below, {}, 0.5});
    }
  }
  drawing.explain("engine", "computes");
  drawing.explain("ucie", "communicates");
  drawing.explain("command", "a tensor");
  drawing.explain("inter_sip", "one exchange");
  return format == "dot" ? drawing.dot() : drawing.svg();
}

constexpr const char* kPipelineUsage =
    R"(Usage: kernbench pipeline check  FILE [OPTIONS]
       kernbench pipeline show   FILE [OPTIONS]
       kernbench pipeline run    FILE [OPTIONS]
       kernbench pipeline export --output FILE.json [OPTIONS]

check    reads and checks a pipeline; says what it is, or every problem in it
show     draws the supertasks of each slot
run      runs it on the modelled machine: 'kernbench run pipeline --file FILE', whose options it takes
export   writes the perceptron of 'kernbench run tp_mlp' as a pipeline, or with --model layers of a language model, as
         'kernbench run tp_transformer --ends 0 --decode 0' has them; the weights beside it as safetensors

)";
constexpr const char* kPipelineExamples = R"(Examples:
  kernbench pipeline export --tp 2 --output mlp.json
  kernbench pipeline check mlp.json
  kernbench pipeline show mlp.json --output mlp.svg
  kernbench pipeline run mlp.json
)";

struct PipelineOptions {
  std::string action, file, f8 = "e4m3", format = "svg", output = "-", dtype = "f16", activation = "gelu";
  MachineOptions machine;
  pipeline::MlpExport mlp;
  std::string model;
  std::int64_t layers = 1, prompt = 16;
  int bias = 1;
  std::uint64_t seed = 1;

  po::options_description describe() {
    po::options_description options("Options of check and show"),
        of_export("Options of export, as of tp_mlp and tp_transformer");
    options.add_options()("f8", po::value(&f8)->value_name("e4m3|e5m2"), "what f8 means (default: e4m3)")(
        "format", po::value(&format)->value_name("svg|dot"), "of the drawing (default: svg)")(
        "output,o", po::value(&output)->value_name("FILE"), "instead of standard output")("help,h", "this text");
    of_export.add_options()("tp", po::value(&mlp.tp)->default_value(1), "SIPs that share a layer")(
        "pp", po::value(&mlp.pp)->default_value(1), "stages that the layers are dealt to, each with SIPs of its own")(
        "batch", po::value(&mlp.batch)->default_value(1), "rows of the input; with --model sequences")(
        "in", po::value(&mlp.in)->default_value(512), "columns of the input")(
        "hidden", po::value(&mlp.hidden)->default_value(2048), "columns between the layers")(
        "out", po::value(&mlp.out)->default_value(512), "columns of the output")(
        "dtype", po::value(&dtype)->default_value("f16"), "f16, bf16, f32 or f64")(
        "activation", po::value(&activation)->default_value("gelu"), "none, relu, gelu, silu, tanh or sigmoid")(
        "bias", po::value(&bias)->default_value(1), "biases in both layers: 0 or 1")(
        "seed", po::value(&seed)->default_value(1), "of the weights")(
        "model", po::value(&model), "layers of this language model: a preset, or a file as tp_transformer takes it")(
        "layers", po::value(&layers)->default_value(1), "of the model")(
        "prompt", po::value(&prompt)->default_value(16), "tokens of each sequence, with nothing before them");
    options.add(of_export).add(machine.describe());
    return options;
  }
};

/// What reading and checking leaves.
struct CheckedDocument {
  pipeline::Pipeline document;
  pipeline::Checked checked;
};

/// Throws ConfigError with every problem. Of a document without any, warnings go to standard error: of another they
/// are mostly what follows from its problems.
void check_document(const PipelineOptions& options, CheckedDocument& made) {
  if (options.f8 != "e4m3" && options.f8 != "e5m2")
    throw UsageError(fmt::format("--f8 is {}", quote(options.f8)), "give e4m3 or e5m2");
  const topology::Resolved resolved = topology::resolve(options.machine.topology, options.machine.sets);
  const topology::Plan plan = plan_of(resolved, options.machine.topology);
  Problems problems, warnings;
  pipeline::ReadOptions read;
  read.f8 = options.f8 == "e5m2" ? DType::f8e5m2 : DType::f8e4m3;
  const ConfigNode root = load_config(options.file, &problems);
  made.document = pipeline::read_pipeline(root, read, problems);
  std::vector<std::string> inputs = resolved.files;
  for (const std::string& weights : pipeline::weight_paths(options.file, made.document)) inputs.push_back(weights);
  refuse_overwriting(inputs, {{"--output", options.output}});
  pipeline::CheckOptions check;
  check.folder = std::filesystem::path(options.file).parent_path().string();
  check.sips = plan.map.sips;
  check.cubes = plan.map.cubes_per_sip();
  check.pes = plan.map.pes_per_cube;
  made.checked = pipeline::check_pipeline(made.document, check, problems, warnings);
  problems.throw_if_any();
  if (!warnings.empty()) say(pipeline::warning_text(warnings) + "\n");
}

std::string describe(const std::string& file, const CheckedDocument& made) {
  std::size_t constants = 0;
  for (const pipeline::TensorInfo& tensor : made.document.tensors) constants += tensor.value ? 1 : 0;
  return fmt::format(
      "{}: ok: pipeline '{}': {} slots, {} supertasks, {} exchanges among them, {} tensors, {} of them constants\n",
      file, made.document.name.value, made.document.devices.size(), made.document.supertasks.size(),
      made.checked.groups.size(), made.document.tensors.size(), constants);
}

/// Scales and streams of the weights are those of tp_mlp.
pipeline::Exported export_perceptron(const PipelineOptions& options, DType dtype, const std::string& weights) {
  pipeline::MlpExport mlp = options.mlp;
  if (options.bias != 0 && options.bias != 1)
    throw UsageError(fmt::format("--bias is {}", options.bias), "give 0 or 1");
  mlp.dtype = dtype;
  mlp.activation = parse_activation("--activation", options.activation);
  mlp.bias = options.bias == 1;
  mlp.up = weight_pattern(options.seed, 1, dtype, 8 / std::sqrt(static_cast<double>(mlp.in)));
  mlp.down = weight_pattern(options.seed, 2, dtype, 4 / std::sqrt(static_cast<double>(mlp.hidden)));
  mlp.up_bias = weight_pattern(options.seed, 3, dtype, 0.5);
  mlp.down_bias = weight_pattern(options.seed, 4, dtype, 0.5);
  mlp.weights_file = weights;
  return pipeline::export_mlp(mlp);
}

/// Weights are those of tp_transformer.
pipeline::Exported export_layers(const PipelineOptions& options, DType dtype, const std::string& weights) {
  const tp::Model model = tp::load_model(options.model);
  if (model.mixture())
    throw UsageError(fmt::format("--model is '{}', whose layers have experts", model.name),
                     "give one without: where tokens go is known only when a pipeline runs");
  if (options.layers > model.layers)
    throw UsageError(fmt::format("--layers is {}", options.layers),
                     fmt::format("model '{}' has {}", model.name, model.layers));
  if (model.window > 0 && options.prompt > model.window)
    throw UsageError(
        fmt::format("--prompt is {}", options.prompt),
        fmt::format("model '{}' has a sliding window of {}, and every token sees all before: give {} at most",
                    model.name, model.window, model.window));
  pipeline::TransformerExport layers{model};
  layers.layers = options.layers;
  layers.batch = options.mlp.batch;
  layers.length = options.prompt;
  layers.dtype = dtype;
  layers.tp = options.mlp.tp;
  layers.pp = options.mlp.pp;
  layers.weights_file = weights;
  layers.weights = transformer_weights(model, dtype, options.seed);
  return pipeline::export_transformer(layers);
}

/// Options of export that belong to a perceptron, or to layers of a language model.
constexpr const char* kOfPerceptron[] = {"in", "hidden", "out", "activation", "bias"};
constexpr const char* kOfLayers[] = {"layers", "prompt"};

void export_pipeline(const PipelineOptions& options, const Parsed& parsed) {
  if (options.output == "-")
    throw UsageError("export without --output", "it writes two files: give the document's name");
  refuse_foreign_text("--output", {options.output});
  const auto dtype = parse_dtype(options.dtype);
  if (!dtype || !is_float(*dtype) || size_of(*dtype) == 1)
    throw UsageError(fmt::format("--dtype is {}", quote(options.dtype)), "give f16, bf16, f32 or f64");
  const bool layers = !options.model.empty();
  for (const char* option : kOfPerceptron) {
    if (layers && !parsed.values(option).empty())
      throw UsageError(fmt::format("--{} together with --model", option), "the model says its sizes");
  }
  for (const char* option : kOfLayers) {
    if (!layers && !parsed.values(option).empty())
      throw UsageError(fmt::format("--{} without --model", option), "it is of layers of a language model");
  }
  std::filesystem::path weights = options.output;
  weights.replace_extension(".safetensors");
  const std::string file = weights.filename().string();
  const pipeline::Exported exported =
      layers ? export_layers(options, *dtype, file) : export_perceptron(options, *dtype, file);
  write_file(weights.string(), pipeline::to_safetensors(exported.weights));
  write_file(options.output, exported.document);
  say(fmt::format("wrote {} and {}\n", options.output, weights.string()));
}

}  // namespace

int pipeline_command(const Arguments& arguments) {
  PipelineOptions options;
  const po::options_description described = options.describe();
  const bool runs = !arguments.empty() && arguments.front() == "run";
  if (arguments.empty())
    throw UsageError("no action given", "kernbench pipeline check|show|run|export; see 'kernbench pipeline --help'");
  if (asks_for_help(arguments) && runs) return run_command({"pipeline", "--help"});
  if (asks_for_help(arguments)) {
    fmt::print("{}{}\n{}", kPipelineUsage, help_of(described), kPipelineExamples);
    return 0;
  }
  if (runs) {
    const bool file = std::any_of(arguments.begin() + 1, arguments.end(),
                                  [](const std::string& word) { return word.rfind("--file", 0) == 0; });
    if (!file && (arguments.size() < 2 || arguments[1].rfind('-', 0) == 0))
      throw UsageError("no file given", "kernbench pipeline run FILE");
    Arguments run{"pipeline"};
    run.insert(run.end(), arguments.begin() + 1, arguments.end());
    if (run.size() > 1 && run[1].rfind('-', 0) != 0) run.insert(run.begin() + 1, "--file");
    return run_command(run);
  }
  po::options_description all;
  all.add(described);
  all.add_options()("action", po::value(&options.action))("pipeline-file", po::value(&options.file));
  const Parsed parsed = parse(arguments, all, {"action", "pipeline-file"});
  const std::vector<std::string> actions{"check", "show", "run", "export"};
  if (std::find(actions.begin(), actions.end(), options.action) == actions.end())
    throw UsageError(fmt::format("unknown action {}", quote(options.action)),
                     suggest(options.action, actions, "actions"));
  for (const char* option : {"tp", "pp", "batch", "in", "hidden", "out", "dtype", "activation", "bias", "seed", "model",
                             "layers", "prompt"}) {
    if (options.action != "export" && !parsed.values(option).empty())
      throw UsageError(fmt::format("--{} together with '{}'", option, options.action),
                       "it belongs to 'kernbench pipeline export'");
  }
  if (options.action == "export") {
    if (!options.file.empty())
      throw UsageError(fmt::format("export reads no file, but {} is given", quote(options.file)), "give --output FILE");
    export_pipeline(options, parsed);
    return 0;
  }
  if (options.file.empty())
    throw UsageError("no file given", fmt::format("kernbench pipeline {} FILE", options.action));
  if (options.format != "svg" && options.format != "dot")
    throw UsageError(fmt::format("--format is {}", quote(options.format)), "give svg or dot");
  refuse_same_files({{"the document", options.file}, {"--output", options.output}});
  CheckedDocument made;
  check_document(options, made);
  const std::string text = options.action == "check" ? describe(options.file, made)
                                                     : draw_pipeline(made.document, made.checked, options.format);
  show_or_write(text, options.action != "check", options.output);
  return 0;
}

}  // namespace kernbench
