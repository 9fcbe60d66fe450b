#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "models/noc/virtual_channel.h"

namespace kernbench {

/// First and last cycle of a packet on a link.
struct Passage {
  Cycle first = kNoCycle, last = kNoCycle;
};

/// Which of the coming cycles of a port are taken; one flit per cycle.
///
/// A ring of bits. What has been taken last in one piece is kept beside it, so that packets that come one by one never
/// touch the bits.
class SlotMap {
 public:
  static constexpr unsigned kWords = 8;
  static constexpr unsigned kReach = 64 * (kWords - 2);  ///< cycles ahead of the present in which a window may begin

  /// Nothing is taken from `from` on.
  bool free_from(Cycle from) const { return from >= end_; }
  /// Takes first..last. REQUIRES: free_from(first).
  void take_run(Cycle first, Cycle last, Cycle now) {
    if (end_ > now) {
      settle(now);
    } else {
      run_ = kNoCycle;  // all of it is past
    }
    if (run_ == kNoCycle) run_ = first;  // else what remains of a long run; a gap behind it is lost
    end_ = last + 1;
  }
  Cycle end() const { return end_; }  ///< nothing is taken from there on
  /// Makes the bits those of the present; to be called before the others. What of a long run lies beyond the ring stays
  /// beside it.
  void settle(Cycle now) {
    const Cycle word = now / 64;
    if (word != first_) forget(word);
    if (run_ == kNoCycle) return;
    const Cycle beyond = (first_ + kWords) * 64, end = std::min(end_, beyond);
    Cycle from = std::max(run_, now);
    for (; from < end; from += 32) mark(from, (std::uint64_t{1} << std::min<Cycle>(end - from, 32)) - 1);
    run_ = end_ > beyond ? std::max(run_, beyond) : kNoCycle;
  }
  /// Bit i: cycle from + i is taken. REQUIRES: now <= from <= now + kReach.
  std::uint64_t window(Cycle from) const {
    const std::uint64_t low = words_[from / 64 % kWords];
    const unsigned shift = from % 64;
    return shift == 0 ? low : low >> shift | words_[(from / 64 + 1) % kWords] << (64 - shift);
  }
  void take(Cycle from, std::uint64_t bits) {
    if (bits == 0) return;
    mark(from, bits);
    end_ = std::max(end_, from + 64 - static_cast<unsigned>(__builtin_clzll(bits)));
  }

 private:
  void mark(Cycle from, std::uint64_t bits) {
    const unsigned shift = from % 64;
    words_[from / 64 % kWords] |= bits << shift;
    if (shift != 0) words_[(from / 64 + 1) % kWords] |= bits >> (64 - shift);
  }
  void forget(Cycle word) {
    const Cycle gone = std::min<Cycle>(word - first_, kWords);
    for (Cycle w = 0; w < gone; ++w) words_[(first_ + w) % kWords] = 0;
    first_ = word;
  }

  Cycle end_ = 0;         // after the last taken cycle
  Cycle run_ = kNoCycle;  // run_..end_ - 1 are taken, but not yet in the bits
  Cycle first_ = 0;       // word of the present
  std::array<std::uint64_t, kWords> words_{};
};

/// Packets of more flits, trains, do not share cycles with others: they go behind what is taken.
inline constexpr unsigned kLongestShared = 64;
inline constexpr unsigned kReserveWindows = 4;
inline constexpr unsigned kReserveReach = SlotMap::kReach - 64 * kReserveWindows;

/// reserve() where something is in the way.
inline Passage reserve_between(SlotMap& output, SlotMap& input, Cycle earliest, unsigned flits, bool lost_picks,
                               Cycle now) {
  output.settle(now);
  input.settle(now);
  std::array<std::uint64_t, kReserveWindows> used, lost;
  Passage passage;
  Cycle from = earliest;
  unsigned windows = 0;
  for (unsigned left = flits; left != 0; ++windows, from += 64) {
    if (windows == kReserveWindows) return {};
    const std::uint64_t out = output.window(from), in = input.window(from);
    const std::uint64_t free = ~(out | in);
    std::uint64_t rest = free;
    for (; left != 0 && rest != 0; --left) rest &= rest - 1;
    const std::uint64_t mine = free ^ rest;
    used[windows] = mine;
    lost[windows] = in & ~out;
    if (mine == 0) continue;
    if (passage.first == kNoCycle) passage.first = from + static_cast<unsigned>(__builtin_ctzll(mine));
    const unsigned top = 63 - static_cast<unsigned>(__builtin_clzll(mine));
    passage.last = from + top;
    if (left == 0) lost[windows] &= (std::uint64_t{1} << top) - 1;
  }
  from = earliest;
  for (unsigned w = 0; w < windows; ++w, from += 64) {
    output.take(from, lost_picks ? used[w] | lost[w] : used[w]);
    input.take(from, used[w]);
  }
  return passage;
}

/// The first `flits` cycles from `earliest` on that are free in both maps, and marks them there. `lost_picks`: cycles
/// before the last of them in which the output is free and the input is not are lost to the output, too: it has
/// picked an input that sends elsewhere. Leaves the maps alone and returns kNoCycle if there are not enough within
/// reach. REQUIRES: now <= earliest <= now + kReserveReach.
inline Passage reserve(SlotMap& output, SlotMap& input, Cycle earliest, unsigned flits, bool lost_picks, Cycle now) {
  const Cycle last = earliest + flits - 1;
  if (!output.free_from(earliest) || !input.free_from(earliest) ||
      (flits <= kLongestShared && last > now + SlotMap::kReach))
    return reserve_between(output, input, earliest, flits, lost_picks, now);
  output.take_run(earliest, last, now);
  if (&input != &output) input.take_run(earliest, last, now);
  return {earliest, last};
}

/// Takes the first free cycle from `from` on. REQUIRES: settled.
inline void displace(SlotMap& map, Cycle from) {
  for (unsigned window = 0; window < 2; ++window, from += 64) {
    const std::uint64_t free = ~map.window(from);
    if (free == 0) continue;
    map.take(from, free & (~free + 1));
    return;
  }
}

/// The same for each of `flits` flits that were pushed out of the cycles from `from` on.
inline void displace(SlotMap& map, Cycle from, unsigned flits, Cycle now) {
  if (map.free_from(from)) return map.take_run(from, from + flits - 1, now);
  map.settle(now);
  for (unsigned i = 0; i < flits; ++i) displace(map, from + i);
}

}  // namespace kernbench
