#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "models/hbm/hbm_config.h"

namespace kernbench {

/// Ticks of a channel: CK, or half a CK where row commands start on both edges (HBM3).
using Tick = std::uint64_t;
inline constexpr Tick kNoTick = ~Tick{0};

/// Bank and row of one burst.
struct BurstPlace {
  std::uint32_t pseudo_channel = 0, stack_id = 0, bank_group = 0, bank = 0, row = 0;
};

enum class DramCommand : std::uint8_t { activate, precharge, precharge_all, read, write, refresh_all, refresh_bank };

/// Sees every command that a channel issues, in order of time; for traces and tests.
class CommandListener {
 public:
  virtual ~CommandListener() = default;
  /// `place.bank*` is meaningless for precharge_all and refresh_all, `place.row` for all but activate.
  virtual void command(DramCommand command, const BurstPlace& place, Tick at) = 0;
  /// Bursts that wait in both queues together, from `at` on.
  virtual void queued(unsigned bursts, Tick at) = 0;
};

/// What the configuration amounts to in ticks: minimum gaps between the starts of two commands.
/// A JEDEC time t between P and F is a gap of m*t + length(P) - length(F), m ticks per CK. docs/hbm.md derives it.
struct ChannelGaps {
  explicit ChannelGaps(const HbmConfig& config);
  Tick m;                                 ///< ticks per CK
  Tick act, pre;                          ///< lengths of ACT, and of PRE and REF, on the row bus
  Tick act_rd, act_wr, act_act, act_pre;  // one bank
  Tick rd_pre, wr_pre, pre_act, pre_ref;  // one bank
  Tick rrd_s, rrd_l, faw, ppd;            // activates and precharges of one pseudo channel
  Tick ccd_s, ccd_l, ccd_r, rd_wr, wr_rd_s, wr_rd_l;
  Tick refab_act, refpb_act, refpb_other, refab_ref, refi;
  Tick read_data, write_data;  ///< command to the end of its data
  Tick burst;                  ///< data bus per burst
};

/// One HBM channel: its pseudo channels share the controller, the row and the column command bus.
///
/// FR-FCFS over a read and a write queue of bursts, exact to the command, evaluated lazily: nothing happens between
/// calls, advance(t) takes every decision of the ticks up to t. At each tick first a column command (the oldest ready
/// one of a row opened for it, else the oldest ready row hit of the present direction), then a row command (ACT or PRE
/// for the oldest ready row miss; a row with an older hit stays open). Writes are taken in batches: from above 80 % of
/// the queue, or when no read waits, down to 20 %. An ACT takes its burst out of the queue. Refresh stops everything
/// but the column commands of rows already opened for a burst. Rules and figures: docs/hbm.md. REQUIRES: calls come in
/// order of time.
class ChannelTiming {
 public:
  /// `queue_bursts`: capacity of each queue.
  ChannelTiming(const HbmConfig& config, unsigned queue_bursts);

  unsigned room(bool write) const { return queue_bursts_ - waiting_[write]; }
  /// Queues a burst at tick `now`; it can be served from the next tick on. REQUIRES: room(write) > 0; now is not before
  /// the tick of an earlier call. Call advance(now) first.
  void accept(Tick now, const BurstPlace& place, bool write, std::uint32_t tag);
  /// Takes all decisions of ticks <= until.
  void advance(Tick until);
  /// A tick before which no command can be issued; kNoTick if no burst waits.
  Tick next();
  /// First tick that is not decided yet.
  Tick decided_until() const { return not_before_; }
  bool idle() const { return waiting_[0] + waiting_[1] + active_count_ == 0; }
  unsigned waiting(bool write) const { return waiting_[write]; }

  /// Bursts whose column command has been decided since the last clear(), in order of commands.
  struct Decided {
    std::uint32_t tag;
    bool write;
    bool opened, closed_other;  ///< its row was opened for it; another row had to be closed for that
    Tick command, end;          ///< of the column command; of the data
  };
  std::vector<Decided>& decided() { return decided_; }

  struct Stats {
    std::uint64_t row_hits = 0, row_closed = 0, row_conflicts = 0, reads = 0, writes = 0, refreshes = 0;
  };
  const Stats& stats() const { return stats_; }
  const ChannelGaps& gaps() const { return gaps_; }
  void set_listener(CommandListener* listener) { listener_ = listener; }

