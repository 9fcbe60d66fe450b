#include "tests/mutate/cases.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>

#include "tests/mutate/edges.h"

namespace kernbench::mutate {
namespace {
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

/// Nothing takes long: what a wrong value makes slow ends with exit code 4.
const Words kBounds = {"--max-sim-time", "1 ms", "--watchdog", "10", "--no-progress"};

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Words small_run(const std::string& workload) {
  return Words{"run", workload, "--topology", "minimal", "--set", "system.sips.count=2", "-b", "1K", "-e", "1K"} +
         kBounds;
}

/// A file of which mutated copies are read. Its words may name files beside it: `companions`.
class FileKind final : public Kind {
 public:
  struct Parts {
    std::string name, file;          ///< `file`: how a copy is called
    std::vector<std::string> texts;  ///< right ones
    Words words;                     ///< of the tool; `{}` stands for the copy's path, `{folder}` for its folder
    bool binary = false;
    std::map<std::string, std::string> companions{};
    Words then{};
    Case::Says says = Case::Says::place;
    bool checked = false;
  };
  explicit FileKind(Parts parts) : parts_(std::move(parts)) {
    for (const std::string& text : parts_.texts) {
      const Words found = parts_.binary ? Words() : words_of(text);
      words_.insert(words_.end(), found.begin(), found.end());
    }
  }
  std::string name() const override { return parts_.name; }
  Case make(std::size_t number, const fs::path& folder, Random& random) override {
    // The right ones come first, so that a wrong way of calling the tool is seen.
    const std::string text = number < parts_.texts.size()
                                 ? parts_.texts[number]
                                 : mutated(random.of(parts_.texts), words_, parts_.binary, random);
    const fs::path file = folder / parts_.file;
    write(file, text);
    for (const auto& [name, content] : parts_.companions) write(folder / name, content);
    const auto filled = [&](Words words) {
      for (std::string& word : words) {
        word = std::regex_replace(word, std::regex("\\{\\}"), file.string());
        word = std::regex_replace(word, std::regex("\\{folder\\}"), folder.string());
      }
      return words;
    };
    Case made;
    made.words = filled(parts_.words);
    made.says = parts_.binary ? Case::Says::file : parts_.says;  // bytes have no lines
    made.file = parts_.file.substr(0, parts_.file.find('.'));
    made.reference = parts_.name == "reference";
    made.checked = parts_.checked;
    made.then = filled(parts_.then);
    return made;
  }

