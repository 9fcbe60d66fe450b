#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/allocator.h"
#include "runtime/host_access.h"
#include "runtime/placement_units.h"
#include "runtime/process_group.h"
#include "runtime/replay.h"
#include "runtime/runtime.h"
#include "runtime/scheduler.h"
#include "runtime/scheduling.h"
#include "tlm/observe/observer.h"

namespace kernbench {

/// What a handle stands for. In the pending set until its message has come back.
struct Handle::State {
  std::unique_ptr<Message> message;  ///< null: a collective that no PE takes part in, a timer, a promise
  std::string kind, name;            ///< for the host trace and reports; kind "launch", "collective" or the message's
  int rank = 0;
  int sip = 0;
  bool sent = false;  ///< to the machine
  bool done = false;
  bool queued = false;      ///< in a queue of the scheduling
  bool fault_seen = false;  ///< some worker has been told
  Ps submitted = 0, completed = kNever;
  std::vector<int> waiters;                ///< ranks
  const ccl::Choice* choice = nullptr;     ///< of a collective: the group's
  std::vector<Tensor> uses;                ///< kept alive until it completes
  std::function<bool()> ready;             ///< null: always. Otherwise it is kept from the machine until then
  const CallOrder* order = nullptr;        ///< of a collective: the calls that it is one of
  std::string operation;                   ///< likewise: "all_reduce"
  std::size_t call = 0;                    ///< its number there
  LaunchBound bound;                       ///< of a launch that has one
  bool alone = false;                      ///< of a launch: its kernels use no queues, or those of their cubes only
  bool cube_queues = false;                ///< of a launch: LaunchOptions::cube_queues
  std::vector<std::int64_t> work;          ///< of a launch: LaunchOptions::work
  bool repeated = false;                   ///< it took what an equal one took (replay.h)
  std::shared_ptr<const Program> program;  ///< of a collective: what its kernels follow

  std::string fault_text() const;  ///< REQUIRES: the message has faults
  std::string describe() const;    ///< "launch 'gemm' on sip0, submitted at 12.000 ns"
};

/// Shards as messages and algorithms know them.
std::vector<TensorShard> machine_shards(const std::vector<ShardSpec>& shards);
/// Throws std::invalid_argument on an empty handle, std::logic_error on a tensor that was freed.
void check_usable(const Tensor& tensor, const std::string& who);

/// A tensor's placement. Freed with the last handle, or by Tensor::free.
struct Tensor::State {
  ~State();
  std::weak_ptr<RuntimeImpl> runtime;
  std::string name;
  Shape shape;
  DType dtype = DType::f16;
  DPPolicy policy;
  int sip = 0;
  std::uint16_t stream = 0;  ///< of its maker: map and unmap messages
  int rank = 0;
  Va va = 0;
  std::uint64_t va_bytes = 0;  ///< of the shard-packed range
  std::vector<ShardSpec> shards;
  std::vector<std::uint64_t> offsets;  ///< in the owner's HBM slice, by shard
  std::size_t copies = 1;
  std::uint32_t placement = 0;  ///< number of equal placements in Replay; 0: not asked for yet
  bool allocated = false;       ///< false once freed

  PeCoord owner(std::size_t shard) const;
  /// The shards of copy `copy`: for each range of the packed tensor the copy-th owner.
  std::vector<std::size_t> shards_of(std::size_t copy) const;
};

/// The host's state, shared by the contexts of all workers. All of it is touched by one thread at a time.
struct RuntimeImpl : public tlm::tlm_bw_transport_if<>, public std::enable_shared_from_this<RuntimeImpl> {
  RuntimeImpl(Runtime& module, const MachineMap& map, Dispatcher& dispatcher, const RunOptions& options,
              Observer* observer);
  ~RuntimeImpl() override;

