#include "sc_main/rigs/bare_gemm.h"

#include <algorithm>
#include <stdexcept>
#include <systemc>
#include <tlm>

#include "tlm/ext/message.h"
#include "tlm/kernel/tl.h"
#include "tlm/machine/page_table.h"
#include "topology/machine/machine.h"
#include "topology/plan/plan.h"
#include "topology/spec/resolve.h"

namespace kernbench {

namespace {
/// Hears when the array works.
class ArrayListener final : public OpObserver {
 public:
  void op(const OpRecord& record) override {
    if (record.name != "gemm") return;
    begin = std::min(begin, record.start);
    end = std::max(end, record.end);
  }
  Ps begin = kNever, end = 0;
};

/// Submits one message.
class Host final : public sc_core::sc_module, tlm::tlm_bw_transport_if<> {
 public:
  Host(const sc_core::sc_module_name& name, topology::Machine& machine, Message& message) : sc_module(name) {
    extension_.message = &message;
    payload_.set_extension(&extension_);
    payload_.set_command(tlm::TLM_IGNORE_COMMAND);
    payload_.set_streaming_width(1);
    socket_.bind(*this);
    socket_.bind(machine.host_socket(0));
    machine.dispatcher().queue(0).at(0, [this] {
      tlm::tlm_phase phase = tlm::BEGIN_REQ;
      sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
      socket_->nb_transport_fw(payload_, phase, delay);
    });
  }
  ~Host() override { payload_.clear_extension(&extension_); }

 private:
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload&, tlm::tlm_phase&, sc_core::sc_time&) override {
    return tlm::TLM_COMPLETED;
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}
  tlm::tlm_initiator_socket<> socket_{"socket"};
  tlm::tlm_generic_payload payload_;
  MessageExtension extension_;
};

void bare_composite_kernel(CompositeGemm gemm, Tl& tl) { tl.composite_gemm(gemm); }

void bare_dot_kernel(CompositeGemm gemm, Tl& tl) {
  const Tile left = tl.alloc({gemm.m, gemm.k}, gemm.dtype), right = tl.alloc({gemm.k, gemm.n}, gemm.dtype);
  tl.dot(left, right);
}
}  // namespace

Ps run_bare_gemm(const BareGemm& gemm) {
  const topology::Plan plan(topology::resolve("minimal", gemm.sets).spec);
  RunOptions options;
  options.data = false;
  ArrayListener listener;
  topology::Machine machine(plan, options, &listener);
  constexpr Va kA = Va{1} << 30;
  const auto bytes = [&](std::int64_t rows, std::int64_t cols) {
    return static_cast<std::uint64_t>(rows * cols) * size_of(gemm.dtype);
  };
  const Va b = kA + bytes(gemm.m, gemm.k), c = b + bytes(gemm.k, gemm.n);
  const PeCoord pe{0, 0, 0};
  Message message;
  message.id = 1;
  LaunchMessage launch;
  launch.kernel = "gemm";
  const CompositeGemm product{kA, b, c, gemm.m, gemm.n, gemm.k, gemm.dtype, 0, 0, 0, {}};
  BoundKernel bound = bind_kernel(gemm.composite ? bare_composite_kernel : bare_dot_kernel, product);
  launch.entry = bound.entry;
  launch.arguments = std::move(bound.arguments);
  launch.targets = {pe};
  message.body = std::move(launch);
  machine.page_table(0).map({kA, c - kA + bytes(gemm.m, gemm.n), PhysicalAddress::hbm(pe, 0), {}});
  const Host host("bare_host", machine, message);
  sc_core::sc_start();
  if (!message.faults.empty()) throw std::runtime_error(message.faults.front().str());
  const auto& done = std::get<LaunchMessage>(message.body);
  if (done.last_end == 0 || listener.end == 0) throw std::runtime_error("the product did not run");
  return listener.end - listener.begin;
}

}  // namespace kernbench
