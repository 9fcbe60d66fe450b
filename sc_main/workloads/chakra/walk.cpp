#include "sc_main/workloads/chakra/walk.h"
#include "sc_main/workloads/start_collective.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "runtime/tool_work.h"
#include "sc_main/check/numerics.h"
#include "tlm/kernel/operations.h"

namespace kernbench::chakra {

Ps compute_time(const Node& node, const ComputeRates& rates) {
  const bool modelled =
      !node.on_host && rates.rule != ComputeRule::recorded && (node.operations || rates.rule == ComputeRule::roofline);
  if (!modelled) return node.recorded_us * 1'000'000;
  const auto operations = static_cast<double>(node.operations.value_or(0));
  const double computing = rates.operations_per_second > 0 ? operations / rates.operations_per_second : 0;
  const double moving =
      rates.bytes_per_second > 0 ? static_cast<double>(node.tensor_bytes) / rates.bytes_per_second : 0;
  return static_cast<Ps>(std::llround(std::max(computing, moving) * 1e12));
}

Walk::Walk(Program program, const WalkOptions& options, const PlacementUnits& units)
    : program_(std::move(program)), options_(options) {
  for (const Communication& each : program_.communications) calls_.push_back(make_call(each, units));
  results_.resize(calls_.size());
  for (const RankTrace& trace : program_.traces) {
    RankTimes& times = times_.emplace_back();
    times.nodes.resize(trace.nodes.size());
    for (const Node& node : trace.nodes) {
      const bool known = node.operations || node.tensor_bytes > 0 || node.recorded_us > 0;
      if (node.kind == NodeKind::compute && !known) ++times.timeless;
    }
  }
  inbox_.resize(times_.size());
  bell_.resize(times_.size());
}

Walk::Call Walk::make_call(const Communication& communication, const PlacementUnits& units) const {
  CollectiveCase c;
  c.op = communication.op;
  c.dtype = c.op == CollectiveOp::barrier ? DType::i32 : options_.dtype;
  c.reduce_op = c.op == CollectiveOp::barrier ? ReduceOp::sum : options_.reduce_op;
  c.in_place = facts_of(c.op).in_place == InPlace::always;
  c.root = communication.root;
  c.ranks = static_cast<int>(communication.ranks.size());
  c.in_policy = c.out_policy = options_.policy;
  CollectiveLayout layout(c, units, communication.elements);
  CollectiveData data;
  data.inputs.resize(communication.ranks.size());
  data.outputs.resize(communication.ranks.size());
  const Pattern pattern = input_pattern(c, units, splitmix64(options_.seed) + calls_.size());
  return {c, std::move(layout), std::move(data), pattern};
}

const Node& Walk::node_of(std::size_t c, std::size_t member) const {
  const Communication& each = program_.communications[c];
  return program_.traces[static_cast<std::size_t>(each.ranks[member])].nodes[each.nodes[member]];
}

int Walk::member_of(std::size_t c, int rank) const {
  const std::vector<int>& ranks = program_.communications[c].ranks;
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

Walk::Buffers Walk::make_buffers(Context& ctx, std::size_t c, int member) {
  Call& call = calls_[c];
  const bool transfer = program_.communications[c].transfer();
  const bool has_in = transfer ? member == 0 : call.layout.has_in(member);
  const bool has_out = transfer ? member == 1 : call.layout.has_out(member);
  Buffers buffers;
  const std::string& name = node_of(c, static_cast<std::size_t>(member)).name;
  if (has_in) {
    const Shape shape = call.layout.in_shape();
    buffers.in = ctx.empty(shape, call.what.dtype, call.what.in_policy, name);
    if (options_.data) {
      call.data.inputs[static_cast<std::size_t>(member)] =
          call.pattern.bytes(static_cast<std::uint64_t>(member), static_cast<std::size_t>(shape.count()));
    }
  }
  if (call.what.in_place) {
    buffers.out = buffers.in;
  } else if (has_out) {
    buffers.out = ctx.empty(call.layout.out_shape(), call.what.dtype, call.what.out_policy, name + "_out");
  }
  return buffers;
}

/// Inputs as they are to be; outputs junk, so that what is not written shows.
void Walk::refresh(std::size_t c, int member, Buffers& buffers) const {
  if (!options_.data) return;
  const Call& call = calls_[c];
  if (buffers.in) buffers.in.write_bytes(call.data.inputs[static_cast<std::size_t>(member)]);
  if (call.what.in_place || !buffers.out) return;
  const Pattern junk(~options_.seed, call.what.dtype, Pattern::Range::unit);
  buffers.out.write_bytes(
      junk.bytes(static_cast<std::uint64_t>(member), static_cast<std::size_t>(buffers.out.shape().count())));
}

Handle Walk::start(Context& ctx, std::size_t c, int member, const Buffers& buffers,
                   const std::vector<Group>& groups) const {
  const Communication& communication = program_.communications[c];
  const Call& call = calls_[c];
  if (communication.op != CollectiveOp::send_recv) {
    return start_collective(ctx, communication.op, call.what, call.layout, buffers.in, buffers.out,
                            groups[communication.group]);
  }
  return member == 0 ? ctx.send_async(buffers.in, communication.ranks[1])
                     : ctx.recv_async(buffers.out, communication.ranks[0]);
}

/// One of each kind, in the order of the program.
void Walk::warm_up(Context& ctx, const std::vector<Buffers>& buffers, const std::vector<Group>& groups) const {
  std::set<std::tuple<CollectiveOp, std::vector<int>, int, std::uint64_t>> known;
  for (std::size_t c = 0; c < calls_.size(); ++c) {
    const Communication& each = program_.communications[c];
    if (!known.emplace(each.op, each.ranks, each.root, each.bytes).second) continue;
    const int member = member_of(c, ctx.rank());
    if (member >= 0) ctx.wait(start(ctx, c, member, buffers[c], groups));
  }
}

/// One rank at work.
class Walk::RankWalk {
 public:
  RankWalk(Walk& walk, Context& ctx, const std::vector<Buffers>& buffers, const std::vector<Group>& groups)
      : walk_(walk),
        ctx_(ctx),
        rank_(static_cast<std::size_t>(ctx.rank())),
        nodes_(walk.program_.traces[rank_].nodes),
        times_(walk.times_[rank_]),
        buffers_(buffers),
        groups_(groups),
        waits_(walk.program_.waits[rank_]),
        begin_(ctx.now()) {}

  void run() {
    for (std::size_t place = 0; place < nodes_.size(); ++place) {
      if (waits_[place] == 0) ready_.emplace(nodes_[place].id, place);
    }
    while (true) {
      go_on();
      if (left_ == 0) return;
      std::vector<Handle> handles{walk_.bell_[rank_]};
      for (const Task& task : tasks_) handles.push_back(task.handle);
      ctx_.wait_any(handles);
      retire();
    }
  }

 private:
  struct Task {
    Handle handle;
    std::size_t place;
  };
  /// An engine that takes one node after the other, of those that are ready the smallest id.
  struct Engine {
    std::set<std::pair<std::uint64_t, std::size_t>> queue;
    bool busy = false;
  };

  Ps now() const { return ctx_.now() - begin_; }
  bool computes(std::size_t place) const { return nodes_[place].kind == NodeKind::compute; }
  Engine& engine_of(std::size_t place) { return nodes_[place].on_host ? host_ : device_; }

  /// All that can begin now.
  void go_on() {
    do {
      while (!ready_.empty()) {
        const std::size_t place = ready_.begin()->second;
        ready_.erase(ready_.begin());
        times_.nodes[place].ready = now();
        if (computes(place)) {
          engine_of(place).queue.insert({nodes_[place].id, place});
        } else if (nodes_[place].kind == NodeKind::metadata) {
          times_.nodes[place].begin = now();
          finish(place, now());
        } else {
          arrive(walk_.program_.communication_of[rank_][place], place);
        }
      }
      compute(device_);
      compute(host_);
      submit();
    } while (!ready_.empty());
  }

  void compute(Engine& engine) {
    if (engine.busy || engine.queue.empty()) return;
    const std::size_t place = engine.queue.begin()->second;
    engine.queue.erase(engine.queue.begin());
    engine.busy = true;
    times_.nodes[place].begin = now();
    tasks_.push_back({ctx_.timer(compute_time(nodes_[place], walk_.options_.rates), nodes_[place].name), place});
  }

  bool eager_receive(std::size_t place) const {
    return nodes_[place].kind == NodeKind::receive &&
           walk_.program_.communications[walk_.program_.communication_of[rank_][place]].eager;
  }

  /// The last one to be ready lets all members submit it; of an eager transfer its sender.
  void arrive(std::size_t c, std::size_t place) {
    const Communication& communication = walk_.program_.communications[c];
    if (eager_receive(place)) {
      const auto came = came_.find(place);
      if (came == came_.end()) {
        awaited_.insert(place);
      } else {
        receive(place, came->second);
      }
      return;
    }
    const std::vector<int>& ranks = communication.ranks;
    if (!communication.eager && ++walk_.calls_[c].arrived < ranks.size()) return;
    for (const int member : ranks) {
      const auto other = static_cast<std::size_t>(member);
      walk_.inbox_[other].push_back(c);
      if (other != rank_ && !walk_.bell_[other].done()) ctx_.fulfil(walk_.bell_[other]);
    }
  }

  /// What came by an eager transfer is there for its node from now on.
  void receive(std::size_t place, Ps came) {
    NodeTimes& times = times_.nodes[place];
    times.begin = std::max(times.begin, times.ready);
    finish(place, std::max(came, times.ready));
  }

  void submit() {
    if (walk_.bell_[rank_].done()) walk_.bell_[rank_] = ctx_.promise("a communication that all are ready for");
    std::deque<std::size_t>& inbox = walk_.inbox_[rank_];
    for (; !inbox.empty(); inbox.pop_front()) {
      const std::size_t c = inbox.front();
      const int member = walk_.member_of(c, ctx_.rank());
      const std::size_t place = walk_.program_.communications[c].nodes[static_cast<std::size_t>(member)];
      times_.nodes[place].begin = now();
      tasks_.push_back({walk_.start(ctx_, c, member, buffers_[c], groups_), place});
    }
  }

  void retire() {
    std::vector<Task> done;
    const auto is_done = [](const Task& task) { return task.handle.done(); };
    std::copy_if(tasks_.begin(), tasks_.end(), std::back_inserter(done), is_done);
    tasks_.erase(std::remove_if(tasks_.begin(), tasks_.end(), is_done), tasks_.end());
    for (const Task& task : done) {
      ctx_.wait(task.handle);  // throws what went wrong
      if (computes(task.place)) {
        engine_of(task.place).busy = false;
      } else {
        CommunicationResult& result = walk_.results_[walk_.program_.communication_of[rank_][task.place]];
        result.algorithm = task.handle.name();
        result.begin = std::min(result.begin, times_.nodes[task.place].begin);
        result.end = std::max(result.end, task.handle.completed() - begin_);
      }
      const Ps end = task.handle.completed() - begin_;
      if (!computes(task.place) && eager_receive(task.place)) {
        came_.emplace(task.place, end);
        if (awaited_.count(task.place) != 0) receive(task.place, end);
      } else {
        finish(task.place, end);
      }
    }
  }

  void finish(std::size_t place, Ps end) {
    NodeTimes& times = times_.nodes[place];
    times.end = end;
    times_.end = std::max(times_.end, end);
    if (computes(place) && !nodes_[place].on_host) times_.computing += end - times.begin;
    --left_;
    for (const std::size_t next : walk_.program_.followers[rank_][place]) {
      if (--waits_[next] == 0) ready_.emplace(nodes_[next].id, next);
    }
  }

  Walk& walk_;
  Context& ctx_;
  const std::size_t rank_;
  const std::vector<Node>& nodes_;
  RankTimes& times_;
  const std::vector<Buffers>& buffers_;
  const std::vector<Group>& groups_;
  std::vector<std::size_t> waits_;
  const Ps begin_;
  std::set<std::pair<std::uint64_t, std::size_t>> ready_;
  Engine device_, host_;
  std::vector<Task> tasks_;
  std::map<std::size_t, Ps> came_;  ///< by the place of a receive: when an eager transfer had brought its data
  std::set<std::size_t> awaited_;   ///< receives that are ready before that
  std::size_t left_ = nodes_.size();
};

void Walk::run(Context& ctx) {
  std::vector<Group> groups(1);  // the default one
  for (std::size_t g = 1; g < program_.groups.size(); ++g) {
    groups.push_back(ctx.new_group(program_.groups[g], options_.group));
  }
  std::vector<Buffers> buffers(calls_.size());
  for (std::size_t c = 0; c < calls_.size(); ++c) {
    const ToolWork filling(ctx);
    const int member = member_of(c, ctx.rank());
    if (member >= 0) buffers[c] = make_buffers(ctx, c, member);
  }
  const auto each_own = [&](const auto& f) {
    for (std::size_t c = 0; c < calls_.size(); ++c) {
      const int member = member_of(c, ctx.rank());
      if (member >= 0) f(c, member);
    }
  };
  if (options_.warm_up) warm_up(ctx, buffers, groups);
  each_own([&](std::size_t c, int member) {
    const ToolWork filling(ctx);
    refresh(c, member, buffers[c]);
  });
  bell_[static_cast<std::size_t>(ctx.rank())] = ctx.promise("a communication that all are ready for");
  ctx.barrier();
  RankWalk(*this, ctx, buffers, groups).run();
  ctx.barrier();
  if (!options_.reads) return;
  each_own([&](std::size_t c, int member) {
    Buffers& own = buffers[c];
    if (!own.out) return;
    const ToolWork reading(ctx);
    for (std::size_t copy = 0; copy < own.out.copies(); ++copy) {
      std::vector<std::uint8_t> bytes = own.out.bytes_to_host(copy);
      if (options_.check) calls_[c].data.outputs[static_cast<std::size_t>(member)].push_back(std::move(bytes));
    }
  });
}

void Walk::compare() {
  if (!options_.check) return;
  for (std::size_t c = 0; c < calls_.size(); ++c) {
    Call& call = calls_[c];
    if (!program_.communications[c].transfer()) {
      results_[c].comparison = compare_collective(call.what, call.layout, call.data);
      continue;
    }
    const std::size_t item = size_of(call.what.dtype);
    for (const std::vector<std::uint8_t>& got : call.data.outputs[1]) {
      const std::vector<std::uint8_t>& sent = call.data.inputs[0];
      for (std::size_t i = 0; i < sent.size(); i += item) {
        const auto begin = sent.begin() + static_cast<std::ptrdiff_t>(i);
        if (!std::equal(begin, begin + static_cast<std::ptrdiff_t>(item),
                        got.begin() + static_cast<std::ptrdiff_t>(i))) {
          ++results_[c].comparison.mismatches;
        }
      }
    }
  }
}

std::uint64_t Walk::mismatches() const {
  std::uint64_t sum = 0;
  for (const CommunicationResult& result : results_) sum += result.comparison.mismatches;
  return sum;
}

}  // namespace kernbench::chakra
