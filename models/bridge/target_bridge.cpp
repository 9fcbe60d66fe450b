#include "models/bridge/target_bridge.h"

#include <algorithm>
#include <deque>

#include "models/memory/memory_port.h"
#include "tlm/machine/address.h"
#include "tlm/sim/annotation.h"

namespace kernbench {

struct TargetBridge::Impl final : sc_core::sc_module, MemoryBackend, tlm::tlm_bw_transport_if<> {
  Impl(TargetBridge& module, const Config& config, Dispatcher& dispatcher)
      : sc_module(sc_core::sc_module_name("thread")),
        module(module),
        config(config),
        dispatcher(dispatcher),
        port(module.in, 0, *this, dispatcher.queue(config.sip)) {
    module.foreign.bind(*this);
    for (unsigned i = 0; i < std::max(config.at_once, 1U); ++i)
      sc_core::sc_spawn([this] { run(); }, sc_core::sc_gen_unique_name("serve"));
  }

  bool take(unsigned, tlm::tlm_generic_payload& payload, Ps) override {
    if (held == config.queue_depth) {
      blocked = true;
      return false;
    }
    ++held;
    requests.push_back(&payload);
    dispatcher.notify_host(wake);
    return true;
  }

  void run() {
    while (true) {
      while (requests.empty()) wait(wake);
      tlm::tlm_generic_payload& payload = *requests.front();
      requests.pop_front();
      sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
      const std::uint64_t address = to_local(payload);
      module.foreign->b_transport(payload, delay);
      payload.set_address(address);
      if (delay != sc_core::SC_ZERO_TIME) wait(delay);
      dispatcher.synchronise();
      --held;
      port.respond(payload, dispatcher.queue(config.sip).now());
      if (!blocked) continue;
      blocked = false;
      port.retry();
    }
  }

  /// Only from a thread that may wait: the target may.
  Ps serve(unsigned, tlm::tlm_generic_payload& payload, Ps start) override {
    sc_core::sc_time delay = annotation(start);
    const std::uint64_t address = to_local(payload);
    module.foreign->b_transport(payload, delay);
    payload.set_address(address);
    return instant(delay);
  }

  unsigned debug(unsigned, tlm::tlm_generic_payload& payload) override {
    const std::uint64_t address = to_local(payload);
    const unsigned bytes = module.foreign->transport_dbg(payload);
    payload.set_address(address);
    return bytes;
  }

  /// Returns the address that it replaces.
  static std::uint64_t to_local(tlm::tlm_generic_payload& payload) {
    const std::uint64_t address = payload.get_address();
    payload.set_address(address & PhysicalAddress::kMaxOffset);
    return address;
  }

  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload&, tlm::tlm_phase&, sc_core::sc_time&) override {
    SC_REPORT_FATAL("kernbench/protocol", "bridge: nb_transport_bw of a target that was called with b_transport");
    return tlm::TLM_ACCEPTED;
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

  TargetBridge& module;
  const Config config;
  Dispatcher& dispatcher;
  MemoryPort port;
  sc_core::sc_event wake{"wake"};
  std::deque<tlm::tlm_generic_payload*> requests;  // that wait
  unsigned held = 0;                               // those, and those being served
  bool blocked = false;
};

TargetBridge::TargetBridge(const sc_core::sc_module_name& name, const Config& config, Dispatcher& dispatcher)
    : sc_module(name), impl_(std::make_unique<Impl>(*this, config, dispatcher)) {}

TargetBridge::~TargetBridge() = default;

}  // namespace kernbench
