#include "runtime/pipeline/run/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace kernbench::pipeline {

namespace {

/// Works out when each buffer is used, in steps of the slot, and joins buffers whose uses do not overlap.
class Places {
 public:
  Places(const Pipeline& pipeline, SlotPlan& slot) : pipeline_(pipeline), slot_(slot), uses_(slot.buffers.size()) {
    joined_.resize(slot.buffers.size());
    std::iota(joined_.begin(), joined_.end(), 0);
    for (std::size_t t = 0; t < slot_.tasks.size(); ++t) {
      for_each_step(slot_.tasks[t], [&](const std::vector<int>& reads, const std::vector<int>& writes) {
        for (const int buffer : reads) use(buffer, t, false);
        for (const int buffer : writes) use(buffer, t, true);
        ++now_;
      });
    }
    for (const TensorSlice& slice : pipeline.metadata.slices.outputs) {
      const auto held = slot.values.find(slice.name);
      if (slice.device.value == slot.device->name && held != slot.values.end() && held->second.buffer >= 0)
        uses_[static_cast<std::size_t>(held->second.buffer)].last = kAlways;
    }
  }

  void share() {
    work_in_place();
    join_alike();
    renumber();
  }

 private:
  static constexpr std::size_t kAlways = std::numeric_limits<std::size_t>::max();
  struct Use {
    std::size_t first = kAlways, last = 0;  ///< steps
    std::size_t task = 0;                   ///< that of the first
    bool made = false;                      ///< the first writes it: nothing of it is there before
  };

  /// of(reads, writes) for every step and for the exchange, in the order of the work.
  template <class Of>
  static void for_each_step(const TaskPlan& task, const Of& of) {
    for (const Step& step : task.before) of(step.in, {step.out, step.second_out});
    of({task.in}, {task.out});
    for (const Step& step : task.after) of(step.in, {step.out, step.second_out});
  }

  void use(int buffer, std::size_t task, bool writes) {
    if (buffer < 0) return;
    Use& use = uses_[static_cast<std::size_t>(buffer)];
    if (use.first == kAlways) use = {now_, now_, task, writes};
    use.last = std::max(use.last, now_);
  }

  std::size_t root(std::size_t buffer) const {
    while (joined_[buffer] != buffer) buffer = joined_[buffer];
    return buffer;
  }
  std::string form(std::size_t buffer) const {
    const Buffer& of = slot_.buffers[buffer];
    return fmt::format("{} {} {}", of.shape.str(), to_string(of.dtype), to_string(of.policy));
  }
  /// What is made at a step, and may lie wherever there is room for it.
  bool made(std::size_t buffer) const { return uses_[buffer].made && slot_.buffers[buffer].contents == nullptr; }

  void join(std::size_t buffer, std::size_t with) {
    joined_[buffer] = with;
    uses_[with].last = std::max(uses_[with].last, uses_[buffer].last);
  }

  void work_in_place() {
    std::size_t now = 0;
    for (const TaskPlan& task : slot_.tasks) {
      for (const Step& step : task.before) {
        if (step.kind == Step::Kind::point && !step.point.linear) work_in_place(step, now);
        ++now;
      }
      now += 1 + task.after.size();
    }
  }

  void work_in_place(const Step& step, std::size_t now) {
    const auto out = static_cast<std::size_t>(step.out), in = root(static_cast<std::size_t>(step.in.front()));
    if (uses_[in].last == now && made(in) && uses_[out].first == now && form(in) == form(out)) join(out, in);
  }

  /// Supertasks that are alike have the same text.
  std::string text(const TaskPlan& task, const std::vector<std::size_t>& own) const {
    std::string text = to_string(task.task->kind.value);
    for (const Step& step : task.before) {
      const SelfAttentionCall& call = step.self_attention;
      text += fmt::format(" {}", static_cast<int>(step.kind));
      if (step.kind == Step::Kind::self_attention)
        text += fmt::format("({} {} {} {} {})", call.batch, call.length, call.heads, call.kv_heads, call.head_dim);
    }
    for (const std::size_t buffer : own) text += ", " + form(buffer);
    return text;
  }

  void join_alike() {
    std::vector<std::vector<std::size_t>> own(slot_.tasks.size());
    for (std::size_t buffer = 0; buffer < uses_.size(); ++buffer) {
      if (made(buffer) && joined_[buffer] == buffer) own[uses_[buffer].task].push_back(buffer);
    }
    std::map<std::string, std::vector<std::size_t>> alike;
    for (std::size_t t = 0; t < own.size(); ++t) {
      if (own[t].empty()) continue;
      std::vector<std::size_t>& earlier = alike[text(slot_.tasks[t], own[t])];
      for (std::size_t i = 0; i < own[t].size(); ++i) {
        const std::size_t buffer = own[t][i];
        const auto free = std::find_if(earlier.begin(), earlier.end(), [&](std::size_t other) {
          return uses_[root(own[other][i])].last < uses_[buffer].first;
        });
        if (free != earlier.end()) join(buffer, root(own[*free][i]));
      }
      earlier.push_back(t);
    }
  }

  /// Where the document lists what the buffer is or belongs to.
  std::size_t listed(std::size_t buffer) const {
    if (!made(buffer)) return slot_.buffers[buffer].tensor;
    const SuperTask& task = *slot_.tasks[uses_[buffer].task].task;
    const auto& names = task.outputs.value.empty() ? task.inputs.value : task.outputs.value;
    return static_cast<std::size_t>(pipeline_.tensor(names.front().value) - pipeline_.tensors.data());
  }

  void renumber() {
    std::vector<std::size_t> order;
    for (std::size_t buffer = 0; buffer < joined_.size(); ++buffer) {
      if (joined_[buffer] == buffer) order.push_back(buffer);
    }
    const auto key = [&](std::size_t buffer) {
      return std::pair(slot_.buffers[buffer].contents == nullptr, listed(buffer));
    };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    std::vector<int> number(joined_.size());
    std::vector<Buffer> buffers;
    for (const std::size_t buffer : order) {
      number[buffer] = static_cast<int>(buffers.size());
      buffers.push_back(std::move(slot_.buffers[buffer]));
    }
    slot_.buffers = std::move(buffers);
    const auto change = [&](int& buffer) {
      if (buffer >= 0) buffer = number[root(static_cast<std::size_t>(buffer))];
    };
    for (TaskPlan& task : slot_.tasks) {
      change(task.in);
      change(task.out);
      for (std::vector<Step>* steps : {&task.before, &task.after}) {
        for (Step& step : *steps) {
          for (int& buffer : step.in) change(buffer);
          change(step.out);
          change(step.second_out);
        }
      }
    }
    for (auto& [name, value] : slot_.values) change(value.buffer);
    for (auto& [key_of, buffer] : slot_.placed) change(buffer);
  }

  const Pipeline& pipeline_;
  SlotPlan& slot_;
  std::vector<Use> uses_;            // by buffer; of a joined one its own, of one with which others are all of them
  std::vector<std::size_t> joined_;  // by buffer: the one whose place it has
  std::size_t now_ = 0;
};

}  // namespace

void share_places(const Pipeline& pipeline, SlotPlan& slot) { Places(pipeline, slot).share(); }

}  // namespace kernbench::pipeline
