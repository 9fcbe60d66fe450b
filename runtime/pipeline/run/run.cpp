#include "runtime/pipeline/run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/pipeline/run/exchange_inside.h"
#include "runtime/pipeline/run/look_ups.h"
#include "runtime/pipeline/run/self_attentions.h"
#include "runtime/pipeline/run/task_times.h"
#include "runtime/pipeline/table.h"
#include "runtime/tool_work.h"
#include "runtime/tp/gemm_planner.h"
#include "runtime/tp/norm.h"
#include "runtime/tp/own_shard.h"
#include "runtime/tp/pointwise.h"
#include "tlm/config/nearest.h"

namespace kernbench::pipeline {

namespace {
ReduceOp reduce_op_of(const SuperTask& task) {
  const std::string op = task.entry("reduce_op")->text;
  return op == "sum" ? ReduceOp::sum : op == "avg" ? ReduceOp::avg : op == "max" ? ReduceOp::max : ReduceOp::min;
}
}  // namespace

/// One rank of a run: its slot's tensors, and what it does with them.
class PipelineRun::Worker {
 public:
  Worker(PipelineRun& run, Context& context) : run_(run), context_(context), attentions_(context), launches_(context) {
    for (std::size_t i = 0; i < run.plans_.size(); ++i) {
      if (run.rank_of_[i] == context.rank()) slot_ = i;
      rank_of_[run.plans_[i].device->name] = run.rank_of_[i];
    }
    if (!slot_ || on_host()) return;
    const Device& device = *plan().device;
    if (context.rank() >= run.sips_) context.set_device(sip_of(run.pipeline_, device, run.sips_));
    if (!device.cubes.given && !device.pes.given) return;
    const auto take = [](const Located<Range>& range, auto all) {
      if (!range.given) return all;
      return decltype(all){static_cast<int>(range.value.begin), static_cast<int>(range.value.end - range.value.begin)};
    };
    context.set_part(take(device.cubes, CubeRange{0, context.map().cubes_per_sip()}),
                     take(device.pes, PeRange{0, context.map().pes_per_cube}));
  }

  void go() {
    // A group's SIPs are its ranks' devices: all have set them by now.
    if (run_.own_workers_ > 0) context_.barrier();
    make_groups();
    const Ps begin = context_.now();
    if (slot_) load();
    run_.outcome_.loading = std::max(run_.outcome_.loading, context_.now() - begin);
    if (slot_ && !on_host() && !run_.settings_.own_groups) prepare();
    const int passes = run_.settings_.warmup + run_.settings_.iterations;
    for (pass_ = 0; pass_ < passes; ++pass_) {
      context_.barrier();
      const Ps start = context_.now();
      if (slot_) {
        run_.outcome_.requests.resize(static_cast<std::size_t>(run_.settings_.requests));
        for (request_ = 0; request_ < run_.settings_.requests; ++request_) do_request(start);
      }
      context_.barrier();
      if (context_.rank() == 0 && pass_ >= run_.settings_.warmup)
        run_.outcome_.passes.push_back(context_.now() - start);
    }
    if (slot_) read_outputs();
  }

 private:
  const SlotPlan& plan() const { return run_.plans_[*slot_]; }
  bool on_host() const { return plan().device->kind.value == DeviceKind::cpu; }
  const Tensor& tensor(int buffer) const {
    static const Tensor kNone;
    return buffer < 0 ? kNone : tensors_[static_cast<std::size_t>(buffer)];
  }
  bool host_in(const std::vector<const SuperTask*>& members) const {
    return std::any_of(members.begin(), members.end(), [&](const SuperTask* task) {
      return run_.pipeline_.device(task->device.value)->kind.value == DeviceKind::cpu;
    });
  }

  /// An exchange with itself. An all-reduce of one member is a call all the same, as tensor-parallel layers make it.
  bool alone(const SuperTask& task) const {
    return run_.checked_.groups.at(task.group.value).size() < 2 && task.kind.value != TaskKind::all_reduce;
  }

  /// Every rank makes the same groups in the same order; of all SIPs in order it is the default one.
  void make_groups() {
    std::vector<int> all(static_cast<std::size_t>(run_.sips_));
    std::iota(all.begin(), all.end(), 0);
    std::map<std::vector<int>, Group> made;
    if (!run_.settings_.own_groups) made[all] = Group();
    for (const SuperTask& task : run_.pipeline_.supertasks) {
      if (!task.group.given || groups_.count(task.group.value) > 0) continue;
      const auto& members = run_.checked_.groups.at(task.group.value);
      if (alone(task) || host_in(members) || inside_one_sip(run_.pipeline_, members)) continue;
      std::vector<int> ranks;
      for (const SuperTask* member : members) ranks.push_back(rank_of_.at(member->device.value));
      if (made.count(ranks) == 0 || run_.settings_.own_groups)
        made[ranks] = context_.new_group(ranks, run_.settings_.group);
      groups_[task.group.value] = made[ranks];
    }
  }

  /// Constants, caches of self-attentions, then what else there is: as the layers of runtime/tp place theirs.
  void load() {
    const ToolWork filling(context_);
    const auto constants = std::find_if(plan().buffers.begin(), plan().buffers.end(),
                                        [](const Buffer& buffer) { return buffer.contents == nullptr; });
    std::for_each(plan().buffers.begin(), constants, [this](const Buffer& buffer) { place(buffer); });
    for (const TaskPlan& task : plan().tasks) {
      for (const Step& step : task.before) {
        if (step.kind == Step::Kind::self_attention) attentions_.place_cache(step, tensor_name(step.name));
      }
    }
    std::for_each(constants, plan().buffers.end(), [this](const Buffer& buffer) {
      const int number = static_cast<int>(tensors_.size());
      attentions_.place_queries(number);
      place(buffer);
      attentions_.place_partial(number, tensors_.back());
    });
    for (const TaskPlan& task : plan().tasks) {
      if (task.task->kind.value == TaskKind::send) clear(task.in);
    }
    for (const auto& [name, value] : plan().values) {
      const auto input = run_.settings_.inputs.find(name);
      if (on_host()) {
        if (value.constant != nullptr) host_[name] = *value.constant;
        if (input != run_.settings_.inputs.end()) host_[name] = input->second;
      } else if (input != run_.settings_.inputs.end()) {
        Tensor(tensor(value.buffer)).write_bytes(input->second.bytes);
      }
    }
  }

  /// What prepare() sends was written, where that takes no time.
  void clear(int buffer) {
    if (buffer < 0 || is_constant(buffer) || run_.settings_.timed_host_io || !run_.settings_.data) return;
    Tensor(tensor(buffer)).write_bytes(std::vector<std::uint8_t>(tensor(buffer).bytes()));
  }

  /// Queues of what the slot does are there before the first pass, as where the layers of runtime/tp run: those of
  /// transfers by a transfer, which the first pass overwrites. The first pass installs those of the other exchanges;
  /// where slots work in orders of their own, all.
  void prepare() {
    for (const TaskPlan& task : plan().tasks) {
      for (const Step& step : task.before) {
        if (step.kind == Step::Kind::gemm) tp::prepare_gemm(context_, step.name, gemm_operands(step), gemms_);
        if (step.kind == Step::Kind::self_attention) attentions_.prepare(step);
      }
      if (task.task->group.given) prepare(task);
    }
    std::set<const ProcessGroup*> linked;
    for (const TaskPlan& task : plan().tasks) {
      const bool transfers = task.task->kind.value == TaskKind::send || task.task->kind.value == TaskKind::recv;
      const auto group = groups_.find(task.task->group.value);
      if (transfers && group != groups_.end() && linked.insert(group->second.get()).second) exchange(task);
    }
  }

  void prepare(const TaskPlan& plan) {
    const auto group = groups_.find(plan.task->group.value);
    if (group == groups_.end()) return;
    const Tensor &in = tensor(plan.in), &out = tensor(plan.out);
    switch (plan.task->kind.value) {
      case TaskKind::all_reduce:
        context_.prepare_all_reduce(in, out, reduce_op_of(*plan.task), group->second);
        return;
      case TaskKind::reduce_scatter:
        context_.prepare_reduce_scatter(in, out, reduce_op_of(*plan.task), group->second);
        return;
      case TaskKind::all_gather:
        plan.columns ? context_.prepare_all_gather_columns(in, out, group->second)
                     : context_.prepare_all_gather(in, out, group->second);
        return;
      default:
        return;
    }
  }

