// A platform of somebody else: processors, a bus with an address map of its own, and behind it KernBench's HBM stack as
// one more TLM-2.0 target. Everything but the stack is plain SystemC.
#include <kernbench/hbm.h>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstdio>
#include <vector>

namespace {

constexpr std::uint64_t kHbmBase = 0x8000'0000;      // where the platform has the stack
constexpr std::uint64_t kSliceBytes = 512ull << 20;  // two slices, one behind the other

/// Two channels of HBM3-6400: clock, organisation and timing as in topology/presets/hbm_generations.yaml.
kernbench::HbmConfig two_channels() {
  kernbench::HbmConfig config;
  config.channels = 2;
  config.bytes = 2 * kSliceBytes;
  config.controller_latency = 10'000;  // ps, assumed
  kernbench::HbmTiming& t = config.timing;
  t.t_cl = 20, t.t_cwl = 10, t.t_rcd_rd = 31, t.t_rcd_wr = 15, t.t_rp = 26, t.t_ras = 45, t.t_rc = 72;
  t.t_rrd_s = 4, t.t_rrd_l = 5, t.t_faw = 24, t.t_ccd_s = 2, t.t_ccd_l = 4, t.t_ccd_r = 3;
  t.t_wr = 33, t.t_wtr_s = 7, t.t_wtr_l = 10, t.t_rtp = 9, t.t_rtw = 20, t.t_ppd = 2;
  t.t_rfc_ab = 560, t.t_rfc_pb = 320, t.t_rrefd = 8, t.t_refi = 6240, t.t_refi_pb = 195;
  return config;
}

/// Decodes addresses and adds 4 ns; the memory finds its own address as it was after the call.
struct Bus : sc_core::sc_module {
  SC_CTOR(Bus) {
    for (auto& socket : from) socket.register_b_transport(this, &Bus::b_transport);
  }
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
    const std::uint64_t address = payload.get_address();
    if (address < kHbmBase || address + payload.get_data_length() > kHbmBase + 2 * kSliceBytes)
      return payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
    const std::uint64_t slice = (address - kHbmBase) / kSliceBytes, offset = (address - kHbmBase) % kSliceBytes;
    payload.set_address(kernbench::PhysicalAddress::hbm({0, 0, static_cast<std::uint16_t>(slice)}, offset).encode());
    delay += sc_core::sc_time(4, sc_core::SC_NS);
    to[slice]->b_transport(payload, delay);
    payload.set_address(address);
  }
  tlm_utils::simple_target_socket<Bus> from[2];
  tlm_utils::simple_initiator_socket<Bus> to[2];
};

/// Writes a pattern to a region and reads it again, one cache line at a time, loosely timed.
struct Processor : sc_core::sc_module {
  SC_HAS_PROCESS(Processor);
  Processor(const sc_core::sc_module_name& name, std::uint64_t base) : sc_module(name), base(base) { SC_THREAD(run); }
  void run() {
    for (const tlm::tlm_command command : {tlm::TLM_WRITE_COMMAND, tlm::TLM_READ_COMMAND}) {
      const sc_core::sc_time begin = sc_core::sc_time_stamp();
      for (std::uint64_t line = 0; line < kLines; ++line) access(command, line);
      if (command == tlm::TLM_READ_COMMAND) latency = (sc_core::sc_time_stamp() - begin) / kLines;
    }
    finished = true;
  }
  void access(tlm::tlm_command command, std::uint64_t line) {
    std::vector<unsigned char> data(64);
    const auto value = [line](std::size_t i) { return static_cast<unsigned char>(line * 3 + i); };
    for (std::size_t i = 0; i < data.size() && command == tlm::TLM_WRITE_COMMAND; ++i) data[i] = value(i);
    tlm::tlm_generic_payload payload;
    payload.set_command(command);
    payload.set_address(base + line * 64);
    payload.set_data_ptr(data.data());
    payload.set_data_length(64);
    payload.set_streaming_width(64);
    sc_core::sc_time delay;
    socket->b_transport(payload, delay);
    sc_core::wait(delay);
    if (!payload.is_response_ok()) ++wrong;
    for (std::size_t i = 0; i < data.size(); ++i) wrong += data[i] != value(i) ? 1 : 0;
  }
  static constexpr std::uint64_t kLines = 1000;
  const std::uint64_t base;
  tlm_utils::simple_initiator_socket<Processor> socket{"socket"};
  sc_core::sc_time latency;
  unsigned wrong = 0;
  bool finished = false;
};

}  // namespace

int sc_main(int, char**) {
  kernbench::Dispatcher dispatcher("dispatcher", 1);  // runs the model's own queue of events
  kernbench::Hbm hbm("hbm", two_channels(), {0, 0}, 2, {}, dispatcher.queue(0), nullptr);
  Bus bus("bus");
  Processor near("near", kHbmBase), far("far", kHbmBase + kSliceBytes);
  near.socket.bind(bus.from[0]);
  far.socket.bind(bus.from[1]);
#ifdef KERNBENCH_WATCH  // a test puts a monitor between
  KERNBENCH_WATCH watch0("watch0"), watch1("watch1");
  bus.to[0].bind(watch0.in);
  bus.to[1].bind(watch1.in);
  watch0.out.bind(*hbm.port[0]);
  watch1.out.bind(*hbm.port[1]);
#else
  bus.to[0].bind(*hbm.port[0]);
  bus.to[1].bind(*hbm.port[1]);
#endif
  sc_core::sc_start();
  for (const Processor* processor : {&near, &far}) {
    std::printf("%s: %.1f ns a read, %u bytes wrong\n", processor->name(),
                processor->latency / sc_core::sc_time(1, sc_core::SC_NS), processor->wrong);
    if (processor->wrong > 0 || !processor->finished) return 1;
  }
  const kernbench::Hbm::Stats stats = hbm.stats();
  std::printf("hbm: %llu of %llu bursts hit an open row\n", static_cast<unsigned long long>(stats.row_hits),
              static_cast<unsigned long long>(stats.reads + stats.writes));
  return 0;
}
