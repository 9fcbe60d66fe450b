/// The GEMM engine against closed forms, written here from the array's description alone (docs/pe.md), not from the
/// model.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <systemc>
#include <tlm>

#include "sc_main/validate/validate.h"
#include "tlm/base/time.h"
#include "tlm/ext/message.h"
#include "tlm/ext/page_table.h"
#include "tlm/kernel/dtype.h"
#include "tlm/kernel/tl.h"
#include "topology/machine/machine.h"
#include "topology/plan/plan.h"
#include "topology/spec/resolve.h"

namespace kernbench::validate {

namespace {

/// One product on one PE of a machine that does nothing else.
struct BareGemm {
  std::int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::f16;
  bool composite = false;         ///< streamed through tiles from HBM; otherwise `dot` of tiles that lie in TCM
  std::vector<std::string> sets;  ///< changes to preset `minimal`, as --set takes them
};

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

/// Builds the machine and runs the product, without data: the time from the first operand in the array to the last
/// result out of it. Once per process. Throws std::runtime_error if it fails.
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

constexpr double kGemmLimit = 0.01;  // spec: closed forms
constexpr double kClockHz = 1.6e9;   // set for every case
constexpr double kPsPerCycle = 1e12 / kClockHz;

struct Array {
  double rows, cols;
  bool weights_stay;
};

/// Cycles that a cell needs per multiply-accumulate: twice the f16 rate for 8 bits, a quarter of it for 32, an eighth
/// for 64, as every case is configured.
double cycles_per_mac(DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return 0.5;
    case 2:
      return 1;
    case 4:
      return 4;
    default:
      return 8;
  }
}

/// Blocks pass one after the other; each streams its vectors into the edge of the array. While one block streams, the
/// next one's weights enter or the last one's results leave, a row per cycle. The first operand needs rows + cols - 2
/// cycles to the far corner.
double expected_cycles(const Array& array, double m, double n, double k, DType dtype) {
  const double per_mac = cycles_per_mac(dtype);
  const double depth = array.weights_stay ? std::floor(array.rows / std::min(per_mac, 1.0)) : array.rows;
  const double blocks = std::ceil((array.weights_stay ? k : m) / depth) * std::ceil(n / array.cols);
  const double stream =
      array.weights_stay ? m * std::max(per_mac, 1.0) : std::ceil(k * std::min(per_mac, 1.0)) * std::max(per_mac, 1.0);
  const double between = std::max(stream, array.rows);
  const double in_or_out = array.rows;  // the first block's weights, or the last one's results
  return in_or_out + (blocks - 1) * between + stream + (array.rows + array.cols - 2);
}

struct Shape3 {
  std::int64_t m, n, k;
};

std::vector<std::string> array_sets(const Array& array) {
  return {fmt::format("pe.gemm.rows={}", array.rows),
          fmt::format("pe.gemm.cols={}", array.cols),
          "pe.gemm.clock=1.6 GHz",
          fmt::format("pe.gemm.dataflow={}", array.weights_stay ? "weight_stationary" : "output_stationary"),
          "pe.gemm.f8_rate=2",
          "pe.gemm.f16_rate=1",
          "pe.gemm.f32_cycles=4",
          "pe.tcm.size=64 MiB"};
}

Group group(const std::string& name, const Array& array, bool composite, const std::vector<Shape3>& shapes,
            const std::vector<DType>& dtypes, const std::string& unjudged = "") {
  Group group;
  group.name = name;
  std::vector<std::pair<std::string, double>> expected;
  for (const Shape3& shape : shapes) {
    for (const DType dtype : dtypes) {
      const BareGemm gemm{shape.m, shape.n, shape.k, dtype, composite, array_sets(array)};
      expected.emplace_back(fmt::format("{}/{}x{}x{}_{}", name, shape.m, shape.n, shape.k, to_string(dtype)),
                            expected_cycles(array, static_cast<double>(shape.m), static_cast<double>(shape.n),
                                            static_cast<double>(shape.k), dtype));
      group.runs.push_back([gemm] { return Figures{static_cast<double>(run_bare_gemm(gemm)) / kPsPerCycle}; });
    }
  }
  group.verdict = case_by_case(expected.size(), [expected, unjudged](std::size_t i, const auto& figures) {
    const auto& [name, cycles] = expected[i];
    return judge(name, "array_cycles", cycles, figures[i].at(0), kGemmLimit, unjudged);
  });
  return group;
}

}  // namespace

std::vector<Group> gemm_groups(const Request& request) {
  const Array square{32, 32, false}, wide{16, 64, false}, weights{32, 32, true};
  const std::vector<DType> all = {DType::f8e4m3, DType::bf16, DType::f16, DType::i8, DType::f32, DType::f64};
  const std::vector<DType> few = {DType::f16, DType::f32};
  const std::vector<Shape3> shapes = {{32, 32, 128},  {33, 32, 128},   {1, 1024, 1024}, {64, 64, 16},
                                      {128, 96, 777}, {256, 256, 256}, {500, 130, 384}};
  const std::vector<Shape3> one = {{128, 96, 777}};
  // A composite is one product to the array when its operands come in time: f32 and f64, which need a quarter or less
  // of the bytes per cycle, depths and widths that fill whole blocks, and a result that is written in whole rows.
  const std::vector<Shape3> streamed = {{512, 128, 256}, {256, 128, 1024}, {128, 128, 512}};
  const std::vector<Shape3> scattered = {{256, 256, 512}, {128, 384, 1024}};
  std::vector<Group> groups;
  groups.push_back(group("dot_output_stationary_32x32", square, false, request.sample ? one : shapes, all));
  groups.push_back(group("dot_weight_stationary_32x32", weights, false, request.sample ? one : shapes, all));
  groups.push_back(group("dot_output_stationary_16x64", wide, false, request.sample ? one : shapes, few));
  groups.push_back(group("composite_output_stationary_32x32", square, true,
                         request.sample ? std::vector<Shape3>{streamed[0]} : streamed, {DType::f32, DType::f64}));
  if (!request.sample) {
    groups.push_back(group("composite_narrow_tiles_32x32", square, true, scattered, {DType::f32, DType::f64},
                           "its stores are parts of rows, which meet its loads on some of the HBM's channels"));
  }
  return groups;
}

}  // namespace kernbench::validate
