#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <systemc>
#include <tlm>
#include <vector>

#include "runtime/deadlock.h"
#include "runtime/errors.h"
#include "runtime/tensor.h"
#include "tlm/ext/message.h"
#include "tlm/machine/machine_map.h"
#include "tlm/machine/run_options.h"
#include "tlm/observe/observer.h"
#include "tlm/sim/dispatcher.h"

namespace kernbench {

struct RuntimeImpl;

/// A submitted message or collective; completes once. Copies share it; dropping all of them does not cancel it.
class Handle {
 public:
  struct State;
  Handle() = default;
  explicit Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  explicit operator bool() const { return state_ != nullptr; }
  bool done() const;
  Ps submitted() const;     ///< simulated time
  Ps completed() const;     ///< simulated time; kNever before
  Ps kernel_start() const;  ///< of a launch: the common start time
  Ps kernel_end() const;    ///< of a launch: when the last PE finished
  /// The message with its results, e.g. what a MemoryReadMessage read. REQUIRES: the handle has a message (only a
  /// collective that no PE takes part in has none).
  const Message& message() const;
  State& state() const { return *state_; }

 private:
  friend class Context;
  std::shared_ptr<State> state_;
};

/// One entry per launch and per collective, appended when its handle completes.
struct HostTraceEntry {
  std::string kind;  ///< "launch" or "collective"
  std::string name;  ///< of the kernel; of the algorithm for a collective
  int rank = 0;
  int sip = 0;
  Ps t_submit = 0, t_complete = 0;
};

/// One rank's handle on the machine. Call it only from that rank's SC_THREAD.
class Context {
 public:
  int rank() const { return rank_; }
  int world_size() const;
  /// Throws std::invalid_argument if the machine has no such SIP.
  void set_device(int sip);
  int device() const;  ///< SIP 0 if none is set
  const MachineMap& map() const;
  Ps now() const;  ///< simulated time

  /// Places a tensor on the current device's SIP and maps it; takes the simulated time of the map message.
  /// Throws std::invalid_argument on an empty shape or a bad policy; OutOfDeviceMemory.
  Tensor zeros(Shape shape, DType dtype, const DPPolicy& policy, const std::string& name);
  /// Contents are undefined.
  Tensor empty(Shape shape, DType dtype, const DPPolicy& policy, const std::string& name);
  Tensor full(double value, Shape shape, DType dtype, const DPPolicy& policy, const std::string& name);
  /// `data`: row-major, one value per element, rounded to nearest even.
  Tensor from_host(const std::vector<double>& data, Shape shape, DType dtype, const DPPolicy& policy,
                   const std::string& name);
  /// `data`: row-major elements of `dtype` as they stand in memory.
  Tensor from_bytes(const std::vector<std::uint8_t>& data, Shape shape, DType dtype, const DPPolicy& policy,
                    const std::string& name);
  /// Normally distributed, mean 0 and deviation 1; the same values for the same seed on every platform.
  Tensor randn(std::uint64_t seed, Shape shape, DType dtype, const DPPolicy& policy, const std::string& name);

  /// Messages of one stream of one SIP execute in submission order. 0 is this rank's default stream; new_stream gives
  /// others.
  std::uint16_t new_stream();
  /// Sends a message to the current device; never blocks.
  Handle submit(decltype(Message::body) body, std::uint16_t stream = 0);
  /// Returns when the handle is complete; at once if it is already. Throws DeviceFault, each time, if it failed.
  void wait(const Handle& handle);
  /// Runs `body` once on every PE that holds a non-empty shard of one of `tensors` (or on `targets` if given). All
  /// tensors are on one SIP, where it is launched; without tensors on the current device. Never blocks.
  Handle launch_async(const std::string& name, KernelBody body, const std::vector<Tensor>& tensors,
                      std::vector<PeCoord> targets = {}, std::uint16_t stream = 0);
  /// Submit and wait.
  Handle launch(const std::string& name, KernelBody body, const std::vector<Tensor>& tensors,
                std::vector<PeCoord> targets = {});

  /// Element by element over the ranks of the default group; `tensor` is overwritten. Throws std::logic_error without a
  /// process group, CollectiveMismatch if another rank's call of the same place in the order differs, and
  /// std::invalid_argument for what the algorithm does not serve.
  Handle all_reduce_async(const Tensor& tensor, ReduceOp op = ReduceOp::sum);
  /// Returns when this rank's part is complete.
  Handle all_reduce(const Tensor& tensor, ReduceOp op = ReduceOp::sum);
  /// Returns when every rank has called it. A matter of the host: takes no simulated time of its own.
  void barrier();

  Context(RuntimeImpl& runtime, int rank) : runtime_(runtime), rank_(rank) {}

 private:
  RuntimeImpl& runtime_;
  int rank_;
};

/// How collectives run: set once by init_process_group.
struct ProcessGroupOptions {
  std::string algorithm = "auto";  ///< entry of ccl.yaml
  std::string ccl_file;            ///< empty: the built-in entries
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

  /// Declares the program of the run: `nprocs` workers, each calling fn(context) with rank 0 .. nprocs-1, device =
  /// rank. Call once, before the simulation starts; they run when it does. One process, shared address space, no
  /// failure isolation, no pre-emption: when a worker throws, the others are ended. Throws std::invalid_argument.
  void spawn(std::function<void(Context&)> fn, int nprocs);

  /// The default process group: all workers of spawn. Loads the algorithm and makes the neighbour tables; each worker
  /// installs those of its SIP before it runs. Call once, before the simulation starts, after spawn (or before, if as
  /// many workers are spawned as there are SIPs). Throws ConfigError or std::invalid_argument.
  void init_process_group(const ProcessGroupOptions& options);
  const std::string& algorithm() const;  ///< what runs, also where `auto` was asked for; empty without a group

  struct Outcome {
    bool finished = false;                       ///< every worker returned and all that they submitted is complete
    std::vector<int> unfinished;                 ///< ranks of which that does not hold: a deadlock, if the run starved
    std::map<int, std::exception_ptr> failures;  ///< by their own code; or a fault of theirs that nobody waited for
  };
  Outcome outcome() const;
  /// The unfinished ranks for deadlock_report.
  std::vector<BlockedRank> blocked_ranks() const;
  /// Throws SpawnError if the outcome has failures; its text names the ranks and the first reason.
  void rethrow_failures() const;

  const std::vector<HostTraceEntry>& host_trace() const;
  /// Rank whose host code is running, -1 for none; may be read from other threads.
  const std::atomic<int>& running_rank() const;

 private:
  std::shared_ptr<RuntimeImpl> impl_;
};

}  // namespace kernbench