  void do_request(Ps start) {
    launches_.begin();
    for (const TaskPlan& task : plan().tasks) {
      run_.doing_[*slot_] = task.task;
      if (on_host()) {
        host_task(*task.task);
      } else {
        for (const Step& step : task.before) execute(step);
        if (rule_of(task.task->kind.value).is == KindRule::Class::communication) exchange(task);
        for (const Step& step : task.after) execute(step);
      }
      launches_.ends(*task.task);
    }
    std::vector<TaskTime>& times = run_.outcome_.slots[*slot_];
    times = launches_.finish(start);
    run_.doing_[*slot_] = nullptr;
    if (times.empty()) return;
    SlotTimes& busy = run_.outcome_.busy[*slot_];
    if (request_ == 0) busy = SlotTimes();
    for (const TaskTime& time : times)
      (time.task->group.given ? busy.communicating : busy.computing) += time.end - time.begin;
    auto& [begin, end] = run_.outcome_.requests[static_cast<std::size_t>(request_)];
    // The first slot to come overwrites what an earlier pass left; slots of one request overlap.
    const bool fresh = run_.seen_requests_.insert(pass_ * run_.settings_.requests + request_).second;
    begin = fresh ? times.front().begin : std::min(begin, times.front().begin);
    end = fresh ? times.back().end : std::max(end, times.back().end);
  }

  tp::GemmOperands gemm_operands(const Step& step) const {
    return {tensor(step.in[0]), tensor(step.in[1]), tensor(step.in[2]), tensor(step.out), step.activation, {},
            tensor(step.in[3])};
  }

  bool is_constant(int buffer) const { return plan().buffers[static_cast<std::size_t>(buffer)].contents != nullptr; }

  /// In place a sum or a product with a tensor, or a sum with a constant row: the layers of runtime/tp have kernels for
  /// these.
  bool layers_work_so(const Step& step) const {
    if (step.in.size() != 2 || step.in[0] != step.out || step.point.linear) return false;
    const Tensor &out = tensor(step.out), &other = tensor(step.in[1]);
    if (!is_float(out.dtype()) || other.dtype() != out.dtype()) return false;
    if (is_constant(step.in[1])) return step.point.op == PointOp::add && other.shape() == Shape{1, out.shape().cols};
    return (step.point.op == PointOp::add || step.point.op == PointOp::mul) && other.shape() == out.shape();
  }

  void add(const Handle& launch) { launches_.launched(launch); }

  void execute(const Step& step) {
    const auto in = [&](std::size_t i) -> const Tensor& {
      return i < step.in.size() ? tensor(step.in[i]) : tensor(-1);
    };
    const Tensor& out = tensor(step.out);
    switch (step.kind) {
      case Step::Kind::gemm:
        add(tp::gemm(context_, step.name, gemm_operands(step), gemms_));
        return;
      case Step::Kind::move:
        add(move(context_, step.name, in(0), out, step.move));
        return;
      case Step::Kind::point: {
        std::vector<Tensor> operands;
        for (std::size_t i = 0; i < step.in.size(); ++i) operands.push_back(in(i));
        if (layers_work_so(step)) {
          add(step.point.op == PointOp::mul ? tp::multiply(context_, step.name, out, in(1))
              : is_constant(step.in[1])     ? tp::add_bias(context_, step.name, out, in(1), Activation::none)
                                            : tp::add(context_, step.name, out, in(1)));
          return;
        }
        add(point(context_, step.name, out, operands, step.point));
        return;
      }
      case Step::Kind::rows:
        add(rows(context_, step.name, in(0), in(1), in(2), out, step.row));
        return;
      case Step::Kind::norm:
        add(tp::normalise(
            context_, step.name,
            {in(0), in(1), in(2), in(3), tensor(step.second_out), out,
             step.row.op == RowOp::rms_norm ? tp::NormKind::rms : tp::NormKind::layer, step.row.epsilon}));
        return;
      case Step::Kind::product:
        add(product(context_, step.name, in(0), in(1), out, step.product));
        return;
      case Step::Kind::attention:
        add(attention(context_, step.name, in(0), in(1), in(2), in(3), out, step.attention));
        return;
      case Step::Kind::self_attention:
        for (const Handle& launch : attentions_.attend(step, in(0), in(1))) add(launch);
        return;
      case Step::Kind::look_up:
        look_up_rows(context_, launches_,
                     {step.name, in(0), in(1), out, known_contents(step.in[0]), known_contents(step.in[1])},
                     run_.settings_);
        return;
    }
  }

  std::string tensor_name(const std::string& name) const { return plan().device->name + "." + name; }

