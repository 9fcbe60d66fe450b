#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "ccl/contract/legal.h"
#include "runtime/runtime_impl.h"

namespace kernbench {

using Op = CollectiveOp;

namespace {

/// A tensor as the machine has to know it, wherever it lies.
struct Side {
  bool here = false;
  TensorForm form;
  LaunchMessage::TensorArg argument;
};

std::string to_text(const TensorForm& form) {
  return fmt::format("{} placed {}", form.shape.str(), to_string(form.policy));
}

bool is_transfer(const CollectiveCall& call) { return call.op == Op::send_recv && (call.to < 0 || call.from < 0); }

/// As the user called it.
std::string name_of(const CollectiveCall& call) {
  if (call.op != Op::send_recv) return to_string(call.op);
  return call.from < 0 ? "send" : call.to < 0 ? "recv" : "shift";
}

/// PEs that hold a part of it.
std::size_t pes_of(const LaunchMessage::TensorArg& tensor) {
  std::set<PeCoord> pes;
  for (const TensorShard& shard : tensor.shards) {
    if (shard.nbytes > 0) pes.insert(shard.owner);
  }
  return pes.size();
}

/// The elements of one contribution, and how many contributions a rank has, by its shards.
struct Tiles {
  std::int64_t count = 0;
  int number = 0;
};
Tiles count_tiles(const LaunchMessage::TensorArg& tensor, Scope scope) {
  if (scope == Scope::sip) return {tensor.shape.count(), 1};
  struct Box {
    std::int64_t top, left, bottom, right;
  };
  std::map<std::pair<int, int>, Box> boxes;  // of each tile: what its shards cover
  for (const TensorShard& s : tensor.shards) {
    if (s.rows * s.cols == 0) continue;
    const Box own{s.row, s.col, s.row + s.rows, s.col + s.cols};
    const auto [found, is_new] = boxes.emplace(std::pair(s.owner.cube, scope == Scope::pe ? s.owner.pe : 0), own);
    if (is_new) continue;
    Box& box = found->second;
    box = {std::min(box.top, own.top), std::min(box.left, own.left), std::max(box.bottom, own.bottom),
           std::max(box.right, own.right)};
  }
  if (boxes.empty()) return {0, 1};
  const Box& first = boxes.begin()->second;
  return {(first.bottom - first.top) * (first.right - first.left), static_cast<int>(boxes.size())};
}

bool needs_in(const CollectiveCall& call, bool is_root) {
  if (facts_of(call.op).parties == Parties::from_root) return is_root;
  return !(is_transfer(call) && call.to < 0);
}
bool needs_out(const CollectiveCall& call, bool is_root) {
  if (facts_of(call.op).parties == Parties::to_root) return is_root;
  return !(is_transfer(call) && call.from < 0);
}

/// The form of the side that is elsewhere, where nobody said it: as many rows, placed alike.
TensorForm default_form(const TensorForm& here, std::int64_t count) {
  const std::int64_t rows = count % here.shape.rows == 0 ? here.shape.rows : 1;
  return {{rows, count / rows}, here.policy};
}

/// A tensor whose blocks of `width` columns stand side by side, as algorithms know blocks: one below the other. Shards
/// that hold rows of several blocks become a piece for each row and block; all stay where they are in memory.
LaunchMessage::TensorArg stacked(const LaunchMessage::TensorArg& tensor, std::int64_t width, std::size_t item) {
  LaunchMessage::TensorArg blocks{tensor.base, {}, {tensor.shape.rows * (tensor.shape.cols / width), width}};
  for (const TensorShard& shard : tensor.shards) {
    for (std::int64_t left = shard.col; left < shard.col + shard.cols;) {
      const std::int64_t block = left / width, right = std::min((block + 1) * width, shard.col + shard.cols);
      const bool whole = right - left == shard.cols;
      TensorShard part = shard;
      part.rows = whole ? shard.rows : 1;
      part.cols = right - left;
      part.col = left % width;
      part.nbytes = static_cast<std::uint64_t>(part.rows * part.cols) * item;
      for (std::int64_t row = 0; row < shard.rows; row += part.rows) {
        part.row = block * tensor.shape.rows + shard.row + row;
        part.offset_bytes = shard.offset_bytes + static_cast<std::uint64_t>(row * shard.cols + left - shard.col) * item;
        blocks.shards.push_back(part);
      }
      left = right;
    }
  }
  return blocks;
}

/// One call while it is made.
class Call {
 public:
  Call(RuntimeImpl& runtime, int rank, const CollectiveRequest& request)
      : runtime_(runtime),
        request_(request),
        call_(request.call),
        op_(facts_of(request.call.op)),
        who_((request.prepare ? "prepare_" : "") + name_of(request.call) + (request.columns ? "_columns" : "")),
        group_(request.group.get() != nullptr ? *request.group.get() : runtime.groups.default_group(who_.c_str())),
        rank_(rank),
        member_(group_.group_rank(rank)) {}

