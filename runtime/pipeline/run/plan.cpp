#include "runtime/pipeline/run/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/pipeline/emit.h"
#include "runtime/pipeline/run/exchange_inside.h"
#include "runtime/pipeline/run/places.h"
#include "runtime/pipeline/table.h"
#include "runtime/tp/linear.h"
#include "tlm/config/nearest.h"

namespace kernbench::pipeline {

namespace {

using Dims = std::vector<std::int64_t>;

/// Plans all slots, supertask by supertask in the order of the run, so that members of an exchange agree on how their
/// tensors lie.
class Planner {
 public:
  Planner(const Pipeline& pipeline, const Checked& checked, const PlanOptions& options)
      : pipeline_(pipeline), checked_(checked), options_(options), layers_(has_layers()) {
    if (!options_.gemm) options_.gemm = layers_ ? tp::LinearPlacement::packed() : tp::LinearPlacement::split();
  }

  std::vector<SlotPlan> make() {
    refuse();
    slots_.resize(pipeline_.devices.size());
    for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].device = &pipeline_.devices[i];
    std::set<std::string> exchanged;
    for (const std::size_t number : checked_.order) {
      const SuperTask& task = pipeline_.supertasks[number];
      const KindRule& rule = rule_of(task.kind.value);
      if (rule.is == KindRule::Class::boundary) continue;
      if (rule.is == KindRule::Class::compute) {
        compute(number);
      } else if (exchanged.insert(task.group.value).second) {
        exchange(checked_.groups.at(task.group.value));
      }
    }
    outputs();
    if (options_.document_order) {
      for (SlotPlan& slot : slots_)
        std::stable_sort(slot.tasks.begin(), slot.tasks.end(),
                         [](const TaskPlan& a, const TaskPlan& b) { return a.task < b.task; });
    }
    for (SlotPlan& slot : slots_) share_places(pipeline_, slot);
    return std::move(slots_);
  }

 private:
  /// Decoder layers of a language model: self-attention anywhere in the document.
  bool has_layers() const {
    return std::any_of(checked_.graphs.begin(), checked_.graphs.end(), [](const auto& graph) {
      if (!graph) return false;
      for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
        if (graph->nodes[i].op == Op::attention && match_self_attention(*graph, i)) return true;
      }
      return false;
    });
  }

  void refuse() const {
    Problems problems;
    if (options_.document_order) refuse_order(problems);
    std::vector<std::string> names;
    for (const TensorInfo& tensor : pipeline_.tensors) names.push_back(tensor.name);
    for (const auto& [name, policy] : options_.placements) {
      if (pipeline_.tensor(name) == nullptr)
        problems.add({pipeline_.name.where.file, 0, 0},
                     fmt::format("--place names {}, which is no tensor", quote(name)), suggest(name, names, "tensors"));
    }
    problems.throw_if_any();
  }

  /// In the order of the document a slot would read what it has not made yet.
  void refuse_order(Problems& problems) const {
    for (const SuperTask& task : pipeline_.supertasks) {
      if (rule_of(task.kind.value).is == KindRule::Class::boundary) continue;
      for (const Text& input : task.inputs.value) {
        const SuperTask* maker = checked_.origins.at(input.value).producer;
        if (maker == nullptr || maker <= &task || rule_of(maker->kind.value).is == KindRule::Class::boundary) continue;
        problems.add(input.where,
                     fmt::format("{} reads {}, which {} makes behind it", task.path, quote(input.value), maker->path),
                     "write the document in the order of its data flow, or leave --order document out");
      }
    }
  }

  SlotPlan& slot_of(const SuperTask& task) {
    return slots_[static_cast<std::size_t>(pipeline_.device(task.device.value) - pipeline_.devices.data())];
  }
  static bool on_host(const SlotPlan& slot) { return slot.device->kind.value == DeviceKind::cpu; }

