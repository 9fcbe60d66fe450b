#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <systemc>
#include <tlm>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/deadlock.h"
#include "runtime/errors.h"
#include "runtime/host_access.h"
#include "runtime/launch_options.h"
#include "runtime/replay_options.h"
#include "runtime/tensor.h"
#include "tlm/ext/message.h"
#include "tlm/machine/machine_map.h"
#include "tlm/machine/run_options.h"
#include "tlm/observe/observer.h"
#include "tlm/observe/stretch.h"
#include "tlm/observe/wait_for.h"
#include "tlm/sim/dispatcher.h"

namespace kernbench {

namespace ccl {
struct Choice;
}
struct RuntimeImpl;
struct CollectiveRequest;
struct HostProgress;

/// A submitted message or collective; completes once. Copies share it; dropping all of them does not cancel it.
class Handle {
 public:
  struct State;
  Handle() = default;
  /// For the runtime.
  explicit Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  explicit operator bool() const { return state_ != nullptr; }  ///< not an empty handle
  // All of these throw std::invalid_argument, which names the call, of an empty handle.
  bool done() const;                ///< it is complete
  const std::string& name() const;  ///< as in the host trace
  /// Of a collective, what `auto` decided, as long as the process group lives; null: its algorithm was asked for.
  const ccl::Choice* choice() const;
  Ps submitted() const;     ///< simulated time
  Ps completed() const;     ///< simulated time; kNever before
  Ps kernel_start() const;  ///< of a launch or collective, std::logic_error of others: the common start time
  Ps kernel_end() const;    ///< likewise: when the last PE finished
  /// The message with its results, e.g. what a MemoryReadMessage read. Throws std::logic_error if there is none: of
  /// timers, promises, and collectives that no PE takes part in.
  const Message& message() const;
  State& state() const { return *state_; }  ///< for the runtime

 private:
  friend class Context;
  State& of(const char* call) const;
  Ps kernel_time(const char* call, Ps LaunchMessage::*time) const;
  std::shared_ptr<State> state_;
};

/// One entry per launch and per collective, appended when its handle completes.
struct HostTraceEntry {
  std::string kind;            ///< "launch" or "collective"
  std::string name;            ///< of the kernel; of the algorithm for a collective
  int rank = 0;                ///< that submitted it
  int sip = 0;                 ///< where it ran
  Ps t_submit = 0;             ///< simulated time
  Ps t_complete = 0;           ///< simulated time
  std::string operation = {};  ///< of a collective: "all_gather"; of a launch nothing
  Ps kernel_start = 0;         ///< of the first PE that began
  Ps kernel_end = 0;           ///< of the last PE that ended
  LaunchBound bound = {};      ///< of a launch that has one; of a collective its bytes, as nccl-tests
                               ///< counts them, and kind "spread" where all PEs hold parts of its tensors
  bool repeated = false;       ///< not simulated: it took what equal ones took (docs/replay.md)
};

/// How the collectives of a process group run.
struct ProcessGroupOptions {
  std::string algorithm;         ///< entry of ccl.yaml, or "auto"; empty: its default, or "auto"
  std::string ccl_file;          ///< empty: the built-in entries
  Scope scope = Scope::sip;      ///< what contributes: a SIP's whole tensor, or each cube's part
  Parameters parameters;         ///< of the algorithm, over those of ccl.yaml
  std::string backend = "ahbm";  ///< the only one
  std::uint32_t directions = 0;  ///< queues for kernels of launches, whatever collectives run: bits of
                                 ///< ccl::DirectionSet; 0: those of the algorithm alone, with `auto` none
  bool install_at_once = true;   ///< neighbour tables, for kernels that use queues without a
                                 ///< collective; otherwise an algorithm's first call does

