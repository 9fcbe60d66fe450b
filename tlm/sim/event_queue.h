#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "tlm/base/time.h"
#include "tlm/sim/activity.h"

namespace kernbench {

class CauseLog;

/// A call-back held in place: small trivially copyable closures only, so that nothing on a hot path allocates.
class Callback {
 public:
  static constexpr std::size_t kCapacity = 32;
  Callback() = default;
  template <class F>
  explicit Callback(const F& f) {
    static_assert(sizeof(F) <= kCapacity, "capture less: the event queue stores closures in place");
    static_assert(std::is_trivially_copyable_v<F>, "capture pointers and numbers only");
    new (storage_) F(f);
    invoke_ = [](void* self) { (*std::launder(reinterpret_cast<F*>(self)))(); };
  }
  void operator()() { invoke_(storage_); }
  /// It will be called soon: fetches what its first two captures point to, mostly a module and a packet.
  void fetch() const {
    std::array<std::uintptr_t, 2> captured{};  // if they are no addresses, nothing comes of it
    std::memcpy(captured.data(), storage_, sizeof captured);
    for (const std::uintptr_t line : {captured[0], captured[0] + 64, captured[1]}) {
      const void* address = nullptr;
      std::memcpy(&address, &line, sizeof address);
      __builtin_prefetch(address);
    }
  }

 private:
  alignas(std::max_align_t) std::byte storage_[kCapacity];
  void (*invoke_)(void*) = nullptr;
};

/// The pending events of one SIP, in order of (time, source SIP, sequence number of that source).
///
/// The order of same-instant events is therefore part of the design: events that a SIP makes for itself run in the
/// order they were made; events from another SIP are keyed by the sender's count, never by order of insertion.
/// A 4-ary heap of 24-byte records over a pool of call-backs; no allocation once the pool has grown. Knows no SystemC:
/// unit tests drive it with run_all(), the Dispatcher drives it in a simulation.
class EventQueue {
 public:
  explicit EventQueue(std::uint32_t sip = 0) : sip_(sip) {}
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  std::uint32_t sip() const { return sip_; }
  Ps now() const { return now_; }
  bool empty() const { return heap_.empty(); }
  Ps next_time() const { return heap_.empty() ? kNever : heap_.front().time; }
  std::uint64_t executed() const { return executed_; }

  /// Runs `f` at `time`. REQUIRES: time >= now().
  template <class F>
  void at(Ps time, const F& f) {
    push(time, sip_, sequence_++, Callback(f));
  }

  /// The same, from the model of another SIP, which passes its own queue. REQUIRES: time > source.now(), and not before
  /// what has been run here: at least the Dispatcher's lookahead after source.now().
  template <class F>
  void at_from(EventQueue& source, Ps time, const F& f) {
    if (time < now_) throw_past(time);
    push(time, source.sip_, source.sequence_++, Callback(f));
  }

  /// What the host makes, wherever this queue is by then: it comes behind what SIPs make for the same instant.
  /// REQUIRES: not before what has been run here.
  template <class F>
  void from_host(Ps time, const F& f) {
    if (time < now_) throw_past(time);
    push(time, kHost, host_sequence_++, Callback(f));
  }

  /// An event that tells the host something. It waits apart: the Dispatcher runs those of all SIPs in order of
  /// (time, SIP, creation) once all queues are there; some may be further, by less than the host's way to them.
  template <class F>
  void at_host(Ps time, const F& f) {
    push_host({time, sequence_++, Callback(f)});
  }
  /// The same, made by the host itself, wherever this queue is by then: of one instant it comes behind what the SIP
  /// tells, in the order of its own count.
  template <class F>
  void host_at(Ps time, const F& f) {
    push_host({time, kByHost | host_sequence_++, Callback(f)});
  }
  /// Earliest instant of an event made by at_host() or host_at().
  Ps next_host() const { return host_events_.empty() ? kNever : host_events_.front().time; }
  /// Runs those of the instant `time`. REQUIRES: time == next_host().
  void run_host(Ps time);
  /// Those before `time` are to come at that instant, in the order in which they would have.
  void delay_host(Ps time);
  /// The host hears nothing that at_host() has not been given yet before this and the way there. kNever: nothing at all
  /// until the host has acted on this SIP. 0, default: nothing is known.
  Ps silent_until() const { return silent_until_ ? silent_until_() : 0; }
  void set_silent_until(std::function<Ps()> silent_until) { silent_until_ = std::move(silent_until); }
  /// What the host's clock says while it acts on this SIP, which may be ahead of it: not after now().
  Ps host_now() const { return host_now_; }

  /// Runs every event of the instant `time`, those that it adds included. REQUIRES: time == next_time().
  void run_instant(Ps time);

  /// Runs all events before `end`, those that they add included. Returns the last instant.
  Ps run_until(Ps end);

  /// Nobody has relied on what that window had no events for. REQUIRES: empty().
  void end_window() { window_end_ = now_; }

  /// Runs until nothing is left; for tests without a SystemC kernel.
  void run_all();

  /// The host acts at `time` (the Dispatcher says so before a host thread does): an idle queue's clock moves forward.
  /// REQUIRES: time <= next_time().
  void advance_to(Ps time) {
    host_now_ = time;
    if (time > now_) now_ = time;
  }

  /// Keeps the chains of causes of what runs here; null: nobody wants to know, and nothing is to be said.
  CauseLog* causes() const { return causes_; }
  void set_causes(CauseLog* log) { causes_ = log; }  ///< it outlives what runs here

  /// Counts what comes to its end here, and names the kernel whose code runs; null, as without a Dispatcher: nobody
  /// asks.
  Activity* activity() const { return activity_; }
  void set_activity(Activity* activity) { activity_ = activity; }  ///< it outlives what runs here
  /// A piece of work has come to its end (Activity::completed).
  void completed() const {
    if (activity_ != nullptr) activity_->completed();
  }

  /// Called whenever the earliest time may have become earlier.
  void set_wake(std::function<void()> wake) { wake_ = std::move(wake); }

 private:
  struct Record {
    Ps time;
    std::uint64_t tie;  // source SIP in the upper 16 bits, its sequence number below
    std::uint32_t slot;
    bool before(const Record& other) const { return time != other.time ? time < other.time : tie < other.tie; }
  };
  struct HostEvent {
    Ps time;
    std::uint64_t sequence;
    Callback callback;
  };
  static bool later(const HostEvent& a, const HostEvent& b) {
    return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
  }
  void push(Ps time, std::uint32_t source, std::uint64_t sequence, const Callback& callback);
  void push_host(const HostEvent& event);
  Record pop();
  void fetch_next() const;
  [[noreturn]] void throw_past(Ps time) const;

  static constexpr std::uint32_t kHost = 0xFFFF;                    // as a source: behind all SIPs
  static constexpr std::uint64_t kByHost = std::uint64_t{1} << 63;  // of a HostEvent's sequence
  std::uint32_t sip_;
  Ps now_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t host_sequence_ = 0;  // of what it makes
  std::uint64_t executed_ = 0;
  std::vector<Record> heap_;
  std::vector<Callback> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<HostEvent> host_events_;  // a heap, earliest first
  Ps host_now_ = 0;
  Ps window_end_ = 0;
  CauseLog* causes_ = nullptr;
  Activity* activity_ = nullptr;
  std::function<void()> wake_;
  std::function<Ps()> silent_until_;
};

}  // namespace kernbench
