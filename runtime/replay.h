#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/replay_kind.h"
#include "runtime/replay_options.h"
#include "runtime/runtime.h"

namespace kernbench {

class CallOrder;

/// The same work is simulated once: launches, collectives and mappings of new tensors that equal earlier ones take what
/// those took.
///
/// It stands between the host and the machine. What a rank submits is held until that rank gives up its turn, which is
/// the same instant. Then the rank waits for the last of it, and nobody else uses the SIP: nothing can come in between,
/// and what was submitted (a batch) either goes to the machine, or comes back by an event of the host's at the time
/// that equal ones took. What is not that simple goes to the machine as it does without replay. docs/replay.md says
/// what is equal, and why the rest cannot matter.
class Replay {
 public:
  using StatePtr = std::shared_ptr<Handle::State>;
  using ReplayDone = std::vector<std::unique_ptr<ReplayRecord::Done>>;  ///< by record
  Replay(RuntimeImpl& runtime, ReplayOptions options);
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;
  ~Replay();

  /// A message is to go to the machine. True: it is held, and goes or comes back later.
  bool take(const StatePtr& state);
  /// The rank whose turn it is waits for `state` and for nothing else.
  void awaits(const StatePtr& state);
  /// The rank whose turn it is gives it up: what is held goes to the machine.
  void flush();
  /// A message has come back, from the machine or as a repeat.
  void came_back(const StatePtr& state);

  ReplayReport report() const;

 private:
  /// Of which work a message is the last one; null: of none.
  struct Last {
    const ReplayKind* kind = nullptr;
    std::size_t part = 0;
  };
  /// A batch on its way, of one SIP: in the machine, or a repeat.
  struct Flight {
    ReplayKind* kind = nullptr;
    std::vector<StatePtr> states;
    std::vector<ReplayTimes> times;  ///< by message, as far as they are known; from `start` on
    int sip = 0;
    ReplayRecord::Batch batch;  ///< as it began
    Ps start = 0;
    std::size_t left = 0;  ///< messages that are under way
    bool simulated = false, sample = false, disturbed = false, failed = false;
    std::vector<std::shared_ptr<Flight>> followers;  ///< equal ones of other SIPs, which take its times
    ReplayDone done;
  };
  using FlightPtr = std::shared_ptr<Flight>;
  struct Pattern;
  struct Base;
  struct Call;
  using CallPtr = std::shared_ptr<Call>;
  struct Sip {
    int user = -1;           ///< rank that submits to it; -1: none yet
    bool shared = false;     ///< several do: nothing is held
    unsigned busy = 0;       ///< messages under way, repeats and held ones too
    std::uint64_t last = 0;  ///< number of the kind of collective or batch that came last
    Ps counted = 0;          ///< when the last launch or collective ended
    std::vector<FlightPtr> flights;
    const ReplayKind* ended = nullptr;  ///< of the batch that ended last; null: none has
    Ps ended_at = 0;
    CallPtr call;                   ///< the last collective that it took part in
    std::vector<CallPtr> on_links;  ///< collectives that are simulated: links are the first one's
  };
  /// A message that comes back without having been in the machine.
  struct Due {
    StatePtr state;
    Ps start = 0, end = 0, completed = 0;
    Last of;
  };

  Sip& sip_of(const Handle::State& state);
  bool may_repeat(const Handle::State& state) const;
  bool is_batch(const StatePtr& awaited) const;
  void begins(const StatePtr& state);
  void go(const StatePtr& state);
  void batch();
  void follow(const FlightPtr& leader, const FlightPtr& flight);
  void repeat(const StatePtr& state, Ps start, const ReplayTimes& times, const Last& of);
  static Last last_message(const Flight& flight, std::size_t message);
  void waits(const StatePtr& state) const;
  void due(std::uint64_t message);
  void batch_ended(const FlightPtr& flight, const StatePtr& state);
  void learn(const Flight& flight);
  void count(const Handle::State& state);