  // Messages (messages.cpp).
  /// Throws std::logic_error after a failed program.
  std::shared_ptr<Handle::State> submit(decltype(Message::body) body, int rank, int sip, std::uint16_t stream,
                                        std::string kind, std::string name, std::vector<Tensor> uses = {},
                                        const CallOrder* order = nullptr, std::size_t call = 0,
                                        std::function<bool()> ready = nullptr);
  void send(const std::shared_ptr<Handle::State>& state);      ///< to the machine, or it is replayed
  void transmit(const std::shared_ptr<Handle::State>& state);  ///< to the machine
  void arrived(const std::shared_ptr<Handle::State>& state);   ///< its message is back: it is complete
  /// Returns when it is done: a worker yields, the main context drives the simulation. Throws Deadlock or RunStopped in
  /// the main context, std::logic_error where nobody can wait.
  void await(const std::shared_ptr<Handle::State>& state);
  /// The same, or when a worker may `give_up`. `text`: for whoever asks what it waits for.
  void await(const std::shared_ptr<Handle::State>& state, const std::string& text,
             const std::function<bool()>& give_up);
  /// The one gate before contents are touched on the host: returns when nothing is pending that awaited_before names.
  /// Without anything pending it costs no switch. After a failed program it waits for nothing: contents are as they
  /// were. Throws std::logic_error if the tensor was freed meanwhile.
  void before_host_access(HostAccess access, const Tensor::State& tensor);
  /// What is pending that rank `rank` waits for before it touches the tensor, in order of submission: all that can
  /// touch the tensor's SIP and complete by itself, whoever submitted it; of the rank's own also what cannot, if it is
  /// a collective on the tensor, or a launch or host copy that stands behind a collective.
  std::vector<std::shared_ptr<Handle::State>> awaited_before(const Tensor::State& tensor, int rank) const;
  /// Numbers of the messages that cannot complete before some rank does something more: a collective that not every
  /// member has called, what stands behind it in its stream, and all parts of a collective of which one part does.
  std::set<std::uint64_t> held_up() const;
  /// The machine has stood still, and nothing has been sent to it since: what is pending needs some rank's doing.
  bool stands_still() const { return still_at == sends; }
  /// Notes of which other SIPs a message of the user's lets its SIP touch the memory. Tensors and collectives of the
  /// runtime keep to their own: a kernel reaches another SIP's memory only through a mapping or a queue that the user
  /// made.
  void note_reach(const decltype(Message::body)& body, int sip);
  bool reaches(int from, int to) const { return from == to || foreign.count({from, to}) != 0; }
  /// The program is one rank that was not made by spawn: its waits never touch the queues of a scheduling.
  bool single_driver() const { return driver || !in_program; }
  /// Messages may be submitted now.
  bool open() const;
  /// Returns when one of them is done: its place. Not in the main context.
  std::size_t await_any(const std::vector<std::shared_ptr<Handle::State>>& states);
  // Handles without a message (timers.cpp).
  std::shared_ptr<Handle::State> own_handle(int rank, std::string kind, std::string name);
  std::shared_ptr<Handle::State> start_timer(int rank, Ps time, std::string name);
  void retire(const std::shared_ptr<Handle::State>& state);  ///< it is complete now
  /// Keeps the first launch that beats its bound, for Runtime::check.
  void check_bound(const Handle::State& state, const HostTraceEntry& entry);
  void complete(const std::shared_ptr<Handle::State>& state);  ///< of launches and collectives: into the trace
  void throw_fault(Handle::State& state);
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override;
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}
  std::uint16_t stream_of(int rank, std::uint16_t stream) const;

  // Tensors (tensors.cpp).
  Tensor place(int rank, int sip, Shape shape, DType dtype, const DPPolicy& policy, const std::string& name,
               bool clear);
  void release(Tensor::State& tensor);
  /// Bytes of a shard that the host reads or writes.
  struct HostCopy {
    std::size_t shard = 0;
    std::uint64_t offset = 0;  ///< in the shard
    std::vector<std::uint8_t> data;
  };
  /// Carries out host copies: by transport_dbg, untimed; with timed_host_io as messages, until the last is complete.
  /// Several are under way at once, on streams that no launch can hold up.
  void host_copies(const Tensor::State& tensor, std::vector<HostCopy>& copies, bool write);
  std::uint16_t copy_stream(int rank, std::size_t queue);
  /// Moves `bytes` at `offset` of a shard's packed bytes between host and memory by transport_dbg.
  void debug_access(const Tensor::State& tensor, std::size_t shard, std::uint64_t offset, void* data,
                    std::uint64_t bytes, bool write);
  /// Writes row-major contents into all copies; waits for nothing.
  void write_contents(const Tensor::State& tensor, const std::uint8_t* data);

  // Workers and groups (runtime.cpp, groups.cpp).
  void program(std::function<void(Context&)> fn, int nprocs, bool single_driver);
  void run_worker(int rank);
  void failed_program();
  void end_program();
  /// Lets the simulation run until nothing is left, or until `state` is done if it is given: `text` says what that is.
  void go(const std::shared_ptr<Handle::State>& state, const std::string& text = {});
  /// The machine has nothing left to do. True: somebody can go on all the same.
  bool starved();
  /// `main`: what the main context waits for, if it does.
  std::string deadlock_text(const std::string& main = {}) const;
  void check_stopped() const;  ///< throws RunStopped
  int device(int rank) const;  ///< SIP of the rank's PE, or its current device; -1: none set
  /// Where a rank's tensors go: its PE where ranks are PEs, its part of a SIP if it has one.
  PlacementUnits units_of(int rank) const;
  ProcessGroup& default_group(const char* who);
  void make_default_group(const ProcessGroupOptions& options, int world_size);
  ProcessGroup& make_group(const ProcessGroupOptions& options, std::vector<int> ranks);
  /// Submits the rows of one member's SIP that algorithms up to number `algorithm` need and that it does not have.
  void install_tables(ProcessGroup& group, std::size_t algorithm, int rank);
  /// The same, and returns when they are in.
  void await_tables(ProcessGroup& group, std::size_t algorithm, int rank);
  /// Rings in HBM: tensors stay below them.
  void reserve_rings(const ProcessGroup& group);
  /// What launches of a stream on a SIP with queues between the PEs of a cube need; the first call submits what
  /// installs them.
  struct CubeQueues {
    std::uint16_t group = 0;
    std::shared_ptr<Handle::State> installed;  ///< null: there are none
  };
  const CubeQueues& cube_queues(int rank, int sip, std::uint16_t stream);
  /// `members` empty: all workers.
  void barrier(int rank, const char* what, const ProcessGroup* group = nullptr);
  std::vector<BlockedRank> blocked_ranks() const;
  /// Who keeps a rank from going on: "; process group 0, collective 3: not called by rank 1".
  std::string detail(int rank) const;

