#include "ccl/contract/verbs.h"

#include <algorithm>

#include "ccl/contract/call_keys.h"
#include "tlm/kernel/rounding.h"

namespace kernbench::ccl {
namespace {

/// Assumed latency of a queue, in messages: how far a node runs ahead of what it waits for. One slot is kept spare.
int lambda(int slots) { return std::clamp(slots - 2, 0, 2); }

/// One direction of a ring: the chunks of `slice` start at `position` and leave by `out`.
struct RingLane {
  Slice slice;
  int position;
  Direction out, in;
  std::vector<Tile> carried;  ///< by block: what the next step sends

  Slice chunk(std::int64_t block, std::int64_t blocks, int i, int p) const {
    return slice.part(block, blocks).part(((position + i) % p + p) % p, p);
  }
};

}  // namespace

Verbs::Verbs(Tl& tl, std::int64_t contributions)
    : tl_(tl),
      dtype_(tl.call().dtype),
      op_(tl.call().reduce_op),
      contributions_(contributions),
      slot_bytes_(tl.call().parameters.at(kSlotBytesKey)),
      chunk_bytes_(parameter_or(tl.call(), "chunk_bytes", 0)),
      slots_(static_cast<int>(tl.call().parameters.at(kSlotsKey))) {}

Slice Verbs::own(Va base) const {
  const ShardView shard = tl_.shard(base);
  return {shard.va, shard.count(), size_of(dtype_)};
}

Tile Verbs::combine(const Tile& own, const Tile& other) {
  switch (op_) {
    case ReduceOp::max:
      return tl_.maximum(own, other);
    case ReduceOp::min:
      return tl_.minimum(own, other);
    case ReduceOp::prod:
      return own * other;
    default:
      return own + other;
  }
}

Tile Verbs::finish(const Tile& reduced) {
  if (op_ != ReduceOp::avg || contributions_ == 1) return reduced;
  if (!divisor_) divisor_ = tl_.fill({1, 1}, dtype_, static_cast<double>(contributions_));
  return reduced / divisor_;
}

std::int64_t Verbs::message_elements(std::int64_t bytes) const {
  const std::int64_t automatic = std::max<std::int64_t>(bytes / 4, 512);
  const std::int64_t message = std::min(chunk_bytes_ > 0 ? chunk_bytes_ : automatic, slot_bytes_);
  return std::max<std::int64_t>(message / static_cast<std::int64_t>(size_of(dtype_)), 1);
}

void ring_all_reduce(Verbs& verbs, const RingPosition& ring, Slice slice) {
  const int p = ring.size;
  if (p == 1 || slice.empty()) return;
  std::vector<RingLane> lanes;
  if (p == 2) {
    lanes.push_back({slice, ring.position, ring.next, ring.next, {}});
  } else {
    lanes.push_back({slice.part(0, 2), ring.position, ring.next, ring.previous, {}});
    lanes.push_back({slice.part(1, 2), (p - ring.position) % p, ring.previous, ring.next, {}});
  }
  const Slice longest = lanes.front().slice;
  const std::int64_t chunk_bytes = ceil_div(longest.count, p) * static_cast<std::int64_t>(slice.item);
  const std::int64_t blocks = ceil_div(longest.count, p * verbs.message_elements(chunk_bytes));
  for (RingLane& lane : lanes) lane.carried.resize(static_cast<std::size_t>(blocks));

  // Rounds in which a queue stays full: at least as many messages of it are on the way as it has slots.
  const int steps = 2 * (p - 1), gap = std::max(1, static_cast<int>(ceil_div(verbs.slots(), steps)));
  skewed(blocks, steps, gap, [&](std::int64_t block, int step) {
    for (RingLane& lane : lanes) {
      Tile& carried = lane.carried[static_cast<std::size_t>(block)];
      const bool reducing = step < p - 1;
      // Reduce-scatter: chunk(-step) leaves with the terms of step + 1 ranks in it. All-gather: chunk(1), complete on
      // this rank, travels once around. In both, what arrives is what leaves in the next step.
      const int sent = reducing ? -step : p - step;
      const Slice leaving = lane.chunk(block, blocks, sent, p), arriving = lane.chunk(block, blocks, sent - 1, p);
      if (!leaving.empty()) verbs.send(lane.out, step == 0 ? verbs.load(leaving) : carried);
      carried = Tile();
      if (arriving.empty()) continue;
      carried = verbs.receive(lane.in, arriving);
      if (reducing) carried = verbs.combine(verbs.load(arriving), carried);
      if (step == p - 2) carried = verbs.finish(carried);
      if (step >= p - 2) verbs.store(arriving, carried);
      if (step == steps - 1) carried = Tile();
    }
  });
}

void tree_all_reduce(Verbs& verbs, const TreePosition& tree, Slice slice) {
  if (slice.empty()) return;
  const std::int64_t bytes = slice.count * static_cast<std::int64_t>(slice.item);
  const std::int64_t messages = ceil_div(slice.count, verbs.message_elements(bytes));
  const std::int64_t behind = std::int64_t{2} * tree.depth * (1 + lambda(verbs.slots()));
  for (std::int64_t round = 0; round < messages + behind; ++round) {
    if (round < messages) {
      const Slice up = slice.part(round, messages);
      Tile sum = verbs.load(up);
      for (const Direction child : tree.children) sum = verbs.combine(sum, verbs.receive(child, up));
      if (tree.parent) {
        verbs.send(*tree.parent, sum);
      } else {
        sum = verbs.finish(sum);
        for (const Direction child : tree.children) verbs.send(child, sum);
        verbs.store(up, sum);
      }
    }
    if (tree.parent && round >= behind) {
      const Slice down = slice.part(round - behind, messages);
      const Tile result = verbs.receive(*tree.parent, down);
      for (const Direction child : tree.children) verbs.send(child, result);
      verbs.store(down, result);
    }
  }
}

namespace {

std::vector<Slice> messages_of(const Verbs& verbs, const std::vector<Slice>& slices) {
  std::int64_t bytes = 0;
  for (const Slice& slice : slices) bytes += slice.count * static_cast<std::int64_t>(slice.item);
  const std::int64_t elements = verbs.message_elements(bytes);
  std::vector<Slice> messages;
  for (const Slice& slice : slices) {
    const std::int64_t n = ceil_div(slice.count, elements);
    for (std::int64_t m = 0; m < n; ++m) messages.push_back(slice.part(m, n));
  }
  return messages;
}

}  // namespace

void tree_broadcast(Verbs& verbs, const TreePosition& tree, const std::vector<Slice>& slices) {
  for (const Slice& piece : messages_of(verbs, slices)) {
    const Tile tile = tree.parent ? verbs.receive(*tree.parent, piece) : verbs.load(piece);
    for (const Direction child : tree.children) verbs.send(child, tile);
    if (tree.parent) verbs.store(piece, tile);
  }
}

void line_all_gather(Verbs& verbs, const std::vector<std::vector<Slice>>& parts, int index, Direction before,
                     Direction after) {
  const int size = static_cast<int>(parts.size());
  if (size <= 1) return;
  std::vector<std::vector<Slice>> messages;
  std::size_t blocks = 0;
  for (const auto& part : parts) {
    messages.push_back(messages_of(verbs, part));
    blocks = std::max(blocks, messages.back().size());
  }
  const auto piece = [&](int part, std::int64_t block) {
    const auto& of_part = messages[static_cast<std::size_t>(part)];
    return static_cast<std::size_t>(block) < of_part.size() ? of_part[static_cast<std::size_t>(block)] : Slice{};
  };
  std::vector<Tile> forward(blocks), backward(blocks);
  const auto pass = [&](Tile& carried, int part, std::int64_t block, int step, Direction to) {
    if (part < 0 || part >= size) return;
    const Slice leaving = piece(part, block);
    if (!leaving.empty()) verbs.send(to, step == 0 ? verbs.load(leaving) : carried);
  };
  const auto take = [&](Tile& carried, int part, std::int64_t block, Direction from) {
    carried = Tile();
    if (part < 0 || part >= size) return;
    const Slice arriving = piece(part, block);
    if (arriving.empty()) return;
    carried = verbs.receive(from, arriving);
    verbs.store(arriving, carried);
  };
  // In step s part i - s passes on to the next PE and part i + s to the one before.
  skewed(static_cast<std::int64_t>(blocks), size - 1, 1, [&](std::int64_t block, int step) {
    const auto slot = static_cast<std::size_t>(block);
    if (index + 1 < size) pass(forward[slot], index - step, block, step, after);
    if (index > 0) pass(backward[slot], index + step, block, step, before);
    if (index > 0) take(forward[slot], index - step - 1, block, before);
    if (index + 1 < size) take(backward[slot], index + step + 1, block, after);
    if (step == size - 2) forward[slot] = backward[slot] = Tile();
  });
}

}  // namespace kernbench::ccl
