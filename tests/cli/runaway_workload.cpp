// A plug-in whose host code goes wrong as `--mode` says; the tool has to say so.
#include <new>
#include <string>

#include "sc_main/workloads/plugin.h"

namespace kernbench {
namespace {

class Runaway final : public Workload {
 public:
  std::string name() const override { return "runaway"; }
  std::string help() const override { return "host code that does not end as it should"; }
  std::string example() const override { return "kernbench run --plugin ./runaway.so runaway --mode loop"; }
  void add_options(boost::program_options::options_description& options) override {
    options.add_options()(
        "mode", boost::program_options::value(&mode_)->default_value("loop"),
        "loop: rank 1 never yields; barrier: all ranks spin at barriers; memory: rank 1 takes too much");
  }
  Report run(Session& session) override {
    session.run(2, [this](Context& ctx) {
      for (volatile bool forever = mode_ == "loop" && ctx.rank() == 1; forever;) {
      }
      while (mode_ == "barrier") ctx.barrier();
      if (mode_ == "memory" && ctx.rank() == 1) throw std::bad_alloc();  // what `new` does when there is no more
      ctx.barrier();
    });
    return {};
  }

 private:
  std::string mode_;
};

}  // namespace
}  // namespace kernbench

using kernbench::Runaway;
KERNBENCH_WORKLOAD_PLUGIN(Runaway)