  Runtime& module;
  const MachineMap& map;
  Dispatcher& dispatcher;
  const RunOptions options;
  Observer* const observer;  ///< null, or it wants ops
  Scheduler scheduler;
  const std::unique_ptr<Scheduling> scheduling;
  std::function<void(Context&)> function;  ///< of the program
  int nprocs = 0;
  bool driver = false;
  bool in_program = false;              ///< workers are declared, and the run has not ended
  bool made_beforehand = false;         ///< the default group, by Runtime::init_process_group
  bool tables_installed = false;        ///< of the default group
  int devices_of_main = -1;             ///< kept while a program runs
  std::vector<int> program_devices;     ///< of the last program, after its end
  bool main_context = false;            ///< somebody uses it
  std::string beaten;                   ///< a launch that took less than its bound; empty: none
  std::string refused;                  ///< why nothing can be submitted any more; empty: it can
  std::deque<Context> contexts;         ///< by rank
  std::vector<int> devices{-1};         ///< by rank; -1: none set. Outside a program: of the main context
  std::map<int, PlacementUnits> parts;  ///< by rank, of Context::set_part
  std::function<void(std::vector<Blocked>&)> explain;  ///< asks the machine
  std::unique_ptr<Context> main_handle;
  std::weak_ptr<Handle::State> main_target;  ///< what the main context waits for
  std::unique_ptr<sc_core::sc_event> main_resumes;
  HostAccessTable accesses{};

  std::uint64_t next_message = 1;
  std::uint64_t sends = 0;                     ///< messages that went to the machine so far
  std::uint64_t still_at = ~std::uint64_t{0};  ///< `sends` when the machine stood still last
  std::set<std::pair<int, int>> foreign;       ///< SIP, other SIP whose memory it may touch. Nothing ever leaves it
  std::uint16_t next_stream = 1;               ///< 0 stands for the default one
  std::map<std::uint64_t, std::shared_ptr<Handle::State>> pending;  ///< by message id: in order of submission
  std::uint64_t next_timer = 1;
  std::map<std::uint64_t, std::shared_ptr<Handle::State>> timers;  ///< that run
  std::vector<std::shared_ptr<Handle::State>> failed;  ///< kept: the machine may still refer to their messages
  std::vector<HostTraceEntry> trace;
  std::vector<Stretch> stretches;  ///< the end of one is the beginning of the next; without a name: there is none
  class Payloads;
  std::unique_ptr<Payloads> payloads;

  std::unique_ptr<Replay> replay;  ///< null: everything is simulated
  DeviceMemory memory;
  const PlacementUnits units;
  std::vector<Va> next_va;                                 ///< by SIP
  std::map<int, std::vector<std::uint16_t>> copy_streams;  ///< by rank; made with its first timed host copy

  ccl::RingNumbers rings;
  std::vector<std::unique_ptr<ProcessGroup>> groups;                ///< by id; 0 is the default group
  std::map<std::pair<int, std::uint16_t>, CubeQueues> cube_groups;  ///< by SIP and stream
  ProcessGroupOptions group_options;                                ///< of the default group
  std::vector<PeCoord> rank_pes;                                    ///< by rank, where ranks are PEs; otherwise empty
  std::vector<std::uint8_t> joined;                                 ///< ranks that called init_process_group themselves
  struct NewGroup {
    std::uint16_t id;
    ProcessGroupOptions options;
    std::vector<int> ranks;
  };
  std::vector<NewGroup> new_groups;         ///< in order of new_group calls
  std::vector<std::size_t> next_new_group;  ///< by rank
  struct Barrier {
    std::set<int> here;
    std::uint64_t passed = 0;
  };
  std::map<int, Barrier> barriers;  ///< by group id; -1: all workers
};

}  // namespace kernbench
