/// When refreshes of a channel can start, and what they do.
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
