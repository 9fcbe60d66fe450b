#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "models/hbm/channel_gaps.h"

namespace kernbench {

/// One HBM channel: its pseudo channels share the controller, the row and the column command bus.
///
/// FR-FCFS over queues of bursts, exact to the command with a grain of 1, evaluated lazily: nothing happens between
/// calls, advance(t) takes every decision of the ticks up to t. At each tick first a column command, then a row
/// command.
///
/// Policy `batched`: a read and a write queue. Column: the oldest ready one of a row opened for it, else the oldest
/// ready row hit of the present direction. Row: ACT or PRE for the oldest ready row miss; a row with an older hit stays
/// open. Writes are taken in batches. An ACT takes its burst out of the queue. Refresh stops everything but the column
/// commands of rows already opened for a burst.
/// Policy `shared`: one queue; a burst keeps its place until its column command. Each bank offers one command: its
/// oldest hit of either direction, else PRE or ACT for its oldest burst. Refresh stops its own pseudo channel (or bank)
/// only.
///
/// With a grain G above 1 an entry of the queue may hold a run of up to G bursts of one row, taken by one decision;
/// after take_whole_runs() more of one tag, up to a row. Rules and figures: docs/hbm.md. REQUIRES: calls come in order
/// of time.
class ChannelTiming {
 public:
  /// `queue_bursts`: capacity of each queue.
  ChannelTiming(const HbmConfig& config, unsigned queue_bursts)
      : ChannelTiming(config, queue_bursts, ChannelGaps(config)) {}
  ChannelTiming(const HbmConfig& config, unsigned queue_bursts, const ChannelGaps& gaps);

  /// Bursts that can be accepted now.
  unsigned room(bool write) const {
    const unsigned taken = shared_ ? waiting_[0] + waiting_[1] : waiting_[write];
    return queue_bursts_ - std::min(taken, queue_bursts_);
  }
  /// Queues `count` bursts of the row of `place` at tick `now`; they can be served from the next tick on. `waited`:
  /// they stood before a full queue; policy `shared` sees them in the tick in which they get their place. Returns false
  /// if the burst was answered from the write queue (forward_writes): then it is neither queued nor decided. REQUIRES:
  /// room(write) >= count, with whole runs of some; count is 1 with forward_writes; now is not before the tick of an
  /// earlier call. Call advance(now) first.
  bool accept(Tick now, const BurstPlace& place, bool write, std::uint32_t tag, unsigned count = 1,
              bool waited = false);
  /// From now on one decision takes a run of any length, if it comes in one call, and the last one accepted need not
  /// fit. `banks`: a bank is so many, that take their bursts in turns (WideSlice).
  void take_whole_runs(unsigned banks) {
    whole_runs_ = true;
    banks_of_run_ = banks;
  }
  /// Takes all decisions of ticks <= until. Policy `shared`: a column command of tick `until` that makes room in a full
  /// queue leaves the row command of that tick open until the next call, so that what has waited can be accepted
  /// before.
  void advance(Tick until);
  /// Whether advance(t) has left the row command of tick t open.
  bool tick_open(Tick t) const { return made_room_ && not_before_ == t; }
  /// A tick before which no command can be issued; kNoTick if no burst waits.
  Tick next();
  /// A tick before which no data of a read that waits can have arrived; kNoTick if no burst waits.
  Tick next_data();
  /// A tick before which no burst leaves its queue; kNoTick if none waits.
  Tick next_room();
  /// First tick that is not decided yet.
  Tick decided_until() const { return not_before_; }
  bool idle() const { return waiting_[0] + waiting_[1] == 0 && openers_.empty(); }
  unsigned waiting(bool write) const { return waiting_[write]; }

  /// Bursts of one tag whose column command has been decided since the last clear(), in order of commands.
  struct Decided {
    std::uint32_t tag;
    std::uint16_t count;
    bool write;
    bool opened, closed_other;  ///< its row was opened for it; another row had to be closed for that
    Tick command, end;          ///< of the column command; of the last one's data
  };
  std::vector<Decided>& decided() { return decided_; }

  struct Stats {
    std::uint64_t row_hits = 0, row_closed = 0, row_conflicts = 0, reads = 0, writes = 0;
    std::uint64_t refreshes = 0;       ///< REFab and REFpb commands
    std::uint64_t bank_refreshes = 0;  ///< banks that they refreshed
    std::uint64_t forwarded = 0, merged = 0;
  };
  const Stats& stats() const { return stats_; }
  Tick last_data() const { return last_data_; }  ///< end of the last data decided; 0: none
  const ChannelGaps& gaps() const { return gaps_; }
  void set_listener(CommandListener* listener) { listener_ = listener; }

