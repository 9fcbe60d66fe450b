#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/host_access.h"
#include "runtime/leftovers.h"
#include "runtime/runtime.h"
#include "tlm/observe/observer.h"

namespace kernbench {

class CallOrder;

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
  std::vector<int> waiters;                     ///< ranks
  std::shared_ptr<const ccl::Choice> choice{};  ///< of a collective that `auto` chose
  std::vector<Tensor> uses;                     ///< kept alive until it completes
  std::function<bool()> ready;                  ///< null: always. Otherwise it is kept from the machine until then
  const CallOrder* order = nullptr;             ///< of a collective: the calls that it is one of
  std::string operation;                        ///< likewise: "all_reduce"
  std::size_t call = 0;                         ///< its number there
  LaunchBound bound;                            ///< of a launch that has one
  bool alone = false;                      ///< of a launch: its kernels use no queues, or those of their cubes only
  bool cube_queues = false;                ///< of a launch: LaunchOptions::cube_queues
  std::vector<std::int64_t> work;          ///< of a launch: LaunchOptions::work
  bool repeated = false;                   ///< it took what an equal one took (replay.h)
  std::shared_ptr<const Program> program;  ///< of a collective: what its kernels follow

  std::string fault_text() const;  ///< REQUIRES: the message has faults
  std::string describe() const;    ///< "launch 'gemm' on sip0, submitted at 12.000 ns"
};

/// The host's messages, from their submission until they are complete: of a rank to the machine and back.
class Messages {
 public:
  using StatePtr = std::shared_ptr<Handle::State>;
  using Pending = std::map<std::uint64_t, StatePtr>;
  /// `observer`: null, or it wants ops.
  Messages(RuntimeImpl& runtime, Observer* observer);

  /// Throws std::logic_error after a failed program.
  StatePtr submit(decltype(Message::body) body, int rank, int sip, std::uint16_t stream, std::string kind,
                  std::string name, std::vector<Tensor> uses = {}, const CallOrder* order = nullptr,
                  std::size_t call = 0, std::function<bool()> ready = nullptr);
  void arrived(const StatePtr& state);  ///< its message is back: it is complete
  /// Returns when it is done: a worker yields, the main context drives the simulation. Throws Deadlock or RunStopped in
  /// the main context, std::logic_error where nobody can wait.
  void await(const StatePtr& state);
  /// The same, and throws DeviceFault if it went wrong.
  void await_done(const StatePtr& state);
  /// Returns when one of them is done: its place. Not in the main context.
  std::size_t await_any(const std::vector<StatePtr>& states);
  void throw_fault(Handle::State& state);
  /// The one gate before contents are touched on the host: returns when nothing is pending that awaited_before names.
  /// Without anything pending it costs no switch. After a failed program it waits for nothing: contents are as they
  /// were. Throws std::logic_error if the tensor was freed meanwhile.
  void before_host_access(HostAccess access, const Tensor::State& tensor);
  /// What is pending that may read or write the tensor's memory, of any rank. Collectives on it are not among them:
  /// they hold a handle of it.
  std::vector<StatePtr> touching(const Tensor::State& tensor) const;
  /// Notes of which other SIPs a message of the user's lets its SIP touch the memory. Tensors and collectives of the
  /// runtime keep to their own: a kernel reaches another SIP's memory only through a mapping or a queue that the user
  /// made.
  void note_reach(const decltype(Message::body)& body, int sip);
  bool reach_known() const { return !foreign_.empty(); }  ///< some SIP may touch another one's memory

  // Handles without a message (timers.cpp).
  StatePtr own_handle(int rank, std::string kind, std::string name);
  StatePtr start_timer(int rank, Ps time, std::string name);
  void retire(const StatePtr& state);  ///< it is complete now

  void complete(const StatePtr& state);  ///< of launches and collectives: into the trace
  void drop_unsent();                    ///< after a failed program: the rest comes back

  /// Streams: 0 stands for a rank's own.
  static std::uint16_t stream_of(int rank, std::uint16_t stream) {
    return stream == 0 ? static_cast<std::uint16_t>(rank) : stream;
  }
  void streams_of_ranks(int count) { next_stream_ = std::max(next_stream_, static_cast<std::uint16_t>(count)); }
  /// The first of `count` new ones. Throws std::length_error, which `who` begins.
  std::uint16_t new_streams(const char* who, std::uint16_t count);

  const Pending& pending() const { return pending_; }  ///< by message id: in order of submission
  const Handle::State* awaited_by(int rank) const;     ///< the one that the rank waits for; null: for none alone
  const std::vector<StatePtr>& failed() const { return failed_; }
  const std::vector<HostTraceEntry>& trace() const { return trace_; }
  Leftovers& leftovers() { return leftovers_; }
  const std::string& beaten() const { return beaten_; }  ///< a launch that took less than its bound; empty: none
  const HostAccessTable& accesses() const { return accesses_; }

 private:
  /// The same as await(), or when a worker may `give_up`. `text`: for whoever asks what it waits for.
  void await(const StatePtr& state, const std::string& text, const std::function<bool()>& give_up);
  /// What is pending that rank `rank` waits for before it touches the tensor, in order of submission: all that can
  /// touch the tensor's SIP and complete by itself, whoever submitted it; of the rank's own also what cannot, if it is
  /// a collective on the tensor, or a launch or host copy that stands behind a collective.
  std::vector<StatePtr> awaited_before(const Tensor::State& tensor, int rank) const;
  /// Numbers of the messages that cannot complete before some rank does something more: a collective that not every
  /// member has called, what stands behind it in its stream, and all parts of a collective of which one part does.
  std::set<std::uint64_t> held_up() const;
  bool reaches(int from, int to) const { return from == to || foreign_.count({from, to}) != 0; }
  /// Keeps the first launch that beats its bound, for Runtime::check.
  void check_bound(const Handle::State& state, const HostTraceEntry& entry);

  /// While it lives, the rank waits for the message.
  class Awaits {
   public:
    Awaits(Messages& messages, int rank, const Handle::State& state);
    ~Awaits();
    Awaits(const Awaits&) = delete;
    Awaits& operator=(const Awaits&) = delete;

   private:
    Messages& messages_;
    const int rank_;
  };

  RuntimeImpl& runtime_;
  Observer* const observer_;
  std::string beaten_;
  Leftovers leftovers_;
  HostAccessTable accesses_{};
  std::uint64_t next_message_ = 1;
  std::set<std::pair<int, int>> foreign_;  // SIP, other SIP whose memory it may touch. Nothing ever leaves it
  std::uint16_t next_stream_ = 1;
  Pending pending_;
  std::map<int, const Handle::State*> awaited_;  // by rank
  std::uint64_t next_timer_ = 1;
  std::map<std::uint64_t, StatePtr> timers_;  // that run
  std::vector<StatePtr> failed_;              // kept: the machine may still refer to their messages
  std::vector<HostTraceEntry> trace_;
};

}  // namespace kernbench
