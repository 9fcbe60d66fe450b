#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/hbm/channel_gaps.h"

namespace kernbench {

/// One HBM channel: its pseudo channels share the controller, the row and the column command bus.
///
/// FR-FCFS over queues of bursts, exact to the command with a grain of 1, evaluated lazily: nothing happens between
/// calls, advance(t) takes every decision of the ticks up to t. At each tick at most one column and one row command.
///
/// Here is what every scheduler needs: queues by bank, gates of the device, the oldest ready hit and miss, what
/// commands do. How many queues there are, which one is served, which command of a tick goes first and how refreshes
/// come in is the scheduler's: a class and a file each, scheduler_<name>.cpp.
///
/// With a grain G above 1 an entry of the queue may hold a run of up to G bursts of one row, taken by one decision;
/// after take_whole_runs() more of one tag, up to a row. Rules and figures: docs/hbm.md. REQUIRES: calls come in order
/// of time.
class ChannelTiming {
 public:
  /// By the scheduler that `config` names. `queue_bursts`: capacity of each queue.
  static std::unique_ptr<ChannelTiming> make(const HbmConfig& config, unsigned queue_bursts, const ChannelGaps& gaps);
  static std::unique_ptr<ChannelTiming> make(const HbmConfig& config, unsigned queue_bursts) {
    return make(config, queue_bursts, ChannelGaps(config));
  }
  virtual ~ChannelTiming() = default;

  /// Bursts that can be accepted now.
  unsigned room(bool write) const {
    const unsigned taken = queues_ == 1 ? waiting_[0] + waiting_[1] : waiting_[write];
    return queue_bursts_ - std::min(taken, queue_bursts_);
  }
  /// Queues `count` bursts of the row of `place` at tick `now`; they can be served from the next tick on. `waited`:
  /// they stood before a full queue; scheduler `shared` sees them in the tick in which they get their place. Returns
  /// false if the burst was answered from the write queue (forward_writes): then it is neither queued nor decided.
  /// REQUIRES: room(write) >= count, with whole runs of some; count is 1 with forward_writes; now is not before the
  /// tick of an earlier call. Call advance(now) first.
  bool accept(Tick now, const BurstPlace& place, bool write, std::uint32_t tag, unsigned count = 1,
              bool waited = false);
  /// From now on one decision takes a run of any length, if it comes in one call, and the last one accepted need not
  /// fit. `banks`: a bank is so many, that take their bursts in turns (WideSlice).
  void take_whole_runs(unsigned banks) {
    whole_runs_ = true;
    banks_of_run_ = banks;
  }
  /// Takes all decisions of ticks <= until. Scheduler `shared`: a column command of tick `until` that makes room in a
  /// full queue leaves the row command of that tick open until the next call, so that what has waited can be accepted
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
    std::uint64_t row_hits = 0, row_closed = 0, row_conflicts = 0, reads = 0, writes = 0, activates = 0;
    std::uint64_t refreshes = 0;       ///< REFab and REFpb commands
    std::uint64_t bank_refreshes = 0;  ///< banks that they refreshed
    std::uint64_t forwarded = 0, merged = 0;
  };
  const Stats& stats() const { return stats_; }
  Tick last_data() const { return last_data_; }  ///< end of the last data decided; 0: none
  const ChannelGaps& gaps() const { return gaps_; }
  void set_listener(CommandListener* listener) { listener_ = listener; }

