#include "ccl/rehearsal/record.h"

#include <algorithm>

namespace kernbench::ccl {
namespace {

/// Of the allocator.
constexpr std::uint64_t kGrain = 256;

/// Rows of a tile in memory.
bool follow_each_other(Shape shape, std::int64_t row_stride) {
  return shape.rows == 1 || row_stride == 0 || row_stride == shape.cols;
}

}  // namespace

TensorPlaces::TensorPlaces(const MachineMap& map, const CallTensors& tensors) : map_(map) {
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint64_t> used;  // of each memory: parts follow one another
  for (const LaunchMessage::TensorArg* argument : {&tensors.in, &tensors.out}) {
    if (argument->base == 0 || (!tensors_.empty() && tensors_.front().base == argument->base)) continue;
    Tensor tensor{argument->base, {}, argument};
    for (const TensorShard& shard : argument->shards) {
      if (shard.nbytes == 0) continue;
      std::uint64_t& at = used[{shard.owner.cube, shard.owner.pe}];
      tensor.parts.push_back(
          {shard.offset_bytes, shard.offset_bytes + shard.nbytes, shard.owner.cube, shard.owner.pe, at});
      at += (shard.nbytes + kGrain - 1) / kGrain * kGrain;
    }
    std::stable_sort(tensor.parts.begin(), tensor.parts.end(),
                     [](const Part& a, const Part& b) { return a.begin < b.begin; });
    tensors_.push_back(std::move(tensor));
  }
  std::sort(tensors_.begin(), tensors_.end(), [](const Tensor& a, const Tensor& b) { return a.base < b.base; });
}

TensorPlaces::Place TensorPlaces::at(Va va, PeCoord self) const {
  const Place own{self.cube * map_.pes_per_cube + self.pe, va};
  auto tensor = std::upper_bound(tensors_.begin(), tensors_.end(), va,
                                 [](Va address, const Tensor& t) { return address < t.base; });
  if (tensor == tensors_.begin()) return own;
  --tensor;
  const std::uint64_t offset = va - tensor->base;
  auto part = std::upper_bound(tensor->parts.begin(), tensor->parts.end(), offset,
                               [](std::uint64_t at, const Part& p) { return at < p.begin; });
  Place best = own;
  std::int32_t least = 3;
  while (part != tensor->parts.begin() && (--part)->end > offset) {
    const std::int32_t far = part->cube != self.cube ? 2 : part->pe != self.pe ? 1 : 0;
    if (far > least) continue;
    least = far;
    best = {part->cube * map_.pes_per_cube + part->pe, part->at + (offset - part->begin)};
    if (far == 0) break;
  }
  return best;
}

ShardView TensorPlaces::shard(Va tensor, PeCoord self) const {
  for (const Tensor& known : tensors_) {
    if (known.base != tensor) continue;
    for (const TensorShard& shard : known.argument->shards) {
      if (shard.owner.cube == self.cube && shard.owner.pe == self.pe)
        return {tensor + shard.offset_bytes, shard.rows, shard.cols};
    }
  }
  return {tensor, 0, 0};
}

void RehearsalTl::begin(PeCoord self, const QueuesOfPe& queues, std::uint32_t slot_bytes,
                        std::vector<RehearsedOp>& ops) {
  self_ = self;
  queues_ = &queues;
  slot_bytes_ = std::max<std::uint32_t>(slot_bytes, 1);
  ops_ = &ops;
  written_.clear();
  longest_ = 0;
}

std::int64_t RehearsalTl::program_id(int axis) const {
  return axis == 0 ? self_.pe : axis == 1 ? self_.cube : self_.sip;
}

std::int64_t RehearsalTl::num_programs(int axis) const {
  return axis == 0 ? map_.pes_per_cube : axis == 1 ? map_.cubes_per_sip() : map_.sips;
}

std::int32_t RehearsalTl::add(const RehearsedOp& op) {
  if (++added_ > most_) throw CannotRehearse();
  ops_->push_back(op);
  return static_cast<std::int32_t>(ops_->size()) - 1;
}

Tile RehearsalTl::tile(std::int32_t op, Shape shape, DType dtype) {
  auto state = std::make_shared<Tile::State>();
  state->tl = this;
  state->id = static_cast<std::uint64_t>(op + 1);
  state->shape = shape;
  state->dtype = dtype;
  return Tile(std::move(state));
}

std::int32_t RehearsalTl::op_of(const Tile& tile) {
  return tile ? static_cast<std::int32_t>(tile.state().id) - 1 : kNothing;
}

Tile RehearsalTl::compute(std::initializer_list<const Tile*> operands, Shape shape, DType dtype) {
  RehearsedOp op{RehearsedOp::Kind::math, static_cast<std::uint32_t>(shape.count() * size_of(dtype)),
                 static_cast<std::int32_t>(size_of(dtype))};
  std::size_t count = 0;
  for (const Tile* operand : operands) {
    const std::int32_t needed = op_of(*operand);
    if (needed != kNothing && count < std::size(op.needs)) op.needs[count++] = needed;
  }
  return tile(add(op), shape, dtype);
}

void RehearsalTl::wait_for_stores(Va begin, Va end, RehearsedOp& load) const {
  for (auto at = written_.lower_bound(end); at != written_.begin();) {
    --at;
    if (at->first + longest_ <= begin) return;
    if (at->second.end <= begin) continue;
    load.needs[0] = std::max(load.needs[0], load.needs[1]);
    load.needs[1] = at->second.op;
  }
}

Tile RehearsalTl::load(Va va, Shape shape, DType dtype, std::int64_t row_stride) {
  const auto bytes = static_cast<std::uint32_t>(shape.count() * static_cast<std::int64_t>(size_of(dtype)));
  const TensorPlaces::Place place = places_.at(va, self_);
  RehearsedOp op{RehearsedOp::Kind::load, bytes, place.pe, place.at};
  if (follow_each_other(shape, row_stride)) wait_for_stores(va, va + bytes, op);
  return tile(add(op), shape, dtype);
}

void RehearsalTl::store(Va va, const Tile& tile, std::int64_t row_stride) {
  const TensorPlaces::Place place = places_.at(va, self_);
  RehearsedOp op{RehearsedOp::Kind::store, static_cast<std::uint32_t>(tile.bytes()), place.pe, place.at};
  op.needs[0] = op_of(tile);
  const std::int32_t number = add(op);
  if (!follow_each_other(tile.shape(), row_stride)) return;
  written_[va] = {va + op.bytes, number};
  longest_ = std::max<Va>(longest_, op.bytes);
}

Tile RehearsalTl::gather(Va table, const std::vector<std::int64_t>& index, std::int64_t cols, DType dtype,
                         std::int64_t) {
  return load(table, {static_cast<std::int64_t>(index.size()), cols}, dtype, 0);
}

Tile RehearsalTl::slice(const Tile& whole, std::int64_t, std::int64_t count) {
  const Shape shape = whole.shape().rows == 1 ? Shape{1, count} : Shape{count, whole.shape().cols};
  return tile(op_of(whole), shape, whole.dtype());
}

Tile RehearsalTl::dot(const Tile& a, const Tile& b, const Tile& acc) {
  const Tile& last = acc ? acc : b;
  return compute({&a, &last}, {a.shape().rows, b.shape().cols}, a.dtype());
}

Tile RehearsalTl::math(MathOp, const std::vector<Tile>& operands) {
  const Tile& first = operands.front();
  return compute({&first, &operands.back()}, first.shape(), first.dtype());
}

Tile RehearsalTl::reduce(ReduceKind, const Tile& a, int axis) {
  return compute({&a}, axis == 0 ? Shape{1, a.shape().cols} : Shape{a.shape().rows, 1}, a.dtype());
}

std::int32_t RehearsalTl::messages(RehearsedOp op, std::uint64_t bytes) {
  std::int32_t last = kNothing;
  do {
    op.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, slot_bytes_));
    bytes -= op.bytes;
    last = add(op);
  } while (bytes > 0);
  return last;
}

void RehearsalTl::send(Direction direction, const Tile& tile) {
  RehearsedOp op{RehearsedOp::Kind::send, 0, queue(direction).send};
  op.needs[0] = op_of(tile);
  messages(op, tile.bytes());
}

Tile RehearsalTl::recv(Direction direction, Shape shape, DType dtype) {
  const auto bytes = static_cast<std::uint64_t>(shape.count()) * size_of(dtype);
  return tile(messages({RehearsedOp::Kind::recv, 0, queue(direction).recv}, bytes), shape, dtype);
}

RehearsalTl::Queues RehearsalTl::queue(Direction direction) const {
  const auto found = queues_->find(direction.code());
  if (found == queues_->end()) throw CannotRehearse();
  return found->second;
}

void RehearsalTl::wait(const Tile& tile) {
  RehearsedOp op{RehearsedOp::Kind::wait, 0, 0};
  op.needs[0] = op_of(tile);
  if (op.needs[0] != kNothing) add(op);
}

}  // namespace kernbench::ccl