  /// The value of a tensor on a slot: constants and inputs of the pipeline come to be when they are first read.
  Value& value(SlotPlan& slot, const std::string& name) {
    const auto found = slot.values.find(name);
    if (found != slot.values.end()) return found->second;
    const TensorInfo& tensor = *pipeline_.tensor(name);
    Value& made = slot.values[name];
    made.type = type_of(tensor);
    made.tensor = static_cast<std::size_t>(&tensor - pipeline_.tensors.data());
    if (tensor.value) {
      auto& constant = constants_[name];
      if (constant == nullptr)
        constant = std::make_shared<const HostTensor>(load_constant(tensor, options_, *checked_.weights));
      made.constant = constant;
    } else if (!on_host(slot)) {
      // assumed: a copy on each PE pays while 128 of them are a small part of a SIP's memory
      constexpr std::int64_t kMostCopied = std::int64_t{1} << 20;
      const auto bytes = made.type.count() * static_cast<std::int64_t>(size_of(made.type.dtype));
      const auto wanted = options_.placements.find(name);
      const DPPolicy policy = wanted != options_.placements.end() ? wanted->second
                              : layers_ && feeds_norm(name)       ? *options_.gemm
                              : bytes <= kMostCopied              ? DPPolicy()
                                                                  : Lowering::dense();
      made.buffer = Lowering(slot, options_).add_buffer(name, made.type, policy);
      slot.buffers.back().tensor = made.tensor;
    }
    return made;
  }

  /// A norm reads it: it is what an earlier layer would have left.
  bool feeds_norm(const std::string& name) const {
    for (std::size_t t = 0; t < pipeline_.supertasks.size(); ++t) {
      const auto& inputs = pipeline_.supertasks[t].inputs.value;
      if (!checked_.graphs[t]) continue;
      for (const Node& node : checked_.graphs[t]->nodes) {
        if (node.op != Op::norm) continue;
        const Node& from = checked_.graphs[t]->nodes[node.inputs[0]];
        if (from.op == Op::input && inputs[from.number_of].value == name) return true;
      }
    }
    return false;
  }

  void compute(std::size_t number) {
    const SuperTask& task = pipeline_.supertasks[number];
    SlotPlan& slot = slot_of(task);
    for (const Text& name : task.inputs.value) value(slot, name.value);
    TaskPlan plan;
    plan.task = &task;
    if (!on_host(slot)) {
      Lowering(slot, options_).lower(task, *checked_.graphs[number], plan.before);
    } else {
      for (const Text& name : task.outputs.value) value(slot, name.value);
    }
    slot.tasks.push_back(std::move(plan));
  }

  struct Member {
    SlotPlan* slot;
    TaskPlan plan;
    const Value* in = nullptr;
  };

  static std::size_t dim_of(const SuperTask& task, const char* key) {
    return static_cast<std::size_t>(std::stoull(task.entry(key)->text));
  }

  void exchange(const std::vector<const SuperTask*>& tasks) {
    std::vector<Member> members;
    for (const SuperTask* task : tasks) {
      members.push_back({&slot_of(*task), {}, nullptr});
      members.back().plan.task = task;
      for (const Text& name : task->inputs.value) members.back().in = &value(*members.back().slot, name.value);
      for (const Text& name : task->outputs.value) {
        if (on_host(*members.back().slot)) value(*members.back().slot, name.value);
      }
    }
    if (inside_one_sip(pipeline_, tasks)) {
      inside(members);
    } else {
      between(members);
    }
    for (Member& member : members) member.slot->tasks.push_back(std::move(member.plan));
  }

  void between(std::vector<Member>& members) {
    const SuperTask& first = *members.front().plan.task;
    switch (first.kind.value) {
      case TaskKind::all_gather:
        gather(members, dim_of(first, "dim"));
        break;
      case TaskKind::reduce_scatter:
        scatter(members, dim_of(first, "dim"));
        break;
      case TaskKind::all_to_all:
        transpose(members, dim_of(first, "src_dim"), dim_of(first, "dst_dim"));
        break;
      default:
        plain(members);
    }
  }

  /// Among parts of one SIP each member reads what it needs out of the others' whole rows.
  void inside(std::vector<Member>& members) {
    inputs(members, true);
    for (Member& member : members) {
      const auto& outputs = member.plan.task->outputs.value;
      if (outputs.empty()) continue;
      member.plan.out = add_out(member, ".out", type_of(*pipeline_.tensor(outputs.front().value)), Lowering::dense());
      define(member, member.plan.out);
    }
  }

