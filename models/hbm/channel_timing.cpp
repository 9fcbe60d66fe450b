#include "models/hbm/channel_timing.h"

#include <stdexcept>
#include <string>

namespace kernbench {

namespace {

/// A scan compares one number per bank: time above the earliest possible one, age, bank.
constexpr unsigned kBankBits = 7, kAgeBits = 38, kTimeBits = 64 - kBankBits - kAgeBits;
static_assert(kLargestGap == Tick{1} << (kTimeBits - 1));
constexpr std::uint64_t kNoKey = ~std::uint64_t{0};

std::uint64_t scan_key(Tick above, std::uint64_t age, unsigned bank) {
  return above << (kBankBits + kAgeBits) | age << kBankBits | bank;
}
unsigned key_bank(std::uint64_t key) { return static_cast<unsigned>(key & ((1u << kBankBits) - 1)); }
Tick key_above(std::uint64_t key) { return key >> (kBankBits + kAgeBits); }

}  // namespace

ChannelTiming::ChannelTiming(const HbmConfig& config, unsigned queue_bursts, const ChannelGaps& gaps, unsigned queues,
                             Tick longer)
    : config_(config),
      gaps_(gaps),
      queue_bursts_(queue_bursts),
      queues_(queues),
      longer_(longer),
      banks_per_stack_(config.bank_groups * config.banks_per_group),
      banks_per_pseudo_channel_(banks_per_stack_ * config.stack_ids),
      stack_gates_(config.stack_ids > 1 && gaps_.ccd_r > gaps_.ccd_s) {
  const unsigned banks = banks_per_pseudo_channel_ * config.pseudo_channels;
  if (banks > kMostBanks) {
    throw std::invalid_argument("hbm: a channel has " + std::to_string(banks) + " banks, at most " +
                                std::to_string(kMostBanks) + " are supported");
  }
  if (config.grain == 0 || config.grain > kMaxGrain) {
    throw std::invalid_argument("hbm: a grain of " + std::to_string(config.grain) + " bursts, from 1 to " +
                                std::to_string(kMaxGrain) + " are supported");
  }
  if (std::max({gaps_.refab_ref, gaps_.refpb_ref, gaps_.wr_pre, gaps_.faw, gaps_.act_act, gaps_.wr_rd_l}) > kLargestGap)
    throw std::invalid_argument("hbm: a time of the device is longer than " + std::to_string(kLargestGap) + " ticks");
  words_ = banks > 64 ? 2 : 1;
  banks_.resize(banks);
  pc_banks_.resize(config.pseudo_channels);
  for (unsigned i = 0; i < banks; ++i) {
    banks_[i].pseudo_channel = static_cast<std::uint16_t>(i / banks_per_pseudo_channel_);
    banks_[i].stack = static_cast<std::uint16_t>(i / banks_per_stack_);
    banks_[i].group = static_cast<std::uint16_t>(i / config.banks_per_group);
    pc_banks_[banks_[i].pseudo_channel].set(i, true);
    allowed_.set(i, true);
  }
  stacks_.resize(banks / banks_per_stack_);
  groups_.resize(banks / config.banks_per_group);
  pseudo_channels_.resize(config.pseudo_channels);
  for (unsigned q = 0; q < queues_; ++q) {
    hit_[q].resize(banks);
    row_slot_[q].resize(banks);
  }
  // A burst that was split off its run needs an entry of its own.
  entries_.resize(2 * queue_bursts + banks + 1);
  for (int i = static_cast<int>(entries_.size()) - 1; i >= 0; --i) free_entries_.push_back(i);
  check_refresh();
  next_refresh_ = gaps_.refi == 0 ? kNoTick : gaps_.refi;
}

unsigned ChannelTiming::index(const BurstPlace& place) const {
  return ((place.pseudo_channel * config_.stack_ids + place.stack_id) * config_.bank_groups + place.bank_group) *
             config_.banks_per_group +
         place.bank;
}

Tick ChannelTiming::column_ready(const Bank& bank, unsigned d) const {
  return std::max({rising(not_before_), column_bus_, bank.column[d], groups_[bank.group].column[d],
                   stacks_[bank.stack].column[d], pseudo_channels_[bank.pseudo_channel].column[d]});
}

void ChannelTiming::consider_opener(unsigned b) {
  const Bank& bank = banks_[b];
  const Entry& entry = at(bank.active);
  const Tick ready = column_ready(bank, entry.write ? kWrite : kRead);
  const Candidate opener{ready, ready, entry.arrival, b, bank.active, true};
  if (opener.before(column_)) column_ = opener;
}

/// Compares a bank's oldest hit with the cached candidate.
void ChannelTiming::consider_hit(unsigned b, unsigned q) {
  const Bank& bank = banks_[b];
  if (bank.hit[q] == kNone || !maintenance_.empty() || !allowed_.has(b)) return;
  const Entry& entry = at(bank.hit[q]);
  const Tick ready = column_ready(bank, entry.write ? kWrite : kRead);
  const Candidate hit{ready, ready, entry.age, b, bank.hit[q], false};
  if (hit.before(column_)) column_ = hit;
}

void ChannelTiming::scan_columns(unsigned q) {
  column_mode_ = q;
  column_known_ = true;
  column_ = Candidate();
  const Tick floor = std::max(rising(not_before_), column_bus_);
  for (const unsigned b : openers_) {  // in order of priority: a later one must be ready earlier
    const Bank& bank = banks_[b];
    const Tick ready = column_ready(bank, at(bank.active).write ? kWrite : kRead);
    if (ready < column_.at) column_ = {ready, ready, at(bank.active).arrival, b, bank.active, true};
    if (ready == floor) return;
  }
  if (!maintenance_.empty()) return;
  std::uint64_t best = kNoKey;
  for (unsigned w = 0; w < words_; ++w) {
    for (std::uint64_t rest = hits_[q].words[w] & allowed_.words[w]; rest != 0; rest &= rest - 1) {
      const unsigned b = w * 64 + static_cast<unsigned>(__builtin_ctzll(rest));
      const Bank& bank = banks_[b];
      const unsigned d = queues_ == 1 ? at(bank.hit[0]).write : q;
      Tick ready = std::max(
          {hit_[q][b].at, groups_[bank.group].column[d], pseudo_channels_[bank.pseudo_channel].column[d], floor});
      if (stack_gates_) ready = std::max(ready, stacks_[bank.stack].column[d]);
      best = std::min(best, scan_key(ready - floor, hit_[q][b].age, b));
    }
  }
  if (best == kNoKey || floor + key_above(best) >= column_.at) return;
  const unsigned b = key_bank(best);
  const Tick ready = floor + key_above(best);
  column_ = {ready, ready, hit_[q][b].age, b, banks_[b].hit[q], false};
}

bool ChannelTiming::may_close(const Bank& bank, unsigned q) const {
  if (bank.active != kNone) return false;
  if (bank.hit[q] == kNone) return true;
  return may_close_before_hit(bank, q);
}

/// Compares a bank's row command with the cached candidate.
void ChannelTiming::consider_row(unsigned b, unsigned q) {
  if (!rows_[q].has(b) || !allowed_.has(b)) return;
  const Bank& bank = banks_[b];
  const PseudoChannel& pc = pseudo_channels_[bank.pseudo_channel];
  const Tick floor = std::max(not_before_, row_bus_);
  Candidate candidate{0, 0, row_slot_[q][b].age, b, bank.miss[q], false};
  if (bank.open) {
    candidate.at = candidate.rank = std::max({floor, bank.pre, pc.pre});
  } else {
    candidate.at =
        std::max({rising(floor), bank.act, groups_[bank.group].act, pc.act, pc.activates[pc.oldest_activate]});
    candidate.rank = candidate.at + longer_;
  }
  if (candidate.before(row_)) row_ = candidate;
}

void ChannelTiming::scan_rows(unsigned q) {
  row_mode_ = q;
  row_known_ = true;
  row_ = Candidate();
  if (rows_[q].empty() && !own_rows_) return;
  const Tick floor = std::max(not_before_, row_bus_);
  std::uint64_t best = kNoKey;
  for (unsigned p = 0; p < pseudo_channels_.size(); ++p) {
    const PseudoChannel& pc = pseudo_channels_[p];
    const Tick act = std::max({rising(floor), pc.act, pc.activates[pc.oldest_activate]});
    const Tick pre = std::max(floor, pc.pre);
    for (unsigned w = 0; w < words_; ++w) {
      const std::uint64_t some = rows_[q].words[w] & pc_banks_[p].words[w] & allowed_.words[w];
      for (std::uint64_t rest = some & ~open_.words[w]; rest != 0; rest &= rest - 1) {
        const unsigned b = w * 64 + static_cast<unsigned>(__builtin_ctzll(rest));
        const Slot& slot = row_slot_[q][b];
        const Tick ready = std::max({act, slot.at, groups_[banks_[b].group].act});
        best = std::min(best, scan_key(ready + longer_ - floor, slot.age, b));
      }
      for (std::uint64_t rest = some & open_.words[w]; rest != 0; rest &= rest - 1) {
        const unsigned b = w * 64 + static_cast<unsigned>(__builtin_ctzll(rest));
        const Slot& slot = row_slot_[q][b];
        best = std::min(best, scan_key(std::max(pre, slot.at) - floor, slot.age, b));
      }
    }
  }
  if (best != kNoKey) {
    const unsigned b = key_bank(best);
    const Tick rank = floor + key_above(best);
    row_ = {banks_[b].open ? rank : rank - longer_, rank, row_slot_[q][b].age, b, banks_[b].miss[q], false};
  }
  if (own_rows_) consider_own_rows();
}

Tick ChannelTiming::next_event(bool with_refresh) {
  Tick t = best_column().at;
  t = std::min(t, maintenance_.empty() ? best_row().at : maintenance_ready());
  if (!closing_.empty()) t = std::min(t, next_close());
  return with_refresh ? std::min(t, std::max(next_refresh_, not_before_)) : t;
}

Tick ChannelTiming::next() { return idle() ? kNoTick : next_event(next_refresh_ != kNoTick); }

/// Where reads are served a read that is no candidate for a column yet needs its ACT before; refreshes and writes only
/// delay it.
Tick ChannelTiming::next_data() {
  if (idle()) return kNoTick;
  Tick column = best_column().at;
  if (!maintenance_.empty()) {
    column = std::min(column, maintenance_ready());
  } else if (reads_may_follow()) {
    column = std::min(column, best_row().at);
  } else {
    const Tick row = best_row().at;
    if (row != kNoTick) column = std::min(column, row + gaps_.act_rd);
  }
  if (column == kNoTick) column = not_before_;
  return column + gaps_.read_data;
}

/// A hit leaves at its column command. What comes before that of an opener makes no room.
Tick ChannelTiming::next_room() {
  if (idle()) return kNoTick;
  const Candidate& column = best_column();
  Tick t = column.at;
  if (column.active && !whole_runs_) t += gaps_.m;
  if (!maintenance_.empty()) return std::min(t, maintenance_ready());
  const Candidate& row = best_row();
  if (row.at == kNoTick) return t == kNoTick ? not_before_ : t;
  return std::min(t, room_after(row));
}

void ChannelTiming::advance(Tick until) {
  if (until < not_before_) return;
  made_room_ = false;
  if (next_refresh_ != kNoTick && idle()) skip_idle_refreshes(until);
  for (Tick t; (t = next_event(next_refresh_ != kNoTick)) <= until;) {
    step(t);
    if (made_room_) {
      if (t == until) return;
      made_room_ = false;
    }
    if (next_refresh_ != kNoTick && idle()) skip_idle_refreshes(until);
  }
  not_before_ = until + 1;
}

/// Takes the decisions of tick `t` that advance(t) has left open.
void ChannelTiming::finish_tick(Tick t) {
  while (next_event(next_refresh_ != kNoTick) <= t) step(t);
  made_room_ = false;
}

}  // namespace kernbench
