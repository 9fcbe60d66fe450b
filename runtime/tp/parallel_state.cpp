#include "runtime/tp/parallel_state.h"

#include <fmt/format.h>

#include <stdexcept>
#include <vector>

#include "runtime/tp/gemm_planner.h"
#include "runtime/tp/pass.h"

namespace kernbench::tp {

namespace {
void check_size(const char* name, int size) {
  if (size >= 1) return;
  throw std::invalid_argument(fmt::format("initialize_model_parallel: {} is {}: give 1 or more", name, size));
}

/// The cube of ranks: along each of its three axes there is a group for every pair of places on the other two.
struct RankCube {
  int tensor, data, pipeline;
  int world() const { return tensor * data * pipeline; }
};

/// Makes all groups of `size` ranks that are `stride` apart, in order of their first rank, and returns this rank's.
/// Every rank makes every group: the runtime asks for it.
ParallelGroup make_groups(Context& context, const RankCube& cube, int size, int stride,
                          const ProcessGroupOptions& options) {
  const int self = context.group_rank();
  ParallelGroup own;
  own.rank = self / stride % size;
  own.size = size;
  if (size == cube.world()) return own;  // the default group
  for (int first = 0; first < cube.world(); ++first) {
    if (first / stride % size != 0) continue;
    std::vector<int> ranks;
    ranks.reserve(static_cast<std::size_t>(size));
    for (int i = 0; i < size; ++i) ranks.push_back(first + i * stride);
    const Group group = context.new_group(ranks, options);
    if (self - own.rank * stride == first) own.group = group;
  }
  return own;
}
}  // namespace

int ParallelState::tensor_model_parallel_rank() const { return context(), tensor_.rank; }
int ParallelState::tensor_model_parallel_world_size() const { return context(), tensor_.size; }
const Group& ParallelState::tensor_model_parallel_group() const { return context(), tensor_.group; }
int ParallelState::data_parallel_rank() const { return context(), data_.rank; }
int ParallelState::data_parallel_world_size() const { return context(), data_.size; }
const Group& ParallelState::data_parallel_group() const { return context(), data_.group; }
int ParallelState::pipeline_model_parallel_rank() const { return context(), pipeline_.rank; }
int ParallelState::pipeline_model_parallel_world_size() const { return context(), pipeline_.size; }
const Group& ParallelState::pipeline_model_parallel_group() const { return context(), pipeline_.group; }
int ParallelState::expert_model_parallel_rank() const { return context(), expert_.rank; }
int ParallelState::expert_model_parallel_world_size() const { return context(), expert_.size; }
const Group& ParallelState::expert_model_parallel_group() const { return context(), expert_.group; }
int ParallelState::expert_tensor_parallel_rank() const { return context(), expert_tensor_.rank; }
int ParallelState::expert_tensor_parallel_world_size() const { return context(), expert_tensor_.size; }
const Group& ParallelState::expert_tensor_parallel_group() const { return context(), expert_tensor_.group; }

Context& ParallelState::context() const {
  if (context_ == nullptr) {
    throw std::logic_error(
        "the tensor-parallel state is used before it is initialised: call initialize_model_parallel first");
  }
  return *context_;
}

GemmPlans& ParallelState::gemm_plans() const { return context(), *plans_; }
LaunchesUnderWay& ParallelState::launches_under_way() const { return context(), *launches_; }

std::uint16_t ParallelState::work_stream() const {
  Context& of_rank = context();
  if (*work_stream_ == 0) *work_stream_ = of_rank.new_stream();
  return *work_stream_;
}

ProcessGroupOptions on_first_use() {
  ProcessGroupOptions options;
  options.install_at_once = false;
  return options;
}

ParallelState initialize_model_parallel(Context& context, int tensor_model_parallel_size,
                                        int pipeline_model_parallel_size, const ProcessGroupOptions& options,
                                        int expert_model_parallel_size) {
  if (!context.in_process_group()) {
    throw std::logic_error("initialize_model_parallel: there is no process group: call init_process_group first");
  }
  check_size("tensor_model_parallel_size", tensor_model_parallel_size);
  check_size("pipeline_model_parallel_size", pipeline_model_parallel_size);
  const int world = context.group_size();
  // Neither is above the world, so that their product is no overflow.
  if (tensor_model_parallel_size > world || pipeline_model_parallel_size > world ||
      world % (tensor_model_parallel_size * pipeline_model_parallel_size) != 0) {
    throw std::invalid_argument(
        fmt::format("initialize_model_parallel: tensor_model_parallel_size {} times pipeline_model_parallel_size {} "
                    "does not divide the {} ranks of the world",
                    tensor_model_parallel_size, pipeline_model_parallel_size, world));
  }
  if (expert_model_parallel_size < 0 ||
      (expert_model_parallel_size > 0 && tensor_model_parallel_size % expert_model_parallel_size != 0)) {
    throw std::invalid_argument(fmt::format(
        "initialize_model_parallel: expert_model_parallel_size {} does not divide tensor_model_parallel_size {}",
        expert_model_parallel_size, tensor_model_parallel_size));
  }
  const int tensor = tensor_model_parallel_size, pipeline = pipeline_model_parallel_size;
  const RankCube cube{tensor, world / (tensor * pipeline), pipeline};
  ParallelState state;
  state.tensor_ = make_groups(context, cube, cube.tensor, 1, options);
  state.data_ = make_groups(context, cube, cube.data, cube.tensor, options);
  state.pipeline_ = make_groups(context, cube, cube.pipeline, cube.tensor * cube.data, options);
  const int experts = expert_model_parallel_size == 0 ? tensor : expert_model_parallel_size;
  // Ranks that have an expert each are the TP group, as ranks that share all of them are.
  state.expert_ = experts == tensor ? state.tensor_ : ParallelGroup();
  state.expert_tensor_ = experts == 1 ? state.tensor_ : ParallelGroup();
  if (experts > 1 && experts < tensor) {
    state.expert_ = make_groups(context, cube, experts, tensor / experts, options);
    state.expert_tensor_ = make_groups(context, cube, tensor / experts, 1, options);
  }
  state.context_ = &context;
  state.plans_ = std::make_shared<GemmPlans>();
  state.launches_ = std::make_shared<LaunchesUnderWay>();
  state.work_stream_ = std::make_shared<std::uint16_t>(std::uint16_t{0});
  return state;
}

}  // namespace kernbench::tp