  void place(const Buffer& buffer) {
    const std::string name = tensor_name(buffer.name);
    tensors_.push_back(
        buffer.contents != nullptr && run_.settings_.copies()
            ? context_.from_bytes(buffer.contents->bytes, buffer.shape, buffer.dtype, buffer.policy, name)
            : context_.empty(buffer.shape, buffer.dtype, buffer.policy, name));
  }

  /// Contents of a constant or an input, which the host knows without data, too; null: of what is computed.
  const std::vector<std::uint8_t>* known_contents(int number) const {
    if (is_constant(number)) return &plan().buffers[static_cast<std::size_t>(number)].contents->bytes;
    for (const auto& [name, value] : plan().values) {
      const auto input = run_.settings_.inputs.find(name);
      if (value.buffer == number && input != run_.settings_.inputs.end()) return &input->second.bytes;
    }
    return nullptr;
  }

  void exchange(const TaskPlan& plan) {
    launches_.wait();
    const SuperTask& task = *plan.task;
    const auto& members = run_.checked_.groups.at(task.group.value);
    const Tensor &in = tensor(plan.in), &out = tensor(plan.out);
    if (host_in(members)) {
      host_transfer(task, in, out);
      return;
    }
    if (inside_one_sip(run_.pipeline_, members)) {
      meet_inside(task, members, in, out);
      return;
    }
    if (alone(task)) {
      if (plan.in != plan.out) add(move_all(task, in, out));
      return;
    }
    const Group& group = groups_.at(task.group.value);
    const auto root = [&](const char* key) {
      const auto found = std::find_if(members.begin(), members.end(), [&](const SuperTask* member) {
        return member->device.value == task.entry(key)->text;
      });
      return static_cast<int>(found - members.begin());
    };
    const int other = context_.group_rank(group) == 0 ? 1 : 0;
    switch (task.kind.value) {
      case TaskKind::send:
        context_.send(in, other, group);
        return;
      case TaskKind::recv:
        context_.recv(out, other, group);
        return;
      case TaskKind::reduce:
        context_.reduce(in, out, root("dst"), reduce_op_of(task), group);
        return;
      case TaskKind::all_gather:
        plan.columns ? context_.all_gather_columns(in, out, group) : context_.all_gather(in, out, group);
        return;
      case TaskKind::all_reduce:
        context_.all_reduce(in, out, reduce_op_of(task), group);
        return;
      case TaskKind::reduce_scatter:
        context_.reduce_scatter(in, out, reduce_op_of(task), group);
        return;
      case TaskKind::all_to_all:
        context_.all_to_all(in, out, group);
        return;
      case TaskKind::broadcast:
        context_.broadcast(in, out, root("src"), group);
        return;
      default:
        throw std::logic_error("no exchange");
    }
  }

  /// An exchange of a slot with itself.
  Handle move_all(const SuperTask& task, const Tensor& in, const Tensor& out) {
    return point(context_, task.name, out, {in}, PointCall());
  }

  Transfer& transfer_of(const SuperTask& task) {
    Transfer& transfer = run_.transfers_[{pass_ * run_.settings_.requests + request_, task.group.value}];
    if (!transfer.ready) transfer.ready = context_.promise("group " + task.group.value);
    return transfer;
  }

  /// A SIP's side of a transfer with a cpu slot: over the link, whose time is the host model's unless host copies have
  /// their own.
  void host_transfer(const SuperTask& task, const Tensor& in, const Tensor& out) {
    Transfer& transfer = transfer_of(task);
    const bool sends = task.kind.value == TaskKind::send;
    const auto wait_for_link = [&](std::uint64_t bytes) {
      if (!run_.settings_.timed_host_io)
        context_.wait(context_.timer(run_.settings_.host.transfer(bytes), "host link"));
    };
    if (sends) {
      transfer.data.bytes = in.bytes_to_host();
      wait_for_link(in.bytes());
      context_.fulfil(transfer.ready);
      return;
    }
    context_.wait(transfer.ready);
    wait_for_link(out.bytes());
    transfer.data.bytes.resize(out.bytes());  // of a slot that computes nothing
    if (run_.settings_.copies()) Tensor(out).write_bytes(transfer.data.bytes);
  }

