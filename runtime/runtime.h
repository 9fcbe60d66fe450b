#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <systemc>
#include <tlm>
#include <vector>

#include "runtime/tensor.h"
#include "tlm/ext/message.h"
#include "tlm/machine/machine_map.h"
#include "tlm/machine/run_options.h"
#include "tlm/observe/observer.h"
#include "tlm/sim/dispatcher.h"

namespace kernbench {

/// A submitted message or collective; completes once.
class Handle {
 public:
  struct State;
  Handle() = default;
  explicit Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  bool done() const;
  Ps completed() const;       ///< simulated time; kNever before
  Ps kernel_start() const;    ///< of a launch: the common start time
  Ps kernel_end() const;      ///< of a launch: when the last PE finished
  State& state() const { return *state_; }

 private:
  std::shared_ptr<State> state_;
};

/// Memory does not fit: pool, what was asked, what is free, the largest free block, the biggest tensors in it.
class OutOfDeviceMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A fault of the simulated machine, raised in the worker that waits for the launch.
class DeviceFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Workers threw: rank -> original exception. Only ranks that failed by their own code are in the map.
class SpawnError : public std::runtime_error {
 public:
  SpawnError(const std::string& what, std::map<int, std::exception_ptr> failures)
      : std::runtime_error(what), failures(std::move(failures)) {}
  std::map<int, std::exception_ptr> failures;
};

/// One rank's handle on the machine. Call it only from that rank's SC_THREAD.
class Context {
 public:
  int rank() const;
  int world_size() const;
  void set_device(int sip);
  int device() const;
  const MachineMap& map() const;
  Ps now() const;

  /// Places a tensor on the current device's SIP and maps it; takes the simulated time of the map messages.
  /// Throws std::invalid_argument on an empty shape; OutOfDeviceMemory.
  Tensor zeros(Shape shape, DType dtype, const DPPolicy& policy, const std::string& name);
  Tensor empty(Shape shape, DType dtype, const DPPolicy& policy, const std::string& name);
  /// `data`: row-major, one value per element, rounded to nearest even.
  Tensor from_host(const std::vector<double>& data, Shape shape, DType dtype, const DPPolicy& policy, const std::string& name);

  Handle submit(decltype(Message::body) body, std::uint16_t stream = 0);  ///< never blocks
  void wait(const Handle& handle);                                        ///< throws DeviceFault
  /// Runs `body` once on every PE that holds a non-empty shard of one of `tensors` (or on `targets` if given).
  Handle launch_async(const std::string& name, KernelBody body, const std::vector<Tensor>& tensors,
                      std::vector<PeCoord> targets = {}, std::uint16_t stream = 0);
  void launch(const std::string& name, KernelBody body, const std::vector<Tensor>& tensors, std::vector<PeCoord> targets = {});

  /// Element by element over the ranks of the default group; `tensor` is overwritten. Returns when this rank's part is complete.
  Handle all_reduce_async(const Tensor& tensor, ReduceOp op = ReduceOp::sum);
  void all_reduce(const Tensor& tensor, ReduceOp op = ReduceOp::sum);
  void barrier();

  struct State;
  explicit Context(State& state) : state_(state) {}

 private:
  State& state_;
};

/// How collectives run: set once by init_process_group.
struct ProcessGroupOptions {
  std::string algorithm = "auto";         ///< entry of ccl.yaml
  std::string ccl_file;                   ///< empty: the built-in entries
  Scope scope = Scope::sip;
  std::map<std::string, std::int64_t> parameters;
};

/// The host: ranks as SC_THREADs, tensors, streams, messages over one TLM socket per SIP.
class Runtime : public sc_core::sc_module {
 public:
  Runtime(const sc_core::sc_module_name& name, const MachineMap& map, Dispatcher& dispatcher, const RunOptions& options,
          Observer* observer);
  ~Runtime() override;

  std::vector<std::unique_ptr<tlm::tlm_initiator_socket<>>> pcie;  ///< by SIP; bind to Machine::host_socket

  /// Declares the program of the run: `nprocs` workers, each calling fn(context) with rank 0 .. nprocs-1, device = rank.
  /// Call before the simulation starts; they run when it does.
  void spawn(std::function<void(Context&)> fn, int nprocs);
  void init_process_group(const ProcessGroupOptions& options);

  struct Outcome {
    bool finished = false;                     ///< every worker returned
    std::vector<int> unfinished;               ///< ranks still blocked: a deadlock, if nothing is pending
    std::map<int, std::exception_ptr> failures;
  };
  Outcome outcome() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench
