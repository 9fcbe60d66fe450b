// A plug-in whose `mode` says how it goes wrong; the tool has to say so.
#include <cstdlib>
#include <new>
#include <tuple>

#include "ccl/contract/contract.h"

namespace kernbench::ccl {
namespace {
enum Mode : std::int64_t { nothing, deadlock, misuse, silence, refusal, surplus };

/// With KERNBENCH_NO_MEMORY this computer has none for it, whatever its mode.
std::tuple<std::int64_t> kernel_args(int, std::int64_t n_elem, int, int) {
  if (std::getenv("KERNBENCH_NO_MEMORY") != nullptr) throw std::bad_alloc();
  return {n_elem};
}

void kernel(Va, std::int64_t, int sip_rank, int, int, int, Tl& tl) {
  switch (tl.call().parameters.at("mode")) {
    case deadlock:  // everybody receives first
      tl.send(Direction::global_w(), tl.recv(Direction::global_e(), Shape{1, 8}, DType::f16));
      break;
    case misuse:
      tl.load(0xdead'0000'0000, Shape{1, 8}, DType::f16);
      break;
    case silence:  // rank 0 does not send
      if (sip_rank != 0) tl.send(Direction::global_e(), tl.fill(Shape{1, 8}, DType::f16, 1));
      tl.recv(Direction::global_w(), Shape{1, 8}, DType::f16);
      break;
    case surplus:  // rank 0 sends what nobody receives
      for (int i = 0; i < 3 && sip_rank == 0; ++i) tl.send(Direction::global_e(), tl.fill(Shape{1, 8}, DType::f16, 1));
      break;
    case refusal:
      throw KernelError("broken: not this time");
    default:
      break;  // wrong numerics: nobody adds anything
  }
}

constexpr Parameter kParameters[] = {
    {"mode", Parameter::Unit::none, nothing, 0, 5,
     "0: does nothing, 1: deadlocks, 2: reads an unmapped address, 3: one rank does not send, 4: throws, 5: one sends "
     "too much"}};
}  // namespace
}  // namespace kernbench::ccl

KERNBENCH_CCL_MODULE() {
  using namespace kernbench;
  using namespace kernbench::ccl;
  static const Algorithm algorithm = kernel_algorithm<&kernel_args, &kernel>(
      {"broken", bit(CollectiveOp::all_reduce), bit(Scope::sip), topology_bit(kTopologyKinds.ring_1d)}, kGlobalGrid,
      kParameters);
  return &algorithm;
}
