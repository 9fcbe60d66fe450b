#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/runtime_impl.h"

namespace kernbench {

/// Generic payloads for the host sockets: one per message under way, with its MessageExtension for life.
class RuntimeImpl::Payloads : public tlm::tlm_mm_interface {
 public:
  tlm::tlm_generic_payload& acquire(Message& message) {
    if (free_.empty()) {
      all_.push_back(std::make_unique<Entry>(this));
      free_.push_back(all_.back().get());
    }
    Entry& entry = *free_.back();
    free_.pop_back();
    entry.extension.message = &message;
    entry.set_command(tlm::TLM_IGNORE_COMMAND);
    entry.set_data_ptr(nullptr);
    entry.set_data_length(0);
    entry.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    entry.acquire();
    return entry;
  }
  void free(tlm::tlm_generic_payload* payload) override { free_.push_back(static_cast<Entry*>(payload)); }

 private:
  struct Entry : tlm::tlm_generic_payload {
    explicit Entry(tlm::tlm_mm_interface* pool) : tlm_generic_payload(pool) { set_extension(&extension); }
    ~Entry() override { clear_extension(&extension); }
    MessageExtension extension;
  };
  std::vector<std::unique_ptr<Entry>> all_;
  std::vector<Entry*> free_;
};

std::string Handle::State::describe() const {
  const std::string at =
      fmt::format("on sip{}, submitted at {}.{:03} ns", sip, submitted / kPsPerNs, submitted % kPsPerNs);
  return name.empty() ? fmt::format("{} {}", kind, at) : fmt::format("{} '{}' {}", kind, name, at);
}

bool Handle::done() const { return state_->done; }
Ps Handle::submitted() const { return state_->submitted; }
Ps Handle::completed() const { return state_->completed; }
const Message& Handle::message() const {
  if (state_->message == nullptr) throw std::logic_error(state_->describe() + ": the handle has no message");
  return *state_->message;
}
Ps Handle::kernel_start() const {
  if (state_->message == nullptr) return state_->submitted;
  return std::get<LaunchMessage>(state_->message->body).first_start;
}
Ps Handle::kernel_end() const {
  if (state_->message == nullptr) return state_->submitted;
  return std::get<LaunchMessage>(state_->message->body).last_end;
}

RuntimeImpl::RuntimeImpl(Runtime& module, const MachineMap& map, Dispatcher& dispatcher, const RunOptions& options)
    : module(module),
      map(map),
      dispatcher(dispatcher),
      options(options),
      scheduler(dispatcher),
      payloads(std::make_unique<Payloads>()),
      memory(map),
      next_va(map.sips, Va{1} << 32) {}

RuntimeImpl::~RuntimeImpl() = default;

std::uint16_t RuntimeImpl::stream_of(int rank, std::uint16_t stream) const {
  return stream == 0 ? static_cast<std::uint16_t>(rank) : stream;
}

std::shared_ptr<Handle::State> RuntimeImpl::submit(decltype(Message::body) body, int rank, int sip,
                                                   std::uint16_t stream, std::string kind, std::string name,
                                                   std::vector<Tensor> uses) {
  dispatcher.synchronise();
  auto state = std::make_shared<Handle::State>();
  state->message = std::make_unique<Message>();
  Message& message = *state->message;
  message.id = next_message++;
  message.sip = static_cast<std::uint16_t>(sip);
  message.stream = stream;
  message.body = std::move(body);
  if (auto* launch = std::get_if<LaunchMessage>(&message.body)) launch->stream = stream;
  state->kind = kind.empty() ? message_kind(message) : std::move(kind);
  state->name = std::move(name);
  state->rank = rank;
  state->sip = sip;
  state->uses = std::move(uses);
  state->submitted = dispatcher.now();
  pending.emplace(message.id, state);

  tlm::tlm_generic_payload& payload = payloads->acquire(message);
  tlm::tlm_phase phase = tlm::BEGIN_REQ;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  const auto status = (*module.pcie[static_cast<std::size_t>(sip)])->nb_transport_fw(payload, phase, delay);
  sc_assert(status != tlm::TLM_COMPLETED);  // would mean that the endpoint refused it
  return state;
}

tlm::tlm_sync_enum RuntimeImpl::nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                                sc_core::sc_time&) {
  if (phase != tlm::BEGIN_RESP) return tlm::TLM_ACCEPTED;
  const Message& message = *payload.get_extension<MessageExtension>()->message;
  const auto found = pending.find(message.id);
  const std::shared_ptr<Handle::State> state = found->second;
  pending.erase(found);
  payload.release();
  state->done = true;
  state->completed = message.completed;
  if (!message.faults.empty()) failed.push_back(state);
  if (state->kind == "launch" || state->kind == "collective") {
    trace.push_back({state->kind, state->name, state->rank, state->sip, state->submitted, state->completed});
  }
  for (const int rank : state->waiters) scheduler.make_ready(rank);
  state->waiters.clear();
  state->uses.clear();  // may free tensors, which submits their unmapping
  return tlm::TLM_COMPLETED;
}

void RuntimeImpl::await(const std::shared_ptr<Handle::State>& state) {
  if (state->done) return;
  const int rank = scheduler.current();
  if (rank < 0) throw std::logic_error(state->describe() + ": only a worker can wait for it");
  const std::string waits_for = state->describe();
  scheduler.wait(waits_for, [&] {
    if (!state->done && std::find(state->waiters.begin(), state->waiters.end(), rank) == state->waiters.end()) {
      state->waiters.push_back(rank);
    }
    return state->done;
  });
}

void RuntimeImpl::drain(int sip) {
  for (;;) {
    std::shared_ptr<Handle::State> next;
    std::set<std::uint16_t> stopped;  // streams with a collective in front that cannot complete yet
    for (const auto& [id, state] : pending) {
      if (state->sip != sip || stopped.count(state->message->stream) != 0) continue;
      if (state->kind == "collective" && !group->complete(state->call)) {
        stopped.insert(state->message->stream);
        continue;
      }
      next = state;
      break;
    }
    if (next == nullptr) return;
    await(next);
  }
}

void RuntimeImpl::throw_fault(Handle::State& state) {
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
