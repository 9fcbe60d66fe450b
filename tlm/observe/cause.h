#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "tlm/base/time.h"

namespace kernbench {

/// What a step of a chain of causes is spent on; docs/critical_path.md.
enum class Spent : std::uint8_t {
  other,         ///< nothing that is known
  host,          ///< the host's own time
  pcie,          ///< host link: serialisation, flight and credits
  command,       ///< PCIE_EP, IO_CPU, M_CPU or PE_CPU handles a command
  command_wait,  ///< and others before it
  start,         ///< armed PEs wait for the launch's common instant
  dispatch,      ///< PE_CPU issues an op
  setup,         ///< DMA engine: setup of an op, walks of the MMU
  gemm,          ///< the array computes, at its peak
  gemm_fill,     ///< the rest of a product: the array fills and drains, or its edges stand idle
  math,
  tcm,           ///< ports and banks of TCM
  noc,           ///< routers, without waiting
  noc_wait,      ///< packets of others in a router network
  wire,          ///< serialisation on a link
  wire_wait,     ///< others are on the link
  wire_credit,   ///< the link's far end has no room
  wire_latency,  ///< flight, PHY and adapter of a link
  detour,        ///< all that on a link of a way that is longer for a broken link
  memory,        ///< HBM, SRAM or a foreign memory
  memory_wait,   ///< others before it there
  slots,         ///< a send waits for a slot of its peer's ring
};
inline constexpr int kSpents = 22;
const char* to_string(Spent spent);

class CauseLog;

/// The end of a chain of causes: an instant, and why it was not sooner. Chains share their beginnings; a step is
/// forgotten with the last chain that has it. Empty: the start of the run, or no log. REQUIRES: the log outlives it.
class Cause {
 public:
  Cause() = default;
  Cause(const Cause& other) : step_(other.step_) {
    if (step_ != nullptr) ++step_->references;
  }
  Cause(Cause&& other) noexcept : step_(other.step_) { other.step_ = nullptr; }
  Cause& operator=(const Cause& other) {
    Cause copy(other);
    return *this = static_cast<Cause&&>(copy);
  }
  Cause& operator=(Cause&& other) noexcept {
    Step* const mine = step_;
    step_ = other.step_;
    other.step_ = mine;
    return *this;
  }
  ~Cause() {
    if (step_ != nullptr && --step_->references == 0) forget();
  }

 private:
  friend class CauseLog;
  struct Step {
    CauseLog* log = nullptr;
    Step* previous = nullptr;  // null: the start of the run. Of a free one: the next free one
    Ps end = 0;
    std::uint32_t references = 0;
    std::uint32_t place : 24;
    std::uint32_t spent : 8;  // Spent
  };
  explicit Cause(Step* step) : step_(step) {}
  void forget();
  Step* step_ = nullptr;
};

/// Where a resource stands in the log; known to it by name on first use.
struct CausePlace {
  std::uint32_t id = 0;
};

/// Keeps, for everything under way, the chain of steps that led to it: each step begins where the one before it ends.
/// Of steps that nothing under way comes from any more nothing is kept. The event queues of a machine hold it.
///
/// Models say a step where they know what an instant is due to: `current` is the chain of the event that is being
/// executed. Whoever makes an event takes it along, whoever is called by one sets it.
class CauseLog {
 public:
  /// A stretch of the chain: what the time went to, and where.
  struct Segment {
    Ps begin = 0, end = 0;
    Spent spent = Spent::other;
    std::uint32_t place = 0;
  };

  CauseLog() = default;
  CauseLog(const CauseLog&) = delete;
  CauseLog& operator=(const CauseLog&) = delete;

  /// The chain `cause` goes on to `end`, spent on `spent` at `place`. A step of no length is none. What `cause` has
  /// beyond `end` is cut: a packet's head goes on while its tail is still on a wire.
  Cause step(Spent spent, std::uint32_t place, Ps end, const Cause& cause);
  /// The same, of the chain that is being executed.
  void step(Spent spent, std::uint32_t place, Ps end) { current = step(spent, place, end, current); }
  /// The chain goes through a router network, `waited` of the time behind others.
  Cause travelled(const Cause& cause, Ps waited, std::uint32_t place, Ps end) {
    const Ps begin = end_of(cause), least = end > begin ? end - begin : 0;
    return step(Spent::noc, place, end, step(Spent::noc_wait, place, begin + (waited < least ? waited : least), cause));
  }
  /// The chain goes on to `end`, spent on `spent` at `place`, but for what `other`, the chain of what ended the wait,
  /// spent meanwhile on packets of others in its way: that stays what it was.
  Cause waited_for(const Cause& other, Spent spent, std::uint32_t place, Ps end, const Cause& cause);
  /// A place's number; `name` makes its text on first use.
  template <class Name>
  std::uint32_t place(CausePlace& place, const Name& name) {
    if (place.id == 0) place.id = intern(name());
    return place.id;
  }
  std::uint32_t place(const std::string& name) { return intern(name); }
  const std::string& place_name(std::uint32_t place) const { return places_[place]; }

  /// From `from` to the end of the chain, in order; the first one may begin earlier and is cut. They add up to
  /// end_of(cause) - from.
  std::vector<Segment> chain(const Cause& cause, Ps from = 0) const;
  static Ps end_of(const Cause& cause) { return end_of(cause.step_); }
  std::size_t most_steps() const { return steps_.size(); }  ///< that were kept at once

  /// A launch whose end the host has heard of, and what its time was spent on.
  struct Launch {
    std::string kernel;
    std::uint16_t sip = 0;
    Ps submitted = 0, started = 0, completed = 0;
    std::vector<Segment> largest;  ///< by (spent, place), most first; begin is 0, end the sum
    std::vector<Segment> running;  ///< likewise, of what came since its first kernel started
  };
  static constexpr std::size_t kMostLaunches = 1024;
  static constexpr std::size_t kMostParts = 24;
  /// The host hears of what it submitted at `submitted`: a launch, whose first kernel started at `started`, or of
  /// something else (null).
  void heard(const Cause& cause, const char* kernel, std::uint16_t sip, Ps submitted, Ps started);
  /// Sums by (spent, place), most first.
  static std::vector<Segment> sums(const std::vector<Segment>& chain);
  /// The kMostParts largest of them, and of the others how much was spent on what, nowhere; as in Launch.
  static std::vector<Segment> largest(const std::vector<Segment>& chain);
  const std::vector<Launch>& launches() const { return launches_; }
  std::uint64_t launches_seen() const { return launches_seen_; }

 private:
  friend class Cause;
  using Step = Cause::Step;
  static Ps end_of(const Step* step) { return step == nullptr ? 0 : step->end; }
  std::uint32_t intern(const std::string& name);
  void forget(Step* step);

  std::deque<Step> steps_;
  Step* free_ = nullptr;
  std::vector<std::string> places_{std::string()};  // [0]: nowhere
  std::vector<Launch> launches_;                    // the first kMostLaunches
  std::uint64_t launches_seen_ = 0;
  std::unordered_map<std::string, std::uint32_t> by_name_;

 public:
  // Last: they go before the steps.
  Cause current;  ///< of the event that is being executed
  Cause room;     ///< of the credit that is being given: why it was not given sooner. Empty: nothing hindered it
  Cause host;     ///< of what the host has heard last
};

}  // namespace kernbench