  /// Members' inputs as they lie if all lie alike, otherwise whole rows on each PE.
  void inputs(std::vector<Member>& members, bool linear) {
    std::set<std::string> forms;
    for (Member& member : members) {
      if (member.in == nullptr || on_host(*member.slot)) continue;
      Lowering lowering(*member.slot, options_);
      const Buffer& buffer = lowering.buffer(lowering.placed(*member.in, DPPolicy(), member.plan.before));
      forms.insert(buffer.shape.str() + to_string(buffer.policy));
      linear = linear || to_string(buffer.policy) == to_string(DPPolicy());
    }
    for (Member& member : members) {
      if (member.in == nullptr || on_host(*member.slot)) continue;
      Lowering lowering(*member.slot, options_);
      int in = lowering.placed(*member.in, DPPolicy(), member.plan.before);
      const Dims& shape = member.in->type.shape;
      const Shape fold = fold_of(shape);
      if (linear || forms.size() > 1) {
        const Buffer held = lowering.buffer(in);
        const bool there = held.shape == fold && to_string(held.policy) == to_string(Lowering::dense());
        if (!there) {
          Value value = *member.in;
          value.buffer = in;
          const int from = lowering.linear(value, member.plan.before);
          in = lowering.buffer(from).shape == fold &&
                       to_string(lowering.buffer(from).policy) == to_string(Lowering::dense())
                   ? from
                   : lowering.moved(held.name + ".rows", from, shape, dense_strides(shape), 0, member.in->type,
                                    member.plan.before);
        }
      }
      member.plan.in = in;
    }
  }

  int add_out(Member& member, const std::string& suffix, const TensorType& type, const DPPolicy& policy) {
    return Lowering(*member.slot, options_).add_buffer(member.plan.task->name + suffix, type, policy);
  }
  void define(Member& member, int buffer) {
    const std::string& name = member.plan.task->outputs.value.front().value;
    Value& made = member.slot->values[name];
    made.type = type_of(*pipeline_.tensor(name));
    made.buffer = buffer;
  }

  /// Nobody else reads the input's buffer: the result may take its place, if it may on all members.
  bool in_place(const Member& member) const {
    const std::string& name = member.plan.task->inputs.value.front().value;
    const auto origin = checked_.origins.find(name);
    if (origin == checked_.origins.end() || origin->second.producer == nullptr ||
        origin->second.producer->kind.value == TaskKind::input)
      return false;
    if (member.slot->buffers[static_cast<std::size_t>(member.plan.in)].contents != nullptr) return false;
    std::size_t readers = 0, names = 0;
    for (const SuperTask& task : pipeline_.supertasks)
      readers += static_cast<std::size_t>(std::count_if(task.inputs.value.begin(), task.inputs.value.end(),
                                                        [&](const Text& text) { return text.value == name; }));
    for (const auto& [other, value] : member.slot->values) names += value.buffer == member.plan.in ? 1 : 0;
    return readers == 1 && names <= 1;
  }

  /// All-reduce, reduce, broadcast, send: the output lies as the inputs do.
  void plain(std::vector<Member>& members) {
    inputs(members, false);
    const Member* first = nullptr;
    for (const Member& member : members) {
      if (first == nullptr && member.plan.in >= 0) first = &member;
    }
    // In place on all members or on none: their calls have to be alike.
    const bool reduces = members.front().plan.task->kind.value == TaskKind::all_reduce;
    const bool replaces =
        reduces && std::all_of(members.begin(), members.end(), [this](const Member& at) { return in_place(at); });
    for (Member& member : members) {
      if (member.plan.task->outputs.value.empty() || on_host(*member.slot)) continue;
      int out = member.plan.in;
      if (!replaces) {
        const TensorType type = type_of(*pipeline_.tensor(member.plan.task->outputs.value.front().value));
        const DPPolicy policy = first == nullptr
                                    ? Lowering::dense()
                                    : first->slot->buffers[static_cast<std::size_t>(first->plan.in)].policy;
        out = add_out(member, ".out", type, policy);
        if (first != nullptr)
          member.slot->buffers[static_cast<std::size_t>(out)].shape =
              first->slot->buffers[static_cast<std::size_t>(first->plan.in)].shape;
      }
      member.plan.out = out;
      define(member, out);
    }
  }

