/// The queues of a channel: a list per bank and queue, in order of age.
#include <algorithm>

#include "models/hbm/channel_timing.h"

namespace kernbench {

bool ChannelTiming::accept(Tick now, const BurstPlace& place, bool write, std::uint32_t tag, unsigned count,
                           bool waited) {
  const unsigned b = index(place);
  if (config_.forward_writes && forwarded(banks_[b], place, write)) {
    ++(write ? stats_.merged : stats_.forwarded);
    return false;
  }
  admit(now, waited);
  waiting_[write] += count;
  waiting_changed();
  const bool whole = whole_runs_ && count > config_.grain;
  if (config_.grain > 1 && !whole) count -= append(banks_[b].tail[list(write)], place, write, tag, count);
  while (count > 0) {
    const unsigned taken = std::min(count, whole ? kMostOfRun : config_.grain);
    const int id = push(b, now, place, write, tag, taken);
    count -= taken;
    const unsigned q = list(write);
    Bank& bank = banks_[b];
    const bool hit = bank.open && bank.row == place.row;
    int& first = hit ? bank.hit[q] : bank.miss[q];
    if (first != kNone) continue;
    first = id;
    if (hit) {
      update_hit(b, q);
      if (column_known_ && column_mode_ == q) consider_hit(b, q);
      if (bank.miss[q] != kNone) {  // it may protect the row
        update_row(b, q);
        row_known_ = row_known_ && row_.bank != b;
      }
    } else {
      update_row(b, q);
      if (row_known_ && row_mode_ == q) consider_row(b, q);
    }
  }
  if (listener_ != nullptr) listener_->queued(waiting_[0] + waiting_[1], now);
  return true;
}

/// Whether a queued write of the bank has the same address.
bool ChannelTiming::forwarded(const Bank& bank, const BurstPlace& place, bool write) const {
  // In one queue an older read of the address must still see the old data: only a read may be answered.
  if (queues_ == 1 && write) return false;
  for (int id = bank.head[list(kWrite)]; id != kNone; id = at(id).next) {
    if (at(id).write && at(id).row == place.row && at(id).column == place.column) return true;
  }
  return false;
}

/// Adds to the youngest run of the bank what has room there; returns how many bursts.
unsigned ChannelTiming::append(int id, const BurstPlace& place, bool write, std::uint32_t tag, unsigned count) {
  if (id == kNone) return 0;
  Entry& entry = at(id);
  if (entry.row != place.row || entry.write != write || entry.opened || entry.count >= config_.grain) return 0;
  const unsigned taken = std::min(count, config_.grain - entry.count);
  for (unsigned i = 0; i < taken; ++i) entry.tags[entry.count++] = tag;
  return taken;
}

int ChannelTiming::push(unsigned b, Tick now, const BurstPlace& place, bool write, std::uint32_t tag, unsigned count) {
  const int id = free_entries_.back();
  free_entries_.pop_back();
  Bank& bank = banks_[b];
  const unsigned q = list(write);
  Entry& entry = at(id);
  entry.arrival = now;
  entry.age = age_++;
  entry.row = place.row;
  entry.bank = static_cast<std::uint16_t>(b);
  entry.column = static_cast<std::uint16_t>(place.column);
  entry.write = write;
  entry.closed_other = entry.opened = false;
  entry.whole = count > config_.grain;
  entry.count = static_cast<std::uint8_t>(count);
  for (unsigned i = 0; i < std::min(count, kMaxGrain); ++i) entry.tags[i] = tag;
  entry.next = kNone;
  entry.previous = bank.tail[q];
  (entry.previous == kNone ? bank.head[q] : at(entry.previous).next) = id;
  bank.tail[q] = id;
  return id;
}

/// Leaves one burst of the run in its entry; the others follow it as an entry of their own.
void ChannelTiming::split(int id) {
  const int rest = free_entries_.back();
  free_entries_.pop_back();
  Entry& entry = at(id);
  Entry& other = at(rest);
  other = entry;
  other.closed_other = false;
  other.count = static_cast<std::uint8_t>(entry.count - 1);
  std::copy(entry.tags.begin() + 1, entry.tags.begin() + entry.count, other.tags.begin());
  entry.count = 1;
  other.previous = id;
  entry.next = rest;
  Bank& bank = banks_[entry.bank];
  const unsigned q = list(entry.write);
  (other.next == kNone ? bank.tail[q] : at(other.next).previous) = rest;
}

void ChannelTiming::unlink(int id) {
  const Entry& entry = at(id);
  Bank& bank = banks_[entry.bank];
  const unsigned q = list(entry.write);
  (entry.previous == kNone ? bank.head[q] : at(entry.previous).next) = entry.next;
  (entry.next == kNone ? bank.tail[q] : at(entry.next).previous) = entry.previous;
  // The next one of its kind is younger: the search goes on from here.
  const bool was_hit = bank.hit[q] == id;
  if (!was_hit && bank.miss[q] != id) return;
  int next = entry.next;
  while (next != kNone && (bank.open && at(next).row == bank.row) != was_hit) next = at(next).next;
  (was_hit ? bank.hit[q] : bank.miss[q]) = next;
}

/// Finds the oldest hit and miss of each list anew, after the bank's row has changed.
void ChannelTiming::classify(unsigned b) {
  Bank& bank = banks_[b];
  for (unsigned q = 0; q < queues_; ++q) {
    bank.hit[q] = bank.miss[q] = kNone;
    if (!bank.open) {
      bank.miss[q] = bank.head[q];
    } else {
      for (int id = bank.head[q]; id != kNone && (bank.hit[q] == kNone || bank.miss[q] == kNone); id = at(id).next) {
        int& first = at(id).row == bank.row ? bank.hit[q] : bank.miss[q];
        if (first == kNone) first = id;
      }
    }
    update_hit(b, q);
    update_row(b, q);
  }
}

void ChannelTiming::update_hit(unsigned b, unsigned q) {
  const Bank& bank = banks_[b];
  hits_[q].set(b, bank.hit[q] != kNone);
  if (bank.hit[q] == kNone) return;
  const Entry& first = at(bank.hit[q]);
  hit_[q][b] = {bank.column[first.write ? kWrite : kRead], first.age};
}

/// Whether the bank has a row command to offer, and from when on.
void ChannelTiming::update_row(unsigned b, unsigned q) {
  const Bank& bank = banks_[b];
  const bool candidate = bank.miss[q] != kNone && (!bank.open || may_close(bank, q));
  rows_[q].set(b, candidate);
  if (candidate) row_slot_[q][b] = {bank.open ? bank.pre : bank.act, at(bank.miss[q]).age};
}

void ChannelTiming::update_rows(unsigned b) {
  const Bank& bank = banks_[b];
  for (unsigned q = 0; q < queues_; ++q) {
    if (bank.miss[q] != kNone || rows_[q].has(b)) update_row(b, q);
  }
}

}  // namespace kernbench