  /// Everything equal: what all ranks must pass.
  friend bool operator==(const ProcessGroupOptions& a, const ProcessGroupOptions& b) {
    return std::tie(a.algorithm, a.ccl_file, a.scope, a.parameters, a.backend, a.directions, a.install_at_once) ==
           std::tie(b.algorithm, b.ccl_file, b.scope, b.parameters, b.backend, b.directions, b.install_at_once);
  }
};

/// How a tensor lies on its SIP: of one that another rank has.
struct TensorForm {
  Shape shape;      ///< in elements
  DPPolicy policy;  ///< over cubes and PEs
};

class ProcessGroup;

/// A process group as a program holds it: some of the ranks, in an order of their own. An empty one stands for the
/// default group.
class Group {
 public:
  Group() = default;  ///< the default group
  /// Of a group that Context::new_group made.
  explicit Group(ProcessGroup& group) : group_(&group) {}
  ProcessGroup* get() const { return group_; }  ///< null: the default group

 private:
  ProcessGroup* group_ = nullptr;
};

/// One rank's handle on the machine. Call it only from that rank's SC_THREAD, or from the main context if it is
/// Runtime::main().
class Context {
 public:
  int rank() const { return rank_; }  ///< 0 in a single-driver program and in the main context
  int world_size() const;             ///< number of ranks of the program
  /// Where new tensors and launches without tensors go. Throws std::invalid_argument if the machine has no such SIP.
  /// Unused where ranks are PEs (`world_size` in ccl.yaml): from init_process_group on, a rank's tensors lie on its PE.
  void set_device(int sip);
  /// What of each SIP new tensors of this rank may use, until the program ends: these cubes, and of each these PEs.
  /// Policies spread over them alone. Throws std::invalid_argument if one of them does not exist, or where ranks are
  /// PEs.
  void set_part(CubeRange cubes, PeRange pes);
  int device() const;             ///< SIP 0 if none is set; where ranks are PEs, that of the rank's PE
  const MachineMap& map() const;  ///< what the machine looks like
  Ps now() const;                 ///< simulated time
  /// What the program does from now on, such as an iteration: waves and traces show it by this name. Empty: nothing.
  /// `timed`: its time counts, it is no warm-up. Rank 0 says it for all; of others it is not heard. No time passes.
  void begin_stretch(const std::string& name, bool timed = true);

  /// Places a tensor on the current device's SIP and maps it; takes the simulated time of the map message.
  /// Throws std::invalid_argument on an empty shape or a bad policy; OutOfDeviceMemory.
  Tensor zeros(Shape shape, DType dtype, const DPPolicy& policy, const std::string& name);
  /// Contents are undefined.
  Tensor empty(Shape shape, DType dtype, const DPPolicy& policy, const std::string& name);
  /// Every element has `value`, rounded to nearest even.
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
  /// Sends a message to the current device; never blocks. Throws std::invalid_argument if it names a place that the
  /// machine does not have, a range that no memory has, no kernel or no target.
  Handle submit(decltype(Message::body) body, std::uint16_t stream = 0);
  /// Returns when the handle is complete; at once if it is already. Throws DeviceFault, each time, if it failed.
  void wait(const Handle& handle);
  /// Returns when one of the handles is complete: the place of the first such. Throws as wait, for that one;
  /// std::invalid_argument without handles or on an empty one.
  std::size_t wait_any(const std::vector<Handle>& handles);
  /// Completes when `time` of simulated time has passed: work of the rank that the machine does not see. Throws
  /// std::invalid_argument if that is beyond 2^63 - 1 ps of the clock, as every negative number is.
  Handle timer(Ps time, const std::string& name);
  /// Completes when somebody calls fulfil: how ranks tell each other that they may go on.
  Handle promise(const std::string& name);
  /// Completes a promise, of any rank. Throws std::invalid_argument if it is none, std::logic_error if it is complete.
  void fulfil(const Handle& promise);
  /// Runs `kernel` once on every PE that holds a non-empty shard of one of the tensors among `arguments` (or on
  /// `options.targets`). All tensors are on one SIP, where it is launched; without any on the current device. Never
  /// blocks.
  ///
  /// `kernel`: a function, or a lambda without captures, `void kernel(P..., Tl& tl)`; its parameters get the arguments
  /// in order. A Tensor becomes its base, a Va, of which tl.shard() knows the PE's own tile; numbers and trivially
  /// copyable structs without pointers go as they are. They travel in the message and count as bytes on the whole way.
  /// Throws std::invalid_argument: more than kMaxArgumentBytes, an integer that its parameter cannot hold, tensors of
  /// several SIPs, no PE to run on.
  template <class Kernel, class... Args>
  Handle launch_async(const std::string& name, const LaunchOptions& options, const Kernel& kernel,
                      const Args&... arguments) {
    detail::check_tensors<Kernel, Args...>();
    std::vector<Tensor> tensors;
    (detail::add_tensor(arguments, tensors), ...);
    BoundKernel bound;
    try {
      bound = bind_kernel(kernel, detail::as_argument(arguments)...);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("kernel '" + name + "': " + error.what());
    }
    return launch_bound(name, options, std::move(bound), tensors);
  }
  /// The same on the PEs that the tensors say.
  template <class Kernel, class... Args, class = detail::IfKernel<Kernel>>
  Handle launch_async(const std::string& name, const Kernel& kernel, const Args&... arguments) {
    return launch_async(name, LaunchOptions(), kernel, arguments...);
  }
  /// What the first launch on `sip` with LaunchOptions::cube_queues would do besides, ahead of it: installs the queues
  /// of the stream, and waits for them. Nothing if they are there.
  void prepare_cube_queues(int sip, std::uint16_t stream = 0);
  /// Submit and wait.
  template <class Kernel, class... Args>
  Handle launch(const std::string& name, const LaunchOptions& options, const Kernel& kernel, const Args&... arguments) {
    return waited(launch_async(name, options, kernel, arguments...));
  }
  /// The same on the PEs that the tensors say.
  template <class Kernel, class... Args, class = detail::IfKernel<Kernel>>
  Handle launch(const std::string& name, const Kernel& kernel, const Args&... arguments) {
    return waited(launch_async(name, LaunchOptions(), kernel, arguments...));
  }