  std::shared_ptr<Handle::State> submit();
  /// Chooses the algorithm and returns when its queues are there.
  void prepare();

 private:
  /// A call that has its place in the order, and its algorithm.
  struct Entered {
    CallOrder& order;
    std::size_t number;
    ccl::CallTensors tensors;
    ProcessGroup::Chosen chosen;
  };
  Entered enter();
  std::shared_ptr<Handle::State> submit(const Entered& entered);
  /// Gives the launch the number of its program, and sends that to the PEs ahead of it in its stream. Null: they have
  /// it.
  std::shared_ptr<Handle::State> install_program(std::size_t algorithm, ccl::Collective::Launch& launch);
  void check_member();
  void check_tensors();
  void take_forms();
  void check_in_place() const;
  void check_counts();
  /// Blocks that lie side by side, named, for algorithms, as blocks that lie one below the other.
  LaunchMessage::TensorArg check_columns() const;
  Side side_of(const Tensor& tensor) const;
  Side elsewhere(const Side& here, std::int64_t count) const;
  std::string text() const;
  std::string placed(bool in_place) const;
  CallOrder& order();

  RuntimeImpl& runtime_;
  const CollectiveRequest& request_;
  CollectiveCall call_;
  const OperationFacts& op_;
  const std::string who_;
  ProcessGroup& group_;
  const int rank_, member_;
  bool in_place_ = false;
  Side in_, out_;
  std::int64_t block_ = 0;   // elements
  std::uint64_t bytes_ = 0;  // the size as nccl-tests counts it: one contribution, or the array of all blocks
};

void Call::check_member() {
  refuse_unknown(who_, "ReduceOp", call_.reduce_op, ReduceOp::prod);
  if (member_ < 0) {
    throw std::invalid_argument(
        fmt::format("{}: rank {} is not a member of process group {}", who_, rank_, group_.id()));
  }
  const auto check = [&](const char* what, int value) {
    if (value >= 0 && value < group_.size()) return;
    throw std::invalid_argument(
        fmt::format("{}: {} is {}: give 0 to {}, a rank of the group", who_, what, value, group_.size() - 1));
  };
  check("root", call_.root);
  if (!is_transfer(call_)) return;
  const int other = call_.from < 0 ? call_.to : call_.from;
  check(call_.from < 0 ? "to" : "from", other);
  if (other == member_) throw std::invalid_argument(fmt::format("{}: rank {} of the group is this one", who_, other));
}

void Call::check_tensors() {
  const bool is_root = member_ == call_.root;
  const auto check = [&](const Tensor& tensor, bool needed, const char* what) {
    if (!tensor) {
      if (needed) throw std::invalid_argument(fmt::format("{}: '{}' is an empty handle", who_, what));
      return;
    }
    check_usable(tensor, who_);
    if (tensor.sip() != group_.sip_of(member_)) {
      throw std::invalid_argument(fmt::format("{}: tensor '{}' is on sip{}, rank {} of the group drives sip{}", who_,
                                              tensor.name(), tensor.sip(), rank_, group_.sip_of(member_)));
    }
    call_.dtype = tensor.dtype();
  };
  const Tensor &in = request_.in, &out = request_.out;
  check(in, needs_in(call_, is_root), "in");
  check(out, needs_out(call_, is_root), "out");
  if (in && out && in.dtype() != out.dtype()) {
    throw std::invalid_argument(
        fmt::format("{}: 'in' is {}, 'out' is {}", who_, to_string(in.dtype()), to_string(out.dtype())));
  }
  if (!ccl::legal(call_.op, call_.dtype, call_.reduce_op)) {
    throw std::invalid_argument(fmt::format("{}: {} of {} is not defined; use max (or) or min (and)", who_,
                                            to_string(call_.reduce_op), to_string(call_.dtype)));
  }
}

void Call::check_in_place() const {
  const Scope scope = group_.scope();
  if (!in_place_ || ccl::works_in_place(call_.op, scope)) return;
  throw std::invalid_argument(fmt::format(
      "{}: 'in' and 'out' are one tensor, which {} does not allow{}", who_, who_,
      ccl::works_in_place(call_.op, Scope::sip) ? fmt::format(" with scope {}", to_string(scope)) : std::string()));
}

Side Call::side_of(const Tensor& tensor) const {
  return {true, {tensor.shape(), tensor.policy()}, {tensor.va(), machine_shards(tensor.shards()), tensor.shape()}};
}

Side Call::elsewhere(const Side& here, std::int64_t count) const {
  Side side;
  side.form = request_.elsewhere ? *request_.elsewhere : default_form(here.form, count);
  side.argument.shape = side.form.shape;
  side.argument.shards =
      machine_shards(place_shards(side.form.policy, side.form.shape, static_cast<int>(size_of(call_.dtype)),
                                  runtime_.tensors.units_of(rank_), group_.sip_of(member_)));
  return side;
}

void Call::take_forms() {
  const Tensor &in = request_.in, &out = request_.out;
  if (in) in_ = side_of(in);
  if (out) out_ = side_of(out);
  if (in && out) return;
  const Side& here = in ? in_ : out_;
  const Scope scope = group_.scope();
  const bool whole = in ? op_.whole_in() : op_.whole_out();
  const Tiles tiles = count_tiles(here.argument, whole ? Scope::sip : scope);
  const std::int64_t all = static_cast<std::int64_t>(group_.size()) * tiles.number * tiles.count;
  const bool longer = in ? op_.longer_out() : op_.longer_in();
  Side& other = in ? out_ : in_;
  other = elsewhere(here, longer ? all : here.form.shape.count());
}

LaunchMessage::TensorArg Call::check_columns() const {
  const Shape in = in_.form.shape, out = out_.form.shape;
  if (in_place_) throw std::invalid_argument(fmt::format("{}: 'in' and 'out' are one tensor", who_));
  if (group_.scope() != Scope::sip) {
    throw std::invalid_argument(
        fmt::format("{}: the group has scope {}; it needs sip", who_, to_string(group_.scope())));
  }
  if (out.rows != in.rows || out.cols != in.cols * group_.size()) {
    throw std::invalid_argument(fmt::format("{}: 'in' is {}, 'out' {}: it needs {}", who_, in.str(), out.str(),
                                            Shape{in.rows, in.cols * group_.size()}.str()));
  }
  return in.rows > 1 ? stacked(out_.argument, in.cols, size_of(call_.dtype)) : out_.argument;
}

/// A tile of one side has as many elements as the operation makes of the other's.
void Call::check_counts() {
  const Scope scope = group_.scope();
  const Tiles in = count_tiles(in_.argument, op_.whole_in() ? Scope::sip : scope);
  const Tiles out = count_tiles(out_.argument, op_.whole_out() ? Scope::sip : scope);
  const std::int64_t p = static_cast<std::int64_t>(group_.size()) * (op_.whole_in() ? out : in).number;
  const auto wrong = [&](const std::string& rule) {
    throw std::invalid_argument(fmt::format("{}: 'in' has {} elements{}, 'out' has {}: {}", who_, in.count,
                                            scope == Scope::sip ? "" : " in a tile", out.count, rule));
  };
  if (in_place_ && (op_.longer_in() || op_.longer_out())) {
    if (in.count % p != 0) wrong(fmt::format("they have to be {} equal blocks", p));
    block_ = in.count / p;
  } else if (op_.longer_out()) {
    if (out.count != p * in.count) wrong(fmt::format("'out' needs {} times as many as 'in'", p));
    block_ = in.count;
  } else if (op_.longer_in()) {
    if (in.count != p * out.count) wrong(fmt::format("'in' needs {} times as many as 'out'", p));
    block_ = out.count;
  } else {
    if (in.count != out.count) wrong("they need as many");
    if (op_.exchanges() && in.count % p != 0) wrong(fmt::format("they have to be {} equal blocks", p));
    block_ = op_.exchanges() ? in.count / p : in_.form.shape.count();
  }
  bytes_ = static_cast<std::uint64_t>(std::max(in.count, out.count)) * size_of(call_.dtype);
}

/// What has to be the same on all ranks.
std::string Call::text() const {
  std::string text;
  if (ccl::reduces(call_.op)) text = std::string(to_string(call_.reduce_op)) + ", ";
  text += fmt::format("{} x {}", block_, to_string(call_.dtype));
  if (is_transfer(call_)) {
    return fmt::format("a transfer of {} after {} collectives", text, group_.order().made_by(rank_));
  }
  text += fmt::format(", {}", to_string(group_.scope()));
  if (op_.rooted()) text += fmt::format(", root {}", call_.root);
  if (call_.op == Op::send_recv) text += fmt::format(", by {}", request_.distance);
  return fmt::format("{}({})", who_, text);
}

std::string Call::placed(bool in_place) const {
  const std::string in = to_text(in_.form), out = to_text(out_.form);
  if (in_place) return in + ", in place";
  return in == out ? in : in + " to " + out;
}

CallOrder& Call::order() {
  if (!is_transfer(call_)) return group_.order();
  return call_.from < 0 ? group_.transfers(member_, call_.to) : group_.transfers(call_.from, member_);
}

Call::Entered Call::enter() {
  check_member();
  check_tensors();
  take_forms();
  ccl::CallTensors tensors{call_, in_.argument, out_.argument, group_.size(), member_};
  in_place_ = request_.in && request_.out && tensors.in_place;
  check_in_place();
  if (request_.columns) tensors.out = check_columns();
  check_counts();
  CallOrder& order = this->order();
  const CallOrder::Place place = order.enter(rank_, text(), placed(tensors.in_place_everywhere()));
  const ProcessGroup::Chosen chosen = group_.algorithm_for(tensors, bytes_, *place.agreed);
  return {order, place.number, std::move(tensors), chosen};
}

void Call::prepare() {
  const Entered entered = enter();
  runtime_.groups.await_tables(group_, entered.chosen.number, rank_);
  ccl::Collective::Launch launch = group_.algorithm(entered.chosen.number).bind(entered.tensors, *entered.chosen.call);
  if (!launch.message.targets.empty()) {
    if (const auto program = install_program(entered.chosen.number, launch)) runtime_.messages.await(program);
  }
  runtime_.groups.barrier(rank_, who_.c_str(), &group_);
}

std::shared_ptr<Handle::State> Call::install_program(std::size_t algorithm, ccl::Collective::Launch& launch) {
  const ProcessGroup::Slot slot = group_.program(member_, launch.program);
  launch.message.call->program = slot.id;
  if (slot.installed) return nullptr;
  return runtime_.messages.submit(program_message(slot.id, launch.program, launch.message.targets), rank_,
                                  group_.sip_of(member_), runtime_.messages.stream_of(rank_, 0), {},
                                  "program of " + group_.algorithm(algorithm).name());
}

std::shared_ptr<Handle::State> Call::submit() { return submit(enter()); }

std::shared_ptr<Handle::State> Call::submit(const Entered& entered) {
  CallOrder& order = entered.order;
  const std::size_t number = entered.number;
  const auto& [algorithm, call, choice] = entered.chosen;
  const auto ready = [&group = group_, &order, algorithm = algorithm] {
    return group.installed(algorithm, order.ranks());
  };
  if (!runtime_.program.single_driver()) {
    runtime_.groups.install_tables(group_, algorithm, rank_);
  } else if (!ready()) {
    runtime_.groups.await_tables(group_, algorithm, rank_);
  }

  const std::string& name = group_.algorithm(algorithm).name();
  const int sip = group_.sip_of(member_);
  ccl::Collective::Launch launch = group_.algorithm(algorithm).bind(entered.tensors, *call);
  if (launch.message.targets.empty()) {
    auto state = std::make_shared<Handle::State>();
    state->kind = "collective";
    state->name = name;
    state->rank = rank_;
    state->sip = sip;
    state->choice = choice;
    state->operation = to_string(call_.op);
    state->order = &order;
    state->call = number;
    state->done = true;
    runtime_.dispatcher.synchronise();
    state->submitted = state->completed = runtime_.dispatcher.now();
    runtime_.messages.leftovers().no_part(order, number);
    runtime_.messages.complete(state);
    return state;
  }
  install_program(algorithm, launch);
  std::vector<Tensor> uses;
  bool spread = true;
  const auto use = [&](const Tensor& tensor, Side& side) {
    if (!tensor) return;
    spread = spread && pes_of(side.argument) == runtime_.map.pes_per_sip();
    launch.message.tensors.push_back(std::move(side.argument));
    uses.push_back(tensor);
  };
  use(request_.in, in_);
  if (!in_place_) use(request_.out, out_);
  auto state = runtime_.messages.submit(std::move(launch.message), rank_, sip, runtime_.messages.stream_of(rank_, 0),
                                        "collective", name, std::move(uses), &order, number,
                                        ready() ? std::function<bool()>() : ready);
  state->choice = choice;
  state->program = launch.program;
  state->operation = to_string(call_.op);
  state->bound.bytes = static_cast<double>(bytes_);
  if (spread) state->bound.kind = "spread";
  return state;
}

}  // namespace

Handle Context::collective(const CollectiveRequest& request) { return Handle(Call(runtime_, rank_, request).submit()); }
void Context::prepare(const CollectiveRequest& request) { Call(runtime_, rank_, request).prepare(); }

}  // namespace kernbench
