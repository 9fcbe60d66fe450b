#pragma once
#include <algorithm>
#include <atomic>
#include <deque>
#include <systemc>
#include <vector>

#include "tlm/sim/event_queue.h"

namespace kernbench {

/// The one SystemC process of the hardware: steps the event queues of all SIPs in (time, SIP) order, or, with
/// lookaheads, one SIP after the other, each as far as no other can reach it. Both give the same times: what one SIP
/// makes for another is keyed by the sender's own count.
///
/// It runs ahead inside one activation for as long as no other SystemC process is due, so that an instant costs
/// no kernel round trip; models read their queue's clock, never sc_time_stamp(). When a host thread has to resume
/// (`notify_host`), the dispatcher stops at that instant and lets the kernel catch up; a loosely timed initiator
/// (`notify_ahead`) resumes where the kernel is.
class Dispatcher : public sc_core::sc_module {
 public:
  Dispatcher(const sc_core::sc_module_name& name, unsigned sips);

  EventQueue& queue(unsigned sip) { return queues_[sip]; }
  unsigned sips() const { return static_cast<unsigned>(queues_.size()); }
  /// The host's clock in what it is told or does; else the latest instant that any queue has executed.
  Ps now() const { return now_; }
  /// Latest instant that the host or any queue has reached.
  Ps latest() const;
  std::uint64_t executed() const;

  /// What reaches a queue: what another one makes takes at least `latency` on its way.
  struct Neighbour {
    unsigned queue;
    Ps latency;
  };
  /// `neighbours`: by queue. The host and a SIP do not reach each other in less than `host`. Each queue runs ahead as
  /// far as its neighbours and the host's answers to what it may hear cannot be felt (decision 0440): that keeps
  /// a SIP's state in the processor's caches. If a latency is 0, or no call: (time, SIP) order throughout.
  void set_lookahead(std::vector<std::vector<Neighbour>> neighbours, Ps host);

  /// Notifies a host thread's event at the present instant of the models; called from call-backs.
  void notify_host(sc_core::sc_event& event);

  /// To be called by a loosely timed initiator before it waits: the queues run as soon as what else is to run at the
  /// kernel's time has run, and not only when the kernel comes to their next instant.
  void run_ahead() { event_.notify(sc_core::SC_ZERO_TIME); }
  /// Notifies such an initiator's event: it resumes at the kernel's time, which is behind the present instant of the
  /// models only where no other process was due in between. It annotates the difference.
  void notify_ahead(sc_core::sc_event& event) {
    event.notify(sc_core::SC_ZERO_TIME);
    host_due_ = true;
    ahead_ = now_;
  }
  /// To be called by a foreign initiator before it touches the machine: all queues' clocks move to the kernel's time,
  /// unless they are further.
  void catch_up();

  /// The same for a host thread, which acts at the kernel's time: if a loosely timed initiator has taken the models
  /// ahead of it, it waits until the kernel's time has come there.
  void synchronise();

  /// The simulation ends with `sc_pause` once simulated time would pass `limit`; kNever: no limit.
  void set_limit(Ps limit) { limit_ = limit; }
  bool limit_reached() const { return limit_reached_; }

  /// `stop` is read once per instant (a signal handler or another thread sets it); true ends the run with `sc_pause`.
  void set_stop(const std::atomic<bool>* stop) { stop_ = stop; }
  bool stopped() const { return stopped_; }
  bool stop_wanted() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }

  /// Work that comes to its end, for readers outside of the simulation (watchdog).
  Activity& activity() { return activity_; }
  const Activity& activity() const { return activity_; }

  /// Simulated time and count of instants, likewise.
  Ps published_now() const { return published_now_.load(std::memory_order_relaxed); }
  std::uint64_t published_instants() const { return published_instants_.load(std::memory_order_relaxed); }

 private:
  SC_HAS_PROCESS(Dispatcher);
  /// A queue that runs ahead of others.
  struct Window {
    std::vector<Neighbour> neighbours;
    Ps end = 0;  // nothing of before is left
  };
  void step();
  void wake();
  void schedule(Ps time);
  Ps earliest() const;
  Ps next_host() const;
  Ps reach_of_host() const;
  void run_instant(Ps time);
  void run_windows(Ps time, Ps horizon);
  Ps too_far() const;
  void run_host(Ps time);
  void settle();
  void publish(Ps time);

  std::deque<EventQueue> queues_;
  sc_core::sc_event event_{"event"};
  Ps now_ = 0;
  std::vector<Window> windows_;  // by queue; empty: they keep step
  std::vector<unsigned> turns_;  // the order of queues: no neighbours one after the other, if possible
  Ps from_host_ = 0;
  Ps limit_ = kNever;
  bool limit_reached_ = false;
  const std::atomic<bool>* stop_ = nullptr;
  bool stopped_ = false;
  Activity activity_;
  std::atomic<Ps> published_now_{0};
  std::atomic<std::uint64_t> published_instants_{0};
  bool stepping_ = false;
  bool host_due_ = false;
  Ps ahead_ = 0;  // where the last loosely timed access has ended
};

}  // namespace kernbench
