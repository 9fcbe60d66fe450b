#include <algorithm>
#include <stdexcept>
#include <string>

#include "models/hbm/channel_timing.h"

namespace kernbench {
namespace {

/// A queue for reads and one for writes, writes in batches, as Ramulator 2.1 has them.
///
/// Column: the oldest ready one of a row opened for it, else the oldest ready row hit of the present direction. Row:
/// ACT or PRE for the oldest ready row miss; a row with an older hit stays open. An ACT takes its burst out of the
/// queue. Refresh stops everything but the column commands of rows already opened for a burst.
class BatchedScheduler final : public ChannelTiming {
 public:
  BatchedScheduler(const HbmConfig& config, unsigned queue_bursts, const ChannelGaps& gaps)
      : ChannelTiming(config, queue_bursts, gaps, 2, 0),
        // More than so many percent of the queue, fewer than so many: rounded towards what is exact in whole bursts.
        // Fewer than one is none: reads that wait for fewer than none would wait for ever.
        write_above_(config.write_high * queue_bursts / 100),
        write_below_(std::max(1U, (config.write_low * queue_bursts + 99) / 100)) {
    waiting_changed();
    if (gaps_.refi != 0) start_refresh();
  }

 private:
  // Stays as it is when the direction becomes what it gives: writes that are too many are not few.
  unsigned to_serve() const override {
    const unsigned reads = waiting_[kRead], writes = waiting_[kWrite];
    if (direction_ == kRead) return writes > write_above_ || reads == 0 ? kWrite : kRead;
    return writes < write_below_ && reads > 0 ? kRead : kWrite;
  }
  void admit(Tick now, bool /*waited*/) override { not_before_ = std::max(not_before_, now + 1); }
  bool may_close_before_hit(const Bank& bank, unsigned q) const override {
    return !config_.protect_row_hits || at(bank.hit[q]).arrival > at(bank.miss[q]).arrival;
  }
  /// A hit leaves at its column command, a miss at its ACT (of a whole run the first burst of each bank); a PRE makes
  /// no room.
  Tick room_after(const Candidate& row) const override { return row.at + (banks_[row.bank].open ? gaps_.pre : 0); }
  bool reads_may_follow() const override { return column_mode_ == kWrite; }

  void step(Tick t) override {
    not_before_ = t;
    if (next_refresh_ <= t || !closing_.empty()) due_maintenance(t);
    if (maintenance_.empty()) direction_ = served();
    if (best_column().at == t) issue_column(Candidate(column_), t);
    if (!maintenance_.empty()) drop_needless_closes();
    if (maintenance_.empty()) {
      direction_ = served();
      if (best_row().at == t) issue_row(Candidate(row_), t);
    } else if (maintenance_ready() == t) {
      issue_maintenance(t);
      forget_candidates();
    }
    not_before_ = t + 1;
  }

  void opened(unsigned b, int id, Tick t) override {
    const Entry& entry = at(id);
    Bank& bank = banks_[b];
    waiting_[entry.write] -= entry.count - left_behind(entry);
    waiting_changed();
    if (listener_ != nullptr) listener_->queued(waiting_[0] + waiting_[1], t);
    unlink(id);
    bank.active = id;
    ++pseudo_channels_[bank.pseudo_channel].active;
    const auto later = std::find_if(openers_.begin(), openers_.end(),
                                    [&](unsigned o) { return at(banks_[o].active).arrival > entry.arrival; });
    openers_.insert(later, b);
  }

  /// The access that opened a row closes it by a PRE, a later one by auto-precharge.
  void close_page(unsigned b) override {
    Bank& bank = banks_[b];
    if (bank.accesses > 1) {
      if (bank.active == kNone) after_close(b, bank.pre);
    } else {
      bank.close_at = bank.pre;
      closing_.push_back(b);
    }
  }

