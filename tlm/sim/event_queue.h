#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "tlm/sim/time.h"

namespace kernbench {

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

  /// As at(), of an event that touches more than its own SIP (it tells the host something): at its instant no queue is
  /// ahead of another. REQUIRES: time >= end of the window that is being run, see run_until().
  template <class F>
  void at_for_all(Ps time, const F& f) {
    if (time < window_end_) throw_past(time);
    shared_.push_back(time);
    std::push_heap(shared_.begin(), shared_.end(), std::greater<>());
    at(time, f);
  }
  /// Earliest instant of an event made by at_for_all().
  Ps next_shared() const { return shared_.empty() ? kNever : shared_.front(); }

  /// Runs every event of the instant `time`, those that it adds included. REQUIRES: time == next_time().
  void run_instant(Ps time);

  /// Runs all events before `end`, those that they add included; none of them is for all. Returns the last instant.
  Ps run_until(Ps end);

  /// Runs until nothing is left; for tests without a SystemC kernel.
  void run_all();

  /// Moves an idle queue's clock forward (the Dispatcher does so before a host thread acts). REQUIRES: time <=
  /// next_time().
  void advance_to(Ps time) {
    if (time > now_) now_ = time;
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
  void push(Ps time, std::uint32_t source, std::uint64_t sequence, const Callback& callback);
  Record pop();
  [[noreturn]] void throw_past(Ps time) const;

  std::uint32_t sip_;
  Ps now_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t executed_ = 0;
  std::vector<Record> heap_;
  std::vector<Callback> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<Ps> shared_;  // a heap, earliest first
  Ps window_end_ = 0;
  std::function<void()> wake_;
};

}  // namespace kernbench
