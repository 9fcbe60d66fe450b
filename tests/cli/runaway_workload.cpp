// A plug-in whose host code goes wrong as `--mode` says; the tool has to say so.
#include <chrono>
#include <cstdlib>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <systemc>
#include <thread>

#include "sc_main/workloads/plugin.h"
#include "tlm/kernel/tl.h"

namespace kernbench {
namespace {

void race_kernel(Va at, Tl& tl) { tl.store(at, tl.fill({1, 32}, DType::f16, 1)); }

void endless_kernel(Tl&) {
  for (volatile bool forever = true; forever;) {
  }
}
/// Touches the far end of its frame first.
__attribute__((noinline, optimize("no-stack-clash-protection"))) void locals_kernel(Tl& tl) {
  volatile char locals[200'000];
  locals[0] = 1;
  tl.fill({1, locals[0]}, DType::f16, 1);
}
__attribute__((noinline)) int deeper(int depth) {
  volatile char page[1024] = {};
  return depth == 0 ? page[0] : deeper(depth - 1) + page[1];
}
void recursion_kernel(Tl& tl) { tl.fill({1, 1 + deeper(1000)}, DType::f16, 1); }
void one_tile_kernel(Tl& tl) { static_cast<void>(Tile() + tl.fill({1, 1}, DType::f16, 1)); }
void tiles_kernel(Tl&) { static_cast<void>(Tile() * Tile()); }
void shape_kernel(Tl&) { static_cast<void>(Tile().shape()); }

/// Touches its frame page by page, as every plug-in does that is built as documented.
__attribute__((noinline)) int large_locals() {
  volatile char locals[800'000];
  locals[0] = 1;
  return locals[0];
}
void write_to_null() {
  int* volatile nowhere = nullptr;
  *nowhere = 1;
}
void null_kernel(Tl&) { write_to_null(); }
void exit_kernel(Tl&) { std::exit(0); }

/// Kernels that go wrong by themselves, by mode.
const std::map<std::string, void (*)(Tl&)> kKernels{{"kernel", endless_kernel},      {"locals", locals_kernel},
                                                    {"recursion", recursion_kernel}, {"one_tile", one_tile_kernel},
                                                    {"tiles", tiles_kernel},         {"shape", shape_kernel},
                                                    {"null", null_kernel},           {"exit", exit_kernel}};

class Runaway final : public Workload {
 public:
  std::string name() const override { return "runaway"; }
  std::string help() const override { return "host code that does not end as it should"; }
  std::string example() const override { return "kernbench run --plugin ./runaway.so runaway --mode loop"; }
  void add_options(boost::program_options::options_description& options) override {
    options.add_options()(
        "mode", boost::program_options::value(&mode_)->default_value("loop"),
        "loop: rank 1 never yields; work_loop: after it has made a tensor; barrier: all ranks spin at barriers; "
        "memory: rank 1 takes too much; runtime, invalid: rank 1 throws; swallow: and rank 0 catches everything; "
        "stop: sc_stop(); outside: no rank throws; "
        "race: two PEs write one place; late: a check of 1 s behind the simulation; rank_recursion, rank_locals: "
        "rank 1 overflows its stack; rank_null: it writes to a null pointer; rank_exit: it calls exit(0); or a kernel "
        "of kKernels");
  }
  Report run(Session& session) override {
    if (mode_ == "outside") throw std::runtime_error("the cause");
    session.run(2, [this](Context& ctx) {
      if (mode_ == "work_loop" && ctx.rank() == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the watchdog has begun to look
        ctx.zeros({1, 32}, DType::f16, DPPolicy().cubes(1).pes(1), "last");
      }
      const bool loops = mode_ == "loop" || mode_ == "work_loop";
      for (volatile bool forever = loops && ctx.rank() == 1; forever;) {
      }
      while (mode_ == "barrier") ctx.barrier();
      if (mode_ == "memory" && ctx.rank() == 1) throw std::bad_alloc();  // what `new` does when there is no more
      if (mode_ == "runtime" && ctx.rank() == 1) throw std::runtime_error("the cause");
      if (mode_ == "invalid" && ctx.rank() == 1) throw std::invalid_argument("the cause");
      if (mode_ == "race" && ctx.rank() == 0) {
        const Tensor tensor = ctx.zeros({1, 32}, DType::f16, DPPolicy().cubes(1).pes(1), "shared");
        ctx.launch("race", LaunchOptions{{{0, 0, 0}, {0, 0, 1}}}, race_kernel, tensor.va());
      }
      if (const auto kernel = kKernels.find(mode_); kernel != kKernels.end() && ctx.rank() == 0)
        ctx.launch(mode_ == "kernel" ? "endless" : mode_, LaunchOptions{{{0, 0, 0}}}, kernel->second);
      if (mode_ == "rank_recursion") ctx.barrier();  // when others have had turns, too
      if (mode_ == "rank_recursion" && ctx.rank() == 1) deeper(10'000);
      if (mode_ == "rank_locals" && ctx.rank() == 1) large_locals();
      if (mode_ == "rank_null" && ctx.rank() == 1) write_to_null();
      if (mode_ == "rank_exit" && ctx.rank() == 1) std::exit(0);
      if (mode_ == "stop" && ctx.rank() == 1) sc_core::sc_stop();
      if (mode_ == "swallow") {
        if (ctx.rank() == 1) throw std::runtime_error("the cause");
        try {
          ctx.barrier();
        } catch (...) {  // the end of this rank, too
        }
        throw std::runtime_error("a consequence");
      }
      ctx.barrier();
    });
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (mode_ == "late" && std::chrono::steady_clock::now() < end) {
    }
    return {};
  }

 private:
  std::string mode_;
};

}  // namespace
}  // namespace kernbench

using kernbench::Runaway;
KERNBENCH_WORKLOAD_PLUGIN(Runaway)