  void start_refresh() {
    const HbmTiming& t = config_.timing;
    refreshes_due_ = static_cast<unsigned>(config_.refreshes_due());
    if (config_.refresh != RefreshPolicy::per_bank) return;
    if (t.t_refi_pb <= refreshes_due_ * t.t_rc) {
      throw std::invalid_argument("hbm: tREFIpb of " + std::to_string(t.t_refi_pb) + " CK leaves no time beside " +
                                  std::to_string(refreshes_due_) + " refreshes of tRC, " +
                                  std::to_string(refreshes_due_ * t.t_rc) + " CK");
    }
  }
  void skip_idle_refreshes(Tick until) override {
    if (!maintenance_.empty() || until < next_refresh_) return;
    const bool all = config_.refresh == RefreshPolicy::all_bank;
    const std::uint64_t due = (until - next_refresh_) / gaps_.refi;
    const std::uint64_t kept = all ? 1 : banks_.size() / refreshes_due_;  // per bank: a full round closes them all
    if (due <= kept) return;
    const std::uint64_t skipped = due - kept;
    next_refresh_ += skipped * gaps_.refi;
    stats_.refreshes += skipped * refreshes_due_;
    stats_.bank_refreshes += skipped * refreshes_due_ * (all ? banks_per_pseudo_channel_ : 1);
    if (!all) refresh_turn_ = static_cast<unsigned>((refresh_turn_ + skipped) % (banks_.size() / refreshes_due_));
  }
  /// Puts what is due by `t` on the list.
  void due_maintenance(Tick t) {
    const bool waited = !maintenance_.empty();
    while (next_refresh_ <= t) {
      if (config_.refresh == RefreshPolicy::all_bank) {
        for (unsigned pc = 0; pc < pseudo_channels_.size(); ++pc)
          maintenance_.push_back({Maintenance::refresh_all, static_cast<std::uint16_t>(pc)});
      } else {
        const auto share = static_cast<unsigned>(banks_.size()) / refreshes_due_;
        for (unsigned k = 0; k < refreshes_due_; ++k)
          maintenance_.push_back({Maintenance::refresh_bank, static_cast<std::uint16_t>(refresh_turn_ + k * share)});
        refresh_turn_ = (refresh_turn_ + 1) % share;
      }
      next_refresh_ += gaps_.refi;
    }
    for (std::size_t i = 0; i < closing_.size();) {
      Bank& bank = banks_[closing_[i]];
      if (bank.close_at != kNoTick && bank.close_at > t) {
        ++i;
        continue;
      }
      if (bank.close_at != kNoTick)
        maintenance_.push_back({Maintenance::close, static_cast<std::uint16_t>(closing_[i])});
      bank.close_at = kNoTick;
      closing_.erase(closing_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (!waited && !maintenance_.empty()) forget_candidates();
  }
  /// Rows that an auto-precharge or a refresh has closed meanwhile.
  void drop_needless_closes() {
    while (!maintenance_.empty() && maintenance_.front().kind == Maintenance::close &&
           !banks_[maintenance_.front().unit].open) {
      maintenance_.erase(maintenance_.begin());
      forget_candidates();
    }
  }
  void issue_maintenance(Tick t) {
    const Maintenance first = maintenance_.front();
    if (first.kind == Maintenance::refresh_all) {
      if (refresh_all(first.unit, t)) maintenance_.erase(maintenance_.begin());
    } else if (banks_[first.unit].open) {
      precharge(first.unit, t);
      if (first.kind == Maintenance::close) maintenance_.erase(maintenance_.begin());
    } else {
      refresh_bank(first.unit, t);
      maintenance_.erase(maintenance_.begin());
    }
  }

  const unsigned write_above_, write_below_;  // bursts at which the direction changes
  unsigned direction_ = kRead;
  unsigned refresh_turn_ = 0;   // per-bank refresh: next bank of each share
  unsigned refreshes_due_ = 0;  // commands per interval; per bank: as many shares of the banks
};

}  // namespace

std::unique_ptr<ChannelTiming> make_hbm_scheduler_batched(const HbmConfig& config, unsigned queue,
                                                          const ChannelGaps& gaps) {
  return std::make_unique<BatchedScheduler>(config, queue, gaps);
}

}  // namespace kernbench
