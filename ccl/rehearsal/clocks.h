#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "ccl/earliest.h"
#include "ccl/numbered.h"
#include "ccl/rehearsal/engines.h"
#include "ccl/rehearsal/memories.h"
#include "ccl/rehearsal/record.h"
#include "ccl/rehearsal/ways.h"

namespace kernbench::ccl {

/// A rehearsal: the ops of all PEs, and the clocks that they run against (rehearsal.h).
class Rehearsal {
 public:
  Rehearsal(const MachineMap& map, const Collective& collective) : map_(map), ways_(map), memories_(map, ways_) {
    find_queues(collective);
  }
  /// Of the call that follows the one that `last` has run: slots whose credits are under way are not free yet.
  Rehearsal(const MachineMap& map, const Collective& collective, const Rehearsal& last) : Rehearsal(map, collective) {
    for (std::size_t i = 0; i < queues_.size(); ++i) queues_[i].credits = last.credits_left(last.queues_[i]);
  }

  /// False: it has more than `most` ops.
  bool record(const Collective& collective, const CallTensors& tensors, std::size_t most);
  /// Nothing if ops wait for each other in a circle.
  std::optional<double> run();
  /// After run(): whether a call of the same kind, right behind this one, would wait for slots that this one did not.
  bool holds_up_the_next() const;

 private:
  using Kind = RehearsedOp::Kind;
  static constexpr double kNever = -1;
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

  /// An op with what is known of it.
  struct State {
    double ready = 0;  ///< when what it needs is there
    double issued = kNever, done = kNever;
    std::int32_t pending = 0;       ///< ops that it waits for
    std::int32_t after = kNothing;  ///< first edge to one that waits for it
  };
  /// An engine, or an end of a queue: ops in order.
  struct Line {
    std::int32_t pe = 0;
    std::deque<std::int32_t> ops;
    bool due = false;  ///< the first is among the events
    double free = 0;
    std::priority_queue<std::pair<double, double>, std::vector<std::pair<double, double>>, std::greater<>>
        under_way;  ///< loads, stores: when their places are given back, as far as that is known; bytes
    double bytes_under_way = 0;
    double room = -1;  ///< when there came to be room for the first op; before all times if it never waited
  };
  struct Pe {
    Pe(PeCoord at, const PeRates& rates) : coord(at), engines(rates) {}

    PeCoord coord;
    Engines engines;
    std::vector<RehearsedOp> ops;
    std::vector<State> states;
    std::vector<std::int32_t> edges;  ///< 2 * op + which of its needs: the next edge of the same source
    std::size_t next = 0;
    double cpu = 0, last = 0;
    std::int32_t blocked = kNothing;  ///< line without room
    std::int32_t waits = kNothing;    ///< op that PE_CPU waits for
    bool fence = false;
    std::size_t left = 0;                                     ///< issued and not done
    std::unordered_map<std::int32_t, std::uint32_t> ways_to;  ///< of loads and stores, by place
  };
  struct Queue {
    PeCoord from, to;
    std::int32_t slots = 1;
    std::deque<double> credits, arrivals;
    std::vector<double> first;  ///< when the first messages were sent, as many as there are slots
    Way way;
    bool used = false;
    double back = 0, to_io = 0;             ///< of a credit: all its way, and to the first of the links
    std::vector<std::uint32_t> links_back;  ///< between SIPs
  };
  struct Flight {
    std::int32_t queue = 0;
    std::size_t link = 0;
    double bytes = 0;
  };
  struct Event {
    double time = 0;
    std::uint64_t number = 0;
    std::int32_t what = 0;  ///< line, then slices; or -1 - flight
    bool operator<(const Event& other) const {
      return static_cast<int>(time < other.time) |
             (static_cast<int>(time == other.time) & static_cast<int>(number < other.number));
    }
  };
  /// A load or store that a slice serves.
  struct Access {
    std::int32_t line = 0, op = 0;
    double bytes = 0;
    std::uint32_t way = 0;
    double first = 0;  ///< load: when its first bytes are at the PE
  };
  enum Lines : std::int32_t { kLoads, kStores, kMathEngine, kEngines };

  void find_queues(const Collective& collective);
  void link(std::size_t pe);
  std::int32_t line_of(std::int32_t pe, const RehearsedOp& op) const;
  void issue(std::int32_t pe);
  void consider(std::int32_t line);
  void execute(std::int32_t line, double now);
  void load(std::int32_t line, std::int32_t op, double now);
  void store(std::int32_t line, std::int32_t op, double now);
  std::int32_t access(std::int32_t line, std::int32_t op);
  void serve(std::uint32_t slice, double now);
  void schedule(std::uint32_t slice);
  void progress(const HbmSlice::Progress& progress);
  double send(std::int32_t pe, Line& line, const RehearsedOp& op, double now);
  double receive(std::int32_t pe, Line& line, const RehearsedOp& op, double now);
  double calculate(std::int32_t pe, Line& line, const RehearsedOp& op, double now);
  bool has_room(Line& line, const RehearsedOp& op);
  std::uint32_t way_to(std::int32_t pe, std::int32_t place);
  Queue& queue(std::int32_t id);
  /// Of a queue of the last call: when the next call has each of the slots, from its start on.
  std::deque<double> credits_left(const Queue& queue) const;
  void pass(std::int32_t flight, double now);
  void done(std::int32_t pe, std::int32_t op, double time);
  double through(const std::vector<std::uint32_t>& passages, double head, double bytes);

  const MachineMap& map_;
  WayBook ways_;
  std::vector<Pe> pes_;
  std::vector<Queue> queues_;
  std::vector<Line> lines_;  ///< kEngines of each PE, then both ends of each queue
  Memories memories_;
  Numbered<Flight> flights_;
  Numbered<Access> accesses_;
  std::vector<double> due_;  ///< by slice: of its next event
  std::vector<HbmSlice::Progress> progress_;
  std::unordered_map<std::uint64_t, RehearsalTl::QueuesOfPe> directions_;
  Earliest<Event> events_;
  std::uint64_t event_number_ = 0;
  double end_ = 0;
};

}  // namespace kernbench::ccl