  /// Makes the default group of all ranks; each of them calls it, with the same options. Loads the algorithm, installs
  /// the neighbour tables of this rank's SIP (if it is to be at once: takes simulated time) and waits for the others.
  /// Throws std::logic_error if the group exists, CollectiveMismatch if the options differ, ConfigError or
  /// std::invalid_argument.
  void init_process_group(const ProcessGroupOptions& options = {});
  /// The default group exists.
  bool in_process_group() const;
  /// Makes a group of `ranks`, numbered in that order. Every rank of the default group calls it, in the same order,
  /// members or not. Takes simulated time as init_process_group does, and throws as it does; std::invalid_argument for
  /// unknown or repeated ranks.
  Group new_group(const std::vector<int>& ranks, const ProcessGroupOptions& options = {});
  /// This rank's number in the group, -1 if it is no member. Throws std::logic_error without a default group.
  int group_rank(const Group& group = {}) const;
  /// Number of members. Throws std::logic_error without a default group.
  int group_size(const Group& group = {}) const;

  // Collectives. Every member of the group calls the same ones in the same order, with tensors of the same shape and
  // placement, each on its SIP; `in` and `out` may be one tensor where "in place" is said. The forms that end in _async
  // only submit (a launch that needs other queues than the group has waits until all members have them); the others
  // return when this rank's part is complete. What contributes, and where blocks lie with other scopes than sip:
  // docs/collectives.md. p: members of the group.
  //
  // All throw std::logic_error without a process group; CollectiveMismatch if another member's call of the same place
  // in the order differs or a member has ended without it; std::invalid_argument for tensors or triples of operation,
  // type and reduce op that do not fit, for what the algorithm does not serve, and if this rank is no member.