 private:
  static constexpr int kNone = -1;
  static constexpr unsigned kMaxGrain = 4;
  static constexpr unsigned kMostOfRun = 128;
  enum Direction : unsigned { kRead, kWrite };

  struct Entry {
    Tick arrival = 0;
    std::uint64_t age = 0;
    std::uint32_t row = 0;
    std::uint16_t bank = 0, column = 0;
    bool write = false, closed_other = false, opened = false;
    bool whole = false;  // more than a grain, of one tag
    std::uint8_t count = 1;
    int next = kNone, previous = kNone;  // in its bank's list, by age
    std::array<std::uint32_t, kMaxGrain> tags{};
  };
  /// Lists: one per direction (batched), or one (shared).
  struct Bank {
    std::uint16_t pseudo_channel = 0, stack = 0, group = 0;  // numbered over the channel
    bool open = false;
    std::uint32_t row = 0;
    std::uint32_t accesses = 0;                          // since the row was opened
    Tick column[2] = {0, 0}, pre = 0, act = 0, ref = 0;  // earliest start of each command
    Tick close_at = kNoTick;                             // closed page: when to ask for a precharge
    int head[2] = {kNone, kNone}, tail[2] = {kNone, kNone};
    int hit[2] = {kNone, kNone}, miss[2] = {kNone, kNone};  // oldest of each kind
    int active = kNone;  // the burst that its row was opened for, until its column command
  };
  struct Stack {
    Tick column[2] = {0, 0};
  };
  struct Group {
    Tick column[2] = {0, 0}, act = 0;
  };
  struct PseudoChannel {
    Tick column[2] = {0, 0}, act = 0, pre = 0, ref = 0;
    std::array<Tick, 4> activates{};  // when a fifth ACT may follow each of the last four
    unsigned oldest_activate = 0;
    unsigned active = 0;
  };
  struct Maintenance {
    enum Kind { refresh_all, refresh_bank, close } kind;
    std::uint16_t unit;  // pseudo channel or bank
  };
  /// Set of banks; 128 of them.
  struct BankSet {
    std::array<std::uint64_t, 2> words{};
    void set(unsigned i, bool on) { on ? words[i / 64] |= bit(i) : words[i / 64] &= ~bit(i); }
    bool has(unsigned i) const { return (words[i / 64] & bit(i)) != 0; }
    bool empty() const { return (words[0] | words[1]) == 0; }
    static std::uint64_t bit(unsigned i) { return std::uint64_t{1} << (i % 64); }
  };
  /// What a scan looks at of each bank, side by side.
  struct Slot {
    Tick at = 0;
    std::uint64_t age = 0;
  };
  /// What the column or the row slot takes next. Valid for as long as `at` is not before not_before_ and nothing that
  /// it was compared with has changed.
  struct Candidate {
    Tick at = kNoTick;
    Tick rank = kNoTick;      // of two, the lower goes first; `at`, or the end of the command
    std::uint64_t order = 0;  // among candidates of one rank
    unsigned bank = 0;
    int entry = kNone;  // kNone with an `at`: the maintenance of pseudo channel `bank` (shared)
    bool active = false;
    bool before(const Candidate& other) const {
      if (rank != other.rank) return rank < other.rank;
      if (active != other.active) return active;
      return order < other.order;
    }
  };
  /// Refresh of one pseudo channel (shared).
  struct Refresher {
    Tick next = kNoTick;
    bool due = false;
    unsigned unit = 0;  // pseudo channel or bank
    BankSet remaining;  // per bank: not refreshed in this round
  };

  /// Bursts of a run that keep their places when an ACT takes the first ones along.
  unsigned left_behind(const Entry& entry) const { return shared_ ? 0 : entry.count - first_of_banks(entry); }
  Tick rising(Tick t) const { return gaps_.m == 2 ? t | 1 : t; }
  /// Bursts of a run that found no row open, if it opened one.
  unsigned first_of_banks(const Entry& entry) const { return std::min<unsigned>(entry.count, banks_of_run_); }
  unsigned list(unsigned direction) const { return shared_ ? 0 : direction; }
  Entry& at(int entry) { return entries_[static_cast<std::size_t>(entry)]; }
  const Entry& at(int entry) const { return entries_[static_cast<std::size_t>(entry)]; }
  unsigned index(const BurstPlace& place) const;
  /// The direction that is served: its queue.
  unsigned mode() const {
    if (shared_) return 0;
    const unsigned reads = waiting_[kRead], writes = waiting_[kWrite];
    if (mode_ == kRead) return writes > write_above_ || reads == 0 ? kWrite : kRead;
    return writes < write_below_ && reads > 0 ? kRead : kWrite;
  }
  const Candidate& best_column() {
    const unsigned q = mode();
    if (!column_known_ || column_mode_ != q) scan_columns(q);
    return column_;
  }
  const Candidate& best_row() {
    const unsigned q = mode();
    if (!row_known_ || row_mode_ != q) scan_rows(q);
    return row_;
  }
  void scan_columns(unsigned q);
  void scan_rows(unsigned q);
  void consider_hit(unsigned bank, unsigned q);
  void consider_opener(unsigned bank);
  void consider_row(unsigned bank, unsigned q);
  Tick column_ready(const Bank& bank, unsigned direction) const;
  bool may_close(const Bank& bank, unsigned q) const;
  void forget_candidates() { column_known_ = row_known_ = false; }
  Tick next_event(bool with_refresh);
  void finish_tick(Tick t);

