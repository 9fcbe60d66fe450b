#pragma once
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "tlm/machine/fidelity.h"

namespace kernbench::bench {

/// What one run of a benchmark measured.
struct Measured {
  double units = 0;             ///< of work done
  double cpu_s = 0;             ///< user CPU time of that work alone
  double extra = 0;             ///< a second figure: Bench::extra_unit
  double peak_bytes = 0;        ///< largest resident memory of the process
  double overhead_ms = 0;       ///< CPU time per unit beside elaboration and simulation; of sweeps
  double idle_percent = 0;      ///< of the time that the cores were to work; of sweeps
  double watching_percent = 0;  ///< CPU time more than without looking inside the run
};

/// A bound of the specification ("Speed to reach").
struct Bound {
  enum class Of { none, loops_per_unit, cpu_s, peak_bytes, overhead_ms, idle_percent, watching_percent };
  Of of = Of::none;
  double most = 0;
};

/// What another simulator needs for the same unit of work, on the machine where a loop took 26 ns. Source: the
/// specification, "Speed to reach".
struct Peer {
  const char* name = nullptr;
  double loops = 0;
};

/// Something whose speed is measured, each time in a process of its own.
struct Bench {
  std::string name;
  std::string unit;        ///< of the work: "packet", "request", ...
  std::string extra_unit;  ///< of Measured::extra; empty: none
  std::vector<Bound> bounds;
  std::function<Measured()> run;
  bool quick = true;  ///< part of --sample
  Peer peer{};
};

/// Largest resident memory of this process so far.
double peak_bytes();

/// The yardstick: one SC_METHOD on one timed event of the bare SystemC kernel. Unit: activations.
Measured run_calibration();

/// Every benchmark at a grade, in the order of the output.
std::vector<Bench> benches(Grade grade);

// By area, each in a file of its own.
std::vector<Bench> noc_benches(Grade grade);
std::vector<Bench> memory_benches(Grade grade);
std::vector<Bench> machine_benches(Grade grade);
std::vector<Bench> kernel_benches();
std::vector<Bench> sweep_benches(Grade grade);
std::vector<Bench> watch_benches(Grade grade);

/// A folder that is removed with the object.
class Folder {
 public:
  Folder() {
    std::string path = (std::filesystem::temp_directory_path() / "kernbench-bench-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) throw std::system_error(errno, std::generic_category(), path);
    path_ = path;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace kernbench::bench
