#pragma once
#include <gtest/gtest.h>
#include <tlm_utils/simple_initiator_socket.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <systemc>
#include <tlm>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/protocol_checker.h"
#include "tests/topology/machines.h"
#include "tlm/ext/message.h"
#include "tlm/observe/observer.h"
#include "topology/machine/machine.h"
#include "topology/plan/plan.h"

namespace kernbench::topology {

/// A phase that a monitor saw; of a payload with a Packet also what that says.
struct SeenPhase {
  const tlm::tlm_generic_payload* payload;
  tlm::tlm_phase phase;
  Ps at;
  std::uint64_t op = 0;
  PacketKind kind = PacketKind::read;
};

/// One-way messages of the machine, which always get through.
inline bool is_one_way(const tlm::tlm_generic_payload& payload) {
  const Packet* packet = payload.get_extension<Packet>();
  return packet != nullptr && packet->message_class != MessageClass::request;
}

class OpLog final : public OpObserver {
 public:
  void op(const OpRecord& record) override { ops.push_back(record); }
  std::vector<OpRecord> ops;
};

/// Fidelity, and whether somebody observes: that keeps the queues of the SIPs in step; else each runs ahead of the
/// others.
using WatchedCase = std::tuple<Grade, bool>;
inline auto every_grade_and_stepping() {
  return ::testing::Combine(::testing::Values(Grade::accurate, Grade::fast), ::testing::Bool());
}
inline std::string name_of(const ::testing::TestParamInfo<WatchedCase>& info) {
  return std::string(to_string(std::get<0>(info.param))) + (std::get<1>(info.param) ? "_observed" : "_ahead");
}

/// A machine with a monitor on every base-protocol socket: the host's and those between endpoints and network.
struct WatchedMachine {
  using Seen = std::vector<SeenPhase>;

  explicit WatchedMachine(const SystemSpec& spec, const RunOptions& options = {}, Observer* observer = nullptr)
      : plan(spec), machine(plan, options, observer, parts()) {}
  /// `socket` becomes the host's on a SIP.
  void bind_host(std::uint16_t sip, tlm::tlm_initiator_socket<>& socket) {
    ProtocolChecker& checker = watch(host_socket(sip), nullptr);
    socket.bind(checker.in);
    checker.out.bind(machine.host_socket(sip));
  }
  static std::string host_socket(std::uint16_t sip) { return "host.sip" + std::to_string(sip); }

  using ProtocolChecker = test::ProtocolChecker;
  ProtocolChecker& watch(const std::string& socket, std::function<bool(const tlm::tlm_generic_payload&)> passes) {
    const std::string name = "watch" + std::to_string(checkers.size());
    auto& checker = checkers[socket];
    checker = passes ? std::make_unique<ProtocolChecker>(name.c_str(), std::move(passes))
                     : std::make_unique<ProtocolChecker>(name.c_str());
    checker->log = [list = &seen[socket]](const tlm::tlm_generic_payload& payload, const tlm::tlm_phase& phase, Ps at) {
      const Packet* packet = payload.get_extension<Packet>();
      list->push_back({&payload, phase, at, packet == nullptr ? 0 : packet->op,
                       packet == nullptr ? PacketKind::read : packet->kind});
    };
    return *checker;
  }
  /// Monitors are known by the socket of the network interface.
  ForeignParts parts() {
    ForeignParts parts;
    parts.bind = [this](tlm::tlm_initiator_socket<>& from, tlm::tlm_target_socket<>& to) {
      const std::string target = to.name(), end = ".from_endpoint";
      const bool inwards =
          target.size() > end.size() && target.compare(target.size() - end.size(), end.size(), end) == 0;
      ProtocolChecker& checker = watch(inwards ? target : from.name(), is_one_way);
      from.bind(checker.in);
      checker.out.bind(to);
    };
    return parts;
  }
  /// Expects that nothing was left half done, and that the models ran ahead of the kernel: else nothing was tested.
  void expect_finished() {
    EXPECT_EQ(machine.pool().outstanding(), 0u);
    std::uint64_t finished = 0;
    Ps furthest = 0;
    for (const auto& [socket, checker] : checkers) {
      EXPECT_EQ(checker->open(), 0u) << socket;
      finished += checker->finished;
      furthest = std::max(furthest, checker->furthest);
    }
    EXPECT_GT(finished, 0u);
    EXPECT_GT(furthest, 0u);
  }

  std::map<std::string, std::unique_ptr<ProtocolChecker>> checkers;  ///< by socket
  std::map<std::string, Seen> seen;
  const Plan plan;
  Machine machine;
};

/// Something must be bound to the PCIe endpoint.
struct SilentHost : sc_core::sc_module {
  SilentHost(const sc_core::sc_module_name& name, Machine& machine) : sc_module(name) {
    socket.bind(machine.host_socket(0));
  }
  tlm_utils::simple_initiator_socket<SilentHost> socket{"socket"};
};

/// The host: submits messages at given times. Each payload has a memory manager, as the base protocol demands.
class MessageHost : public sc_core::sc_module, tlm::tlm_bw_transport_if<>, tlm::tlm_mm_interface {
 public:
  MessageHost(const sc_core::sc_module_name& name, WatchedMachine& watched)
      : sc_module(name), machine_(watched.machine) {
    for (std::uint16_t sip = 0; sip < machine_.map().sips; ++sip) {
      sockets.push_back(std::make_unique<tlm::tlm_initiator_socket<>>(("sip" + std::to_string(sip)).c_str()));
      sockets.back()->bind(*static_cast<tlm::tlm_bw_transport_if<>*>(this));
      watched.bind_host(sip, *sockets.back());
    }
  }
  Message& at(Ps time, std::uint16_t sip, decltype(Message::body) body) {
    Job& job = jobs_.emplace_back();
    job.message.id = jobs_.size();
    job.message.sip = sip;
    job.message.body = std::move(body);
    job.extension.message = &job.message;
    job.payload.set_mm(this);
    job.payload.set_extension(&job.extension);
    job.payload.set_command(tlm::TLM_IGNORE_COMMAND);
    job.payload.set_streaming_width(1);
    job.payload.acquire();
    Job* pointer = &job;
    EventQueue* queue = &machine_.dispatcher().queue(sip);
    queue->at_host(time, [this, pointer, queue] {
      tlm::tlm_phase phase = tlm::BEGIN_REQ;
      sc_core::sc_time delay = sc_core::sc_time::from_value(queue->host_now() - sc_core::sc_time_stamp().value());
      const auto status = (*sockets[pointer->message.sip])->nb_transport_fw(pointer->payload, phase, delay);
      EXPECT_EQ(status, tlm::TLM_UPDATED);
    });
    return job.message;
  }
  const tlm::tlm_generic_payload& payload_of(const Message& message) const { return jobs_[message.id - 1].payload; }

  std::vector<std::unique_ptr<tlm::tlm_initiator_socket<>>> sockets;  ///< by SIP
  std::size_t completed = 0;

 private:
  struct Job {
    ~Job() { payload.clear_extension(&extension); }
    Message message;
    MessageExtension extension;
    tlm::tlm_generic_payload payload;
  };
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase&, sc_core::sc_time&) override {
    ++completed;
    payload.release();
    return tlm::TLM_COMPLETED;
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}
  void free(tlm::tlm_generic_payload*) override {}

  Machine& machine_;
  std::deque<Job> jobs_;
};

}  // namespace kernbench::topology