  /// `dims` with dimension `at` taken apart in (count, rest).
  static Dims parted(const Dims& dims, std::size_t at, std::int64_t count) {
    Dims parts = dims;
    parts[at] /= count;
    parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(at), count);
    return parts;
  }

  /// Nothing but single elements stands before dimension `dim`: its parts lie one behind the other.
  static bool outermost(const Dims& dims, std::size_t dim) {
    return std::all_of(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(dim),
                       [](std::int64_t size) { return size == 1; });
  }

  void gather(std::vector<Member>& members, std::size_t dim) {
    inputs(members, true);
    const auto count = static_cast<std::int64_t>(members.size());
    for (Member& member : members) {
      const TensorType& in = member.in->type;
      const TensorType out = type_of(*pipeline_.tensor(member.plan.task->outputs.value.front().value));
      const bool outer = outermost(in.shape, dim);
      if (outer || dim + 1 == in.shape.size()) {
        member.plan.columns = !outer;
        member.plan.out = add_out(member, ".out", out, Lowering::dense());
        define(member, member.plan.out);
        continue;
      }
      Dims stacked = in.shape;
      stacked.insert(stacked.begin(), count);
      member.plan.out = add_out(member, ".blocks", {stacked, in.dtype}, Lowering::dense());
      Dims strides = dense_strides(in.shape);
      strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(dim), in.count());
      Lowering lowering(*member.slot, options_);
      define(member, lowering.moved(member.plan.task->name + ".out", member.plan.out, parted(out.shape, dim, count),
                                    strides, 0, out, member.plan.after));
    }
  }

  /// Elements of a linear buffer with the parts of `dim` one below the other.
  int stacked(Member& member, int from, const TensorType& type, std::size_t dim, std::int64_t count) {
    Dims dims = parted(type.shape, dim, count), strides = dense_strides(dims);
    std::rotate(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(dim),
                dims.begin() + static_cast<std::ptrdiff_t>(dim) + 1);
    std::rotate(strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(dim),
                strides.begin() + static_cast<std::ptrdiff_t>(dim) + 1);
    return Lowering(*member.slot, options_)
        .moved(member.plan.task->name + ".blocks", from, dims, strides, 0, {dims, type.dtype}, member.plan.before);
  }

  void scatter(std::vector<Member>& members, std::size_t dim) {
    inputs(members, true);
    const auto count = static_cast<std::int64_t>(members.size());
    for (Member& member : members) {
      const TensorType& in = member.in->type;
      const TensorType out = type_of(*pipeline_.tensor(member.plan.task->outputs.value.front().value));
      const bool outer = outermost(in.shape, dim);
      if (!outer) member.plan.in = stacked(member, member.plan.in, in, dim, count);
      member.plan.out = add_out(member, ".out", out, Lowering::dense());
      define(member, member.plan.out);
    }
  }

  void transpose(std::vector<Member>& members, std::size_t source, std::size_t target) {
    inputs(members, true);
    const auto count = static_cast<std::int64_t>(members.size());
    for (Member& member : members) {
      const TensorType& in = member.in->type;
      const TensorType out = type_of(*pipeline_.tensor(member.plan.task->outputs.value.front().value));
      member.plan.in = stacked(member, member.plan.in, in, source, count);
      Dims part = in.shape;
      part[source] /= count;
      Dims blocks = part;
      blocks.insert(blocks.begin(), count);
      member.plan.out = add_out(member, ".received", {blocks, in.dtype}, Lowering::dense());
      // Received pieces one after the other along `target`.
      Dims strides = dense_strides(part);
      strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(target), TensorType{part, in.dtype}.count());
      Lowering lowering(*member.slot, options_);
      define(member, lowering.moved(member.plan.task->name + ".out", member.plan.out, parted(out.shape, target, count),
                                    strides, 0, out, member.plan.after));
    }
  }

  /// Constants and inputs that the pipeline's outputs are.
  void outputs() {
    for (const TensorSlice& slice : pipeline_.metadata.slices.outputs) {
      const auto origin = checked_.origins.find(slice.name);
      const bool boundary = origin == checked_.origins.end() || origin->second.producer == nullptr ||
                            origin->second.producer->kind.value == TaskKind::input;
      if (!boundary) continue;
      SlotPlan& slot =
          slots_[static_cast<std::size_t>(pipeline_.device(slice.device.value) - pipeline_.devices.data())];
      Value& held = value(slot, slice.name);
      std::vector<Step> none;
      if (!on_host(slot) && held.buffer < 0) held.buffer = Lowering(slot, options_).linear(held, none);
    }
  }

  const Pipeline& pipeline_;
  const Checked& checked_;
  PlanOptions options_;
  const bool layers_;
  std::vector<SlotPlan> slots_;
  std::map<std::string, std::shared_ptr<const HostTensor>> constants_;
};

}  // namespace

std::vector<SlotPlan> make_slot_plans(const Pipeline& pipeline, const Checked& checked, const PlanOptions& options) {
  return Planner(pipeline, checked, options).make();
}

}  // namespace kernbench::pipeline