  // Collectives (replay_collectives.cpp).
  Call& call_of(const Handle::State& state);
  Ps wait_for_last(const Sip& sip, std::size_t members) const;
  void collective(const StatePtr& state);
  void all_here(Call& call);
  void too_late(const CallOrder* order, std::size_t number);
  /// Something meets it.
  void disturb(Call& call);
  void meet_others(Call& call, const CallOrder& order);
  /// By SIP: what passes over its links may be a collective's of these members.
  bool links_serve(std::size_t sip, const CallOrder& order) const;
  void links_begin(const CallPtr& call, const CallOrder& order);
  void links_take(const CallPtr& call, std::size_t sip);
  void links_end(const CallPtr& call);
  void next_on_links(std::size_t sip);
  void release(Call& call);
  void part_ended(const StatePtr& state);
  void learn(Call& call);

  // Keys (replay_key.cpp).
  void add_key(const Handle::State& state, bool numbers = true);
  void add_sip(int sip);
  void add_mapping(const Handle::State& state);
  void add_call_key(const Handle::State& state);
  void add_call(const CollectiveCall& call);
  std::uint32_t placement(const Tensor& tensor);
  std::uint32_t intern(const std::string& text);

  /// `number`: of ReplayKind.
  ReplayKind& make_kind(const std::string& name, std::uint64_t number, std::shared_ptr<ReplayFamily> family);
  std::shared_ptr<ReplayFamily> family_of(const std::vector<StatePtr>& states);
  ReplayDone begin(const ReplayRecord::Batch& batch) const;
  void end(int sip, const ReplayDone& done) const;
  void simulated(const ReplayKind& kind, std::size_t part, const ReplayDone& done, Ps from, bool afresh) const;
  void repeated(const ReplayKind& kind, std::size_t part, const ReplayRecord::Batch& batch, Ps begin, Ps end) const;
  /// Somebody looks at what begins at `begin` and takes as long as `kind` says and `waits`: it may not be repeated.
  bool watched(const ReplayKind& kind, Ps begin, Ps waits = 0) const;
  bool says_enough(const ReplayKind& kind) const;
  /// A repeat of `parts` messages takes the mean, and that of the run's time is off by as much more.
  void takes_mean(ReplayKind& kind, std::uint64_t parts);
  void learned(const ReplayKind& kind, std::uint64_t parts);
  void weigh(const ReplayKind& kind, std::uint64_t parts);
  bool sampled(ReplayKind& kind) const;

  RuntimeImpl& runtime_;
  const ReplayOptions options_;
  std::vector<Sip> sips_;
  std::vector<StatePtr> held_;                            // of the rank whose turn it is
  std::vector<std::unique_ptr<ReplayKind>> kinds_;        // in the order of their making: sums do not depend on hashes
  std::uint64_t numbered_ = 0;                            // of them: all but those of set-up
  std::unordered_map<std::string, ReplayKind*> batches_;  // by key
  std::unordered_map<std::string, std::shared_ptr<ReplayFamily>> families_;
  std::unordered_map<std::string, std::unique_ptr<Base>> bases_;
  std::unordered_map<std::string, std::uint32_t> interned_;
  std::unordered_map<std::uint64_t, FlightPtr> flights_;      // by message
  std::unordered_map<const ReplayKind*, FlightPtr> leaders_;  // simulated now
  std::unordered_map<std::uint64_t, Due> due_;                // by message
  std::map<std::pair<const CallOrder*, std::size_t>, CallPtr> calls_;
  std::unordered_map<const ReplayKind*, double> variances_;  ///< of what repeats of the mean have taken, ps^2
  double variance_ = 0;                                      ///< their sum over short work
  ReplayScatter scatter_;                                    ///< of batches
  unsigned told_ = 0;                                        ///< kinds of long batches of which two are known
  std::string key_, text_;
  ReplayReport report_;
};

}  // namespace kernbench