 private:
  static constexpr int kNone = -1;
  enum Direction { kRead, kWrite };

  struct Entry {
    Tick arrival = 0;
    std::uint64_t age = 0;
    std::uint32_t tag = 0, row = 0;
    std::uint16_t bank = 0;
    bool write = false, closed_other = false;
    int next = kNone, previous = kNone;  // in its bank's list, by age
  };
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
    std::uint64_t active_order = 0;
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
    void add(const BankSet& other) { words[0] |= other.words[0], words[1] |= other.words[1]; }
    static std::uint64_t bit(unsigned i) { return std::uint64_t{1} << (i % 64); }
    template <class Body>
    void each(const Body& body) const {
      for (unsigned w = 0; w < 2; ++w) {
        for (std::uint64_t rest = words[w]; rest != 0; rest &= rest - 1) {
          body(w * 64 + static_cast<unsigned>(__builtin_ctzll(rest)));
        }
      }
    }
  };
  /// What the column or the row slot takes next. Valid for as long as `at` is not before not_before_ and nothing that
  /// it was compared with has changed.
  struct Candidate {
    Tick at = kNoTick;
    std::uint64_t order = 0, suborder = 0;  // among candidates of one tick
    unsigned bank = 0;
    int entry = kNone;
    bool active = false;
    bool before(const Candidate& other) const {
      if (at != other.at) return at < other.at;
      if (active != other.active) return active;
      return order != other.order ? order < other.order : suborder < other.suborder;
    }
  };

  Tick rising(Tick t) const { return gaps_.m == 2 ? t | 1 : t; }
  Direction mode() const;
  const Candidate& best_column();
  const Candidate& best_row();
  void consider_column(unsigned bank, Direction direction, Candidate& best) const;
  void consider_row(unsigned bank, Direction direction, Candidate& best) const;
  void forget_candidates() { column_known_ = row_known_ = false; }
  Tick maintenance_ready() const;
  Tick column_ready(const Bank& bank, Direction direction) const;
  bool may_close(const Bank& bank, Direction direction) const;
  Tick next_event(bool with_refresh);
  Tick next_close() const;

  void step(Tick t);
  void due_maintenance(Tick t);
  void skip_idle_refreshes(Tick until);
  void issue_column(const Candidate& column, Tick t);
  void issue_row(const Candidate& row, Tick t);
  void issue_maintenance(Tick t);
  void activate(unsigned bank, int entry, Tick t);
  void precharge(unsigned bank, Tick t);
  void refresh_bank(unsigned bank, Tick t);
  void after_close(Bank& bank, unsigned index, Tick pre_start);
  void unlink(int entry);
  void classify(unsigned bank);
  void update_sets(unsigned bank);
  void tell(DramCommand command, unsigned bank, std::uint32_t row, Tick at);

  const HbmConfig config_;
  const ChannelGaps gaps_;
  const unsigned queue_bursts_;
  unsigned banks_per_stack_, banks_per_pseudo_channel_;
  std::vector<Bank> banks_;
  std::vector<Stack> stacks_;
  std::vector<Group> groups_;
  std::vector<PseudoChannel> pseudo_channels_;
  std::vector<Entry> entries_;
  std::vector<int> free_entries_;
  BankSet active_, hits_[2], misses_[2];
  std::vector<Maintenance> maintenance_;
  std::vector<unsigned> closing_;  // banks with a close_at
  unsigned waiting_[2] = {0, 0};
  unsigned active_count_ = 0;
  std::uint64_t age_ = 0, active_order_ = 0;
  Direction mode_ = kRead;
  Tick not_before_ = 0;  // ticks below are decided
  Tick column_bus_ = 0, row_bus_ = 0;
  Candidate column_, row_;
  bool column_known_ = false, row_known_ = false;
  Direction column_mode_ = kRead, row_mode_ = kRead;  // that they were chosen in
  Tick next_refresh_;
  unsigned refresh_turn_ = 0;   // per-bank refresh: next bank of each share
  unsigned refreshes_due_ = 0;  // commands per interval; per bank: as many shares of the banks
  Stats stats_;
  std::vector<Decided> decided_;
  CommandListener* listener_ = nullptr;
};

}  // namespace kernbench
