#pragma once
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

#include "tests/io/fake_machine.h"
#include "tlm/sim/annotation.h"

namespace kernbench::testing {

/// A plain TLM initiator on a SIP's host socket: submits messages at given times and keeps them.
class HostDriver : public sc_core::sc_module, public tlm::tlm_bw_transport_if<> {
 public:
  HostDriver(const sc_core::sc_module_name& name, FakeMachine& machine, std::uint16_t sip)
      : sc_module(name), queue_(machine.dispatcher().queue(sip)) {
    socket.bind(*this);
    socket.bind(machine.host_socket(sip));
  }
  /// A message that is not answered, or with an error nobody asked for, is a failure of the test.
  ~HostDriver() override {
    for (const Job& job : jobs_) {
      if (job.expected == tlm::TLM_INCOMPLETE_RESPONSE) continue;
      EXPECT_EQ(job.payload.get_response_status(), job.expected)
          << "message " << job.message.id << ": "
          << (job.message.faults.empty() ? "no fault" : job.message.faults.front().reason);
    }
    EXPECT_LE(completed.size(), jobs_.size());
  }
  tlm::tlm_initiator_socket<> socket{"socket"};
  std::vector<Message*> completed;  ///< in order

  Message& at(Ps time, decltype(Message::body) body, std::uint16_t stream = 0) {
    Job& job = jobs_.emplace_back();
    job.message.id = jobs_.size();
    job.message.stream = stream;
    job.message.body = std::move(body);
    job.extension.message = &job.message;
    job.payload.set_extension(&job.extension);
    Job* pointer = &job;
    queue_.at_host(time, [this, pointer] {
      tlm::tlm_phase phase = tlm::BEGIN_REQ;
      sc_core::sc_time delay = annotation(queue_.host_now());
      const auto status = socket->nb_transport_fw(pointer->payload, phase, delay);
      sc_assert(status == tlm::TLM_UPDATED && phase == tlm::END_REQ);
    });
    return job.message;
  }
  /// A message that has to be answered otherwise than TLM_OK_RESPONSE; TLM_INCOMPLETE_RESPONSE: maybe never.
  void expect(tlm::tlm_response_status status, const Message& message) { jobs_[message.id - 1].expected = status; }
  tlm::tlm_response_status status(const Message& message) const {
    return jobs_[message.id - 1].payload.get_response_status();
  }

  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time&) override {
    sc_assert(phase == tlm::BEGIN_RESP);
    completed.push_back(payload.get_extension<MessageExtension>()->message);
    return tlm::TLM_COMPLETED;
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

 private:
  struct Job {
    ~Job() { payload.clear_extension(&extension); }
    Message message;
    tlm::tlm_response_status expected = tlm::TLM_OK_RESPONSE;
    MessageExtension extension;
    tlm::tlm_generic_payload payload;
  };
  EventQueue& queue_;
  std::deque<Job> jobs_;
};

inline LaunchMessage launch_on(std::vector<PeCoord> targets, const char* kernel = "kernel") {
  LaunchMessage launch;
  launch.kernel = kernel;
  launch.entry = bind_kernel([](Tl&) {}).entry;
  launch.targets = std::move(targets);
  return launch;
}

}  // namespace kernbench::testing
