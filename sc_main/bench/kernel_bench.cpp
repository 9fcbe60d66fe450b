#include <cstdint>
#include <systemc>

#include "sc_main/bench/bench.h"
#include "sc_main/process/cpu_time.h"
#include "tlm/sim/dispatcher.h"
#include "tlm/sim/event_queue.h"

namespace kernbench::bench {
namespace {
constexpr std::uint64_t kCalibrationLoops = 10'000'000;
constexpr std::uint64_t kEvents = 20'000'000;

/// One method that notifies its own event again after a nanosecond.
class Loop : public sc_core::sc_module {
 public:
  SC_HAS_PROCESS(Loop);
  explicit Loop(const sc_core::sc_module_name& name) : sc_module(name) {
    SC_METHOD(step);
    sensitive << event_;
    dont_initialize();
    event_.notify(delay_);
  }

 private:
  void step() {
    if (++count_ < kCalibrationLoops) event_.notify(delay_);
  }
  const sc_core::sc_time delay_{1, sc_core::SC_NS};
  sc_core::sc_event event_;
  std::uint64_t count_ = 0;
};

/// Events that do nothing but make the next one, so many under way at a time.
class Chains {
 public:
  explicit Chains(EventQueue& queue) : queue_(queue) {
    constexpr unsigned kChains = 64;
    for (unsigned i = 0; i < kChains; ++i) next(1 + i % 7);
  }

 private:
  void next(Ps delay) {
    if (left_ == 0) return;
    --left_;
    queue_.at(queue_.now() + delay, [this, delay] { next(delay); });
  }
  EventQueue& queue_;
  std::uint64_t left_ = kEvents;
};

Measured run_events() {
  Dispatcher dispatcher("dispatcher", 1);
  const Chains chains(dispatcher.queue(0));
  const double begin = process::user_cpu_s();
  sc_core::sc_start();
  return {static_cast<double>(dispatcher.executed()), process::user_cpu_s() - begin, 0, peak_bytes()};
}
}  // namespace

Measured run_calibration() {
  const Loop loop("loop");
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  const double begin = process::user_cpu_s();
  sc_core::sc_start();
  return {static_cast<double>(kCalibrationLoops), process::user_cpu_s() - begin, 0, peak_bytes()};
}

std::vector<Bench> kernel_benches() { return {{"events", "event", "", {}, &run_events, true}}; }

}  // namespace kernbench::bench