  /// Element by element over all members, in place.
  Handle all_reduce_async(const Tensor& tensor, ReduceOp op = ReduceOp::sum, const Group& group = {});
  /// The same, complete on return.
  Handle all_reduce(const Tensor& tensor, ReduceOp op = ReduceOp::sum, const Group& group = {});
  /// The same with an output of its own; in place too.
  Handle all_reduce_async(const Tensor& in, const Tensor& out, ReduceOp op = ReduceOp::sum, const Group& group = {});
  /// The same, complete on return.
  Handle all_reduce(const Tensor& in, const Tensor& out, ReduceOp op = ReduceOp::sum, const Group& group = {});
  /// Block r of `out` is `in` of member r: p times as many elements, row-major. In place: `in` is block r already.
  Handle all_gather_async(const Tensor& in, const Tensor& out, const Group& group = {});
  /// The same, complete on return.
  Handle all_gather(const Tensor& in, const Tensor& out, const Group& group = {});
  /// The same with the blocks side by side: columns [r k, (r + 1) k) of `out` are the k columns of `in` of member r.
  /// `out` has as many rows and p times as many columns. Not in place; of groups with scope sip.
  Handle all_gather_columns_async(const Tensor& in, const Tensor& out, const Group& group = {});
  /// The same, complete on return.
  Handle all_gather_columns(const Tensor& in, const Tensor& out, const Group& group = {});
  /// `out` of member r is the reduction of all blocks r: `in` has p times as many elements. In place: the result takes
  /// the place of block r.
  Handle reduce_scatter_async(const Tensor& in, const Tensor& out, ReduceOp op = ReduceOp::sum,
                              const Group& group = {});
  /// The same, complete on return.
  Handle reduce_scatter(const Tensor& in, const Tensor& out, ReduceOp op = ReduceOp::sum, const Group& group = {});
  /// Block r of `out` of member q is block q of `in` of member r.
  Handle all_to_all_async(const Tensor& in, const Tensor& out, const Group& group = {});
  /// The same, complete on return.
  Handle all_to_all(const Tensor& in, const Tensor& out, const Group& group = {});
  /// Member r's `in` becomes `out` of member (r + distance) mod p.
  Handle shift_async(const Tensor& in, const Tensor& out, int distance, const Group& group = {});
  /// The same, complete on return.
  Handle shift(const Tensor& in, const Tensor& out, int distance, const Group& group = {});

  // With a root, a group rank. A tensor that only the root has is an empty handle on the others. Its form there has to
  // be known all the same: `elsewhere`; by default placed as this rank's tensor, with as many rows.

  /// The reduction of all `in` becomes `out` of the root. In place on every member, or with an output of the root.
  Handle reduce_async(const Tensor& in, const Tensor& out, int root, ReduceOp op = ReduceOp::sum,
                      const Group& group = {}, const std::optional<TensorForm>& elsewhere = {});
  /// The same, complete on return.
  Handle reduce(const Tensor& in, const Tensor& out, int root, ReduceOp op = ReduceOp::sum, const Group& group = {},
                const std::optional<TensorForm>& elsewhere = {});
  /// The root's tensor to all: torch's form.
  Handle broadcast_async(const Tensor& tensor, int root, const Group& group = {});
  /// The same, complete on return.
  Handle broadcast(const Tensor& tensor, int root, const Group& group = {});
  /// `in` of the root becomes `out` of every member; in place too.
  Handle broadcast_async(const Tensor& in, const Tensor& out, int root, const Group& group = {},
                         const std::optional<TensorForm>& elsewhere = {});
  /// The same, complete on return.
  Handle broadcast(const Tensor& in, const Tensor& out, int root, const Group& group = {},
                   const std::optional<TensorForm>& elsewhere = {});
  /// As all_gather, with an output of the root.
  Handle gather_async(const Tensor& in, const Tensor& out, int root, const Group& group = {},
                      const std::optional<TensorForm>& elsewhere = {});
  /// The same, complete on return.
  Handle gather(const Tensor& in, const Tensor& out, int root, const Group& group = {},
                const std::optional<TensorForm>& elsewhere = {});
  /// Block r of the root's `in` becomes `out` of member r.
  Handle scatter_async(const Tensor& in, const Tensor& out, int root, const Group& group = {},
                       const std::optional<TensorForm>& elsewhere = {});
  /// The same, complete on return.
  Handle scatter(const Tensor& in, const Tensor& out, int root, const Group& group = {},
                 const std::optional<TensorForm>& elsewhere = {});

  /// Two members alone: send here, recv of the same elements, type and placement there. Transfers from one member to
  /// another are received in the order in which they are sent, and keep their place among the group's collectives. Both
  /// run on the rank's default stream: two ranks that first send to each other and then receive may wait for ever
  /// (shift exchanges).
  Handle send_async(const Tensor& tensor, int to, const Group& group = {});
  /// The same, complete on return.
  Handle send(const Tensor& tensor, int to, const Group& group = {});
  /// The other end of send_async: overwrites `tensor`.
  Handle recv_async(const Tensor& tensor, int from, const Group& group = {});
  /// The other end of send, complete on return.
  Handle recv(const Tensor& tensor, int from, const Group& group = {});

