#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sc_main/workloads/plugin.h"

/// A workload of tests that ends in every way in which a point can.
namespace kernbench {
namespace {

class Misbehaving final : public Workload {
 public:
  std::string name() const override { return "misbehaving"; }
  std::string help() const override { return "ends as it is told"; }
  std::string example() const override { return "kernbench run misbehaving --how ok"; }
  void add_options(boost::program_options::options_description& options) override {
    namespace po = boost::program_options;
    options.add_options()("how", po::value(&how_)->default_value("ok"),
                          "ok, wrong, throw, crash, exit, hang, eat, killed")(
        "ms", po::value(&ms_)->default_value(0), "time to take")("n", po::value(&n_)->default_value(1), "a number");
  }

  Report run(Session&) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms_));
    if (how_ == "throw") throw std::runtime_error("thrown by the workload");
    if (how_ == "crash") std::abort();
    if (how_ == "exit") {
      std::fputs("the last words\n", stderr);
      ::_exit(9);
    }
    if (how_ == "hang") {
      while (true) ::pause();
    }
    if (how_ == "eat") eat();
    if (how_ == "killed") std::raise(SIGKILL);
    if (how_ == "killed_once") killed_once();
    Report report;
    report.wrong = how_ == "wrong";
    report.results.push_back({{"op", "misbehaving"}, {"n", n_}, {"time_ns", 10.0 * n_}, {"rate_gbps", 1.0 / n_}});
    return report;
  }

 private:
  static void eat() {
    std::vector<std::vector<char>> eaten;
    for (int i = 0; i < 500; ++i) {
      eaten.emplace_back(8 << 20, 'x');
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  /// The second process that gets here finds the file of the first.
  void killed_once() const {
    const std::string mark = fmt::format("killed-{}", n_);
    if (std::FILE* file = std::fopen(mark.c_str(), "wx")) {
      std::fclose(file);
      std::raise(SIGKILL);
    }
  }

  std::string how_;
  int ms_ = 0, n_ = 1;
};

}  // namespace
}  // namespace kernbench

KERNBENCH_WORKLOAD_PLUGIN(kernbench::Misbehaving)
