#include "models/bridge/initiator_bridge.h"

#include <algorithm>
#include <deque>
#include <list>
#include <stdexcept>
#include <vector>

#include "tlm/ext/message.h"
#include "tlm/machine/names.h"
#include "tlm/sim/annotation.h"

namespace kernbench {

struct InitiatorBridge::Impl final : sc_core::sc_module, tlm::tlm_fw_transport_if<> {
  /// One access of the foreign initiator, from its first packet to its last response.
  struct Access {
    tlm::tlm_generic_payload* payload = nullptr;
    std::vector<unsigned char> enables;  // by byte; empty: all
    std::uint64_t issued = 0;            // bytes
    unsigned pending = 0;                // packets
    sc_core::sc_event* done = nullptr;   // b_transport waits for it; null: the bridge's thread answers
    Ps ended = 0;                        // when the last response was back

    bool complete() const { return pending == 0 && issued == payload->get_data_length(); }
    bool enabled(std::uint64_t byte) const { return enables.empty() || enables[byte] == TLM_BYTE_ENABLED; }
  };
  /// The network interface's two sides: responses, and what it delivers.
  struct NetworkSide final : tlm::tlm_bw_transport_if<>, tlm::tlm_fw_transport_if<> {
    explicit NetworkSide(Impl& bridge) : bridge(bridge) {}
    tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                       sc_core::sc_time&) override {
      sc_assert(phase == tlm::BEGIN_RESP);
      static_cast<void>(phase);
      bridge.returned(payload);
      payload.release();
      return tlm::TLM_COMPLETED;
    }
    void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}
    tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                       sc_core::sc_time&) override {
      sc_assert(phase == tlm::BEGIN_REQ);
      static_cast<void>(phase);
      return bridge.delivered(payload);
    }
    void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time&) override {
      payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);  // there is no memory here
    }
    bool get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi&) override { return false; }
    unsigned transport_dbg(tlm::tlm_generic_payload&) override { return 0; }
    Impl& bridge;
  };

  SC_HAS_PROCESS(Impl);
  Impl(InitiatorBridge& module, const Config& config, const MachineMap& map, PayloadPool& pool,
       const RunOptions& options, Dispatcher& dispatcher)
      : sc_module(sc_core::sc_module_name("thread")),
        module(module),
        config(config),
        map(map),
        pool(pool),
        options(options),
        dispatcher(dispatcher),
        queue(dispatcher.queue(map.node(config.self).at.sip)),
        network(*this) {
    module.foreign.bind(*this);
    module.out.bind(network);
    module.in.bind(network);
    SC_THREAD(serve);
  }

  // ---- Loosely timed ----

  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) override {
    Access access;
    access.payload = &payload;
    if (!prepare(access)) return;  // needs no time: the caller may run on ahead of it
    sc_core::sc_event done;
    access.done = &done;
    dispatcher.catch_up();
    if (const Ps begin = instant(delay); begin > queue.now()) {  // the network waits for its time, not the caller
      queue.from_host(begin, [this, &access] { issue(access); });
    } else {
      issue(access);
    }
    if (!access.complete()) dispatcher.run_ahead();
    while (!access.complete()) sc_core::wait(done);
    delay = annotation(access.ended);
  }

  // ---- Approximately timed ----

  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override {
    if (phase == tlm::BEGIN_REQ) {
      if (request != nullptr)
        SC_REPORT_FATAL("kernbench/protocol", "bridge: BEGIN_REQ before END_REQ of the request before");
      payload.acquire();
      request = &payload;
      wake.notify(sc_core::SC_ZERO_TIME);
      request_at = sc_core::sc_time_stamp() + delay;
      return tlm::TLM_ACCEPTED;
    }
    if (phase == tlm::END_RESP && response == &payload) {
      response = nullptr;
      response_ended = sc_core::sc_time_stamp() + delay;
      payload.release();
      wake.notify(sc_core::SC_ZERO_TIME);
      return tlm::TLM_COMPLETED;
    }
    SC_REPORT_FATAL("kernbench/protocol", "bridge: unexpected phase");
    return tlm::TLM_ACCEPTED;
  }

  void serve() {
    while (true) {
      // A copy, for time goes on. NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
      const sc_core::sc_time now = sc_core::sc_time_stamp();
      if (request != nullptr && request_at <= now) {
        begin();
      } else if (response == nullptr && !answers.empty() && response_ended <= now) {
        answer();
      } else if (request != nullptr && (answers.empty() || response != nullptr || request_at <= response_ended)) {
        wait(request_at - now, wake);
      } else if (response == nullptr && !answers.empty()) {
        wait(response_ended - now, wake);
      } else {
        wait(wake);
      }
    }
  }

  void begin() {
    tlm::tlm_generic_payload& payload = *request;
    accesses.emplace_back();
    Access& access = accesses.back();
    access.payload = &payload;
    if (prepare(access)) {
      dispatcher.catch_up();
      issue(access);
    } else {
      accesses.pop_back();
      answers.push_back(&payload);
    }
    request = nullptr;
    tlm::tlm_phase phase = tlm::END_REQ;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    module.foreign->nb_transport_bw(payload, phase, delay);
  }

  void answer() {
    response = answers.front();
    answers.pop_front();
    tlm::tlm_generic_payload& payload = *response;
    tlm::tlm_phase phase = tlm::BEGIN_RESP;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    const tlm::tlm_sync_enum status = module.foreign->nb_transport_bw(payload, phase, delay);
    const bool ended = status == tlm::TLM_COMPLETED || (status == tlm::TLM_UPDATED && phase == tlm::END_RESP);
    if (!ended || response != &payload) return;
    response_ended = sc_core::sc_time_stamp() + delay;
    response = nullptr;
    payload.release();
  }

  // ---- Packets ----

  /// Sets an error status if there is nothing to send.
  bool prepare(Access& access) const {
    tlm::tlm_generic_payload& payload = *access.payload;
    payload.set_response_status(check(payload));
    if (payload.get_response_status() != tlm::TLM_OK_RESPONSE) return false;
    if (const unsigned char* enable = payload.get_byte_enable_ptr()) {
      access.enables.resize(payload.get_data_length());
      for (std::size_t i = 0; i < access.enables.size(); ++i)
        access.enables[i] = enable[i % payload.get_byte_enable_length()];
    }
    return true;
  }

  tlm::tlm_response_status check(const tlm::tlm_generic_payload& payload) const {
    const std::uint64_t length = payload.get_data_length();
    if (!payload.is_read() && !payload.is_write()) return tlm::TLM_COMMAND_ERROR_RESPONSE;
    if (length == 0 || payload.get_streaming_width() < length) return tlm::TLM_BURST_ERROR_RESPONSE;
    if (payload.get_byte_enable_ptr() != nullptr && payload.get_byte_enable_length() == 0)
      return tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE;
    return memory_at(payload.get_address(), length) == kNoNode ? tlm::TLM_ADDRESS_ERROR_RESPONSE : tlm::TLM_OK_RESPONSE;
  }

  NodeId memory_at(std::uint64_t address, std::uint64_t length) const {
    try {
      PhysicalAddress at = PhysicalAddress::decode(address);
      const NodeId first = map.resolve(at);
      if (length - 1 > PhysicalAddress::kMaxOffset - at.offset) return kNoNode;
      at.offset += length - 1;
      return map.resolve(at) == first ? first : kNoNode;
    } catch (const std::invalid_argument&) {  // the bits name no memory
      return kNoNode;
    }
  }

  void issue(Access& access) {
    const std::uint64_t length = access.payload->get_data_length();
    while (access.issued < length && in_flight < config.outstanding) send_packet(access);
    if (access.issued < length) waiting.push_back(&access);
  }

  void send_packet(Access& access) {
    const tlm::tlm_generic_payload& whole = *access.payload;
    const std::uint64_t address = whole.get_address() + access.issued;
    const std::uint64_t to_boundary = kMaxPacketBytes - address % kMaxPacketBytes;
    const auto bytes =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(whole.get_data_length() - access.issued, to_boundary));
    tlm::tlm_generic_payload& part = pool.acquire();
    part.set_command(whole.get_command());
    part.set_address(address);
    part.set_data_length(bytes);
    part.set_streaming_width(bytes);
    if (!access.enables.empty()) {
      part.set_byte_enable_ptr(access.enables.data() + access.issued);
      part.set_byte_enable_length(bytes);
    }
    if (whole.is_write()) std::copy_n(whole.get_data_ptr() + access.issued, bytes, part.get_data_ptr());
    Packet& packet = Packet::of(part);
    packet.destination = map.resolve(PhysicalAddress::decode(address));
    packet.kind = whole.is_read() ? PacketKind::read : PacketKind::write;
    packet.message_class = MessageClass::request;
    packet.bytes = whole.is_read() ? 0 : bytes;
    packet.user = &access;
    packet.tag = static_cast<std::uint32_t>(access.issued);
    access.issued += bytes;
    ++access.pending;
    ++in_flight;
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = annotation(queue.now());
    module.out->nb_transport_fw(part, phase, delay);
  }

  void returned(tlm::tlm_generic_payload& part) {
    const Packet& packet = Packet::of(part);
    Access& access = *static_cast<Access*>(packet.user);
    tlm::tlm_generic_payload& whole = *access.payload;
    --access.pending;
    --in_flight;
    dispatcher.activity().completed();
    if (part.get_response_status() != tlm::TLM_OK_RESPONSE) {
      whole.set_response_status(part.get_response_status());
    } else if (whole.is_read()) {
      for (std::uint32_t i = 0; i < part.get_data_length(); ++i) {
        if (access.enabled(packet.tag + i))
          whole.get_data_ptr()[packet.tag + i] = options.data ? part.get_data_ptr()[i] : std::uint8_t{0};
      }
    }
    const bool complete = access.complete();
    if (!waiting.empty()) {  // another access may be due, or more of this one
      Access& next = *waiting.front();
      waiting.pop_front();
      issue(next);
    }
    if (!complete) return;
    if (access.done != nullptr) {
      access.ended = queue.now();
      return dispatcher.notify_ahead(*access.done);
    }
    answers.push_back(&whole);
    accesses.erase(std::find_if(accesses.begin(), accesses.end(), [&](const Access& a) { return &a == &access; }));
    dispatcher.notify_host(wake);
  }

  // ---- What the network brings ----

  tlm::tlm_sync_enum delivered(tlm::tlm_generic_payload& payload) {
    const Packet& packet = Packet::of(payload);
    if (packet.message_class == MessageClass::request) {
      payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
      return tlm::TLM_COMPLETED;
    }
    if (packet.kind == PacketKind::command) {
      command(*packet.command);
    } else {
      SC_REPORT_FATAL("kernbench/bridge", "a foreign initiator has no IPCQ");
    }
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
    return tlm::TLM_COMPLETED;
  }

  void command(const Command& command) {
    if (command.kind == CommandKind::arm) {
      if (++arm_packets < command.count) return;
      arm_packets = 0;
      command.message->faults.push_back({Fault::Kind::kernel, map.name(config.self),
                                         std::get<LaunchMessage>(command.message->body).kernel, "arm",
                                         "a foreign initiator is in this PE's place; it runs no kernels", queue.now()});
    }
    const CommandKind kind = command.kind == CommandKind::arm ? CommandKind::failed : CommandKind::finished;
    if (command.kind == CommandKind::start || command.kind == CommandKind::abort) return;
    tlm::tlm_generic_payload& payload = pool.acquire();
    Packet& packet = Packet::of(payload);
    const PeCoord place = map.coord(config.self);
    packet.destination = map.m_cpu(place.in_cube());
    packet.message_class = MessageClass::response;
    put_command(payload, Command{kind, command.message, place, 0, kCommandBytes, 0, 0});
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = annotation(queue.now());
    module.out->nb_transport_fw(payload, phase, delay);
    payload.release();
  }

  unsigned transport_dbg(tlm::tlm_generic_payload& payload) override {
    const NodeId memory =
        payload.get_data_length() == 0 ? kNoNode : memory_at(payload.get_address(), payload.get_data_length());
    if (memory != kNoNode) return module.out->transport_dbg(payload);
    payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
    return 0;
  }
  bool get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi& dmi) override {
    dmi.init();
    return false;
  }

  InitiatorBridge& module;
  const Config config;
  const MachineMap& map;
  PayloadPool& pool;
  const RunOptions options;
  Dispatcher& dispatcher;
  EventQueue& queue;
  NetworkSide network;
  sc_core::sc_event wake{"wake"};
  tlm::tlm_generic_payload* request = nullptr;  // between BEGIN_REQ and END_REQ
  sc_core::sc_time request_at;
  tlm::tlm_generic_payload* response = nullptr;  // between BEGIN_RESP and END_RESP
  sc_core::sc_time response_ended;               // of the response before
  std::deque<tlm::tlm_generic_payload*> answers;
  std::list<Access> accesses;   // of nb_transport; packets point to them
  std::deque<Access*> waiting;  // for room among the packets in flight
  unsigned in_flight = 0;
  std::uint32_t arm_packets = 0;  // of the launch that arms
};

InitiatorBridge::InitiatorBridge(const sc_core::sc_module_name& name, const Config& config, const MachineMap& map,
                                 PayloadPool& pool, const RunOptions& options, Dispatcher& dispatcher)
    : sc_module(name), impl_(std::make_unique<Impl>(*this, config, map, pool, options, dispatcher)) {}

InitiatorBridge::~InitiatorBridge() = default;

}  // namespace kernbench
