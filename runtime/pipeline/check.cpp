#include "runtime/pipeline/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/pipeline/checker.h"
#include "tlm/config/nearest.h"

namespace kernbench::pipeline {

namespace {
template <class Parts>
std::vector<std::string> part_names(const Parts& parts) {
  std::vector<std::string> names;
  for (const auto& part : parts) names.push_back(part.name);
  return names;
}

std::string counted_text(int count, const char* what) {
  return count == -1  ? fmt::format("1 or more {}s", what)
         : count == 0 ? fmt::format("no {}s", what)
                      : fmt::format("{} {}", count, what);
}
}  // namespace

int machines_of(const Pipeline& pipeline) {
  std::uint64_t most = 0;
  for (const Device& device : pipeline.devices) most = std::max(most, device.machine.given ? device.machine.value : 0);
  constexpr std::uint64_t kMost = 1 << 20;
  return static_cast<int>(std::min(most, kMost)) + 1;
}

int sip_of(const Pipeline& pipeline, const Device& device, int sips) {
  const int machine = device.machine.given ? static_cast<int>(device.machine.value) : 0;
  return machine * (sips / machines_of(pipeline)) + static_cast<int>(device.idx.value);
}

std::string Checker::name_of(const Task& task) { return quote(task.name); }

std::vector<std::string> Checker::slots() const { return part_names(pipeline_.devices); }

const TensorInfo* Checker::only(const Located<std::vector<Text>>& names) const {
  if (names.value.size() != 1) return nullptr;
  const TensorInfo* tensor = pipeline_.tensor(names.value.front().value);
  return known(tensor) ? tensor : nullptr;
}

void Checker::check_devices() {
  const auto inside = [&](const Device& device, const Located<Range>& range, const char* what, int count) {
    if (!range.given) return;
    if (device.kind.given && device.kind.value == DeviceKind::cpu)
      add(range.where, fmt::format("{}: a cpu slot has no {}", json_path(device.path, what), what), "remove it");
    else if (range.value.end > static_cast<std::uint64_t>(count))
      add(range.where,
          fmt::format("{} ends at {}, but the machine has {}", json_path(device.path, what), range.value.end, count),
          fmt::format("give at most {}", count));
  };
  const auto overlap = [](const Located<Range>& a, const Located<Range>& b) {
    return !a.given || !b.given || (a.value.begin < b.value.end && b.value.begin < a.value.end);
  };
  const int machines = machines_of(pipeline_), sips = options_.sips / machines;
  const bool uneven = machines > 1 && (sips == 0 || options_.sips % machines != 0);
  if (uneven) {
    for (const Device& device : pipeline_.devices) {
      if (!device.machine.given || device.machine.value + 1 < static_cast<std::uint64_t>(machines)) continue;
      add(device.machine.where,
          fmt::format("{} is {}, of {} machines, but the topology has {} SIPs, which are no even parts",
                      json_path(device.path, "machine"), device.machine.value, machines, options_.sips),
          fmt::format("give a topology whose SIPs {} machines divide", machines));
      break;
    }
  }
  for (const Device& device : pipeline_.devices) {
    inside(device, device.cubes, "cubes", options_.cubes);
    inside(device, device.pes, "pes", options_.pes);
    if (!device.kind.given || !device.idx.given) continue;
    if (!uneven && device.kind.value == DeviceKind::npu && device.idx.value >= static_cast<std::uint64_t>(sips))
      add(device.idx.where,
          fmt::format("{} is {}, but {} machine has {}", json_path(device.path, "idx"), device.idx.value,
                      machines > 1 ? "each" : "the", counted(static_cast<std::size_t>(sips), "SIP")),
          fmt::format("give {}, or a larger machine with --topology",
                      sips == 1 ? "0" : fmt::format("0 to {}", sips - 1)));
    for (const Device& other : pipeline_.devices) {
      if (&other == &device) break;
      const bool same = other.kind.given && other.idx.given && other.kind.value == device.kind.value &&
                        other.idx.value == device.idx.value && other.machine.value == device.machine.value;
      if (same && overlap(other.cubes, device.cubes) && overlap(other.pes, device.pes))
        add(device.where,
            fmt::format("{} is {} {}, as is slot {}", device.path, to_string(device.kind.value), device.idx.value,
                        quote(other.name)),
            "each device is one slot");
    }
  }
}

void Checker::check_fields(const Task& task, const KindRule& rule) {
  const bool compute = rule.is == KindRule::Class::compute, talks = rule.is == KindRule::Class::communication;
  const std::string kind = to_string(rule.kind);
  const auto field = [&](const char* key, bool given, const Location& where, bool needed) {
    if (needed && !given) {
      add(task.where, fmt::format("{} has no '{}'", task.path, key), fmt::format("kind '{}' needs it", kind));
    } else if (!needed && given) {
      add(where, fmt::format("{} is given, but kind '{}' has none", json_path(task.path, key), kind), "remove it");
    }
  };
  field("device", task.device.given, task.device.where, compute || talks);
  field("data", task.data.given, task.data.where, compute);
  field("group", task.group.given, task.group.where, talks);
  field("device_idx", task.device_idx.given, task.device_idx.where, talks);
  field("metadata", task.metadata.given, task.metadata.where, talks);
  if (task.device.given && pipeline_.device(task.device.value) == nullptr)
    add(task.device.where,
        fmt::format("{} is {}, which is no slot", json_path(task.path, "device"), quote(task.device.value)),
        suggest_known(task.device.value, slots(), "slots"));
}

void Checker::check_names(const Task& task, const KindRule& rule) {
  const std::vector<std::string> tensors = part_names(pipeline_.tensors);
  const auto side = [&](const Located<std::vector<Text>>& names, const char* key, const char* what, int count) {
    const std::string path = json_path(task.path, key);
    std::set<std::string> seen;
    for (std::size_t i = 0; i < names.value.size(); ++i) {
      const Text& name = names.value[i];
      if (pipeline_.tensor(name.value) == nullptr) {
        add(name.where, fmt::format("{} is {}, which is no tensor", json_path(path, i), quote(name.value)),
            suggest_known(name.value, tensors, "tensors"));
      } else if (!seen.insert(name.value).second && names.given && key[0] == 'o') {
        add(name.where, fmt::format("{} is {}, which stands there twice", json_path(path, i), quote(name.value)),
            "remove it");
      }
    }
    const auto given = static_cast<int>(names.value.size());
    const bool rooted = rule.kind == TaskKind::reduce || rule.kind == TaskKind::broadcast;
    if (!names.given || count == -2 || (rooted && given == 0)) return;
    if (count == -1 ? given == 0 : given != count)
      add(names.where,
          fmt::format("{} has {}, but kind '{}' takes {}", path, given, to_string(rule.kind),
                      counted_text(count, what)),
          fmt::format("give {}", counted_text(count, what)));
  };
  side(task.inputs, "inputs", "input", rule.inputs);
  side(task.outputs, "outputs", "output", rule.outputs);
}

void Checker::check_metadata(const Task& task, const KindRule& rule) {
  if (rule.is != KindRule::Class::communication || !task.metadata.given) return;
  const std::string path = json_path(task.path, "metadata");
  for (const MetadataEntry& entry : task.metadata.value) {
    if (std::find(rule.metadata.begin(), rule.metadata.end(), entry.key) != rule.metadata.end()) continue;
    add(entry.key_where, fmt::format("unknown key {} in '{}'", quote(entry.key), path),
        rule.metadata.empty() ? fmt::format("kind '{}' has none", to_string(rule.kind))
                              : suggest(entry.key, rule.metadata));
  }
  for (const std::string& key : rule.metadata) {
    const MetadataEntry* entry = task.entry(key);
    if (entry == nullptr) {
      add(task.metadata.where, fmt::format("{} has no '{}'", path, key),
          fmt::format("kind '{}' takes exactly: {}", to_string(rule.kind), join(rule.metadata)));
      continue;
    }
    const std::string what = json_path(path, key);
    if (key == "reduce_op") {
      const auto& ops = reduce_ops();
      if (std::find(ops.begin(), ops.end(), entry->text) == ops.end())
        add(entry->where, fmt::format("{} is {}", what, quote(entry->text)), suggest(entry->text, ops, "valid values"));
    } else if (key == "dst" || key == "src") {
      if (entry->number)
        add(entry->where, fmt::format("{} is {}, no name of a slot", what, entry->text), "put it in quotes");
      else if (pipeline_.device(entry->text) == nullptr)
        add(entry->where, fmt::format("{} is {}, which is no slot", what, quote(entry->text)),
            suggest_known(entry->text, slots(), "slots"));
    } else if (!entry->number || entry->text.size() > 9 ||
               entry->text.find_first_not_of("0123456789") != std::string::npos) {
      add(entry->where, fmt::format("{} is {}, no dimension", what, quote(entry->text)),
          "give an integer of at least 0");
    }
  }
}

void Checker::check_task(const Task& task) {
  if (!task.kind.given) return;
  const KindRule& rule = rule_of(task.kind.value);
  check_fields(task, rule);
  check_names(task, rule);
  check_metadata(task, rule);
}

void Checker::find_producers() {
  for (const Task& task : pipeline_.supertasks) {
    for (const Text& name : task.inputs.value) consumers_[name.value].push_back(&task);
    for (std::size_t i = 0; i < task.outputs.value.size(); ++i) {
      const Text& name = task.outputs.value[i];
      const TensorInfo* tensor = pipeline_.tensor(name.value);
      if (tensor == nullptr) continue;
      const std::string path = json_path(json_path(task.path, "outputs"), i);
      if (tensor->value)
        add(name.where, fmt::format("{} is {}, a constant", path, quote(name.value)),
            "a tensor that is made has no 'value'");
      Checked::Origin& origin = result_.origins[name.value];
      if (origin.producer != nullptr && origin.producer != &task)
        add(name.where,
            fmt::format("{} is {}, which {} makes already", path, quote(name.value), name_of(*origin.producer)),
            "a tensor has one producer");
      if (origin.producer == nullptr) {
        origin.producer = &task;
        origin.slot = task.device.value;
      }
    }
  }
  for (const TensorInfo& tensor : pipeline_.tensors) {
    const bool made = result_.origins[tensor.name].producer != nullptr, used = consumers_.count(tensor.name) > 0;
    if (!tensor.value && !made)
      add(tensor.where, fmt::format("{} is made by no supertask", tensor.path),
          "a constant has a 'value'; an input of the pipeline is an output of a supertask of kind 'input'");
    if (!used && tensor.value)
      warnings_.add(tensor.where, fmt::format("{} is used by no supertask", tensor.path), "remove it");
    else if (!used && made)
      warnings_.add(tensor.where, fmt::format("{} is made, but no supertask reads it", tensor.path),
                    "its time is spent for nothing");
  }
  for (const TensorSlice& slice : pipeline_.metadata.slices.inputs) {
    const auto origin = result_.origins.find(slice.name);
    if (origin != result_.origins.end() && origin->second.producer != nullptr && origin->second.slot.empty())
      origin->second.slot = slice.device.value;
  }
}

void Checker::check_slots() {
  for (const Task& task : pipeline_.supertasks) {
    if (!task.kind.given || !task.device.given || rule_of(task.kind.value).is == KindRule::Class::boundary) continue;
    for (std::size_t i = 0; i < task.inputs.value.size(); ++i) {
      const Text& name = task.inputs.value[i];
      const auto origin = result_.origins.find(name.value);
      if (origin == result_.origins.end() || origin->second.producer == nullptr) continue;
      const std::string& slot = origin->second.slot;
      if (slot.empty() || slot == task.device.value) continue;
      const bool input = origin->second.producer->kind.given && origin->second.producer->kind.value == TaskKind::input;
      add(name.where,
          fmt::format("{} is {}, which {} on slot {}, not {}", json_path(json_path(task.path, "inputs"), i),
                      quote(name.value),
                      input ? "its slice puts" : fmt::format("{} makes", name_of(*origin->second.producer)),
                      quote(slot), quote(task.device.value)),
          "tensors change slots by communication supertasks only");
    }
  }
}

void Checker::check_graphs() {
  result_.graphs.resize(pipeline_.supertasks.size());
  for (std::size_t i = 0; i < pipeline_.supertasks.size(); ++i) {
    const Task& task = pipeline_.supertasks[i];
    if (!task.kind.given || rule_of(task.kind.value).is != KindRule::Class::compute || !task.data.given) continue;
    bool typed = task.inputs.given && task.outputs.given;
    for (const auto* names : {&task.inputs.value, &task.outputs.value}) {
      for (const Text& name : *names) typed = typed && known(pipeline_.tensor(name.value));
    }
    if (typed) result_.graphs[i] = build_graph(pipeline_, task, problems_);
  }
}

Checked Checker::run() {
  const std::size_t before = problems_.size();
  check_devices();
  devices_sound_ = problems_.size() == before;
  for (const Task& task : pipeline_.supertasks) check_task(task);
  find_producers();
  check_slots();
  check_groups();
  if (check_cycles()) check_deadlocks();
  check_graphs();
  check_slices();
  check_weights();
  return std::move(result_);
}

std::string warning_text(const Problems& warnings) {
  std::string text;
  for (const Problem& problem : warnings.sorted())
    text += fmt::format("{}{}: warning: {}{}{}", text.empty() ? "" : "\n", problem.where.str(), problem.text,
                        problem.hint.empty() ? "" : "\n  hint: ", problem.hint);
  return text;
}

std::string weight_path(const CheckOptions& options, const ParamValue& value) {
  return (std::filesystem::path(options.folder) / value.file.value).string();
}

std::set<std::string> weight_paths(const std::string& file, const Pipeline& pipeline) {
  CheckOptions where;
  where.folder = std::filesystem::path(file).parent_path().string();
  std::set<std::string> paths;
  for (const TensorInfo& tensor : pipeline.tensors) {
    if (tensor.value && tensor.value->file.given) paths.insert(weight_path(where, *tensor.value));
  }
  return paths;
}

Checked check_pipeline(const Pipeline& pipeline, const CheckOptions& options, Problems& problems, Problems& warnings) {
  return Checker(pipeline, options, problems, warnings).run();
}

}  // namespace kernbench::pipeline
