#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "runtime/pipeline/export.h"
#include "runtime/pipeline/run/run.h"
#include "runtime/pipeline/run/slices.h"
#include "tests/pipeline/host_run.h"
#include "tests/runtime/machine_run.h"
#include "tests/support/test_folder.h"

namespace kernbench::pipeline {
namespace {

namespace fs = std::filesystem;
const fs::path kSource = KERNBENCH_SOURCE_DIR;

/// A good document and the folder that its weights are in.
struct Seed {
  std::string name, text, folder;
};

/// Documents of the examples and of tests, and small exported ones.
class Seeds {
 public:
  Seeds() {
    const fs::path examples = kSource / "docs" / "examples" / "pipeline";
    for (const fs::path& where : {examples, examples / "kinds"}) {
      for (const fs::directory_entry& entry : fs::directory_iterator(where)) {
        const std::string extension = entry.path().extension().string();
        if (extension == ".yaml" || extension == ".json")
          seeds_.push_back({entry.path().filename().string(), read(entry.path()), where.string()});
      }
    }
    std::sort(seeds_.begin(), seeds_.end(), [](const Seed& a, const Seed& b) { return a.name < b.name; });
    std::map<std::string, HostTensor> weights;
    weights["w"] = {{16, 8}, DType::f16, std::vector<std::uint8_t>(256)};
    for (std::size_t i = 0; i < 128; ++i)
      store_element(weights["w"].bytes.data(), DType::f16, i, static_cast<double>(i * 37 % 23) / 16 - 0.7);
    std::ofstream(folder_.file("w.safetensors"), std::ios::binary) << to_safetensors(weights);
    for (const char* name : {"good.yaml", "integers.yaml"})
      seeds_.push_back({name, read(kSource / "tests" / "pipeline" / name), folder_.path().string()});
    const WeightElement element = [](std::int64_t row, std::int64_t col) {
      return static_cast<double>((row * 7 + col * 13) % 17 - 8) / 32;
    };
    MlpExport mlp;
    mlp.batch = 2;
    mlp.in = mlp.hidden = mlp.out = 8;
    mlp.tp = 2;
    mlp.weights_file = "mlp.safetensors";
    mlp.up = mlp.down = mlp.up_bias = mlp.down_bias = element;
    add("mlp", export_mlp(mlp));
    TransformerExport layer;
    layer.name = "m";
    layer.layers = 1;
    layer.activation = Activation::silu;
    layer.length = 3;
    layer.width = 8;
    layer.heads = layer.kv_heads = 2;
    layer.head_dim = 4;
    layer.mlp_width = 8;
    layer.gated = true;
    layer.rope_theta = 100;
    layer.tp = 2;
    layer.weights_file = "layer.safetensors";
    layer.weights = [element](const std::string&) { return element; };
    add("layer", export_transformer(layer));
  }
  const std::vector<Seed>& all() const { return seeds_; }

 private:
  void add(const std::string& name, const Exported& exported) {
    std::ofstream(folder_.file(name + ".safetensors"), std::ios::binary) << to_safetensors(exported.weights);
    seeds_.push_back({name + ".json", exported.document, folder_.path().string()});
  }
  std::vector<Seed> seeds_;
  TestFolder folder_;
};

/// Edits of one to three places: characters as a slip of a hand leaves them, and words that stand where other words of
/// the document may, so that many mutants are documents still.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string mutant(std::string text) {
    const std::size_t edits = below(3) == 0 ? 1 + below(3) : 1;
    for (std::size_t i = 0; i < edits && text.size() > 1; ++i) edit(text);
    return text;
  }

 private:
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

  struct Word {
    std::size_t at, length;
  };
  static std::vector<Word> words(const std::string& text) {
    std::vector<Word> found;
    const auto part = [&](std::size_t i) {
      return std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_' || text[i] == '.';
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (!part(i)) continue;
      const std::size_t begin = i;
      while (i < text.size() && part(i)) ++i;
      found.push_back({begin, i - begin});
    }
    return found;
  }

  /// The document may stay consistent.
  static void everywhere(std::string& text, const std::string& old, const std::string& made) {
    std::vector<Word> found = words(text);
    std::reverse(found.begin(), found.end());
    for (const Word& word : found) {
      if (text.compare(word.at, word.length, old) == 0) text.replace(word.at, word.length, made);
    }
  }