  /// Among parts of one SIP: once all members have come, each makes its result of what the others hold; all go on once
  /// everybody has.
  void meet_inside(const SuperTask& task, const std::vector<const SuperTask*>& members, const Tensor& in,
                   const Tensor& out) {
    Transfer& transfer = transfer_of(task);
    if (!transfer.taken) {
      transfer.taken = context_.promise("group " + task.group.value);
      transfer.parts.resize(members.size());
    }
    const auto place = static_cast<std::size_t>(std::find(members.begin(), members.end(), &task) - members.begin());
    transfer.parts[place] = in;
    if (++transfer.came == members.size()) context_.fulfil(transfer.ready);
    context_.wait(transfer.ready);
    if (out) exchange_inside(context_, run_.pipeline_, members, place, transfer.parts, out);
    if (++transfer.served == members.size()) context_.fulfil(transfer.taken);
    context_.wait(transfer.taken);
  }

  void host_task(const SuperTask& task) {
    const ToolWork computing(context_);
    if (task.kind.value == TaskKind::send) {
      Transfer& transfer = transfer_of(task);
      transfer.data = host_[task.inputs.value.front().value];
      context_.fulfil(transfer.ready);
      return;
    }
    if (task.kind.value == TaskKind::recv) {
      Transfer& transfer = transfer_of(task);
      context_.wait(transfer.ready);
      const std::string& name = task.outputs.value.front().value;
      const TensorType type = type_of(*run_.pipeline_.tensor(name));
      host_[name] = {type.shape, type.dtype, transfer.data.bytes};
      return;
    }
    const Graph& graph = *run_.checked_.graphs[static_cast<std::size_t>(&task - run_.pipeline_.supertasks.data())];
    Ps time = 0;
    for (const Node& node : graph.nodes) time += run_.settings_.host.time_of(work_of(graph, node));
    if (run_.settings_.data) {
      std::vector<HostTensor> inputs;
      for (const Text& name : task.inputs.value) inputs.push_back(host_.at(name.value));
      std::vector<HostTensor> outputs = evaluate(graph, inputs);
      for (std::size_t i = 0; i < outputs.size(); ++i) host_[task.outputs.value[i].value] = std::move(outputs[i]);
    }
    context_.wait(context_.timer(time, task.name));
  }

  void read_outputs() {
    const ToolWork reading(context_);
    for (const TensorSlice& slice : run_.pipeline_.metadata.slices.outputs) {
      if (slice.device.value != plan().device->name) continue;
      const TensorType type = type_of(*run_.pipeline_.tensor(slice.name));
      HostTensor& output = run_.outcome_.outputs[slice.name];
      output = {type.shape, type.dtype, {}};
      output.bytes = on_host() ? host_[slice.name].bytes : tensor(plan().values.at(slice.name).buffer).bytes_to_host();
      output.bytes.resize(static_cast<std::size_t>(type.count()) * size_of(type.dtype));
    }
  }

  PipelineRun& run_;
  Context& context_;
  std::optional<std::size_t> slot_;
  std::map<std::string, int> rank_of_;  // by slot
  std::map<std::string, Group> groups_;
  std::vector<Tensor> tensors_;  // by buffer
  tp::GemmPlans gemms_;
  SelfAttentions attentions_;
  TaskTimes launches_;
  std::map<std::string, HostTensor> host_;
  int pass_ = 0, request_ = 0;
};

PipelineRun::PipelineRun(const Pipeline& pipeline, const Checked& checked, std::vector<SlotPlan> plans,
                         RunSettings settings, int sips)
    : pipeline_(pipeline), checked_(checked), plans_(std::move(plans)), settings_(std::move(settings)), sips_(sips) {
  std::set<int> driven;
  for (const SlotPlan& plan : plans_) {
    const bool cpu = plan.device->kind.value == DeviceKind::cpu;
    const int sip = cpu ? -1 : sip_of(pipeline_, *plan.device, sips_);
    rank_of_.push_back(!cpu && driven.insert(sip).second ? sip : sips_ + own_workers_++);
  }
  outcome_.slots.resize(plans_.size());
  outcome_.busy.resize(plans_.size());
  doing_.resize(plans_.size());
}

std::string PipelineRun::standing() const {
  std::string text;
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    if (doing_[i] == nullptr) continue;
    const SuperTask& task = *doing_[i];
    text += fmt::format("slot {} waits in supertask {} ({}{})\n", quote(plans_[i].device->name), quote(task.name),
                        to_string(task.kind.value), task.group.given ? ", group " + quote(task.group.value) : "");
  }
  return text;
}

void PipelineRun::rank_program(Context& context) { Worker(*this, context).go(); }

}  // namespace kernbench::pipeline
