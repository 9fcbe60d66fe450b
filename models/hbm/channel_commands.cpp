/// What the commands of a channel do to its state.
#include <algorithm>

#include "models/hbm/channel_timing.h"

namespace kernbench {

namespace {
void raise(Tick& gate, Tick to) { gate = std::max(gate, to); }
}  // namespace

/// The bursts of one column command, by tag.
void ChannelTiming::decide(const Entry& entry, Tick t) {
  const Tick data = entry.write ? gaps_.write_data : gaps_.read_data;
  last_data_ = std::max(last_data_, t + (entry.count - 1) * gaps_.ccd_l + data);
  for (unsigned i = 0; i < entry.count;) {
    const unsigned first = i;
    if (entry.whole) i = entry.count;
    while (i < entry.count && entry.tags[i] == entry.tags[first]) ++i;
    decided_.push_back({entry.tags[first], static_cast<std::uint16_t>(i - first), entry.write, entry.opened,
                        entry.opened && entry.closed_other, t, t + (i - 1) * gaps_.ccd_l + data});
  }
}

void ChannelTiming::issue_column(const Candidate& column, Tick t) {
  const unsigned b = column.bank;
  Bank& bank = banks_[b];
  PseudoChannel& pc = pseudo_channels_[bank.pseudo_channel];
  Group& group = groups_[bank.group];
  const Entry& entry = at(column.entry);
  const unsigned d = entry.write ? kWrite : kRead, other = entry.write ? kRead : kWrite;
  const unsigned count = entry.count;
  const Tick last = t + (count - 1) * gaps_.ccd_l;  // start of the run's last command
  decide(entry, t);

  column_bus_ = t + gaps_.m;
  raise(pc.column[d], t + count * gaps_.ccd_s);
  raise(group.column[d], last + gaps_.ccd_l);
  raise(pc.column[other], last + (entry.write ? gaps_.wr_rd_s : gaps_.rd_wr));
  if (entry.write) raise(group.column[kRead], last + gaps_.wr_rd_l);
  if (!entry.write && stack_gates_) {
    const unsigned first = bank.pseudo_channel * config_.stack_ids;
    for (unsigned s = first; s < first + config_.stack_ids; ++s) {
      if (s != bank.stack) raise(stacks_[s].column[kRead], entry.whole ? last + gaps_.ccd_r : t + count * gaps_.ccd_r);
    }
  }
  raise(bank.pre, last + (entry.write ? gaps_.wr_pre : gaps_.rd_pre));

  if (column.active) {
    bank.active = kNone;
    --pc.active;
    openers_.erase(std::find(openers_.begin(), openers_.end(), b));
    waiting_[d] -= left_behind(entry);
    waiting_changed();
    if (listener_ != nullptr && left_behind(entry) != 0) listener_->queued(waiting_[0] + waiting_[1], t);
    stats_.row_hits += count - first_of_banks(entry);
  } else {
    unlink(column.entry);
    waiting_[d] -= count;
    waiting_changed();
    stats_.row_hits += entry.opened ? count - first_of_banks(entry) : count;
    update_hit(b, list(d));
    if (listener_ != nullptr) listener_->queued(waiting_[0] + waiting_[1], t);
  }
  (entry.write ? stats_.writes : stats_.reads) += count;
  tell(entry.write ? DramCommand::write : DramCommand::read, b, entry.row, t, count);
  release(column.entry);

  bank.accesses += count;
  if (config_.page_policy == PagePolicy::closed) close_page(b);
  // Of the rows, only this bank's may be closed earlier or later than before.
  column_known_ = false;
  update_rows(b);
  row_known_ = row_known_ && row_.bank != b;
  if (row_known_) consider_row(b, row_mode_);
}

void ChannelTiming::issue_row(const Candidate& row, Tick t) {
  if (row.entry == kNone) return issue_own_row(row, t);
  if (banks_[row.bank].open) {
    at(row.entry).closed_other = true;
    precharge(row.bank, t);
    column_known_ = column_known_ && column_.bank != row.bank;
  } else {
    activate(row.bank, row.entry, t);
    if (column_known_)
      banks_[row.bank].active == kNone ? consider_hit(row.bank, column_mode_) : consider_opener(row.bank);
  }
  row_known_ = false;
}

void ChannelTiming::activate(unsigned b, int id, Tick t) {
  Bank& bank = banks_[b];
  PseudoChannel& pc = pseudo_channels_[bank.pseudo_channel];
  if (at(id).count > 1 && !at(id).whole) split(id);
  Entry& entry = at(id);
  // A refresh may have closed its row again: an ACT more, but the burst has been counted.
  if (!entry.opened) (entry.closed_other ? stats_.row_conflicts : stats_.row_closed) += first_of_banks(entry);
  stats_.activates += first_of_banks(entry);
  entry.opened = true;
  bank.open = true;
  open_.set(b, true);
  bank.row = entry.row;
  bank.accesses = 0;
  bank.column[kRead] = rising(t + gaps_.act_rd);
  bank.column[kWrite] = rising(t + gaps_.act_wr);
  bank.act = t + gaps_.act_act;
  bank.pre = t + gaps_.act_pre;
  raise(groups_[bank.group].act, t + gaps_.rrd_l);
  raise(pc.act, t + gaps_.rrd_s);
  pc.activates[pc.oldest_activate] = t + gaps_.faw;
  pc.oldest_activate = (pc.oldest_activate + 1) % 4;
  row_bus_ = t + gaps_.act;
  opened(b, id, t);
  classify(b);
  tell(DramCommand::activate, b, bank.row, t);
}

void ChannelTiming::after_close(unsigned b, Tick pre_start) {
  Bank& bank = banks_[b];
  bank.open = false;
  open_.set(b, false);
  bank.close_at = kNoTick;
  bank.act = rising(std::max(bank.act, pre_start + gaps_.pre_act));
  raise(bank.ref, pre_start + gaps_.pre_ref);
  classify(b);
}

void ChannelTiming::precharge(unsigned b, Tick t) {
  after_close(b, t);
  pseudo_channels_[banks_[b].pseudo_channel].pre = t + gaps_.ppd;
  row_bus_ = t + gaps_.pre;
  tell(DramCommand::precharge, b, banks_[b].row, t);
}

void ChannelTiming::tell(DramCommand command, unsigned b, std::uint32_t row, Tick at, unsigned bursts) {
  if (listener_ == nullptr) return;
  const unsigned in_stack = b % banks_per_stack_;
  listener_->command(command,
                     {banks_[b].pseudo_channel, banks_[b].stack % config_.stack_ids, in_stack / config_.banks_per_group,
                      in_stack % config_.banks_per_group, row, 0},
                     at, bursts);
}

}  // namespace kernbench
