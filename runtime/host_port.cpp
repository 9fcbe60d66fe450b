#include "runtime/host_port.h"

#include <vector>

#include "runtime/runtime_impl.h"
#include "tlm/sim/annotation.h"

namespace kernbench {

/// Generic payloads for the host sockets: one per message under way, with its MessageExtension for life.
class HostPort::Payloads : public tlm::tlm_mm_interface {
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
    entry.set_streaming_width(1);
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

HostPort::HostPort(RuntimeImpl& runtime) : runtime_(runtime), payloads_(std::make_unique<Payloads>()) {}

HostPort::~HostPort() = default;

void HostPort::send(const StatePtr& state) {
  runtime_.dispatcher.synchronise();
  if (runtime_.replay == nullptr || !runtime_.replay->take(state)) transmit(state);
}

void HostPort::transmit(const StatePtr& state) {
  runtime_.dispatcher.synchronise();
  ++sends_;
  state->sent = true;
  Message& message = *state->message;
  tlm::tlm_generic_payload& payload = payloads_->acquire(message);
  tlm::tlm_phase phase = tlm::BEGIN_REQ;
  sc_core::sc_time delay = annotation(runtime_.dispatcher.now());
  const auto status = (*runtime_.module.pcie[message.sip])->nb_transport_fw(payload, phase, delay);
  sc_assert(status != tlm::TLM_COMPLETED);  // would mean that the endpoint refused it
}

tlm::tlm_sync_enum HostPort::nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                             sc_core::sc_time&) {
  if (phase != tlm::BEGIN_RESP) return tlm::TLM_ACCEPTED;
  const StatePtr state = runtime_.messages.pending().at(payload.get_extension<MessageExtension>()->message->id);
  payload.release();
  runtime_.messages.arrived(state);
  return tlm::TLM_COMPLETED;
}

}  // namespace kernbench
