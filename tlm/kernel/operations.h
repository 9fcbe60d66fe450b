#pragma once
#include <cstddef>
#include <iterator>
#include <stdexcept>

#include "tlm/kernel/call.h"

/// What each collective operation is: told here alone. Checks of schedules, regions, bounds, the runtime, the command
/// line and the host's reference ask. How it is done is the matter of algorithms.
namespace kernbench {

/// What a contributor has on a side of the call, in blocks of equal size.
enum class Blocks : std::uint8_t { one, each };  ///< each: one for every contributor
/// Who gives, and who gets; pairs: each gives to its partner.
enum class Parties : std::uint8_t { all, from_root, to_root, pairs };
/// Whether the output may be the input or a block of it: the contributor's own. sip: with that scope only.
enum class InPlace : std::uint8_t { never, sip, always };

/// A block that contributor `own` of `count` has in the end.
struct OutputBlock {
  int own = 0, block = 0, count = 1;
  int root = 0, peer = 1;  ///< as in ccl::Schedule
};
/// Contributors [first, last].
struct Contributors {
  int first = 0, last = 0;
  constexpr bool has(int contributor) const { return first <= contributor && contributor <= last; }
};
constexpr Contributors from_all(const OutputBlock& b) { return {0, b.count - 1}; }
constexpr Contributors from_root(const OutputBlock& b) { return {b.root, b.root}; }
constexpr Contributors from_its_own(const OutputBlock& b) { return {b.block, b.block}; }  ///< block k is k's
constexpr Contributors from_partner(const OutputBlock& b) {
  const int from = b.root >= 0 ? b.root : ((b.own - b.peer) % b.count + b.count) % b.count;
  return {from, from};
}

/// A place in OperationFacts::reduce_ops.
constexpr unsigned bit(ReduceOp op) { return 1U << static_cast<unsigned>(op); }
inline constexpr unsigned kMoves = 0;  ///< combines nothing
inline constexpr unsigned kReduces =
    bit(ReduceOp::sum) | bit(ReduceOp::avg) | bit(ReduceOp::max) | bit(ReduceOp::min) | bit(ReduceOp::prod);

/// One operation. Contributor d's block b of the output is made of one block of each of from({d, b}): block d where
/// they have one for each, else their only one.
struct OperationFacts {
  const char* name;
  Blocks in, out;
  Parties parties;
  Contributors (*from)(const OutputBlock& block);
  unsigned reduce_ops;  ///< that may combine them
  bool alike;           ///< every contributor ends with the same
  InPlace in_place;
  const char* help;
  bool has_data = true;  ///< false: what moves means nothing

  constexpr bool rooted() const { return parties == Parties::from_root || parties == Parties::to_root; }
  constexpr bool combines() const { return reduce_ops != kMoves; }
  /// A side has blocks of all, or both have: nccl-tests counts all of them as the size.
  constexpr bool counts_all() const { return in == Blocks::each || out == Blocks::each; }
  constexpr bool longer_in() const { return in == Blocks::each && out == Blocks::one; }
  constexpr bool longer_out() const { return in == Blocks::one && out == Blocks::each; }
  constexpr bool exchanges() const { return in == Blocks::each && out == Blocks::each; }
  /// The side is one array for a whole rank, wherever its placement puts it, and no tile of each contributor.
  constexpr bool whole_in() const { return longer_in() && !combines(); }
  constexpr bool whole_out() const { return longer_out(); }
  /// Every contributor ends with what all make together.
  constexpr bool sums_for_all() const { return combines() && alike; }
  /// Tiles of one SIP are combined, or are copies of one: its cubes work on them together.
  constexpr bool joins_tiles() const { return combines() || (alike && !counts_all()); }
  /// busbw / algbw for p contributors. Source: the notes on performance of nccl-tests.
  constexpr double bus_factor(double p) const {
    return sums_for_all() ? 2 * ((p - 1) / p) : counts_all() ? (p - 1) / p : 1;
  }
};

/// By CollectiveOp.
inline constexpr OperationFacts kOperations[] = {
    {"all_reduce", Blocks::one, Blocks::one, Parties::all, from_all, kReduces, true, InPlace::always,
     "element-wise reduction over all ranks, checked on every rank"},
    {"all_gather", Blocks::one, Blocks::each, Parties::all, from_its_own, kMoves, true, InPlace::sip,
     "every rank gets the blocks of all"},
    {"reduce_scatter", Blocks::each, Blocks::one, Parties::all, from_all, kReduces, false, InPlace::sip,
     "element-wise reduction, of which every rank gets its block"},
    {"reduce", Blocks::one, Blocks::one, Parties::to_root, from_all, kReduces, false, InPlace::always,
     "element-wise reduction to one rank"},
    {"broadcast", Blocks::one, Blocks::one, Parties::from_root, from_root, kMoves, true, InPlace::always,
     "the data of one rank to all"},
    {"all_to_all", Blocks::each, Blocks::each, Parties::all, from_its_own, kMoves, false, InPlace::never,
     "a block from every rank to every other"},
    {"gather", Blocks::one, Blocks::each, Parties::to_root, from_its_own, kMoves, false, InPlace::never,
     "the blocks of all ranks to one"},
    {"scatter", Blocks::each, Blocks::one, Parties::from_root, from_root, kMoves, false, InPlace::never,
     "a block of one rank to each"},
    {"send_recv", Blocks::one, Blocks::one, Parties::pairs, from_partner, kMoves, false, InPlace::never,
     "every rank sends to the next and receives from the one before"},
    {"barrier", Blocks::one, Blocks::one, Parties::all, from_all, kReduces, true, InPlace::always,
     "barrier over the fabric: the smallest all_reduce", false},
};
inline constexpr int kCollectiveOps = static_cast<int>(std::size(kOperations));

/// Throws std::out_of_range of a number that has no row.
constexpr const OperationFacts& facts_of(CollectiveOp op) {
  const auto number = static_cast<std::size_t>(op);
  return number < std::size(kOperations) ? kOperations[number] : throw std::out_of_range("an operation without a row");
}

}  // namespace kernbench