  // Queues: channel_queue.cpp
  bool forwarded(const Bank& bank, const BurstPlace& place, bool write) const;
  unsigned append(int entry, const BurstPlace& place, bool write, std::uint32_t tag, unsigned count);
  int push(unsigned bank, Tick now, const BurstPlace& place, bool write, std::uint32_t tag, unsigned count);
  void split(int entry);
  void unlink(int entry);
  void release(int entry) { free_entries_.push_back(entry); }
  void classify(unsigned bank);
  void update_hit(unsigned bank, unsigned q);
  void update_row(unsigned bank, unsigned q);
  void update_rows(unsigned bank);

  // Commands: channel_commands.cpp
  void step(Tick t);
  void step_shared(Tick t);
  void issue_column(const Candidate& column, Tick t);
  void decide(const Entry& entry, Tick t);
  void issue_row(const Candidate& row, Tick t);
  void activate(unsigned bank, int entry, Tick t);
  void precharge(unsigned bank, Tick t);
  void after_close(unsigned index, Tick pre_start);
  void tell(DramCommand command, unsigned bank, std::uint32_t row, Tick at, unsigned bursts = 1);

  // Refresh and closing of pages: channel_maintenance.cpp
  void check_refresh() const;
  void start_refresh();
  Tick refresh_all_ready(unsigned pseudo_channel) const;
  Tick refresh_bank_ready(unsigned bank) const;
  Tick maintenance_ready() const;
  Tick next_refresh() const;
  Tick next_close() const;
  void due_maintenance(Tick t);
  void due_refreshers(Tick t);
  void drop_needless_closes();
  void skip_idle_refreshes(Tick until);
  void consider_refresher(unsigned pseudo_channel);
  void issue_maintenance(Tick t);
  void issue_refresher(unsigned pseudo_channel, Tick t);
  bool refresh_all(unsigned pseudo_channel, Tick t);
  void refresh_bank(unsigned bank, Tick t);
  void block(const Refresher& refresher, bool blocked);

  const HbmConfig config_;
  const ChannelGaps gaps_;
  const unsigned queue_bursts_;
  const unsigned write_above_, write_below_;  // bursts at which the direction changes
  const bool shared_;
  unsigned banks_per_stack_, banks_per_pseudo_channel_, words_;
  bool whole_runs_ = false;
  unsigned banks_of_run_ = 1;
  bool stack_gates_;  // reads of another stack ID keep a distance of their own
  std::vector<Bank> banks_;
  std::vector<Stack> stacks_;
  std::vector<Group> groups_;
  std::vector<PseudoChannel> pseudo_channels_;
  std::vector<BankSet> pc_banks_;  // by pseudo channel
  std::vector<Entry> entries_;
  std::vector<int> free_entries_;
  std::vector<Slot> hit_[2], row_slot_[2];  // by list and bank: oldest hit; row candidate
  BankSet hits_[2], rows_[2], open_, allowed_;
  std::vector<unsigned> openers_;  // banks with an active burst, in order of its arrival, then of the ACT
  std::vector<Maintenance> maintenance_;
  std::vector<Refresher> refreshers_;
  std::vector<unsigned> closing_;  // banks with a close_at
  unsigned waiting_[2] = {0, 0};
  std::uint64_t age_ = 1;
  unsigned mode_ = kRead;
  Tick not_before_ = 0;  // ticks below are decided
  Tick column_bus_ = 0, row_bus_ = 0;
  Candidate column_, row_;
  bool column_known_ = false, row_known_ = false;
  bool made_room_ = false;  // shared: the last step did, in a full queue; its row command is not decided
  unsigned column_mode_ = kRead, row_mode_ = kRead;  // that they were chosen in
  Tick next_refresh_ = kNoTick;
  unsigned refresh_turn_ = 0;   // per-bank refresh: next bank of each share
  unsigned refreshes_due_ = 0;  // commands per interval; per bank: as many shares of the banks
  Stats stats_;
  Tick last_data_ = 0;
  std::vector<Decided> decided_;
  CommandListener* listener_ = nullptr;
};

}  // namespace kernbench
