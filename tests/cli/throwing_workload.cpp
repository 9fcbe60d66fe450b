// A plug-in whose workload throws from the call that KERNBENCH_THROWS names: "name", "run 3". It has the option that
// KERNBENCH_OPTION names.
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "sc_main/workloads/plugin.h"

namespace kernbench {
namespace {

/// If `call` is that one.
void throw_from(const std::string& call) {
  const char* given = std::getenv("KERNBENCH_THROWS");
  const std::string how = given == nullptr ? "" : given;
  if (how == call) throw std::logic_error("the cause");
  if (how == call + " runtime") throw std::runtime_error("the cause");
  if (how == call + " range") throw std::out_of_range("the cause");
  if (how == call + " invalid") throw std::invalid_argument("the cause");
  if (how == call + " 3") throw 3;
}

class Throwing final : public Workload {
 public:
  Throwing() { throw_from("constructor"); }
  std::string name() const override {
    throw_from("name");
    return "throwing";
  }
  std::string help() const override {
    throw_from("help");
    return "throws where it is told to";
  }
  std::string example() const override { return "kernbench run --plugin ./throwing.so throwing"; }
  void add_options(boost::program_options::options_description& options) override {
    throw_from("add_options");
    if (const char* name = std::getenv("KERNBENCH_OPTION")) options.add_options()(name, "an option");
  }
  void check_options() const override { throw_from("check_options"); }
  std::vector<std::string> files() const override {
    throw_from("files");
    return {};
  }
  Observer* observer() override {
    throw_from("observer");
    return nullptr;
  }
  Report run(Session& session) override {
    throw_from("run");
    session.run(1, [](Context&) {});
    throw_from("end");
    return {};
  }
};

}  // namespace
}  // namespace kernbench

extern "C" __attribute__((visibility("default"))) const kernbench::Plugin* kernbench_workload_plugin() {
  kernbench::throw_from("entry");
  return kernbench::plugin_of<kernbench::Throwing>();
}
