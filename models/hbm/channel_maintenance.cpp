/// Refresh, and the closing of pages, of a channel.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "models/hbm/channel_timing.h"

namespace kernbench {

void ChannelTiming::check_refresh() const {
  const HbmTiming& t = config_.timing;
  if (config_.refresh == RefreshPolicy::all_bank && t.t_refi <= t.t_rfc_ab + t.t_rc) {
    throw std::invalid_argument("hbm: tREFI of " + std::to_string(t.t_refi) +
                                " CK leaves no time beside tRFCab and tRC, " + std::to_string(t.t_rfc_ab + t.t_rc) +
                                " CK");
  }
}

void ChannelTiming::start_refresh() {
  if (gaps_.refi == 0) return;
  const HbmTiming& t = config_.timing;
  const auto banks = static_cast<unsigned>(banks_.size());
  const auto pcs = static_cast<unsigned>(pseudo_channels_.size());
  next_refresh_ = gaps_.refi;
  if (shared_) {
    // Staggered: the pseudo channels take turns within an interval.
    for (unsigned p = 0; p < pcs; ++p) {
      Refresher refresher;
      Tick interval = gaps_.refi;
      if (config_.refresh == RefreshPolicy::per_bank) interval = gaps_.m * t.t_refi / banks_per_pseudo_channel_;
      refresher.next = interval - interval * p / pcs;
      refresher.remaining = pc_banks_[p];
      next_refresh_ = std::min(next_refresh_, refresher.next);
      refreshers_.push_back(refresher);
    }
    return;
  }
  refreshes_due_ = pcs;
  if (config_.refresh == RefreshPolicy::per_bank && t.t_refi != 0) {
    // Every bank once in tREFI, whatever number of banks tREFIpb was derived for.
    refreshes_due_ = std::max(1u, (banks * t.t_refi_pb + t.t_refi / 2) / t.t_refi);
  }
  if (config_.refresh == RefreshPolicy::per_bank && t.t_refi_pb <= refreshes_due_ * t.t_rc) {
    throw std::invalid_argument("hbm: tREFIpb of " + std::to_string(t.t_refi_pb) + " CK leaves no time beside " +
                                std::to_string(refreshes_due_) + " refreshes of tRC, " +
                                std::to_string(refreshes_due_ * t.t_rc) + " CK");
  }
}

/// When PREab, or with all banks closed REFab, of a pseudo channel can start.
Tick ChannelTiming::refresh_all_ready(unsigned p) const {
  const PseudoChannel& pc = pseudo_channels_[p];
  const Tick ready = std::max(not_before_, row_bus_);
  Tick closed = 0, opened = 0;
  bool any_open = false;
  for (unsigned i = p * banks_per_pseudo_channel_; i < (p + 1) * banks_per_pseudo_channel_; ++i) {
    any_open = any_open || banks_[i].open;
    opened = std::max(opened, banks_[i].pre);  // of a bank that closes itself, too
    closed = std::max(closed, banks_[i].ref);
  }
  return any_open ? std::max({ready, opened, pc.pre}) : rising(std::max({ready, closed, pc.ref}));
}

/// When PRE, or of a closed bank REFpb, can start.
Tick ChannelTiming::refresh_bank_ready(unsigned b) const {
  const Bank& bank = banks_[b];
  const PseudoChannel& pc = pseudo_channels_[bank.pseudo_channel];
  const Tick ready = std::max(not_before_, row_bus_);
  if (bank.open) return std::max({ready, bank.pre, pc.pre});
  return rising(std::max({ready, bank.ref, pc.ref}));
}

/// When the first of the waiting maintenance commands can start; kNoTick: only after a column command.
Tick ChannelTiming::maintenance_ready() const {
  const Maintenance& first = maintenance_.front();
  if (first.kind == Maintenance::refresh_all)
    return pseudo_channels_[first.unit].active != 0 ? kNoTick : refresh_all_ready(first.unit);
  return banks_[first.unit].active != kNone ? kNoTick : refresh_bank_ready(first.unit);
}

Tick ChannelTiming::next_close() const {
  Tick t = kNoTick;
  for (const unsigned i : closing_) t = std::min(t, banks_[i].close_at);
  return t == kNoTick ? t : std::max(t, not_before_);
}

/// Refreshes of an idle channel leave closed banks and nothing else: only the last due ones are carried out.
void ChannelTiming::skip_idle_refreshes(Tick until) {
  if (!maintenance_.empty() || until < next_refresh_) return;
  const bool all = config_.refresh == RefreshPolicy::all_bank;
  if (shared_) {
    const Tick interval = all ? gaps_.refi : gaps_.m * config_.timing.t_refi / banks_per_pseudo_channel_;
    const std::uint64_t round = all ? 1 : banks_per_pseudo_channel_;  // per bank: whole rounds, so that turns stay
    for (Refresher& refresher : refreshers_) {
      if (refresher.due || until < refresher.next) continue;
      const std::uint64_t due = (until - refresher.next) / interval;
      if (due <= round) continue;
      const std::uint64_t skipped = all ? due - round : (due - 1) / round * round;
      refresher.next += skipped * interval;
      stats_.refreshes += skipped;
      stats_.bank_refreshes += skipped * (all ? banks_per_pseudo_channel_ : 1);
    }
    next_refresh_ = next_refresh();
    return;
  }
  const std::uint64_t due = (until - next_refresh_) / gaps_.refi;
  const std::uint64_t kept = all ? 1 : banks_.size() / refreshes_due_;  // per bank: a full round closes them all
  if (due <= kept) return;
  const std::uint64_t skipped = due - kept;
  next_refresh_ += skipped * gaps_.refi;
  stats_.refreshes += skipped * refreshes_due_;
  stats_.bank_refreshes += skipped * refreshes_due_ * (all ? banks_per_pseudo_channel_ : 1);
  if (!all) refresh_turn_ = static_cast<unsigned>((refresh_turn_ + skipped) % (banks_.size() / refreshes_due_));
}

/// Batched: puts what is due by `t` on the list.
void ChannelTiming::due_maintenance(Tick t) {
  const bool waited = !maintenance_.empty();
  while (next_refresh_ <= t) {
    if (config_.refresh == RefreshPolicy::all_bank) {
      for (unsigned pc = 0; pc < pseudo_channels_.size(); ++pc) {
        maintenance_.push_back({Maintenance::refresh_all, static_cast<std::uint16_t>(pc)});
      }
    } else {
      const auto share = static_cast<unsigned>(banks_.size()) / refreshes_due_;
      for (unsigned k = 0; k < refreshes_due_; ++k) {
        maintenance_.push_back({Maintenance::refresh_bank, static_cast<std::uint16_t>(refresh_turn_ + k * share)});
      }
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
    if (bank.close_at != kNoTick) {
      maintenance_.push_back({Maintenance::close, static_cast<std::uint16_t>(closing_[i])});
    }
    bank.close_at = kNoTick;
    closing_.erase(closing_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (!waited && !maintenance_.empty()) forget_candidates();
}

/// Rows that an auto-precharge or a refresh has closed meanwhile.
void ChannelTiming::drop_needless_closes() {
  while (!maintenance_.empty() && maintenance_.front().kind == Maintenance::close &&
         !banks_[maintenance_.front().unit].open) {
    maintenance_.erase(maintenance_.begin());
    forget_candidates();
  }
}

void ChannelTiming::issue_maintenance(Tick t) {
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

Tick ChannelTiming::next_refresh() const {
  Tick t = kNoTick;
  for (const Refresher& refresher : refreshers_) t = std::min(t, refresher.due ? kNoTick : refresher.next);
  return t;
}

/// Shared: the banks of a refresh that is due take no more commands until it has been done.
void ChannelTiming::block(const Refresher& refresher, bool blocked) {
  if (config_.refresh == RefreshPolicy::per_bank) {
    allowed_.set(refresher.unit, !blocked);
    return;
  }
  for (unsigned w = 0; w < words_; ++w) {
    if (blocked) {
      allowed_.words[w] &= ~pc_banks_[refresher.unit].words[w];
    } else {
      allowed_.words[w] |= pc_banks_[refresher.unit].words[w];
    }
  }
}

void ChannelTiming::due_refreshers(Tick t) {
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

void ChannelTiming::consider_refresher(unsigned p) {
  const bool all = config_.refresh == RefreshPolicy::all_bank;
  const Tick ready = all ? refresh_all_ready(p) : refresh_bank_ready(refreshers_[p].unit);
  const Candidate refresh{ready, ready, 0, p, kNone, false};
  if (refresh.before(row_)) row_ = refresh;
}

void ChannelTiming::issue_refresher(unsigned p, Tick t) {
  Refresher& refresher = refreshers_[p];
  bool done = true;
  Tick interval = gaps_.refi;
  if (config_.refresh == RefreshPolicy::all_bank) {
    done = refresh_all(p, t);
  } else if (banks_[refresher.unit].open) {
    precharge(refresher.unit, t);
    done = false;
  } else {
    refresh_bank(refresher.unit, t);
    refresher.remaining.set(refresher.unit, false);
    if (refresher.remaining.words == BankSet().words) refresher.remaining = pc_banks_[p];
    interval = gaps_.m * config_.timing.t_refi / banks_per_pseudo_channel_;
  }
  if (done) {
    block(refresher, false);
    refresher.due = false;
    refresher.next += interval;
    next_refresh_ = next_refresh();
  }
  forget_candidates();
}

/// PREab, or with all banks closed REFab. Returns whether it was the refresh.
bool ChannelTiming::refresh_all(unsigned p, Tick t) {
  PseudoChannel& pc = pseudo_channels_[p];
  const unsigned begin = p * banks_per_pseudo_channel_, end = begin + banks_per_pseudo_channel_;
  bool any_open = false;
  for (unsigned i = begin; i < end; ++i) any_open = any_open || banks_[i].open;
  row_bus_ = t + gaps_.pre;
  if (any_open) {
    for (unsigned i = begin; i < end; ++i) {
      if (banks_[i].open) after_close(i, t);
    }
    pc.pre = t + gaps_.ppd;
    tell(DramCommand::precharge_all, begin, 0, t);
    return false;
  }
  for (unsigned i = begin; i < end; ++i) {
    banks_[i].act = rising(std::max(banks_[i].act, t + gaps_.refab_act));
    update_rows(i);
  }
  pc.ref = t + gaps_.refab_ref;
  ++stats_.refreshes;
  stats_.bank_refreshes += banks_per_pseudo_channel_;
  tell(DramCommand::refresh_all, begin, 0, t);
  return true;
}

void ChannelTiming::refresh_bank(unsigned b, Tick t) {
  const unsigned begin = banks_[b].pseudo_channel * banks_per_pseudo_channel_;
  for (unsigned i = begin; i < begin + banks_per_pseudo_channel_; ++i) {
    banks_[i].act = rising(std::max(banks_[i].act, t + (i == b ? gaps_.refpb_act : gaps_.refpb_other)));
    update_rows(i);
  }
  banks_[b].ref = t + gaps_.refpb_ref;
  row_bus_ = t + gaps_.pre;
  ++stats_.refreshes;
  ++stats_.bank_refreshes;
  tell(DramCommand::refresh_bank, b, 0, t);
}

}  // namespace kernbench