 private:
  Parts parts_;
  Words words_;
};

/// Command lines: right options with values of others, extreme ones and none.
class OptionsKind final : public Kind {
 public:
  std::string name() const override { return "options"; }
  Case make(std::size_t, const fs::path&, Random& random) override {
    static const Words kWorkloads = {"gemm_single_pe", "gemm",        "stream", "p2p",    "link",
                                     "probe",          "noc_traffic", "qkv",    "tp_mlp", "all_to_all"};
    static const std::vector<Words> kPairs = {{"-b", "1K"},
                                              {"-e", "4K"},
                                              {"-f", "4"},
                                              {"--dtype", "f32"},
                                              {"--op", "max"},
                                              {"--scope", "cube"},
                                              {"--placement", "cube=row_wise,pe=replicate"},
                                              {"--algorithm", "ring"},
                                              {"--fidelity", "noc=fast"},
                                              {"--data", "off"},
                                              {"--scheduling", "rounds"},
                                              {"--host-io", "timed"},
                                              {"--seed", "7"},
                                              {"-n", "2"},
                                              {"-w", "0"},
                                              {"--in-place", "0"},
                                              {"--explain"},
                                              {"--group", "0,1"},
                                              {"--set", "pe.ipcq.slots=8"},
                                              {"--set", "system.sips.count=2"},
                                              {"--check", "0"},
                                              {"--debug"},
                                              {"--replay", "off"},
                                              {"--color", "never"},
                                              {"--out-placement", "cube=column_wise,pe=column_wise"},
                                              {"--wave-filter", "sip0.**"},
                                              {"--stats-slices", "4"},
                                              {"--stats-detail"},
                                              {"--max-sim-time", "1 us"},
                                              {"--root", "1"},
                                              {"--m", "8"},
                                              {"--bytes", "64"},
                                              {"--load", "0.1"}};
    Words words{"run", random.one_in(4) ? random.of(kWorkloads) : "all_reduce", "--topology", "minimal"};
    for (std::size_t left = 1 + random.below(4); left > 0; --left) {
      Words pair = random.of(kPairs);
      if (random.one_in(3)) pair.back() = random.one_in(2) ? random.of(extremes()) : random.of(kPairs).back();
      words.insert(words.end(), pair.begin(), pair.end());
    }
    for (std::string& word : words) word = word.substr(0, word.find('\0'));  // as a shell would
    Case made;
    made.words = words + kBounds;
    return made;
  }
};

const char* const kPinned = "extends: minimal\ncube_mesh: cube_mesh.yaml\n";
const char* const kCcl =
    "algorithms:\n  ring: {module: kernbench.ccl.ring, chunk_bytes: 4 KiB}\n  mine: {module: kernbench.ccl.flood}\n"
    "defaults: {algorithm: auto}\n";
const char* const kSweep =
    "name: small\nworkload: gemm_single_pe\ntopology: minimal\noptions: {fidelity: fast, check: 0, m: 8, n: 8}\n"
    "axes:\n  k: [8, 16]\n  cube.hbm.channels: {from: 1, to: 2}\nconstraints:\n  - k * cube.hbm.channels <= 32\n"
    "objectives:\n  - {name: time_ns, goal: minimize}\n  - {name: channels, goal: minimize, value: cube.hbm.channels}\n"
    "limits: {time: 10 s, memory: 1 GiB}\nsearch: {algorithm: random, points: 4, seed: 1}\n";

}  // namespace

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error("no file " + file.string());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<std::unique_ptr<Kind>> all_kinds(const fs::path& source, const fs::path& work,
                                             const std::function<int(const Words&)>& run) {
  const auto produced = [&](const Words& words, const fs::path& file) {
    if (const int code = run(words); code != 0)
      throw std::runtime_error(file.filename().string() + ": the tool ended with " + std::to_string(code));
    return read(file);
  };
  const auto file_of = [&](const char* name) { return (work / name).string(); };
  const std::string mesh = produced(
      {"topology", "export", "minimal", "--what", "cube-mesh", "-o", file_of("mesh.yaml")}, work / "mesh.yaml");
  const std::string resolved =
      produced({"topology", "export", "minimal", "-o", file_of("all.yaml")}, work / "all.yaml");
  const std::string result =
      produced(small_run("all_reduce") + Words{"--json", file_of("run.json")}, work / "run.json");
  write(work / "sweep.yaml", kSweep);
  const std::string store =
      produced({"sweep", file_of("sweep.yaml"), "--store", file_of("s.sqlite"), "-q"}, work / "s.sqlite");
  const fs::path schedules = source / "docs/examples/schedules", traces = source / "docs/examples/chakra";
  std::map<std::string, std::string> other_ranks;
  for (const char* rank : {"1", "2", "3"}) {
    const std::string name = std::string("training_step.") + rank + ".et";
    other_ranks[name] = read(traces / name);
  }

  std::vector<std::unique_ptr<Kind>> kinds;
  const auto add = [&](FileKind::Parts parts) { kinds.push_back(std::make_unique<FileKind>(std::move(parts))); };
  const Words both = Words{"run", "all_reduce", "-b", "512", "-e", "512", "--topology", "{}"} + kBounds;
  add({"topology",
       "machine.yaml",
       {read(source / "topology/presets/minimal.yaml"), resolved,
        "extends: default\nsystem: {sips: {count: 2}}\nsip: {cube_mesh: {w: 2, h: 1}}\n"
        "overrides:\n  - match: sip0.cube1\n    cube: {hbm: {generation: HBM3E}}\n  - {match: '**.pe3', pe: {gemm: "
        "{rows: 8}}}\n"},
       {"topology", "check", "{}"},
       false,
       {},
       both});
  add({"pins",
       "cube_mesh.yaml",
       {mesh},
       {"topology", "check", "{folder}/machine.yaml"},
       false,
       {{"machine.yaml", kPinned}},
       Words{"run", "gemm", "--m", "32", "--n", "32", "--k", "64", "--topology", "{folder}/machine.yaml"} + kBounds});
  add({"ccl",
       "ccl.yaml",
       {kCcl, "algorithms:\n  two: {module: kernbench.ccl.one_tree}\n"},
       small_run("all_reduce") + Words{"--ccl", "{}"},
       false,
       {},
       {},
       Case::Says::place,
       true});
  add({"tuned",
       "tuned.yaml",
       {read(source / "ccl/select/tuned/ring8.yaml")},
       small_run("all_reduce") + Words{"--ccl", "{}"},
       false,
       {},
       {},
       Case::Says::place,
       true});
  add({"placement",
       "placement.yaml",
       {"cube: column_wise\npe: row_wise\n", "cube: replicate\npe: column_wise\nnum_pes: 1\n"},
       small_run("all_reduce") + Words{"--placement", "{}"},
       false,
       {},
       {},
       Case::Says::place,
       true});
  add({"sweep", "sweep.yaml", {kSweep, read(source / "docs/examples/sweep.yaml")}, {"sweep", "{}", "--dry-run"}});
  add({"search",
       "sweep.yaml",
       {kSweep},
       {"search", "{}", "--store", "{folder}/s.sqlite", "--no-progress", "-j", "1", "--points", "2"}});
  for (const auto& [kind, file, operation] : {std::tuple("msccl", "ring4_all_reduce.xml", "all_reduce"),
                                              {"msccl_gather", "doubling4_all_gather.xml", "all_gather"}})
    add({kind,
         "schedule.xml",
         {read(schedules / file)},
         Words{"run", operation, "--topology", "minimal", "--set", "system.sips.count=4", "-b", "1K", "-e", "1K",
               "--schedule", "{}"} +
             kBounds,
         false,
         {},
         {},
         Case::Says::place,
         true});
  add({"chakra",
       "training_step.0.et",
       {read(traces / "training_step.0.et")},
       Words{"run", "chakra", "--topology", "minimal", "--set", "system.sips.count=4", "--fidelity", "fast",
             "--workload-configuration", "{folder}/training_step", "--max-sim-time", "1 s", "--watchdog", "10"},
       true,
       other_ranks,
       {},
       Case::Says::file,
       true});
  add({"reference",
       "latency_single.csv",
       {read(source / "bench/reference/hbm/latency_single.csv")},
       {"validate", "hbm", "--reference", "{folder}", "--filter", "latency_single*", "-q", "--no-progress", "--jobs",
        "1"},
       false,
       {{"timing.yaml", read(source / "bench/reference/hbm/timing.yaml")}}});
  add({"from", "run.json", {result}, Words{"run", "--from", "{}"} + kBounds, false, {}, {}, Case::Says::anything});
  add({"report",
       "run.json",
       {result},
       {"report", "{}", "-o", "{folder}/report.html"},
       false,
       {},
       {},
       Case::Says::file});
  add({"diff", "run.json", {result}, {"diff", "{}", file_of("run.json")}, false, {}, {}, Case::Says::file});
  add({"store", "s.sqlite", {store}, {"sweep", "--export", "{}", "--csv", "{folder}/s.csv"}, true});
  add({"store_report", "s.sqlite", {store}, {"report", "{}", "-o", "{folder}/report.html"}, true});
  kinds.push_back(std::make_unique<OptionsKind>());
  kinds.push_back(edges_kind(mesh));
  return kinds;
}

}  // namespace kernbench::mutate
