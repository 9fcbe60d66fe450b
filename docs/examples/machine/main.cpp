// KernBench's machine as a part of a SystemC program: a DMA of somebody else in the place of a PE fills a buffer, ranks
// sum it over the SIPs, and another one, beside the PEs, reads the result.
#include <kernbench/machine.h>
#include <tlm_utils/simple_initiator_socket.h>

#include <cstdio>
#include <vector>

using namespace kernbench;

namespace {

constexpr PeCoord kPlace{0, 0, 3};                          // PE 3 of the first cube is the DMA's
constexpr topology::InitiatorSpot kBeside{{0, 0}, {0, 0}};  // the reader has a port of a router
constexpr std::int64_t kElements = 4096;

/// Knows SystemC, TLM-2.0 and the machine's address map.
struct Dma : sc_core::sc_module {
  explicit Dma(const sc_core::sc_module_name& name) : sc_module(name) {}
  /// On a thread of the caller's.
  void copy(tlm::tlm_command command, PhysicalAddress at, std::vector<float>& values) {
    tlm::tlm_generic_payload payload;
    payload.set_command(command);
    payload.set_address(at.encode());
    payload.set_data_ptr(reinterpret_cast<unsigned char*>(values.data()));
    payload.set_data_length(static_cast<unsigned>(values.size() * sizeof(float)));
    payload.set_streaming_width(payload.get_data_length());
    sc_core::sc_time delay;
    socket->b_transport(payload, delay);
    sc_core::wait(delay);
    if (!payload.is_response_ok()) throw std::runtime_error(payload.get_response_string());
  }
  tlm_utils::simple_initiator_socket<Dma> socket{"socket"};
};

/// Doubles this PE's part.
void twice(Va x, Tl& tl) {
  const ShardView own = tl.shard(x);
  const Tile tile = tl.load(own.va, {1, own.count()}, DType::f32);
  tl.store(own.va, tile + tile);
}

}  // namespace

int sc_main(int, char**) {
  RunOptions options;
  options.fidelity = Fidelity::all(Grade::fast);
  topology::SystemSpec spec = topology::resolve("default", {"system.sips.count=2"}).spec;
  spec.initiators = {kBeside};
  const topology::Plan plan(spec);
  topology::ForeignParts foreign;
  foreign.initiators = {kPlace};
  topology::Machine machine(plan, options, nullptr, foreign);
  Dma dma("dma"), reader("reader");
#ifdef KERNBENCH_WATCH  // a test puts a monitor between
  KERNBENCH_WATCH watch("watch"), watch_reader("watch_reader");
  dma.socket.bind(watch.in);
  watch.out.bind(machine.foreign_initiator(kPlace));
  reader.socket.bind(watch_reader.in);
  watch_reader.out.bind(machine.initiator(0));
#else
  dma.socket.bind(machine.foreign_initiator(kPlace));
  reader.socket.bind(machine.initiator(0));
#endif
  Runtime host("host", machine.map(), machine.dispatcher(), options, nullptr);
  for (std::uint16_t sip = 0; sip < plan.spec.sips; ++sip) host.pcie[sip]->bind(machine.host_socket(sip));

  unsigned wrong = 0;
  host.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        // On PEs 0 and 1 of the first cube.
        const Tensor x = ctx.full(ctx.rank() + 1, {1, kElements}, DType::f32,
                                  DPPolicy().pe(PeSplit::column_wise).pes(2).cubes(1), "x");
        std::vector<float> values(kElements / 2, 10.0F);
        if (ctx.rank() == 0) dma.copy(tlm::TLM_WRITE_COMMAND, x.pa(0), values);
        const Handle launch = ctx.launch("twice", twice, x);
        ctx.all_reduce(x);
        if (ctx.rank() != 0) return;
        reader.copy(tlm::TLM_READ_COMMAND, x.pa(0), values);
        for (const float value : values) wrong += value != 2 * 10.0F + 2 * 2.0F ? 1 : 0;
        reader.copy(tlm::TLM_READ_COMMAND, x.pa(1), values);
        for (const float value : values) wrong += value != 2 * 1.0F + 2 * 2.0F ? 1 : 0;
        std::printf("kernel: %.1f ns; at the end: %.1f ns; %u wrong\n",
                    static_cast<double>(launch.kernel_end() - launch.kernel_start()) / 1e3,
                    static_cast<double>(ctx.now()) / 1e3, wrong);
      },
      std::tuple<>(), plan.spec.sips);
  return wrong == 0 ? 0 : 1;
}
