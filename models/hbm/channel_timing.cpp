#include "models/hbm/channel_timing.h"

#include <algorithm>
#include <stdexcept>

namespace kernbench {

ChannelGaps::ChannelGaps(const HbmConfig& c) {
  const HbmTiming& t = c.timing;
  m = c.half_clock_commands ? 2 : 1;
  act = c.half_clock_commands ? 3 : 2;
  pre = 1;
  const Tick column = m;
  act_rd = m * t.t_rcd_rd + act - column;
  act_wr = m * t.t_rcd_wr + act - column;
  act_act = m * t.t_rc;
  act_pre = m * t.t_ras + act - pre;
  rd_pre = m * t.t_rtp + column - pre;
  wr_pre = m * (t.t_cwl + c.burst_ck + t.t_wr) + column - pre;
  pre_act = m * t.t_rp + pre - act;
  pre_ref = m * t.t_rp;
  rrd_s = m * t.t_rrd_s;
  rrd_l = m * t.t_rrd_l;
  faw = m * t.t_faw;
  ppd = m * t.t_ppd;
  ccd_s = m * std::max(c.burst_ck, t.t_ccd_s);
  ccd_l = m * t.t_ccd_l;
  ccd_r = m * t.t_ccd_r;
  rd_wr = m * t.t_rtw;
  wr_rd_s = m * (t.t_cwl + c.burst_ck + t.t_wtr_s);
  wr_rd_l = m * (t.t_cwl + c.burst_ck + t.t_wtr_l);
  refab_act = m * t.t_rfc_ab + pre - act;
  refpb_act = m * t.t_rfc_pb + pre - act;
  refpb_other = m * t.t_rrefd + pre - act;
  refab_ref = m * t.t_rfc_ab;
  refi = c.refresh == RefreshPolicy::none ? 0 : m * (c.refresh == RefreshPolicy::all_bank ? t.t_refi : t.t_refi_pb);
  read_data = m * (t.t_cl + c.burst_ck);
  write_data = m * (t.t_cwl + c.burst_ck);
  burst = m * c.burst_ck;
}

ChannelTiming::ChannelTiming(const HbmConfig& config, unsigned queue_bursts)
    : config_(config), gaps_(config), queue_bursts_(queue_bursts) {
  banks_per_stack_ = config.bank_groups * config.banks_per_group;
  banks_per_pseudo_channel_ = banks_per_stack_ * config.stack_ids;
  const unsigned banks = banks_per_pseudo_channel_ * config.pseudo_channels;
  if (banks > 128)
    throw std::invalid_argument("hbm: a channel has " + std::to_string(banks) + " banks, at most 128 are supported");
  banks_.resize(banks);
  for (unsigned i = 0; i < banks; ++i) {
    banks_[i].pseudo_channel = static_cast<std::uint16_t>(i / banks_per_pseudo_channel_);
    banks_[i].stack = static_cast<std::uint16_t>(i / banks_per_stack_);
    banks_[i].group = static_cast<std::uint16_t>(i / config.banks_per_group);
  }
  stacks_.resize(banks / banks_per_stack_);
  groups_.resize(banks / config.banks_per_group);
  pseudo_channels_.resize(config.pseudo_channels);
  entries_.resize(2 * queue_bursts + banks);
  for (int i = static_cast<int>(entries_.size()) - 1; i >= 0; --i) free_entries_.push_back(i);
  next_refresh_ = gaps_.refi == 0 ? kNoTick : gaps_.refi;
  refreshes_due_ = config.pseudo_channels;
  if (config.refresh == RefreshPolicy::per_bank && config.timing.t_refi != 0) {
    // Every bank once in tREFI, whatever number of banks tREFIpb was derived for.
    refreshes_due_ = std::max(1u, (banks * config.timing.t_refi_pb + config.timing.t_refi / 2) / config.timing.t_refi);
  }
  const HbmTiming& t = config.timing;
  if (config.refresh == RefreshPolicy::all_bank && t.t_refi <= t.t_rfc_ab + t.t_rc) {
    throw std::invalid_argument("hbm: tREFI of " + std::to_string(t.t_refi) +
                                " CK leaves no time beside tRFCab and tRC, " + std::to_string(t.t_rfc_ab + t.t_rc) +
                                " CK");
  }
  if (config.refresh == RefreshPolicy::per_bank && t.t_refi_pb <= refreshes_due_ * t.t_rc) {
    throw std::invalid_argument("hbm: tREFIpb of " + std::to_string(t.t_refi_pb) + " CK leaves no time beside " +
                                std::to_string(refreshes_due_) + " refreshes of tRC, " +
                                std::to_string(refreshes_due_ * t.t_rc) + " CK");
  }
}

void ChannelTiming::accept(Tick now, const BurstPlace& place, bool write, std::uint32_t tag) {
  const unsigned index =
      ((place.pseudo_channel * config_.stack_ids + place.stack_id) * config_.bank_groups + place.bank_group) *
          config_.banks_per_group +
      place.bank;
  Bank& bank = banks_[index];
  const Direction direction = write ? kWrite : kRead;
  const int id = free_entries_.back();
  free_entries_.pop_back();
  Entry& entry = entries_[static_cast<std::size_t>(id)];
  entry = Entry();
  entry.arrival = now;
  entry.age = age_++;
  entry.tag = tag;
  entry.row = place.row;
  entry.bank = static_cast<std::uint16_t>(index);
  entry.write = write;
  entry.previous = bank.tail[direction];
  (entry.previous == kNone ? bank.head[direction] : entries_[static_cast<std::size_t>(entry.previous)].next) = id;
  bank.tail[direction] = id;
  not_before_ = std::max(not_before_, now + 1);
  const bool hit = bank.open && bank.row == place.row;
  int& first = hit ? bank.hit[direction] : bank.miss[direction];
  if (first == kNone) {
    first = id;
    update_sets(index);
    if (hit) {
      consider_column(index, column_mode_, column_);
      row_known_ = row_known_ && row_.bank != index;  // it may protect the row
    } else {
      consider_row(index, row_mode_, row_);
    }
  }
  ++waiting_[direction];
  if (listener_ != nullptr) listener_->queued(waiting_[0] + waiting_[1], now);
}

ChannelTiming::Direction ChannelTiming::mode() const {
  const unsigned reads = waiting_[kRead], writes = waiting_[kWrite];
  if (mode_ == kRead) return 5 * writes > 4 * queue_bursts_ || reads == 0 ? kWrite : kRead;
  return 5 * writes < queue_bursts_ && reads > 0 ? kRead : kWrite;
}

Tick ChannelTiming::column_ready(const Bank& bank, Direction d) const {
  const Tick ready = std::max({not_before_, column_bus_, bank.column[d], groups_[bank.group].column[d],
                               stacks_[bank.stack].column[d], pseudo_channels_[bank.pseudo_channel].column[d]});
  return rising(ready);
}

void ChannelTiming::consider_column(unsigned index, Direction d, Candidate& best) const {
  const Bank& bank = banks_[index];
  if (bank.active != kNone) {
    const Entry& entry = entries_[static_cast<std::size_t>(bank.active)];
    const Tick at = column_ready(bank, entry.write ? kWrite : kRead);
    const Candidate opener{at, entry.arrival, bank.active_order, index, bank.active, true};
    if (opener.before(best)) best = opener;
  }
  if (bank.hit[d] == kNone || !maintenance_.empty()) return;
  const Candidate hit{
      column_ready(bank, d), entries_[static_cast<std::size_t>(bank.hit[d])].age, 0, index, bank.hit[d], false};
  if (hit.before(best)) best = hit;
}

const ChannelTiming::Candidate& ChannelTiming::best_column() {
  const Direction d = mode();
  if (column_known_ && column_mode_ == d) return column_;
  column_ = Candidate();
  column_mode_ = d;
  column_known_ = true;
  BankSet banks = active_;
  if (maintenance_.empty()) banks.add(hits_[d]);
  banks.each([&](unsigned i) { consider_column(i, d, column_); });
  return column_;
}

bool ChannelTiming::may_close(const Bank& bank, Direction d) const {
  if (bank.active != kNone) return false;
  if (bank.hit[d] == kNone || !config_.protect_row_hits) return true;
  return entries_[static_cast<std::size_t>(bank.hit[d])].arrival >
         entries_[static_cast<std::size_t>(bank.miss[d])].arrival;
}

void ChannelTiming::consider_row(unsigned index, Direction d, Candidate& best) const {
  const Bank& bank = banks_[index];
  if (bank.miss[d] == kNone) return;
  const PseudoChannel& pc = pseudo_channels_[bank.pseudo_channel];
  Candidate candidate{0, entries_[static_cast<std::size_t>(bank.miss[d])].age, 0, index, bank.miss[d], false};
  if (bank.open) {
    if (!may_close(bank, d)) return;
    candidate.at = std::max({not_before_, row_bus_, bank.pre, pc.pre});
  } else {
    candidate.at = rising(
        std::max({not_before_, row_bus_, bank.act, groups_[bank.group].act, pc.act, pc.activates[pc.oldest_activate]}));
  }
  if (candidate.before(best)) best = candidate;
}

const ChannelTiming::Candidate& ChannelTiming::best_row() {
  const Direction d = mode();
  if (row_known_ && row_mode_ == d) return row_;
  row_ = Candidate();
  row_mode_ = d;
  row_known_ = true;
  misses_[d].each([&](unsigned i) { consider_row(i, d, row_); });
  return row_;
}

/// When the first of the waiting maintenance commands can start; kNoTick: only after a column command.
Tick ChannelTiming::maintenance_ready() const {
  const Maintenance& first = maintenance_.front();
  Tick ready = std::max(not_before_, row_bus_);
  if (first.kind == Maintenance::refresh_all) {
    const PseudoChannel& pc = pseudo_channels_[first.unit];
    if (pc.active != 0) return kNoTick;
    Tick closed = 0, opened = 0;
    bool any_open = false;
    for (unsigned i = first.unit * banks_per_pseudo_channel_; i < (first.unit + 1u) * banks_per_pseudo_channel_; ++i) {
      any_open = any_open || banks_[i].open;
      opened = std::max(opened, banks_[i].pre);  // of a bank that closes itself, too
      closed = std::max(closed, banks_[i].ref);
    }
    return any_open ? std::max({ready, opened, pc.pre}) : rising(std::max({ready, closed, pc.ref}));
  }
  const Bank& bank = banks_[first.unit];
  if (bank.active != kNone) return kNoTick;
  if (bank.open) return std::max({ready, bank.pre, pseudo_channels_[bank.pseudo_channel].pre});
  return rising(std::max({ready, bank.ref, pseudo_channels_[bank.pseudo_channel].ref}));
}

Tick ChannelTiming::next_close() const {
  Tick at = kNoTick;
  for (const unsigned i : closing_) at = std::min(at, banks_[i].close_at);
  return at == kNoTick ? at : std::max(at, not_before_);
}

Tick ChannelTiming::next_event(bool with_refresh) {
  Tick at = best_column().at;
  at = std::min(at, maintenance_.empty() ? best_row().at : maintenance_ready());
  at = std::min(at, next_close());
  return with_refresh ? std::min(at, std::max(next_refresh_, not_before_)) : at;
}

Tick ChannelTiming::next() { return idle() ? kNoTick : next_event(true); }

void ChannelTiming::advance(Tick until) {
  if (until < not_before_) return;
  if (idle()) skip_idle_refreshes(until);
  for (Tick t; (t = next_event(next_refresh_ != kNoTick)) <= until;) {
    step(t);
    if (idle()) skip_idle_refreshes(until);
  }
  not_before_ = until + 1;
}

/// Refreshes of an idle channel leave closed banks and nothing else: only the last two due ones are carried out.
void ChannelTiming::skip_idle_refreshes(Tick until) {
  if (next_refresh_ == kNoTick || !maintenance_.empty() || until < next_refresh_) return;
  const bool all = config_.refresh == RefreshPolicy::all_bank;
  const std::uint64_t due = (until - next_refresh_) / gaps_.refi;
  const std::uint64_t kept = all ? 1 : banks_.size() / refreshes_due_;  // per bank: a full round closes them all
  if (due <= kept) return;
  const std::uint64_t skipped = due - kept;
  next_refresh_ += skipped * gaps_.refi;
  stats_.refreshes += skipped * refreshes_due_;
  if (!all) refresh_turn_ = static_cast<unsigned>((refresh_turn_ + skipped) % (banks_.size() / refreshes_due_));
}

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

void ChannelTiming::step(Tick t) {
  not_before_ = t;
  due_maintenance(t);
  if (maintenance_.empty()) mode_ = mode();
  if (best_column().at == t) issue_column(Candidate(column_), t);
  while (!maintenance_.empty() && maintenance_.front().kind == Maintenance::close &&
         !banks_[maintenance_.front().unit].open) {
    maintenance_.erase(maintenance_.begin());  // closed by an auto-precharge or a refresh meanwhile
    forget_candidates();
  }
  if (maintenance_.empty()) {
    mode_ = mode();
    if (best_row().at == t) issue_row(Candidate(row_), t);
  } else if (maintenance_ready() == t) {
    issue_maintenance(t);
    forget_candidates();
  }
  not_before_ = t + 1;
}

void ChannelTiming::issue_column(const Candidate& column, Tick t) {
  Bank& bank = banks_[column.bank];
  PseudoChannel& pc = pseudo_channels_[bank.pseudo_channel];
  Group& group = groups_[bank.group];
  const Entry entry = entries_[static_cast<std::size_t>(column.entry)];
  const Direction d = entry.write ? kWrite : kRead;
  const Direction other = entry.write ? kRead : kWrite;
  const Tick data = entry.write ? gaps_.write_data : gaps_.read_data;
  decided_.push_back({entry.tag, entry.write, column.active, entry.closed_other, t, t + data});

  const auto raise = [](Tick& gate, Tick to) { gate = std::max(gate, to); };
  column_bus_ = t + gaps_.m;
  raise(pc.column[d], t + gaps_.ccd_s);
  raise(group.column[d], t + gaps_.ccd_l);
  raise(pc.column[other], t + (entry.write ? gaps_.wr_rd_s : gaps_.rd_wr));
  if (entry.write) raise(group.column[kRead], t + gaps_.wr_rd_l);
  if (!entry.write && gaps_.ccd_r > gaps_.ccd_s) {
    const unsigned first = bank.pseudo_channel * config_.stack_ids;
    for (unsigned s = first; s < first + config_.stack_ids; ++s) {
      if (s != bank.stack) raise(stacks_[s].column[kRead], t + gaps_.ccd_r);
    }
  }
  raise(bank.pre, t + (entry.write ? gaps_.wr_pre : gaps_.rd_pre));

  if (column.active) {
    bank.active = kNone;
    --active_count_;
    --pc.active;
    active_.set(column.bank, false);
  } else {
    unlink(column.entry);
    --waiting_[d];
    ++stats_.row_hits;
    if (listener_ != nullptr) listener_->queued(waiting_[0] + waiting_[1], t);
  }
  free_entries_.push_back(column.entry);
  ++(entry.write ? stats_.writes : stats_.reads);
  tell(entry.write ? DramCommand::write : DramCommand::read, column.bank, entry.row, t);

  ++bank.accesses;
  if (config_.page_policy == PagePolicy::closed) {
    if (bank.accesses == 1) {
      bank.close_at = bank.pre;
      closing_.push_back(column.bank);
    } else if (bank.active == kNone) {
      after_close(bank, column.bank, bank.pre);  // auto-precharge
    }
  }
  // Of the rows, only this bank's may be closed earlier or later than before.
  column_known_ = false;
  row_known_ = row_known_ && row_.bank != column.bank;
  if (row_known_) consider_row(column.bank, row_mode_, row_);
}

void ChannelTiming::issue_row(const Candidate& row, Tick t) {
  const Bank& bank = banks_[row.bank];
  if (bank.open) {
    entries_[static_cast<std::size_t>(row.entry)].closed_other = true;
    precharge(row.bank, t);
    column_known_ = column_known_ && column_.bank != row.bank;
  } else {
    activate(row.bank, row.entry, t);
    if (column_known_) consider_column(row.bank, column_mode_, column_);
  }
  row_known_ = false;
}

void ChannelTiming::activate(unsigned index, int id, Tick t) {
  Bank& bank = banks_[index];
  PseudoChannel& pc = pseudo_channels_[bank.pseudo_channel];
  const Entry& entry = entries_[static_cast<std::size_t>(id)];
  bank.open = true;
  bank.row = entry.row;
  bank.accesses = 0;
  bank.column[kRead] = t + gaps_.act_rd;
  bank.column[kWrite] = t + gaps_.act_wr;
  bank.act = t + gaps_.act_act;
  bank.pre = t + gaps_.act_pre;
  groups_[bank.group].act = std::max(groups_[bank.group].act, t + gaps_.rrd_l);
  pc.act = std::max(pc.act, t + gaps_.rrd_s);
  pc.activates[pc.oldest_activate] = t + gaps_.faw;
  pc.oldest_activate = (pc.oldest_activate + 1) % 4;
  row_bus_ = t + gaps_.act;
  ++(entry.closed_other ? stats_.row_conflicts : stats_.row_closed);

  --waiting_[entry.write];
  if (listener_ != nullptr) listener_->queued(waiting_[0] + waiting_[1], t);
  unlink(id);
  bank.active = id;
  bank.active_order = active_order_++;
  ++active_count_;
  ++pc.active;
  active_.set(index, true);
  classify(index);
  tell(DramCommand::activate, index, bank.row, t);
}

void ChannelTiming::after_close(Bank& bank, unsigned index, Tick pre_start) {
  bank.open = false;
  bank.close_at = kNoTick;
  bank.act = std::max(bank.act, pre_start + gaps_.pre_act);
  bank.ref = std::max(bank.ref, pre_start + gaps_.pre_ref);
  classify(index);
}

void ChannelTiming::precharge(unsigned index, Tick t) {
  Bank& bank = banks_[index];
  after_close(bank, index, t);
  pseudo_channels_[bank.pseudo_channel].pre = t + gaps_.ppd;
  row_bus_ = t + gaps_.pre;
  tell(DramCommand::precharge, index, bank.row, t);
}

void ChannelTiming::issue_maintenance(Tick t) {
  const Maintenance first = maintenance_.front();
  if (first.kind != Maintenance::refresh_all) {
    if (banks_[first.unit].open) {
      precharge(first.unit, t);
      if (first.kind == Maintenance::close) maintenance_.erase(maintenance_.begin());
    } else {
      refresh_bank(first.unit, t);
      maintenance_.erase(maintenance_.begin());
    }
    return;
  }
  PseudoChannel& pc = pseudo_channels_[first.unit];
  const unsigned begin = first.unit * banks_per_pseudo_channel_, end = begin + banks_per_pseudo_channel_;
  bool any_open = false;
  for (unsigned i = begin; i < end; ++i) any_open = any_open || banks_[i].open;
  row_bus_ = t + gaps_.pre;
  if (any_open) {
    for (unsigned i = begin; i < end; ++i) {
      if (banks_[i].open) after_close(banks_[i], i, t);
    }
    pc.pre = t + gaps_.ppd;
    tell(DramCommand::precharge_all, begin, 0, t);
    return;
  }
  for (unsigned i = begin; i < end; ++i) banks_[i].act = std::max(banks_[i].act, t + gaps_.refab_act);
  pc.ref = t + gaps_.refab_ref;
  ++stats_.refreshes;
  maintenance_.erase(maintenance_.begin());
  tell(DramCommand::refresh_all, begin, 0, t);
}

void ChannelTiming::refresh_bank(unsigned index, Tick t) {
  const unsigned begin = banks_[index].pseudo_channel * banks_per_pseudo_channel_;
  for (unsigned i = begin; i < begin + banks_per_pseudo_channel_; ++i) {
    banks_[i].act = std::max(banks_[i].act, t + (i == index ? gaps_.refpb_act : gaps_.refpb_other));
  }
  banks_[index].ref = t + gaps_.m * config_.timing.t_rfc_pb;
  row_bus_ = t + gaps_.pre;
  ++stats_.refreshes;
  tell(DramCommand::refresh_bank, index, 0, t);
}

void ChannelTiming::unlink(int id) {
  const Entry& entry = entries_[static_cast<std::size_t>(id)];
  Bank& bank = banks_[entry.bank];
  const Direction d = entry.write ? kWrite : kRead;
  (entry.previous == kNone ? bank.head[d] : entries_[static_cast<std::size_t>(entry.previous)].next) = entry.next;
  (entry.next == kNone ? bank.tail[d] : entries_[static_cast<std::size_t>(entry.next)].previous) = entry.previous;
  // The next one of its kind is younger: the search goes on from here.
  const bool was_hit = bank.hit[d] == id;
  if (was_hit || bank.miss[d] == id) {
    int next = entry.next;
    const auto is_hit = [&](int e) { return bank.open && entries_[static_cast<std::size_t>(e)].row == bank.row; };
    while (next != kNone && is_hit(next) != was_hit) next = entries_[static_cast<std::size_t>(next)].next;
    (was_hit ? bank.hit[d] : bank.miss[d]) = next;
    update_sets(entry.bank);
  }
}

/// Finds the oldest hit and miss of each direction anew, after the bank's row has changed.
void ChannelTiming::classify(unsigned index) {
  Bank& bank = banks_[index];
  for (const Direction d : {kRead, kWrite}) {
    bank.hit[d] = bank.miss[d] = kNone;
    for (int id = bank.head[d]; id != kNone && (bank.hit[d] == kNone || bank.miss[d] == kNone);
         id = entries_[static_cast<std::size_t>(id)].next) {
      int& first = bank.open && entries_[static_cast<std::size_t>(id)].row == bank.row ? bank.hit[d] : bank.miss[d];
      if (first == kNone) first = id;
    }
  }
  update_sets(index);
}

void ChannelTiming::update_sets(unsigned index) {
  const Bank& bank = banks_[index];
  for (const Direction d : {kRead, kWrite}) {
    hits_[d].set(index, bank.hit[d] != kNone);
    misses_[d].set(index, bank.miss[d] != kNone);
  }
}

void ChannelTiming::tell(DramCommand command, unsigned index, std::uint32_t row, Tick at) {
  if (listener_ == nullptr) return;
  const unsigned in_stack = index % banks_per_stack_;
  listener_->command(command,
                     {banks_[index].pseudo_channel, banks_[index].stack % config_.stack_ids,
                      in_stack / config_.banks_per_group, in_stack % config_.banks_per_group, row},
                     at);
}

}  // namespace kernbench