  void edit(std::string& text) {
    const std::size_t at = below(text.size()), from = below(text.size()), length = 1 + below(12);
    switch (below(10)) {
      case 0:
        text.erase(at, length);
        return;
      case 1:
        text.insert(at, text.substr(from, length));
        return;
      case 2:
        text[at] = "0123456789[]{}:,-x'\"\n #&*!|>%@`\x01\xc3"[below(33)];
        return;
      case 3: {  // a line more, or one elsewhere
        const std::size_t a = text.find('\n', at), b = text.find('\n', from);
        if (a == std::string::npos || b == std::string::npos) return;
        const std::string line = text.substr(a, text.find('\n', a + 1) - a);
        if (below(2) == 0) text.erase(a, line.size());
        text.insert(std::min(b, text.size()), line);
        return;
      }
      case 4: {  // two lines change places: supertasks, tensors, fields of the same level
        const std::size_t a = text.find('\n', at);
        const std::size_t b = a == std::string::npos ? a : text.find('\n', a + 1);
        const std::size_t c = b == std::string::npos ? b : text.find('\n', b + 1);
        if (c == std::string::npos) return;
        const std::string first = text.substr(a, b - a), second = text.substr(b, c - b);
        text.replace(a, c - a, second + first);
        return;
      }
      case 5: {  // a word of one of these sorts for another
        static const std::vector<std::vector<std::string>> kSorts = {
            {"sum", "avg", "max", "min"},
            {"add", "sub", "mul", "div"},
            {"relu", "gelu", "silu", "tanh", "sigmoid", "neg", "exp", "sqrt", "rsqrt"},
            {"amax", "sum", "mean"},
            {"f32", "f16", "bf16", "f64", "f8", "i64", "i32", "i16", "i8", "bool"},
            {"reduce", "all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "send", "recv"},
            {"npu", "cpu"},
            {"mm", "matmul", "linear"}};
        std::vector<std::pair<Word, const std::vector<std::string>*>> fit;
        for (const Word& word : words(text)) {
          const std::string is = text.substr(word.at, word.length);
          for (const auto& sort : kSorts) {
            if (std::find(sort.begin(), sort.end(), is) != sort.end()) fit.emplace_back(word, &sort);
          }
        }
        if (fit.empty()) return;
        const auto& [word, sort] = fit[below(fit.size())];
        const std::string old = text.substr(word.at, word.length), made = (*sort)[below(sort->size())];
        if (below(2) == 0) {
          text.replace(word.at, word.length, made);
        } else {
          everywhere(text, old, made);
        }
        return;
      }
      default:
        break;
    }
    const std::vector<Word> found = words(text);
    if (found.empty()) return;
    const Word word = found[below(found.size())], other = found[below(found.size())];
    const std::string old = text.substr(word.at, word.length);
    std::string made = text.substr(other.at, other.length);
    const bool number = std::all_of(old.begin(), old.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (number && below(2) == 0 && old.size() < 10) {
      static const std::int64_t kValues[] = {0, 1, 2, 3, 4, 8, -1, 1LL << 31, 1LL << 62};
      const std::int64_t value = std::stoll(old);
      made = std::to_string(below(2) == 0 ? value + (below(2) == 0 ? 1 : -1) : kValues[below(9)]);
    } else if (below(3) != 0) {  // a word of the same sort
      for (const Word& candidate : found) {
        if (candidate.at <= from || candidate.length == 0) continue;
        const std::string text_of_it = text.substr(candidate.at, candidate.length);
        if (text_of_it != old && text_of_it.front() == old.front()) {
          made = text_of_it;
          break;
        }
      }
    }
    if (below(4) != 0) {
      text.replace(word.at, word.length, made);
      return;
    }
    everywhere(text, old, made);
  }

  std::mt19937_64 random_;
};

/// What the signal handler says if a mutant is the end of the process, or takes longer than 10 s.
volatile std::uint64_t now_checking = 0;
void say_which(int signal) {
  char text[96];
  const int length = std::snprintf(text, sizeof text, "mutant %llu: signal %d\n",
                                   static_cast<unsigned long long>(now_checking), signal);
  if (::write(2, text, static_cast<std::size_t>(length)) < 0) ::_exit(125);
  ::_exit(126);
}

struct Accepted {
  Pipeline pipeline;
  Checked checked;
};

/// The document, if the checker has nothing against it; otherwise it has said something.
std::unique_ptr<Accepted> check_mutant(const Seed& seed, const std::string& text, std::string& said) {
  auto made = std::make_unique<Accepted>();
  Problems problems, warnings;
  try {
    made->pipeline = read_pipeline(parse_config(text, "mutant", &problems), {}, problems);
    made->checked = check_pipeline(made->pipeline, {seed.folder, 2, 2, 2}, problems, warnings);
    said = problems.str();
  } catch (const ConfigError& error) {
    said = error.what();
  }
  return said.empty() ? std::move(made) : nullptr;
}

/// How a run of an accepted document may end.
enum End : int { same = 0, wrong = 1, refused = 2, other = 3 };

double tolerance_of(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 ? 1e-4 : dtype == DType::f16 ? 2e-2 : 0.3;
}

/// Every output against the host's: within what roundings on the way may leave, of the size of its largest element.
bool agrees(const HostTensor& got, const HostTensor& want) {
  if (got.shape != want.shape || got.dtype != want.dtype) return false;
  double most = 1e-3;
  const auto count = static_cast<std::size_t>(want.count());
  for (std::size_t i = 0; i < count && is_float(want.dtype); ++i) {
    const double value = std::abs(load_element(want.bytes.data(), want.dtype, i));
    if (std::isfinite(value)) most = std::max(most, value);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_float(want.dtype)) {
      if (load_integer(got.bytes.data(), got.dtype, i) != load_integer(want.bytes.data(), got.dtype, i)) return false;
      continue;
    }
    const double a = load_element(got.bytes.data(), got.dtype, i), b = load_element(want.bytes.data(), got.dtype, i);
    if (a == b || !std::isfinite(b)) continue;  // beyond the type's range either may be infinite first
    if (!(std::abs(a - b) <= tolerance_of(want.dtype) * most)) return false;
  }
  return true;
}

/// Floats in [-1, 1]. Integers of the whole range of their type, whose last bits no double holds; those called ids are
/// rows of a table.
HostTensor values_of(const WholeTensor& whole) {
  HostTensor tensor;
  tensor.dtype = whole.dtype.value;
  for (const std::uint64_t size : whole.shape.value) tensor.shape.push_back(static_cast<std::int64_t>(size));
  const auto count = static_cast<std::size_t>(tensor.count());
  tensor.bytes.assign(count * size_of(tensor.dtype), 0);
  for (std::size_t i = 0; i < count; ++i) {
    if (is_float(tensor.dtype)) {
      store_element(tensor.bytes.data(), tensor.dtype, i, static_cast<double>(i * 7919 % 61) / 30 - 1);
    } else {
      const std::uint64_t any = (i + 1) * 0x9E3779B97F4A7C15U;
      store_integer(tensor.bytes.data(), tensor.dtype, i, static_cast<std::int64_t>(whole.name == "ids" ? i % 4 : any));
    }
  }
  return tensor;
}

/// What the host computes, by tensor; or, where an index is beyond its table, what it says.
std::map<std::string, HostTensor> expected_of(const Seed& seed, Accepted& made, const HostTensors& inputs,
                                              std::string& refusal) {
  try {
    return run_on_host(made.pipeline, made.checked, inputs, seed.folder);
  } catch (const std::invalid_argument& error) {
    refusal = error.what();
    return {};
  }
}

End run_mutant(const Seed& seed, Accepted& made) {
  HostTensors wholes;
  for (const WholeTensor& whole : made.pipeline.metadata.tensors.inputs) wholes[whole.name] = values_of(whole);
  std::string refusal;
  try {
    RunSettings settings;
    settings.warmup = 0;
    settings.inputs = cut_inputs(made.pipeline, wholes);
    settings.group.install_at_once = false;
    PlanOptions plan;
    plan.folder = seed.folder;
    const auto expected = expected_of(seed, made, settings.inputs, refusal);
    testing::MachineRun machine(testing::machine_of(2, 2, 2));
    machine.runtime.init_process_group(settings.group);
    PipelineRun run(made.pipeline, made.checked, make_slot_plans(made.pipeline, made.checked, plan), settings, 2);
    machine.runtime.spawn([&run](Context& context) { run.rank_program(context); }, std::tuple<>(), run.ranks());
    if (!refusal.empty()) return wrong;
    for (const TensorSlice& slice : made.pipeline.metadata.slices.outputs) {
      if (!agrees(run.outcome().outputs.at(slice.name), expected.at(slice.name))) return wrong;
    }
    return same;
  } catch (const ConfigError&) {
    return refused;
  } catch (const std::exception& error) {
    const std::string same_end = "is outside of the table's";
    if (refusal.find(same_end) != std::string::npos && std::string(error.what()).find(same_end) != std::string::npos)
      return same;
    std::fprintf(stderr, "%s\n", error.what());
    return other;
  }
}

bool small(const Pipeline& pipeline) {
  const auto count = [](const std::vector<std::uint64_t>& shape) {
    double all = 1;
    for (const std::uint64_t size : shape) all *= static_cast<double>(size);
    return all;
  };
  constexpr double kMost = 1 << 16;
  return std::all_of(pipeline.tensors.begin(), pipeline.tensors.end(),
                     [&](const TensorInfo& tensor) { return count(tensor.shape.value) <= kMost; }) &&
         std::all_of(pipeline.metadata.tensors.inputs.begin(), pipeline.metadata.tensors.inputs.end(),
                     [&](const WholeTensor& whole) { return count(whole.shape.value) <= kMost; });
}

/// The exit status of a child that runs it: machines are simulated once a process.
int run_in_child(const Seed& seed, Accepted& made) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(run_mutant(seed, made));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

int number_from(const char* variable, int otherwise) {
  const char* given = std::getenv(variable);
  return given != nullptr ? std::atoi(given) : otherwise;
}

/// What the next tests look with: an element in a hundred that is off by more than roundings, another shape.
TEST(PipelineMutants, AResultThatIsWrongAnywhereDoesNotAgree) {
  HostTensor want{{10, 10}, DType::f16, std::vector<std::uint8_t>(200)};
  for (std::size_t i = 0; i < 100; ++i) store_element(want.bytes.data(), DType::f16, i, static_cast<double>(i) / 100);
  HostTensor got = want;
  store_element(got.bytes.data(), DType::f16, 57, 0.575);
  EXPECT_TRUE(agrees(got, want));
  store_element(got.bytes.data(), DType::f16, 57, 0.6);
  EXPECT_FALSE(agrees(got, want));
  got = want;
  got.shape = {5, 20};
  EXPECT_FALSE(agrees(got, want));
}

TEST(PipelineMutants, DocumentsAsTheyAreRunToTheResultOfTheHost) {
  const Seeds seeds;
  EXPECT_GE(seeds.all().size(), 15U);
  for (const Seed& seed : seeds.all()) {
    std::string said;
    const auto made = check_mutant(seed, seed.text, said);
    ASSERT_NE(made, nullptr) << seed.name << ": " << said;
    EXPECT_EQ(run_in_child(seed, *made), 0) << seed.name;
  }
}

/// KERNBENCH_PIPELINE_MUTANTS documents are checked in this process (100000 are a long run), of the accepted ones
/// KERNBENCH_PIPELINE_RUNS are run and held against the host.
TEST(PipelineMutants, AreRefusedWithATextOrRunToTheResultOfTheHost) {
  const Seeds seeds;
  const int mutants = number_from("KERNBENCH_PIPELINE_MUTANTS", 2000),
            runs = number_from("KERNBENCH_PIPELINE_RUNS", 40);
  const int first = number_from("KERNBENCH_PIPELINE_FIRST", 0);
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGALRM}) ::signal(signal, say_which);
  int accepted = 0, run = 0, same_results = 0;
  std::string text, said;
  for (int i = first; i < first + mutants; ++i) {
    now_checking = static_cast<std::uint64_t>(i);
    const Seed& seed = seeds.all()[static_cast<std::size_t>(i) % seeds.all().size()];
    text = Mutator(static_cast<std::uint64_t>(i)).mutant(seed.text);
    ::alarm(10);
    auto made = check_mutant(seed, text, said);
    ::alarm(0);
    if (made == nullptr) continue;
    ++accepted;
    // Runs are dealt over all mutants: one in ten is accepted at least.
    if (text == seed.text || !small(made->pipeline) || run >= std::int64_t{runs} * (i - first + 1) / mutants + 1)
      continue;
    ++run;
    const int status = run_in_child(seed, *made);
    const bool ended = WIFEXITED(status) && (WEXITSTATUS(status) == same || WEXITSTATUS(status) == refused);
    same_results += WIFEXITED(status) && WEXITSTATUS(status) == same ? 1 : 0;
    EXPECT_TRUE(ended) << "mutant " << i << " of " << seed.name << ", status " << status << ":\n" << text;
  }
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGALRM}) ::signal(signal, SIG_DFL);
  RecordProperty("accepted", accepted);
  RecordProperty("same", same_results);
  std::printf("%d mutants: %d accepted, %d run, %d of them to the host's result\n", mutants, accepted, run,
              same_results);
  EXPECT_GT(accepted, mutants / 20);
  EXPECT_LT(accepted, mutants / 2);
  EXPECT_GT(same_results, run / 2);
}

}  // namespace
}  // namespace kernbench::pipeline
