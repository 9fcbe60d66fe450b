#include "tests/mutate/edges.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "tlm/config/units.h"
#include "topology/spec/embedded_presets.h"
#include "topology/spec/schema.h"

namespace kernbench::mutate {
namespace {
namespace fs = std::filesystem;
using topology::Field;
using topology::FieldKind;
using Words = std::vector<std::string>;

struct Setting {
  std::string key, value;
  bool on_one_sip = false;
};

/// What makes a key count: the machine beside it, and the program that meets it. The longest prefix holds.
struct Use {
  std::string prefix;
  Words sets;
  Words run;
};

const Words kReduce = {"all_reduce", "-b", "512", "-e", "512"};

const std::vector<Use>& uses() {
  static const Words kTimed = {"all_reduce", "-b", "512", "-e", "512", "--host-io", "timed"},
                     kPairs = {"p2p", "-b", "64", "-e", "64"}, kGemm = {"gemm", "--m", "32", "--n", "32", "--k", "64"},
                     kLayer = {"tp_transformer", "--model", "model.yaml", "--prompt", "2", "--decode", "1", "-w", "0"};
  static const std::vector<Use> kUses = {
      {"", {}, kReduce},
      {"system.sips.count", {}, kPairs},  // 4,096 SIPs: a collective plans for minutes
      {"system.sips.topology", {"system.sips.w=2", "system.sips.h=2", "system.sips.count=4"}, kReduce},
      {"system.sips.w", {"system.sips.topology=mesh_2d_no_wrap"}, kPairs},
      {"system.sips.h", {"system.sips.topology=mesh_2d_no_wrap"}, kPairs},
      {"system.links.efficiency", {}, kPairs},  // a billionth: a message that a collective needs takes seconds
      {"sip.cube_mesh", {"system.sips.count=1"}, kGemm},  // 256 cubes: pairs of all take a minute
      {"system.links.bit_errors", {"system.links.flit_size=256 B"}, kReduce},
      {"system.links.error_seed", {"system.links.flit_size=256 B", "system.links.bit_errors=100000000000000"}, kReduce},
      {"system.links.switch", {"system.sips.topology=switch", "system.sips.count=3"}, kReduce},
      {"sip.io.pcie", {}, kTimed},
      {"sip.io.cpu", {}, kTimed},
      {"cube.m_cpu", {}, kTimed},
      {"cube.ucie", {"sip.cube_mesh.w=2"}, kReduce},
      {"cube.ucie.error_seed", {"sip.cube_mesh.w=2", "cube.ucie.bit_errors=100000000000000"}, kReduce},
      {"sip.io.ucie.error_seed", {"sip.io.ucie.bit_errors=100000000000000"}, kReduce},
      {"cube.sram", {"pe.ipcq.buffer=sram"}, kReduce},
      {"cube.placement.holes", {"cube.noc.rows=3", "cube.noc.cols=3", "cube.noc.routing=table"}, kReduce},
      {"pe.gemm", {}, kGemm},
      {"pe.math", {}, kLayer},
  };
  return kUses;
}

/// A layer with a softmax, a norm and an activation: every kind of work of the math engine.
const char* const kModel =
    "layers: 1\nwidth: 32\nheads: 2\nkv_heads: 2\nhead_dim: 16\nmlp_width: 32\ngated: true\nactivation: silu\n"
    "norm: rms\nepsilon: 1e-5\nvocabulary: 64\nposition: rotary\nrope_theta: 10000\npositions: 16\nbiases: false\n"
    "tied: false\n";

const Use& use_of(const std::string& key) {
  const Use* best = nullptr;
  for (const Use& use : uses()) {
    const bool fits = key.compare(0, use.prefix.size(), use.prefix) == 0;
    if (fits && (best == nullptr || use.prefix.size() > best->prefix.size())) best = &use;
  }
  return *best;
}

Words ends_of(const std::string& key, const Field& field) {
  switch (field.kind) {
    case FieldKind::integer:
      return {std::to_string(field.range.low), std::to_string(field.range.high)};
    case FieldKind::quantity:
      return {format_quantity(field.range.low, field.dimension), format_quantity(field.range.high, field.dimension)};
    case FieldKind::boolean:
      return {"false", "true"};
    case FieldKind::enumeration:
      return field.names;
    case FieldKind::ratio:
      return {"1/999999999", "1/1"};
    case FieldKind::grid_point:  // corners of the mesh of `minimal`
      return {"r0c0", "r1c1"};
    case FieldKind::grid_points:
      return {"[]", "[r0c0]", "[r1c1]"};
    case FieldKind::text:
      if (key == "extends") return topology::preset_names();
      if (key == "cube_mesh") return {"cube_mesh.yaml"};
      if (key == "cube.hbm.mapping") return {"RoSiBaCoBg", "CoBgBaSiRo", "BgCoBaSiRo", "SiRoBgBaCo"};
      break;
    case FieldKind::section:
    case FieldKind::overrides:  // every setting of one SIP is one
      break;
  }
  return {};
}

/// Whether an override of a SIP may say it.
bool may_differ(const std::string& key, const Field& field) {
  return !field.uniform && (key.compare(0, 5, "cube.") == 0 || key.compare(0, 3, "pe.") == 0);
}

/// "a.b: c" as a flow map: {a: {b: c}}
std::string nested(const std::string& key, const std::string& value) {
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) return "{" + key + ": " + value + "}";
  return "{" + key.substr(0, dot) + ": " + nested(key.substr(dot + 1), value) + "}";
}

class EdgesKind final : public Kind {
 public:
  explicit EdgesKind(std::string mesh) : mesh_(std::move(mesh)) {
    for (const std::string& key : topology::value_paths()) {
      const Field& field = *topology::find_field(key);
      const Words ends = ends_of(key, field);
      if (ends.empty()) throw std::runtime_error("edges: no value for " + key);
      for (const std::string& value : ends) {
        settings_.push_back({key, value});
        if (may_differ(key, field)) settings_.push_back({key, value, true});
      }
    }
  }
  std::string name() const override { return "edges"; }
  std::size_t count() const override { return settings_.size(); }
  Case make(std::size_t number, const fs::path& folder, Random&) override {
    const Setting& setting = settings_[number % settings_.size()];
    const Use& use = use_of(setting.key);
    Words sets;
    if (setting.key != "extends") sets.emplace_back("system.sips.count=2");
    sets.insert(sets.end(), use.sets.begin(), use.sets.end());
    std::string file = "extends: minimal\n";
    if (setting.on_one_sip) {
      const std::string map = nested(setting.key, setting.value);
      file += "overrides:\n  - {match: sip1, " + map.substr(1) + "\n";
    } else if (setting.key == "extends") {
      file = "extends: " + setting.value + "\n";
    } else if (setting.key == "cube_mesh") {
      file += "cube_mesh: cube_mesh.yaml\n";
    } else {
      sets.push_back(setting.key + "=" + setting.value);
    }
    if (setting.key == "system.sips.w" || setting.key == "system.sips.h") {
      const bool line = setting.value != "1";
      sets.push_back((setting.key.back() == 'w' ? "system.sips.h=" : "system.sips.w=") + std::string(line ? "1" : "2"));
      sets.push_back("system.sips.count=" + (line ? setting.value : "2"));
    }
    for (const auto& [called, text] :
         {std::pair<const char*, const std::string&>("machine.yaml", file), {"cube_mesh.yaml", mesh_}})
      std::ofstream(folder / called) << text;
    std::ofstream(folder / "model.yaml") << kModel;

    const std::string machine = (folder / "machine.yaml").string();
    Case made;
    made.words = {"topology", "check", machine};
    Words run = {"run"};
    run.insert(run.end(), use.run.begin(), use.run.end());
    for (std::string& word : run) {
      if (word == "model.yaml") word = (folder / word).string();
    }
    for (const char* word :
         {"--topology", machine.c_str(), "--max-sim-time", "1000 s", "--watchdog", "60", "--no-progress"})
      run.emplace_back(word);
    for (const std::string& set : sets) {
      for (Words* words : {&made.words, &run}) words->insert(words->end(), {"--set", set});
    }
    made.then = std::move(run);
    made.any_size = setting.key != "extends";
    return made;
  }

 private:
  std::string mesh_;
  std::vector<Setting> settings_;
};

}  // namespace

std::unique_ptr<Kind> edges_kind(const std::string& mesh) { return std::make_unique<EdgesKind>(mesh); }

}  // namespace kernbench::mutate
