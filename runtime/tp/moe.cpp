#include "runtime/tp/moe.h"

#include <fmt/format.h>

#include <stdexcept>

#include "runtime/tp/gemm.h"
#include "runtime/tp/load_part.h"
#include "runtime/tp/moe_kernels.h"
#include "runtime/tp/own_shard.h"
#include "runtime/tp/pass.h"
#include "runtime/tp/pointwise.h"

namespace kernbench::tp {

namespace {
/// What the host reads lies on one PE: one message.
DPPolicy on_one_pe() { return DPPolicy().cubes(1).pes(1); }

void check_divides(const std::string& layer, const char* what, std::int64_t value, const char* by, int ranks) {
  if (value >= 1 && value % ranks == 0) return;
  throw std::invalid_argument(fmt::format("MoeMlp '{}': {} is {}: give a positive multiple of the {} world size {}",
                                          layer, what, value, by, ranks));
}
}  // namespace

/// A phase of a pass, of rank 0, while it lasts.
struct MoeMlp::Timed {
  Timed(const MoeMlp& layer, MoeLog::Phase phase) : layer(layer), phase(phase), begin(layer.state_.context().now()) {}
  ~Timed() {
    MoeLog* log = layer.options_.run.log.get();
    const Context& context = layer.state_.context();
    if (log != nullptr && context.rank() == 0) log->spans.push_back({layer.options_.name, phase, begin, context.now()});
  }
  const MoeMlp& layer;
  const MoeLog::Phase phase;
  const Ps begin;
};

MoeMlp::MoeMlp(const ParallelState& state, std::int64_t width, std::int64_t hidden, MoeOptions options)
    : state_(state), width_(width), own_hidden_(0), options_(std::move(options)) {
  Context& context = state_.context();
  const int sharers = state_.expert_tensor_parallel_world_size();
  check_divides(options_.name, "experts", options_.experts, "expert-parallel", ranks());
  check_divides(options_.name, "hidden", hidden, "expert-tensor-parallel", sharers);
  if (options_.per_token < 1 || options_.per_token > options_.experts) {
    throw std::invalid_argument(fmt::format("MoeMlp '{}': experts per token is {}: give 1 to the {} experts",
                                            options_.name, options_.per_token, options_.experts));
  }
  if (options_.per_token > kMostMoeRows) {
    throw std::invalid_argument(fmt::format("MoeMlp '{}': experts per token is {}: a launch carries the rows of {}",
                                            options_.name, options_.per_token, kMostMoeRows));
  }
  if (options_.sequence_parallel && sharers > 1) {
    throw std::invalid_argument(
        fmt::format("MoeMlp '{}': sequence parallelism needs as many expert-parallel ranks as tensor-parallel ones, "
                    "{}; there are {}",
                    options_.name, state_.tensor_model_parallel_world_size(), ranks()));
  }
  own_hidden_ = hidden / sharers;
  router_ = context.zeros({width, options_.experts}, options_.dtype, DPPolicy(), options_.name + ".router.weight");
  const auto make = [&](std::int64_t in, std::int64_t out, std::int64_t number, const char* part) {
    return context.zeros({in, out}, options_.dtype, options_.placement.weight,
                         fmt::format("{}.expert{}.{}.weight", options_.name, number, part));
  };
  const std::int64_t local = options_.experts / ranks();
  for (std::int64_t i = rank() * local; i < (rank() + 1) * local; ++i) {
    Weights& own = experts_.emplace_back();
    own.up = make(width, own_hidden_, i, "up");
    own.gate = make(width, own_hidden_, i, "gate");
    own.down = make(own_hidden_, width, i, "down");
  }
}

bool MoeMlp::owns(std::int64_t expert) const {
  return expert >= first_expert() && expert < first_expert() + static_cast<std::int64_t>(experts_.size());
}

void MoeMlp::load_router(const WeightPattern& whole) { load_part(router_, whole, 0, 0); }

void MoeMlp::load_expert(std::int64_t expert, const WeightPattern& up, const WeightPattern& gate,
                         const WeightPattern& down) {
  if (!owns(expert)) return;
  const Weights& own = experts_[static_cast<std::size_t>(expert - first_expert())];
  const std::int64_t first = state_.expert_tensor_parallel_rank() * own_hidden_;
  load_part(own.up, up, 0, first);
  load_part(own.gate, gate, 0, first);
  load_part(own.down, down, first, 0);
}

MoeTensors MoeMlp::place(std::int64_t rows) const {
  Context& context = state_.context();
  const MoeShape sizes = shape(rows);
  const std::int64_t of_rank = MoeRouting::rows_of_rank(sizes), own = MoeRouting::tokens_of_rank(sizes, rank()),
                     chosen = of_rank * options_.per_token;
  const auto make = [&](Shape shape, DType dtype, const DPPolicy& policy, const char* suffix) {
    return context.zeros(shape, dtype, policy, options_.name + suffix);
  };
  MoeTensors tensors;
  tensors.tokens = rows;
  tensors.pool = std::make_shared<MoePool>();
  if (own > 0) tensors.logits = make({own, options_.experts}, options_.dtype, dense_rows(), ".logits");
  tensors.chosen = make({1, chosen}, DType::i32, on_one_pe(), ".chosen");
  tensors.weights = make({1, chosen}, compute_type(options_.dtype), LinearPlacement::split(), ".weights");
  tensors.combined = make({of_rank, width_}, options_.dtype, dense_rows(), ".combined");
  tensors.output = tensors.combined;
  if (ranks() == 1) return tensors;
  tensors.all_chosen = make({1, ranks() * chosen}, DType::i32, on_one_pe(), ".all_chosen");
  if (options_.sequence_parallel) return tensors;
  tensors.gathered = make({ranks() * of_rank, width_}, options_.dtype, rows_for_gemm(rows), ".gathered");
  tensors.output = ranks() * of_rank == rows ? tensors.gathered
                                             : make({rows, width_}, options_.dtype, rows_for_gemm(rows), ".output");
  return tensors;
}

MoePool::Blocks& MoeMlp::blocks(const MoeTensors& tensors, const MoeRouting& routing) const {
  MoePool::Blocks& found = tensors.pool->blocks[routing.block()];
  if (found.mine) return found;
  const Shape shape{ranks() * routing.block(), width_};
  Context& context = state_.context();
  found.mine = context.zeros(shape, options_.dtype, dense_rows(), options_.name + ".mine");
  if (ranks() > 1) found.theirs = context.zeros(shape, options_.dtype, dense_rows(), options_.name + ".theirs");
  return found;
}

MoePool::Expert& MoeMlp::expert_tensors(const MoeTensors& tensors, std::int64_t rows) const {
  MoePool::Expert& found = tensors.pool->experts[rows];
  if (found.input) return found;
  Context& context = state_.context();
  const auto make = [&](std::int64_t cols, const DPPolicy& policy, const char* suffix) {
    return context.zeros({rows, cols}, options_.dtype, policy, options_.name + suffix);
  };
  found.input = make(width_, rows_for_gemm(rows), ".expert.input");
  found.up = make(own_hidden_, options_.placement.output, ".expert.up.output");
  found.gate = make(own_hidden_, options_.placement.output, ".expert.gate.output");
  found.down = make(width_, options_.placement.output, ".expert.down.output");
  const Weights& weights = experts_.front();
  GemmPlans& plans = state_.gemm_plans();
  prepare_gemm(context, options_.name, {found.input, weights.up, {}, found.up}, plans);
  prepare_gemm(context, options_.name, {found.input, weights.gate, {}, found.gate, options_.activation}, plans);
  prepare_gemm(context, options_.name, {found.up, weights.down, {}, found.down}, plans);
  return found;
}

void MoeMlp::prepare(const MoeTensors& tensors) const {
  if (!tensors.pool->blocks.empty()) return;  // layers share them
  Context& context = state_.context();
  const Group& group = state_.expert_model_parallel_group();
  const MoeRouting routing(shape(tensors.tokens),
                           assumed_choices(options_.run.assumed.value_or(AssumedRouting()), tensors.tokens,
                                           options_.experts, options_.per_token));
  const MoePool::Blocks& own = blocks(tensors, routing);
  for (std::size_t i = 0; i < experts_.size(); ++i) {
    const std::int64_t rows = routing.tokens_per_expert()[static_cast<std::size_t>(first_expert()) + i];
    if (rows > 0) static_cast<void>(expert_tensors(tensors, rows_in_use(rows)));
  }
  if (state_.expert_tensor_parallel_world_size() > 1)
    context.prepare_all_reduce(tensors.combined, tensors.combined, ReduceOp::sum,
                               state_.expert_tensor_parallel_group());
  if (ranks() == 1) return;
  context.prepare_all_gather(tensors.chosen, tensors.all_chosen, group);
  if (!options_.sequence_parallel) context.prepare_all_gather(tensors.combined, tensors.gathered, group);
  context.all_to_all(own.mine, own.theirs, group);  // a pass overwrites what it moves
}

/// What the routers of all ranks chose: a read of the host that the rank waits for.
std::vector<std::int32_t> MoeMlp::choices(const MoeTensors& tensors) const {
  Context& context = state_.context();
  const Tensor& from = ranks() > 1 ? tensors.all_chosen : tensors.chosen;
  const Handle handle = context.submit(MemoryReadMessage{from.pa(0), {}, from.bytes()});
  context.wait(handle);
  if (options_.run.assumed)
    return assumed_choices(*options_.run.assumed, tensors.tokens, options_.experts, options_.per_token);
  const std::vector<std::uint8_t>& bytes = std::get<MemoryReadMessage>(handle.message().body).data;
  const std::int64_t k = options_.per_token, rows = MoeRouting::rows_of_rank(shape(tensors.tokens));
  std::vector<std::int32_t> choices;
  for (std::int64_t token = 0; token < tensors.tokens; ++token) {
    for (std::int64_t j = 0; j < k; ++j) {
      const std::int64_t place = (token / rows * k + j) * rows + token % rows;
      choices.push_back(
          static_cast<std::int32_t>(load_element(bytes.data(), DType::i32, static_cast<std::size_t>(place))));
    }
  }
  return choices;
}

MoeRouting MoeMlp::route(const Tensor& x, const MoeTensors& tensors) const {
  const Timed timed(*this, MoeLog::Phase::router);
  Context& context = state_.context();
  if (tensors.logits) {
    GemmOperands operands{x, router_, {}, tensors.logits};
    if (x.shape().rows != tensors.logits.shape().rows)
      operands.first_row = rank() * MoeRouting::rows_of_rank(shape(tensors.tokens));
    Pass pass(state_);
    pass.add(gemm(context, options_.name + ".router", operands, state_.gemm_plans()));
    pass.add(choose_experts(context, options_.name + ".top_k", tensors.logits, tensors.chosen, tensors.weights,
                            options_.per_token));
    pass.wait();
  }
  if (ranks() > 1) context.all_gather(tensors.chosen, tensors.all_chosen, state_.expert_model_parallel_group());
  return MoeRouting(shape(tensors.tokens), choices(tensors));
}

void MoeMlp::dispatch(const Tensor& x, const MoeRouting& routing, const MoePool::Blocks& blocks) const {
  if (ranks() == 1) return;  // experts take their tokens from x
  Context& context = state_.context();
  std::vector<std::int32_t> rows = routing.send_rows(rank());
  if (!options_.sequence_parallel) {
    const auto first = static_cast<std::int32_t>(rank() * ((x.shape().rows + ranks() - 1) / ranks()));
    for (std::int32_t& row : rows) row = row < 0 ? row : row + first;
  }
  Pass pass(state_);
  pass.add(take_rows(context, options_.name + ".dispatch", x, rows, blocks.mine));
  pass.wait();
  context.all_to_all(blocks.mine, blocks.theirs, state_.expert_model_parallel_group());
}

void MoeMlp::run_experts(const Tensor& x, const MoeTensors& tensors, const MoeRouting& routing,
                         const MoePool::Blocks& blocks) const {
  Context& context = state_.context();
  GemmPlans& plans = state_.gemm_plans();
  const bool alone = ranks() == 1;
  const std::vector<std::int32_t> tokens = alone ? routing.send_rows(0) : std::vector<std::int32_t>();
  const Tensor& from = alone ? x : blocks.theirs;
  const Tensor& to = alone ? blocks.mine : blocks.theirs;
  Pass pass(state_);
  const std::string name = options_.name + ".expert";
  // One expert after the other on one stream, none waited for: experts with equally many rows share tensors.
  for (std::size_t i = 0; i < experts_.size(); ++i) {
    const std::vector<std::int32_t> rows = routing.expert_rows(first_expert() + static_cast<std::int64_t>(i));
    if (rows.empty()) continue;
    const MoePool::Expert& own = tensors.pool->experts.at(rows_in_use(static_cast<std::int64_t>(rows.size())));
    std::vector<std::int32_t> sources = rows;
    for (std::int32_t& row : sources) row = alone ? tokens[static_cast<std::size_t>(row)] : row;
    pass.add(take_rows(context, name + ".take", from, sources, own.input));
    pass.add(gemm(context, name + ".up", {own.input, experts_[i].up, {}, own.up}, plans));
    pass.add(gemm(context, name + ".gate", {own.input, experts_[i].gate, {}, own.gate, options_.activation}, plans));
    pass.add(multiply(context, name + ".product", own.up, own.gate));
    pass.add(gemm(context, name + ".down", {own.up, experts_[i].down, {}, own.down}, plans));
    pass.add(put_rows(context, name + ".put", own.down, rows, to));
  }
  pass.wait();
}

void MoeMlp::combine(const MoeTensors& tensors, const MoeRouting& routing, const MoePool::Blocks& blocks) const {
  const Timed timed(*this, MoeLog::Phase::combine);
  Context& context = state_.context();
  const Group& group = state_.expert_model_parallel_group();
  if (ranks() > 1) context.all_to_all(blocks.theirs, blocks.mine, group);
  Pass pass(state_);
  pass.add(combine_rows(context, options_.name + ".combine", blocks.mine, tensors.weights, routing.slots(rank()),
                        options_.per_token, tensors.combined));
  pass.wait();
  if (state_.expert_tensor_parallel_world_size() > 1)
    context.all_reduce(tensors.combined, ReduceOp::sum, state_.expert_tensor_parallel_group());
  if (!tensors.gathered) return;
  context.all_gather(tensors.combined, tensors.gathered, group);
  if (tensors.gathered.shape().rows != tensors.output.shape().rows)
    pass.add(copy_rows(context, options_.name + ".rows", tensors.gathered, 0, tensors.output));
  pass.wait();
}

void MoeMlp::keep(const MoeRouting& routing, Ps begin) const {
  MoeLog* log = options_.run.log.get();
  if (log == nullptr) return;
  if (state_.context().rank() == 0)
    log->passes.push_back({options_.name, begin, routing.tokens_per_expert(), routing.dropped()});
  if (!log->keeps || state_.tensor_model_parallel_rank() != 0) return;
  std::vector<std::int32_t> choices = routing.choices();
  for (std::size_t i = 0; i < choices.size(); ++i) choices[i] = routing.dropped(i) ? ~choices[i] : choices[i];
  log->choices[{options_.name, state_.data_parallel_rank()}].push_back(std::move(choices));
}

Tensor MoeMlp::forward(const Tensor& x, const MoeTensors& tensors) const {
  const std::int64_t rows = options_.sequence_parallel ? tensors.tokens / ranks() : tensors.tokens;
  if (!x || x.shape() != Shape{rows, width_} || x.dtype() != options_.dtype) {
    throw std::invalid_argument(fmt::format("MoeMlp '{}': the input is {}, not {}x{} {}: give what place({}) is for",
                                            options_.name,
                                            x ? x.shape().str() + " " + to_string(x.dtype()) : "an empty handle", rows,
                                            width_, to_string(options_.dtype), tensors.tokens));
  }
  Pass(state_).wait();  // the router's time is its own
  const Ps begin = state_.context().now();
  const MoeRouting routing = route(x, tensors);
  keep(routing, begin);
  const MoePool::Blocks* own = nullptr;
  {
    const Timed timed(*this, MoeLog::Phase::dispatch);
    own = &blocks(tensors, routing);
    for (std::size_t i = 0; i < experts_.size(); ++i) {
      const std::int64_t count = routing.tokens_per_expert()[static_cast<std::size_t>(first_expert()) + i];
      if (count > 0) static_cast<void>(expert_tensors(tensors, rows_in_use(count)));
    }
    dispatch(x, routing, *own);
  }
  {
    const Timed timed(*this, MoeLog::Phase::experts);
    run_experts(x, tensors, routing, *own);
  }
  combine(tensors, routing, *own);
  return tensors.output;
}

}  // namespace kernbench::tp
