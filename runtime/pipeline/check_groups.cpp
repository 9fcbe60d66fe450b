#include <fmt/format.h>

#include <algorithm>

#include "runtime/pipeline/checker.h"
#include "tlm/config/nearest.h"

namespace kernbench::pipeline {

namespace {
std::string metadata_text(const SuperTask& task) {
  std::vector<std::string> entries;
  for (const MetadataEntry& entry : task.metadata.value) entries.push_back(entry.key + ": " + entry.text);
  std::sort(entries.begin(), entries.end());
  return "{" + join(entries) + "}";
}
}  // namespace

void Checker::check_groups() {
  for (const Task& task : pipeline_.supertasks) {
    if (communicates(task) && task.group.given) result_.groups[task.group.value].push_back(&task);
  }
  for (auto& [group, members] : result_.groups) {
    const std::size_t before = problems_.size();
    check_members(group, members);
    if (devices_sound_ && problems_.size() == before) check_places(group, members);
    for (const Task* member : members) check_sides(*member);
    if (problems_.size() == before) check_shapes(group, members);
  }
}

/// Of a member that is alone, and whose group's name is near that of another group of its kind: "; did you mean group
/// 'sum'?"
std::string Checker::other_group(const std::string& group) const {
  const std::vector<const Task*>& alone = result_.groups.at(group);
  std::vector<std::string> others;
  for (const auto& [name, members] : result_.groups) {
    if (alone.size() == 1 && name != group && members.front()->kind.value == alone.front()->kind.value)
      others.push_back(name);
  }
  const std::string near = nearest(group, others);
  return near.empty() ? "" : fmt::format("; did you mean group {}?", quote(near));
}

void Checker::check_members(const std::string& group, std::vector<const Task*>& members) {
  const Task& first = *members.front();
  const bool transfer = first.kind.value == TaskKind::send || first.kind.value == TaskKind::recv;
  std::map<std::uint64_t, const Task*> by_index;
  std::map<std::string, const Task*> by_slot;
  std::size_t sends = 0, recvs = 0;
  for (const Task* member : members) {
    const TaskKind kind = member->kind.value;
    sends += kind == TaskKind::send ? 1 : 0;
    recvs += kind == TaskKind::recv ? 1 : 0;
    const bool also_transfer = kind == TaskKind::send || kind == TaskKind::recv;
    if (kind != first.kind.value && !(transfer && also_transfer)) {
      add(member->kind.where,
          fmt::format("{} is '{}', but in group {} {} is '{}'", json_path(member->path, "kind"), to_string(kind),
                      quote(group), name_of(first), to_string(first.kind.value)),
          "members of one exchange are of one kind");
    } else if (member->metadata.given && first.metadata.given && metadata_text(*member) != metadata_text(first)) {
      add(member->metadata.where,
          fmt::format("{} is {}, but in group {} that of {} is {}", json_path(member->path, "metadata"),
                      metadata_text(*member), quote(group), name_of(first), metadata_text(first)),
          "members of one exchange agree");
    }
    if (member->device_idx.given) {
      const auto [found, fresh] = by_index.emplace(member->device_idx.value, member);
      if (!fresh)
        add(member->device_idx.where,
            fmt::format("{} is {}, which {} has already in group {}", json_path(member->path, "device_idx"),
                        member->device_idx.value, name_of(*found->second), quote(group)),
            fmt::format("members count from 0 to {}", members.size() - 1));
      if (member->device_idx.value >= members.size())
        add(member->device_idx.where,
            fmt::format("{} is {}, but group {} has {}", json_path(member->path, "device_idx"),
                        member->device_idx.value, quote(group), counted(members.size(), "member")),
            fmt::format("members count from 0 to {}{}", members.size() - 1, other_group(group)));
    }
    if (!member->device.given) continue;
    const auto [found, fresh] = by_slot.emplace(member->device.value, member);
    if (!fresh)
      add(member->device.where,
          fmt::format("{} is {}, which {} stands for already in group {}", json_path(member->path, "device"),
                      quote(member->device.value), name_of(*found->second), quote(group)),
          "every slot is in a group once; another exchange is another group");
    const Device* slot = pipeline_.device(member->device.value);
    if (slot != nullptr && slot->kind.given && slot->kind.value == DeviceKind::cpu && !also_transfer)
      add(member->device.where,
          fmt::format("{} is {}, a cpu slot", json_path(member->path, "device"), quote(member->device.value)),
          "a cpu slot takes part in send and recv only");
  }
  if (transfer && (sends != 1 || recvs != 1))
    add(first.group.where,
        fmt::format("{}: group {} has {} of kind 'send' and {} of kind 'recv'", json_path(first.path, "group"),
                    quote(group), sends, recvs),
        "a transfer has one of each");
  for (const char* key : {"dst", "src"}) {
    const MetadataEntry* root = first.entry(key);
    if (root != nullptr && pipeline_.device(root->text) != nullptr && by_slot.count(root->text) == 0)
      add(root->where,
          fmt::format("{} is {}, which is not in group {}", json_path(json_path(first.path, "metadata"), key),
                      quote(root->text), quote(group)),
          "give the slot of a member");
  }
  std::stable_sort(members.begin(), members.end(),
                   [](const Task* a, const Task* b) { return a->device_idx.value < b->device_idx.value; });
}

/// Members on parts of SIPs, and on several machines: what exchanges can reach.
void Checker::check_places(const std::string& group, const std::vector<const Task*>& members) {
  std::vector<const Device*> slots;
  for (const Task* member : members) {
    slots.push_back(member->device.given ? pipeline_.device(member->device.value) : nullptr);
    if (slots.back() == nullptr || !slots.back()->kind.given || !slots.back()->idx.given) return;
  }
  const auto machine = [](const Device& slot) { return slot.machine.given ? slot.machine.value : 0; };
  const auto same = [](const Located<Range>& a, const Located<Range>& b) {
    return a.given == b.given && a.value.begin == b.value.begin && a.value.end == b.value.end;
  };
  const auto on_one_sip = [&](const Device* a, const Device* b) {
    return a->idx.value == b->idx.value && machine(*a) == machine(*b);
  };
  const bool inside =
      std::all_of(slots.begin(), slots.end(), [&](const Device* slot) { return on_one_sip(slot, slots[0]); });
  for (std::size_t i = 1; i < members.size(); ++i) {
    const Device& slot = *slots[i];
    const Location& where = members[i]->device.where;
    const std::string path = json_path(members[i]->path, "device");
    const bool host = slot.kind.value == DeviceKind::cpu || slots[0]->kind.value == DeviceKind::cpu;
    if (host && machine(slot) != machine(*slots[0]))
      add(where,
          fmt::format("{} is on machine {}, but in group {} {} is on machine {}, and one of them is a cpu slot", path,
                      machine(slot), quote(group), quote(slots[0]->name), machine(*slots[0])),
          "between machines npu slots exchange: send to one of the own machine first");
    if (host) continue;
    for (std::size_t j = 0; j < i; ++j) {
      const bool one_sip = on_one_sip(slots[j], &slot);
      const bool parted = !one_sip && (!same(slots[j]->cubes, slot.cubes) || !same(slots[j]->pes, slot.pes));
      if (!parted && (!one_sip || inside)) continue;
      if (!apart_.emplace(slots[j], &slot).second) break;  // in another group
      if (one_sip) {
        add(where,
            fmt::format("{} is a part of the SIP that {} is a part of, too, but group {} has slots of other SIPs", path,
                        quote(slots[j]->name), quote(group)),
            "exchange among the parts of each SIP, and between the SIPs, in groups of their own");
      } else {
        add(where,
            fmt::format("{} has other cubes or PEs than {}, in group {}", path, quote(slots[j]->name), quote(group)),
            "slots of several SIPs exchange if they have the same cubes and PEs of them: pass it on inside the SIP");
      }
      break;
    }
  }
}

/// Reduce has its output on dst, broadcast its input on src, and only there.
void Checker::check_sides(const Task& task) {
  const bool reduce = task.kind.value == TaskKind::reduce;
  if (!reduce && task.kind.value != TaskKind::broadcast) return;
  const MetadataEntry* root = task.entry(reduce ? "dst" : "src");
  const auto& one = reduce ? task.outputs : task.inputs;
  const auto& all = reduce ? task.inputs : task.outputs;
  const std::string path = json_path(task.path, reduce ? "outputs" : "inputs");
  if (all.given && all.value.empty())
    add(all.where, fmt::format("{} is empty", json_path(task.path, reduce ? "inputs" : "outputs")),
        "every member has one");
  if (root == nullptr || !one.given || !task.device.given) return;
  const bool here = task.device.value == root->text;
  if (here && one.value.empty())
    add(one.where, fmt::format("{} is empty, but its slot is {}", path, reduce ? "dst" : "src"), "give it one tensor");
  if (!here && !one.value.empty())
    add(one.where,
        fmt::format("{} has {}, but {} is slot {}", path, one.value.size(), reduce ? "dst" : "src", quote(root->text)),
        "only that member has one");
}

void Checker::check_output(const Task& task, const TensorType& expected) {
  const TensorInfo* out = only(task.outputs);
  if (out == nullptr || type_of(*out) == expected) return;
  add(task.outputs.value.front().where,
      fmt::format("{} is {}, {}, but this {} makes {}", json_path(json_path(task.path, "outputs"), std::size_t{0}),
                  quote(out->name), type_of(*out).str(), to_string(task.kind.value), expected.str()),
      "change the tensor's shape or dtype");
}

bool Checker::check_dim(const Task& task, const char* key, const TensorType& type, std::uint64_t divisor,
                        std::size_t& dim) {
  const MetadataEntry* entry = task.entry(key);
  const bool number = entry != nullptr && entry->number && entry->text.size() < 10 &&
                      entry->text.find_first_not_of("0123456789") == std::string::npos;
  if (!number) return false;  // told already
  dim = static_cast<std::size_t>(std::stoull(entry->text));
  const std::string path = json_path(json_path(task.path, "metadata"), key);
  if (dim >= type.shape.size()) {
    add(entry->where, fmt::format("{} is {}, but its tensor is {}", path, dim, type.str()),
        type.shape.empty() ? "a single element has no dimension" : fmt::format("give 0 to {}", type.shape.size() - 1));
    return false;
  }
  if (static_cast<std::uint64_t>(type.shape[dim]) % divisor != 0) {
    add(entry->where,
        fmt::format("{} is {}: {} elements of {} are no even parts for {} members", path, dim, type.shape[dim],
                    type.str(), divisor),
        "give a dimension that the members divide");
    return false;
  }
  return true;
}

void Checker::check_shapes(const std::string& group, const std::vector<const Task*>& members) {
  // All inputs, or with a single one that, are of one type.
  const Task* first = nullptr;
  for (const Task* member : members) {
    const TensorInfo* in = only(member->inputs);
    if (in == nullptr) {
      if (!member->inputs.value.empty()) return;  // of no known type: told elsewhere
      continue;
    }
    if (first == nullptr) first = member;
    const TensorType type = type_of(*in), wanted = type_of(*only(first->inputs));
    if (type == wanted) continue;
    add(member->inputs.value.front().where,
        fmt::format("{} is {}, {}, but in group {} that of {} is {}",
                    json_path(json_path(member->path, "inputs"), std::size_t{0}), quote(in->name), type.str(),
                    quote(group), name_of(*first), wanted.str()),
        "members of one exchange bring tensors of one shape and dtype");
    return;
  }
  if (first == nullptr) return;
  const TensorType in = type_of(*only(first->inputs));
  const std::uint64_t count = members.size();
  const auto of_group = static_cast<std::int64_t>(count);
  TensorType out = in;
  std::size_t dim = 0, to = 0;
  switch (first->kind.value) {
    case TaskKind::all_gather:
      if (!check_dim(*first, "dim", in, 1, dim)) return;
      out.shape[dim] *= of_group;
      break;
    case TaskKind::reduce_scatter:
      if (!check_dim(*first, "dim", in, count, dim)) return;
      out.shape[dim] /= of_group;
      break;
    case TaskKind::all_to_all:
      if (!check_dim(*first, "src_dim", in, count, dim) || !check_dim(*first, "dst_dim", in, 1, to)) return;
      out.shape[dim] /= of_group;
      out.shape[to] *= of_group;
      break;
    default:
      break;
  }
  if (const MetadataEntry* op = first->entry("reduce_op")) {
    const bool no_number = in.dtype == DType::boolean, no_mean = op->text == "avg" && !is_float(in.dtype);
    if (no_number || no_mean)
      add(op->where,
          fmt::format("{} is '{}' of {}", json_path(json_path(first->path, "metadata"), "reduce_op"), op->text,
                      in.str()),
          no_number ? "bool is not reduced: cast it before" : "integers have no mean: cast them before");
  }
  for (const Task* member : members) check_output(*member, out);
}

}  // namespace kernbench::pipeline