 protected:
  static constexpr int kNone = -1;
  static constexpr unsigned kMaxGrain = 4;
  static constexpr unsigned kMostOfRun = 128;
  enum Direction : unsigned { kRead, kWrite };  ///< and their queues, where there are two

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
  /// A list per queue: of each direction, or one.
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
    int entry = kNone;  // kNone with an `at`: a command of the scheduler's own, of number `bank`
    bool active = false;
    bool before(const Candidate& other) const {
      if (rank != other.rank) return rank < other.rank;
      if (active != other.active) return active;
      return order < other.order;
    }
  };
  /// `queues`: one for each direction, or one. `longer`: by how much an ACT counts as later than a PRE of its tick.
  ChannelTiming(const HbmConfig& config, unsigned queue_bursts, const ChannelGaps& gaps, unsigned queues, Tick longer);

  // The scheduler: scheduler_<name>.cpp.
  /// The commands of tick `t`.
  virtual void step(Tick t) = 0;
  /// Of two queues, the one to serve. It changes when bursts come or go, and at no other time.
  virtual unsigned to_serve() const { return 0; }
  /// A burst comes at tick `now`: which ticks are decided before it counts.
  virtual void admit(Tick now, bool waited) = 0;
  /// Whether a row may be closed for its bank's oldest miss although queue `q` has a hit of it.
  virtual bool may_close_before_hit(const Bank& bank, unsigned q) const = 0;
  /// An ACT at `t` has opened the row of `entry`.
  virtual void opened(unsigned, int /*entry*/, Tick) {}
  /// Page policy `closed`: a column command has used an open row.
  virtual void close_page(unsigned bank) = 0;
  /// A tick before which `row` makes no room in a queue.
  virtual Tick room_after(const Candidate& row) const = 0;
  /// Whether a read that is no hit yet may get its column command as soon as any row command.
  virtual bool reads_may_follow() const { return false; }
  /// Refreshes of an idle channel leave closed banks and nothing else: only the last due ones are carried out.
  virtual void skip_idle_refreshes(Tick until) = 0;
  /// Row commands of its own, to be compared with row_; whether there may be some; and issuing one.
  virtual void consider_own_rows() {}
  virtual void issue_own_row(const Candidate&, Tick) {}

  /// Bursts of a run that keep their places when an ACT takes the first ones along.
  unsigned left_behind(const Entry& entry) const { return entry.count - first_of_banks(entry); }
  Tick rising(Tick t) const { return gaps_.m == 2 ? t | 1 : t; }
  /// Bursts of a run that found no row open, if it opened one.
  unsigned first_of_banks(const Entry& entry) const { return std::min<unsigned>(entry.count, banks_of_run_); }
  unsigned list(unsigned direction) const { return queues_ == 1 ? 0 : direction; }
  /// The queue that is served.
  unsigned served() const { return served_; }
  void waiting_changed() {
    if (queues_ != 1) served_ = to_serve();
  }
  Entry& at(int entry) { return entries_[static_cast<std::size_t>(entry)]; }
  const Entry& at(int entry) const { return entries_[static_cast<std::size_t>(entry)]; }
  unsigned index(const BurstPlace& place) const;
  const Candidate& best_column() {
    const unsigned q = served();
    if (!column_known_ || column_mode_ != q) scan_columns(q);
    return column_;
  }
  const Candidate& best_row() {
    const unsigned q = served();
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
  void issue_column(const Candidate& column, Tick t);
  void decide(const Entry& entry, Tick t);
  void issue_row(const Candidate& row, Tick t);
  void activate(unsigned bank, int entry, Tick t);
  void precharge(unsigned bank, Tick t);
  void after_close(unsigned index, Tick pre_start);
  void tell(DramCommand command, unsigned bank, std::uint32_t row, Tick at, unsigned bursts = 1);

  // Refresh: channel_maintenance.cpp
  void check_refresh() const;
  Tick refresh_all_ready(unsigned pseudo_channel) const;
  Tick refresh_bank_ready(unsigned bank) const;
  Tick maintenance_ready() const;
  Tick next_close() const;
  bool refresh_all(unsigned pseudo_channel, Tick t);
  void refresh_bank(unsigned bank, Tick t);

  const HbmConfig config_;
  const ChannelGaps gaps_;
  const unsigned queue_bursts_;
  const unsigned queues_;
  const Tick longer_;  // of an ACT: it is compared with other row commands by its end
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
  std::vector<unsigned> openers_;         // banks with an active burst, in order of its arrival, then of the ACT
  std::vector<Maintenance> maintenance_;  // only openers have columns until it is done
  std::vector<unsigned> closing_;         // banks with a close_at
  unsigned waiting_[2] = {0, 0};
  unsigned served_ = 0;
  std::uint64_t age_ = 1;
  Tick not_before_ = 0;  // ticks below are decided
  Tick column_bus_ = 0, row_bus_ = 0;
  Candidate column_, row_;
  bool column_known_ = false, row_known_ = false;
  bool made_room_ = false;  // the last step did, in a full queue; its row command is not decided
  bool own_rows_ = false;   // consider_own_rows() may have some
  unsigned column_mode_ = kRead, row_mode_ = kRead;  // that they were chosen in
  Tick next_refresh_ = kNoTick;
  Stats stats_;
  Tick last_data_ = 0;
  std::vector<Decided> decided_;
  CommandListener* listener_ = nullptr;
};

}  // namespace kernbench
