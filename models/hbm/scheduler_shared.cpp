#include <algorithm>

#include "models/hbm/channel_timing.h"

namespace kernbench {
namespace {

/// One queue for both directions, as DRAMSys' FrFcfs with its Shared buffer.
///
/// A burst keeps its place until its column command. Each bank offers one command: its oldest hit of either direction,
/// else PRE or ACT for its oldest burst; of two row commands the one that ends first goes first. Refresh stops its own
/// pseudo channel (or bank) only.
class SharedScheduler final : public ChannelTiming {
 public:
  SharedScheduler(const HbmConfig& config, unsigned queue_bursts, const ChannelGaps& gaps)
      : ChannelTiming(config, queue_bursts, gaps, 1, gaps.act - gaps.pre) {
    if (gaps_.refi != 0) start_refresh();
  }

 private:
  /// Refresh of one pseudo channel.
  struct Refresher {
    Tick next = kNoTick;
    bool due = false;
    unsigned unit = 0;  // pseudo channel or bank
    BankSet remaining;  // per bank: not refreshed in this round
  };

  /// What has waited before a full queue comes in the tick that made room, before its row command.
  void admit(Tick now, bool waited) override {
    if (waited) {
      not_before_ = now;
      return;
    }
    if (not_before_ <= now) finish_tick(now);
    not_before_ = std::max(not_before_, now + 1);
  }
  bool may_close_before_hit(const Bank&, unsigned) const override { return false; }
  Tick room_after(const Candidate& row) const override { return row.at + 1; }
  bool reads_may_follow() const override { return true; }
  void close_page(unsigned b) override { after_close(b, banks_[b].pre); }

  /// Of the two commands of a tick the older burst's goes first; a place that the column command frees may be taken
  /// before the row command is chosen.
  void step(Tick t) override {
    not_before_ = t;
    if (next_refresh_ <= t) due_refreshers(t);
    const bool column = best_column().at == t;
    if (best_row().at == t && (!column || row_.order < column_.order)) issue_row(Candidate(row_), t);
    if (best_column().at == t) {
      made_room_ = room(false) == 0;
      issue_column(Candidate(column_), t);
      if (made_room_) return;
    }
    if (best_row().at == t) issue_row(Candidate(row_), t);
    not_before_ = t + 1;
  }

  Tick interval() const {
    return config_.refresh == RefreshPolicy::all_bank ? gaps_.refi
                                                      : gaps_.m * config_.timing.t_refi / banks_per_pseudo_channel_;
  }
  /// Staggered: the pseudo channels take turns within an interval.
  void start_refresh() {
    own_rows_ = true;
    const auto pcs = static_cast<unsigned>(pseudo_channels_.size());
    for (unsigned p = 0; p < pcs; ++p) {
      Refresher refresher;
      refresher.next = interval() - interval() * p / pcs;
      refresher.remaining = pc_banks_[p];
      refreshers_.push_back(refresher);
    }
    next_refresh_ = next_refresh();
  }
  Tick next_refresh() const {
    Tick t = kNoTick;
    for (const Refresher& refresher : refreshers_) t = std::min(t, refresher.due ? kNoTick : refresher.next);
    return t;
  }
  void skip_idle_refreshes(Tick until) override {
    if (until < next_refresh_) return;
    const bool all = config_.refresh == RefreshPolicy::all_bank;
    const std::uint64_t round = all ? 1 : banks_per_pseudo_channel_;  // per bank: whole rounds, so that turns stay
    for (Refresher& refresher : refreshers_) {
      if (refresher.due || until < refresher.next) continue;
      const std::uint64_t due = (until - refresher.next) / interval();
      if (due <= round) continue;
      const std::uint64_t skipped = all ? due - round : (due - 1) / round * round;
      refresher.next += skipped * interval();
      stats_.refreshes += skipped;
      stats_.bank_refreshes += skipped * (all ? banks_per_pseudo_channel_ : 1);
    }
    next_refresh_ = next_refresh();
  }
  /// The banks of a refresh that is due take no more commands until it has been done.
  void block(const Refresher& refresher, bool blocked) {
    if (config_.refresh == RefreshPolicy::per_bank) {
      allowed_.set(refresher.unit, !blocked);
      return;
    }
    for (unsigned w = 0; w < words_; ++w) {
      const std::uint64_t banks = pc_banks_[refresher.unit].words[w];
      blocked ? allowed_.words[w] &= ~banks : allowed_.words[w] |= banks;
    }
  }
  void due_refreshers(Tick t) {
    for (unsigned p = 0; p < refreshers_.size(); ++p) {
      Refresher& refresher = refreshers_[p];
      if (refresher.due || refresher.next > t) continue;
      refresher.due = true;
      refresher.unit = p;
      if (config_.refresh == RefreshPolicy::per_bank) {
        // An idle bank if there is one, else the first that has not had its turn.
        const auto pick = [&](bool idle_only) {
          for (unsigned i = p * banks_per_pseudo_channel_; i < (p + 1) * banks_per_pseudo_channel_; ++i) {
            if (!refresher.remaining.has(i) || (idle_only && banks_[i].head[0] != kNone)) continue;
            refresher.unit = i;
            return true;
          }
          return false;
        };
        if (!pick(true)) pick(false);
      }
      block(refresher, true);
    }
    next_refresh_ = next_refresh();
    forget_candidates();
  }
  void consider_own_rows() override {
    const bool all = config_.refresh == RefreshPolicy::all_bank;
    for (unsigned p = 0; p < refreshers_.size(); ++p) {
      if (!refreshers_[p].due) continue;
      const Tick ready = all ? refresh_all_ready(p) : refresh_bank_ready(refreshers_[p].unit);
      const Candidate refresh{ready, ready, 0, p, kNone, false};
      if (refresh.before(row_)) row_ = refresh;
    }
  }
  void issue_own_row(const Candidate& row, Tick t) override {
    Refresher& refresher = refreshers_[row.bank];
    bool done = true;
    if (config_.refresh == RefreshPolicy::all_bank) {
      done = refresh_all(row.bank, t);
    } else if (banks_[refresher.unit].open) {
      precharge(refresher.unit, t);
      done = false;
    } else {
      refresh_bank(refresher.unit, t);
      refresher.remaining.set(refresher.unit, false);
      if (refresher.remaining.empty()) refresher.remaining = pc_banks_[row.bank];
    }
    if (done) {
      block(refresher, false);
      refresher.due = false;
      refresher.next += interval();
      next_refresh_ = next_refresh();
    }
    forget_candidates();
  }

  std::vector<Refresher> refreshers_;  // by pseudo channel
};

}  // namespace

std::unique_ptr<ChannelTiming> make_hbm_scheduler_shared(const HbmConfig& config, unsigned queue,
                                                         const ChannelGaps& gaps) {
  return std::make_unique<SharedScheduler>(config, queue, gaps);
}

}  // namespace kernbench
