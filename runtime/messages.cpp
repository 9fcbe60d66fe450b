#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "runtime/runtime_impl.h"

namespace kernbench {

std::string Handle::State::describe() const {
  const std::string at =
      fmt::format("on sip{}, submitted at {}.{:03} ns", sip, submitted / kPsPerNs, submitted % kPsPerNs);
  return name.empty() ? fmt::format("{} {}", kind, at) : fmt::format("{} '{}' {}", kind, name, at);
}

Handle::State& Handle::of(const char* call) const {
  if (state_ == nullptr) throw std::invalid_argument(fmt::format("Handle::{}: the handle is empty", call));
  return *state_;
}

bool Handle::done() const { return of("done").done; }
const std::string& Handle::name() const { return of("name").name; }
const ccl::Choice* Handle::choice() const { return of("choice").choice.get(); }
Ps Handle::submitted() const { return of("submitted").submitted; }
Ps Handle::completed() const { return of("completed").completed; }
const Message& Handle::message() const {
  const State& state = of("message");
  if (state.message == nullptr) throw std::logic_error(state.describe() + ": the handle has no message");
  return *state.message;
}
Ps Handle::kernel_time(const char* call, Ps LaunchMessage::*time) const {
  const State& state = of(call);
  if (state.message == nullptr && state.kind == "collective") return state.submitted;  // no PE takes part
  const auto* launch = state.message == nullptr ? nullptr : std::get_if<LaunchMessage>(&state.message->body);
  if (launch == nullptr) throw std::logic_error(fmt::format("Handle::{}: {} has no kernel", call, state.describe()));
  return launch->*time;
}
Ps Handle::kernel_start() const { return kernel_time("kernel_start", &LaunchMessage::first_start); }
Ps Handle::kernel_end() const { return kernel_time("kernel_end", &LaunchMessage::last_end); }

Messages::Messages(RuntimeImpl& runtime, Observer* observer)
    : runtime_(runtime), observer_(observer != nullptr && observer->wants_ops() ? observer : nullptr) {}

std::uint16_t Messages::new_streams(const char* who, std::uint16_t count) {
  if (next_stream_ > 0xFFFF - count) throw std::length_error(std::string(who) + ": all 65,535 streams are taken");
  return static_cast<std::uint16_t>((next_stream_ += count) - count);
}

void Messages::drop_unsent() {
  for (auto state = pending_.begin(); state != pending_.end();) {
    state = state->second->sent ? std::next(state) : pending_.erase(state);
  }
}

Messages::StatePtr Messages::submit(decltype(Message::body) body, int rank, int sip, std::uint16_t stream,
                                    std::string kind, std::string name, std::vector<Tensor> uses,
                                    const CallOrder* order, std::size_t call, std::function<bool()> ready) {
  runtime_.program.check_open();
  runtime_.dispatcher.synchronise();
  auto state = std::make_shared<Handle::State>();
  state->message = std::make_unique<Message>();
  Message& message = *state->message;
  message.id = next_message_++;
  message.sip = static_cast<std::uint16_t>(sip);
  message.stream = stream;
  message.body = std::move(body);
  if (auto* launch = std::get_if<LaunchMessage>(&message.body)) launch->stream = stream;
  state->kind = kind.empty() ? message_kind(message) : std::move(kind);
  state->name = std::move(name);
  state->rank = rank;
  state->sip = sip;
  state->uses = std::move(uses);
  state->order = order;
  state->call = call;
  state->ready = std::move(ready);
  state->submitted = runtime_.dispatcher.now();
  pending_.emplace(message.id, state);
  runtime_.program.scheduling().submitted(state);
  return state;
}

void Messages::arrived(const StatePtr& state) {
  Message& message = *state->message;
  pending_.erase(message.id);
  runtime_.dispatcher.activity().completed();
  state->done = true;
  state->completed = message.completed;
  leftovers_.came_back(message, state->order, state->call, state->repeated);
  if (!message.faults.empty()) failed_.push_back(state);
  if (runtime_.replay != nullptr) runtime_.replay->came_back(state);
  if (state->kind == "launch" || state->kind == "collective") complete(state);
  runtime_.program.scheduling().completed(state);
  runtime_.program.notify_main(state);
  state->uses.clear();  // may free tensors, which submits their unmapping
  runtime_.tensors.operation_ended();
}

void Messages::complete(const StatePtr& state) {
  trace_.push_back(
      {state->kind, state->name, state->rank, state->sip, state->submitted, state->completed, state->operation});
  HostTraceEntry& entry = trace_.back();
  if (state->message != nullptr) {
    if (const auto* launch = std::get_if<LaunchMessage>(&state->message->body)) {
      entry.kernel_start = launch->first_start;
      entry.kernel_end = launch->last_end;
    }
    check_bound(*state, entry);
  }
  entry.bound = state->bound;
  entry.repeated = state->repeated;
  if (observer_ == nullptr) return;
  OpRecord record;
  record.start = state->submitted;
  record.end = state->completed;
  record.component = fmt::format("host.rank{}", state->rank);
  record.kind = "host";
  record.name = "host_call";
  record.kernel = state->name;
  record.params = {{"call", state->kind, 0}, {"rank", "", state->rank}, {"sip", "", state->sip}};
  observer_->repeats(state->repeated);
  observer_->op(record);
  observer_->repeats(false);
}

void Messages::check_bound(const Handle::State& state, const HostTraceEntry& entry) {
  const Ps took = entry.kernel_end - entry.kernel_start;
  if (!state.message->faults.empty() || took >= state.bound.time || !beaten_.empty()) return;
  beaten_ = fmt::format("{} took {}.{:03} ns, less than its bound of {}.{:03} ns", state.describe(), took / kPsPerNs,
                        took % kPsPerNs, state.bound.time / kPsPerNs, state.bound.time % kPsPerNs);
}

void Messages::await(const StatePtr& state) {
  if (state->done) return;
  if (runtime_.replay != nullptr) runtime_.replay->awaits(state);
  await(state, state->describe(), [] { return false; });
}

void Messages::await(const StatePtr& state, const std::string& text, const std::function<bool()>& give_up) {
  const int rank = runtime_.program.scheduler().current();
  if (rank < 0) return runtime_.program.go(state, text);
  runtime_.program.check_open();
  runtime_.program.scheduling().waited_for(state, rank);
  const Awaits awaits(*this, rank, *state);
  runtime_.program.scheduler().wait(text, [&] { return state->done || give_up(); });
}

Messages::Awaits::Awaits(Messages& messages, int rank, const Handle::State& state) : messages_(messages), rank_(rank) {
  messages_.awaited_[rank] = &state;
}
Messages::Awaits::~Awaits() { messages_.awaited_.erase(rank_); }

const Handle::State* Messages::awaited_by(int rank) const {
  const auto found = awaited_.find(rank);
  return found == awaited_.end() ? nullptr : found->second;
}

void Messages::before_host_access(HostAccess access, const Tensor::State& tensor) {
  HostAccessCounts& counts = accesses_[static_cast<std::size_t>(access)];
  ++counts.used;
  if (runtime_.program.refuses()) return;
  const int rank = std::max(runtime_.program.scheduler().current(), 0);  // the main context submits as rank 0
  const char* const entry = kHostEntryPoints[static_cast<std::size_t>(access)].name;
  bool waited = false;
  for (auto list = awaited_before(tensor, rank); !list.empty(); list = awaited_before(tensor, rank)) {
    waited = true;
    for (const auto& state : list) runtime_.program.scheduling().announced(state);  // one drain for all of them
    for (const auto& state : list) {
      if (state->done) continue;
      await(state, fmt::format("{}, to use tensor '{}' by {}", state->describe(), tensor.name, entry),
            [&] { return state->rank != rank && runtime_.port.stands_still(); });
    }
  }
  if (!waited) return;
  ++counts.waited;
  if (!tensor.allocated && access != HostAccess::free) {
    throw std::logic_error(
        fmt::format("tensor '{}' was freed while rank {} waited to use it by {}", tensor.name, rank, entry));
  }
}

namespace {
/// A message that may read or write a tensor's contents. Of a collective, only those of its own tensors.
bool may_use(const Handle::State& state, const Tensor::State& tensor) {
  if (state.order == nullptr) {
    const auto& body = state.message->body;
    return std::holds_alternative<LaunchMessage>(body) || std::holds_alternative<MemoryWriteMessage>(body) ||
           std::holds_alternative<MemoryReadMessage>(body);
  }
  return std::any_of(state.uses.begin(), state.uses.end(),
                     [&](const Tensor& used) { return &used.state() == &tensor; });
}
}  // namespace

std::vector<Messages::StatePtr> Messages::awaited_before(const Tensor::State& tensor, int rank) const {
  std::vector<StatePtr> list;
  if (pending_.empty()) return list;
  const std::set<std::uint64_t> held = held_up();
  for (const auto& [id, state] : pending_) {
    if (!reaches(state->sip, tensor.sip)) continue;
    const bool own = state->rank == rank;
    // What another rank maps or installs changes no contents.
    const bool touches = state->order != nullptr || may_use(*state, tensor);
    if (held.count(id) == 0 ? own || (touches && !runtime_.port.stands_still()) : own && may_use(*state, tensor)) {
      list.push_back(state);
    }
  }
  return list;
}

std::vector<Messages::StatePtr> Messages::touching(const Tensor::State& tensor) const {
  std::vector<StatePtr> list;
  for (const auto& [id, state] : pending_) {
    if (reaches(state->sip, tensor.sip) && may_use(*state, tensor)) list.push_back(state);
  }
  return list;
}

std::set<std::uint64_t> Messages::held_up() const {
  std::set<std::uint64_t> held;
  std::set<std::pair<const CallOrder*, std::size_t>> calls;  // some part is held up
  for (bool more = true; more;) {
    more = false;
    std::set<Scheduling::Line> stopped;
    for (const auto& [id, state] : pending_) {
      const Scheduling::Line line{state->sip, state->message->stream};
      const std::pair call{state->order, state->call};
      const bool is_call = state->order != nullptr;
      const bool own_fault = is_call && (!state->order->complete(state->call) || calls.count(call) != 0);
      if (!own_fault && stopped.count(line) == 0) continue;
      stopped.insert(line);
      held.insert(id);
      if (is_call && calls.insert(call).second) more = true;
    }
  }
  return held;
}

void Messages::note_reach(const decltype(Message::body)& body, int sip) {
  const auto note = [&](const PhysicalAddress& address) {
    if (address.sip != sip) foreign_.insert({sip, address.sip});
  };
  if (const auto* mapping = std::get_if<MmuMapMessage>(&body)) {
    for (const MapEntry& entry : mapping->entries) note(entry.target);
  } else if (const auto* queues = std::get_if<SfrWriteMessage>(&body)) {
    for (const NeighbourEntry& entry : queues->entries) {
      note(entry.ring_base);
      note(entry.peer_ring_base);
    }
  } else if (const auto* write = std::get_if<MemoryWriteMessage>(&body)) {
    note(write->to);
  } else if (const auto* read = std::get_if<MemoryReadMessage>(&body)) {
    note(read->from);
  }
}

void Messages::await_done(const StatePtr& state) {
  await(state);
  throw_fault(*state);
}

void Messages::throw_fault(Handle::State& state) {
  if (state.message == nullptr || state.message->faults.empty()) return;
  state.fault_seen = true;
  throw DeviceFault(state.fault_text());
}

std::string Handle::State::fault_text() const {
  constexpr std::size_t kShown = 8;
  const std::vector<Fault>& faults = message->faults;
  std::string text = fmt::format("{} failed", describe());
  for (std::size_t i = 0; i < faults.size() && i < kShown; ++i) text += "\n  " + faults[i].str();
  if (faults.size() > kShown) text += fmt::format("\n  ... and {} more", faults.size() - kShown);
  return text;
}

}  // namespace kernbench