  /// Any of the collectives above, by its number: for programs that are told which. `op` means nothing to what does not
  /// reduce, `root` to what has none. Throws std::invalid_argument also for send_recv and barrier.
  Handle collective_async(CollectiveOp operation, const Tensor& in, const Tensor& out, ReduceOp op = ReduceOp::sum,
                          int root = 0, const Group& group = {}, const std::optional<TensorForm>& elsewhere = {});

  // Before a call, what its first one would do besides: chooses the algorithm and returns when all members have its
  // queues. Every member calls it, as it would the collective itself, with the same tensors or such that lie alike; no
  // data move. Takes simulated time, unless the queues are there already. Throw as the collectives do.

  /// Of all_reduce(in, out, op, group).
  void prepare_all_reduce(const Tensor& in, const Tensor& out, ReduceOp op = ReduceOp::sum, const Group& group = {});
  /// Of all_gather_columns(in, out, group).
  void prepare_all_gather_columns(const Tensor& in, const Tensor& out, const Group& group = {});
  /// Of all_gather(in, out, group).
  void prepare_all_gather(const Tensor& in, const Tensor& out, const Group& group = {});
  /// Of reduce_scatter(in, out, op, group).
  void prepare_reduce_scatter(const Tensor& in, const Tensor& out, ReduceOp op = ReduceOp::sum,
                              const Group& group = {});

  /// Returns when every rank has called it. A matter of the host: takes no simulated time of its own.
  void barrier();
  /// Returns when every member has called it. Throws std::invalid_argument if this rank is no member.
  void barrier(const Group& group);

  /// For the runtime.
  Context(RuntimeImpl& runtime, int rank) : runtime_(runtime), rank_(rank) {}

 private:
  friend class ToolWork;
  Handle collective(const CollectiveRequest& request);
  void prepare(const CollectiveRequest& request);
  Handle waited(Handle handle);
  Handle launch_bound(const std::string& name, const LaunchOptions& options, BoundKernel kernel,
                      const std::vector<Tensor>& tensors);

  RuntimeImpl& runtime_;
  int rank_;
};

/// The host: ranks as SC_THREADs, tensors, streams, messages over one TLM socket per SIP.
class Runtime : public sc_core::sc_module {
 public:
  /// `observer` may be null.
  Runtime(const sc_core::sc_module_name& name, const MachineMap& map, Dispatcher& dispatcher, const RunOptions& options,
          Observer* observer);
  ~Runtime() override;

  std::vector<std::unique_ptr<tlm::tlm_initiator_socket<>>> pcie;  ///< by SIP; bind to Machine::host_socket

  /// Runs `fn` on `nprocs` workers and returns when all have finished and the machine has nothing left to do. Each
  /// calls fn(rank, args...) or fn(context, args...); its device is SIP `rank`. Called from the main context.
  ///
  /// It has the signature of torch.multiprocessing.spawn, not its execution model: one process, one address space, no
  /// failure isolation, no pre-emption or fairness, no queues or locks between processes. When a worker throws, the
  /// others are ended and the machine can be read, but not used any more.
  /// Throws SpawnError with the exceptions of the ranks that failed by their own code; Deadlock; RunStopped;
  /// std::invalid_argument for nprocs below 1 or join = false, which there is not; std::logic_error after a failure.
  template <class Fn, class... Args>
  void spawn(Fn fn, std::tuple<Args...> args, int nprocs, bool join = true) {
    check_join(join);
    program(bind(std::move(fn), std::move(args)), nprocs);
    run();
    check();
  }
  /// A single-driver program: `fn(context)` as rank 0 on a thread of its own, outside of spawn. No device is set.
  /// Throws as spawn does.
  void drive(std::function<void(Context&)> fn);
  /// The main context: for code outside of all workers. What waits there drives the simulation itself. No device is
  /// set. Elaborates the machine.
  Context& main();
  /// Of the worker that runs, or the main one. Throws std::logic_error if there is none.
  Context& context();

