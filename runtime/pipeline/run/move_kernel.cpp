#include <algorithm>

#include "runtime/pipeline/run/kernels.h"
#include "runtime/tp/own_shard.h"

namespace kernbench::pipeline {

namespace {

/// Largest tile of a move, elements. assumed: a tile and its transpose in f64 are 512 KiB, the smallest share of TCM.
constexpr std::int64_t kMoveRows = 64, kMoveCols = 512;

/// Walks over lines of the innermost dimension.
class Mover {
 public:
  Mover(Va from, Va to, const MoveCall& call, Tl& tl)
      : from_(from),
        to_(to),
        call_(call),
        tl_(tl),
        dtype_(call.target.dtype),
        item_(static_cast<Va>(size_of(dtype_))) {}

  void run() {
    const auto inner = static_cast<std::size_t>(call_.ranks - 1);
    std::int64_t lines = 1;
    for (std::size_t d = 0; d < inner; ++d) lines *= call_.dims[d];
    const Share share = share_of(lines, to_, call_.target, tl_);
    for (std::int64_t line = share.begin; line < share.end;) {
      // Lines of one plane: they differ in the dimension beside the innermost only.
      std::int64_t rest = line, source = call_.from_offset, target = call_.to_offset, count = 1;
      for (std::size_t d = inner; d-- > 0;) {
        const std::int64_t at = rest % call_.dims[d];
        rest /= call_.dims[d];
        source += at * call_.from[d];
        target += at * call_.to[d];
        if (d + 1 == inner) count = std::min({call_.dims[d] - at, share.end - line, kMoveRows});
      }
      count = plane(source, target, count);
      line += count;
    }
  }

 private:
  Tile load(std::int64_t at, Shape shape, std::int64_t stride) const {
    return tl_.load(from_ + static_cast<Va>(at) * item_, shape, dtype_, shape.rows == 1 ? 0 : stride);
  }

  /// Moves up to `count` lines; returns how many.
  std::int64_t plane(std::int64_t source, std::int64_t target, std::int64_t count) const {
    const auto inner = static_cast<std::size_t>(call_.ranks - 1);
    const std::int64_t length = call_.dims[inner];
    const std::int64_t s0 = length == 1 ? 1 : call_.from[inner];
    const std::int64_t s1 = inner > 0 ? call_.from[inner - 1] : 0, t1 = inner > 0 ? call_.to[inner - 1] : 0;
    const bool rows_overlap = s0 == 1 && s1 != 0 && s1 < std::min(length, kMoveCols);
    const bool scattered = s0 > 1 && !(s1 == 1 && s0 >= count);
    if (rows_overlap || scattered) count = 1;
    for (std::int64_t begin = 0; begin < length; begin += kMoveCols) {
      const std::int64_t width = std::min(kMoveCols, length - begin), at = source + begin * s0;
      Tile tile;
      if (s0 == 1) {
        tile = s1 == 0 ? load(at, {1, width}, 0) : load(at, {count, width}, s1);
      } else if (s0 == 0) {
        tile = s1 == 0 ? load(at, {1, 1}, 0) : load(at, {count, 1}, s1);
      } else {
        tile = tl_.transpose(load(at, {width, count}, s0));
      }
      if (tile.shape() != Shape{count, width}) tile = tl_.broadcast(tile, {count, width});
      tl_.store(to_ + static_cast<Va>(target + begin) * item_, tile, count == 1 ? 0 : t1);
    }
    return count;
  }

  const Va from_, to_;
  const MoveCall& call_;
  Tl& tl_;
  const DType dtype_;
  const Va item_;
};

void move_kernel(Va from, Va to, const MoveCall& call, Tl& tl) { Mover(from, to, call, tl).run(); }

}  // namespace

Share share_of(std::int64_t count, Va base, const TensorGeometry& target, const Tl& tl) {
  const std::int64_t number = tp::own_shard(base, target, tl).number, shards = tp::distinct_shards(target);
  return {count * number / shards, count * (number + 1) / shards};
}

Handle move(Context& context, const std::string& name, const Tensor& from, const Tensor& to, MoveCall call) {
  call.target = geometry_of(to);
  return context.launch_async(name, tp::on_pes_of(to), move_kernel, from, to, call);
}

}  // namespace kernbench::pipeline
