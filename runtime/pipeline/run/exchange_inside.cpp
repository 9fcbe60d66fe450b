#include "runtime/pipeline/run/exchange_inside.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "runtime/pipeline/emit.h"
#include "runtime/pipeline/run/kernels.h"

namespace kernbench::pipeline {

namespace {

using Sizes = std::vector<std::int64_t>;

class InsideExchange {
 public:
  InsideExchange(Context& context, const Pipeline& pipeline, const std::vector<const SuperTask*>& members,
                 std::size_t place, const std::vector<Tensor>& in, const Tensor& out)
      : context_(context), task_(*members[place]), in_(in), out_(out), count_(static_cast<std::int64_t>(in.size())) {
    first_ = static_cast<std::size_t>(
        std::find_if(in.begin(), in.end(), [](const Tensor& tensor) { return static_cast<bool>(tensor); }) -
        in.begin());
    const auto shape_of = [&](const auto& names) {
      Sizes shape = type_of(*pipeline.tensor(names.front().value)).shape;
      if (shape.empty()) shape = {1};
      return shape;
    };
    shape_ = shape_of(members[first_]->inputs.value);
    from_ = dense_strides(shape_);
    to_ = dense_strides(shape_of(task_.outputs.value));
    const TaskKind kind = task_.kind.value;
    if (kind == TaskKind::reduce_scatter || kind == TaskKind::all_to_all) {
      split_ = dim_of(kind == TaskKind::all_to_all ? "src_dim" : "dim");
      shape_[split_] /= count_;
      offset_ = static_cast<std::int64_t>(place) * shape_[split_] * from_[split_];
    }
  }

  void run() {
    switch (task_.kind.value) {
      case TaskKind::reduce:
      case TaskKind::all_reduce:
      case TaskKind::reduce_scatter:
        return reduce(task_.entry("reduce_op")->text);
      case TaskKind::all_gather:
        return join(dim_of("dim"));
      case TaskKind::all_to_all:
        return join(dim_of("dst_dim"));
      default:  // recv, broadcast
        return copy(first_, 0);
    }
  }

 private:
  std::size_t dim_of(const char* key) const { return static_cast<std::size_t>(std::stoull(task_.entry(key)->text)); }

  void copy(std::size_t member, std::int64_t to_offset) {
    MoveCall call = move_of(shape_, from_, to_);
    call.from_offset = offset_;
    call.to_offset = to_offset;
    context_.wait(move(context_, task_.name, in_[member], out_, call));
  }

  /// Every member's block, one after the other along `dim`.
  void join(std::size_t dim) {
    for (std::size_t i = 0; i < in_.size(); ++i) copy(i, static_cast<std::int64_t>(i) * shape_[dim] * to_[dim]);
  }

  void reduce(const std::string& op) {
    PointCall call;
    call.linear = true;
    call.op = op == "max" ? PointOp::maximum : op == "min" ? PointOp::minimum : PointOp::add;
    // A block is rows of one length, which lie as far apart as the dimension before the one that is split says; if
    // there is a single one, it is dealt as the result lies.
    call.height = std::accumulate(shape_.begin(), shape_.begin() + static_cast<std::ptrdiff_t>(split_), std::int64_t{1},
                                  std::multiplies<>());
    call.width = shape_[split_] * from_[split_];
    std::int64_t distance = call.height == 1 ? 0 : from_[split_ - 1];
    if (call.height == 1) {
      call.height = out_.shape().rows;
      call.width = distance = out_.shape().cols;
    }
    call.cols = {1, 1, 0};
    const auto skipped = static_cast<Va>(offset_) * size_of(out_.dtype());
    for (std::size_t i = 1; i < in_.size(); ++i) {
      const bool fresh = i == 1;
      call.rows = {fresh ? distance : call.width, distance, 0};
      call.bases = {fresh ? skipped : 0, skipped, 0};
      context_.wait(point(context_, task_.name, out_, {fresh ? in_[0] : out_, in_[i]}, call));
    }
    if (op != "avg") return;
    call.op = PointOp::mul;
    call.with_number = true;
    call.number = 1 / static_cast<double>(count_);
    call.rows = {call.width, 0, 0};
    call.bases = {};
    context_.wait(point(context_, task_.name, out_, {out_}, call));
  }

  Context& context_;
  const SuperTask& task_;
  const std::vector<Tensor>& in_;
  const Tensor& out_;
  const std::int64_t count_;
  std::size_t first_ = 0;    // member that brings a tensor
  Sizes shape_, from_, to_;  // of what this member reads of every tensor; distances there and in the result
  std::size_t split_ = 0;    // dimension along which it is a part
  std::int64_t offset_ = 0;  // of it in every tensor
};

}  // namespace

bool inside_one_sip(const Pipeline& pipeline, const std::vector<const SuperTask*>& members) {
  const auto machine = [](const Device& slot) { return slot.machine.given ? slot.machine.value : 0; };
  const Device& first = *pipeline.device(members.front()->device.value);
  return members.size() > 1 && std::all_of(members.begin(), members.end(), [&](const SuperTask* member) {
           const Device& slot = *pipeline.device(member->device.value);
           return slot.kind.value == DeviceKind::npu && slot.idx.value == first.idx.value &&
                  machine(slot) == machine(first);
         });
}

void exchange_inside(Context& context, const Pipeline& pipeline, const std::vector<const SuperTask*>& members,
                     std::size_t place, const std::vector<Tensor>& in, const Tensor& out) {
  InsideExchange(context, pipeline, members, place, in, out).run();
}

}  // namespace kernbench::pipeline