  /// Declares a program: `nprocs` workers, each calling fn(context) with rank 0 .. nprocs-1, device = rank. They run
  /// when the simulation does: run(). The first half of spawn. Throws as it does.
  void program(std::function<void(Context&)> fn, int nprocs);
  /// Lets the simulation run until nothing is left, or somebody ends it from outside.
  void run();
  /// Throws what became of the run: RunStopped, SpawnError, Deadlock, or std::logic_error if a launch took less than
  /// its LaunchBound.
  void check() const;
  /// Ends a worker where it stands; its kernels, its tensors in use and the other workers go on. From a SystemC process
  /// that is no worker; for tests of just that.
  void kill(int rank);
  /// Who asks the machine why it stands still, for the text of Deadlock.
  void set_explain(std::function<void(std::vector<Blocked>&)> explain);

  /// The default process group: all workers of the program. Loads the algorithm and makes the neighbour tables; each
  /// worker installs those of its SIP before it runs. Call once, before the simulation starts, after program() (or
  /// before, if as many workers are declared as there are SIPs). Workers may make it themselves instead:
  /// Context::init_process_group. Throws ConfigError or std::invalid_argument.
  void init_process_group(const ProcessGroupOptions& options);
  /// Ranks of the default group; without one the number of SIPs.
  int world_size() const;
  /// Ranks that a program with these options has: `world_size` of the algorithm's entry in ccl.yaml, otherwise of its
  /// defaults (a rank is then a PE), otherwise the number of SIPs. Throws ConfigError or std::invalid_argument.
  int world_size(const ProcessGroupOptions& options) const;
  const std::string& algorithm() const;  ///< what runs, also where `auto` was asked for; empty without a group

  /// What became of the program.
  struct Outcome {
    bool finished = false;                       ///< every worker returned and all that they submitted is complete
    std::vector<int> unfinished;                 ///< ranks of which that does not hold: a deadlock, if the run starved
    std::map<int, std::exception_ptr> failures;  ///< by their own code; or a fault of theirs that nobody waited for
  };
  Outcome outcome() const;  ///< of the last program
  /// The unfinished ranks for deadlock_report.
  std::vector<BlockedRank> blocked_ranks() const;
  std::vector<std::string> host_cycle() const;  ///< likewise: waits of ranks and messages in a circle (host_cycle.h)
  /// Throws SpawnError if the outcome has failures; its text names the ranks and the first reason.
  void rethrow_failures() const;

  const std::vector<HostTraceEntry>& host_trace() const;  ///< in order of completion
  /// What the program has named (Context::begin_stretch), in order of time; the last one may be open: it ends at `end`.
  std::vector<Stretch> stretches(Ps end) const;
  const HostAccessTable& host_accesses() const;     ///< by HostAccess
  std::uint64_t free_bytes(PeCoord pe) const;       ///< of its HBM slice: what neither tensors nor IPCQ rings hold
  std::uint64_t most_used_bytes(PeCoord pe) const;  ///< of its HBM slice: what these held at one time, at most
  std::uint64_t switches() const;                   ///< times that a worker gave up its turn
  /// Entries in the queues of the scheduling; none where there are no queues.
  std::size_t pending_worker_waits() const;
  std::size_t pending_collectives() const;    ///< likewise
  const HostProgress& host_progress() const;  ///< may be read from other threads

  /// Equal work is simulated once (docs/replay.md). Before the simulation starts; throws std::invalid_argument if
  /// contents are wanted (RunOptions::data).
  void set_replay(const ReplayOptions& options);
  bool replays() const;                ///< set_replay was called
  ReplayReport replay_report() const;  ///< REQUIRES: replays()

 private:
  static void check_join(bool join);
  template <class Fn, class... Args>
  static std::function<void(Context&)> bind(Fn fn, std::tuple<Args...> args) {
    return [fn = std::move(fn), args = std::move(args)](Context& context) {
      std::apply(
          [&](const Args&... values) {
            if constexpr (std::is_invocable_v<const Fn&, Context&, const Args&...>) {
              fn(context, values...);
            } else {
              fn(context.rank(), values...);
            }
          },
          args);
    };
  }
  std::shared_ptr<RuntimeImpl> impl_;
};

}  // namespace kernbench
