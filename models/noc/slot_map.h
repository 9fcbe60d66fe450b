#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "models/noc/virtual_channel.h"

namespace kernbench {

/// Which of the coming cycles of a port are taken; one flit per cycle. A ring of bits.
class SlotMap {
 public:
  static constexpr unsigned kWords = 8;
  static constexpr unsigned kReach = 64 * (kWords - 2);  ///< cycles ahead of the present in which a window may begin

  /// Forgets what is past. To be called before the others, with the present.
  void advance(Cycle now) {
    const Cycle word = now / 64;
    if (word == first_) return;
    const Cycle gone = std::min<Cycle>(word - first_, kWords);
    for (Cycle w = 0; w < gone; ++w) words_[(first_ + w) % kWords] = 0;
    first_ = word;
  }
  /// Bit i: cycle from + i is taken. REQUIRES: now <= from <= now + kReach.
  std::uint64_t window(Cycle from) const {
    const std::uint64_t low = words_[from / 64 % kWords];
    const unsigned shift = from % 64;
    return shift == 0 ? low : low >> shift | words_[(from / 64 + 1) % kWords] << (64 - shift);
  }
  void take(Cycle from, std::uint64_t bits) {
    const unsigned shift = from % 64;
    words_[from / 64 % kWords] |= bits << shift;
    if (shift != 0) words_[(from / 64 + 1) % kWords] |= bits >> (64 - shift);
  }

 private:
  Cycle first_ = 0;  // word of the present
  std::array<std::uint64_t, kWords> words_{};
};

/// First and last cycle of a packet on a link.
struct Passage {
  Cycle first = kNoCycle, last = kNoCycle;
};

/// The first `flits` cycles from `earliest` on that are free in both maps, and marks them there. `lost_picks`: cycles
/// before the last of them in which the output is free and the input is not are lost to the output, too: it has
/// picked an input that sends elsewhere. Leaves the maps alone and returns kNoCycle if there are not enough within
/// reach. REQUIRES: both maps are at the present, now <= earliest <= now + kReserveReach.
inline constexpr unsigned kReserveWindows = 4;
inline constexpr unsigned kReserveReach = SlotMap::kReach - 64 * kReserveWindows;
inline Passage reserve(SlotMap& output, SlotMap& input, Cycle earliest, unsigned flits, bool lost_picks) {
  std::array<std::uint64_t, kReserveWindows> used, lost;
  Passage passage;
  Cycle from = earliest;
  unsigned windows = 0;
  for (unsigned left = flits; left != 0; ++windows, from += 64) {
    if (windows == kReserveWindows) return {};
    const std::uint64_t out = output.window(from), in = input.window(from);
    const std::uint64_t free = ~(out | in);
    std::uint64_t rest = free;
    if (left < 64 && (free & ((std::uint64_t{1} << left) - 1)) == (std::uint64_t{1} << left) - 1) {
      rest ^= (std::uint64_t{1} << left) - 1;  // nothing in the way
      left = 0;
    } else {
      for (; left != 0 && rest != 0; --left) rest &= rest - 1;
    }
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

/// Takes the first free cycle from `from` on, for a flit that was pushed out of its own.
inline void displace(SlotMap& map, Cycle from) {
  for (unsigned window = 0; window < 2; ++window, from += 64) {
    const std::uint64_t free = ~map.window(from);
    if (free == 0) continue;
    map.take(from, free & (~free + 1));
    return;
  }
}

}  // namespace kernbench
