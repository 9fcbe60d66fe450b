#pragma once
#include "tlm/kernel/tl.h"

namespace kernbench::ccl {

/// The kernel context as an algorithm gets it: `shard` of the call's tensor is the part that this PE reduces, which is
/// a slice of its shard where several PEs hold copies. Everything else is the PE's own context.
class PartTl final : public Tl {
 public:
  PartTl(Tl& tl, Va tensor, ShardView part) : tl_(tl), tensor_(tensor), part_(part) {}

  std::int64_t program_id(int axis) const override { return tl_.program_id(axis); }
  std::int64_t num_programs(int axis) const override { return tl_.num_programs(axis); }
  ShardView shard(Va tensor) const override { return tensor == tensor_ ? part_ : tl_.shard(tensor); }
  unsigned cube_place(Va tensor) const override { return tl_.cube_place(tensor); }
  std::uint64_t tcm() const override { return tl_.tcm(); }
  const CollectiveCall& call() const override { return tl_.call(); }
  const Program& program(ProgramId id) const override { return tl_.program(id); }
  Tile load(Va va, Shape shape, DType dtype, std::int64_t row_stride) override {
    return tl_.load(va, shape, dtype, row_stride);
  }
  void store(Va va, const Tile& tile, std::int64_t row_stride) override { tl_.store(va, tile, row_stride); }
  Tile gather(Va table, const std::vector<std::int64_t>& index, std::int64_t cols, DType dtype,
              std::int64_t row_stride) override {
    return tl_.gather(table, index, cols, dtype, row_stride);
  }
  Tile alloc(Shape shape, DType dtype) override { return tl_.alloc(shape, dtype); }
  Tile slice(const Tile& tile, std::int64_t begin, std::int64_t count) override {
    return tl_.slice(tile, begin, count);
  }
  void hold(const Tile& tile, std::size_t count, unsigned list) override { tl_.hold(tile, count, list); }
  Tile dot(const Tile& a, const Tile& b, const Tile& acc) override { return tl_.dot(a, b, acc); }
  Tile math(MathOp op, const std::vector<Tile>& operands) override { return tl_.math(op, operands); }
  Tile cast(const Tile& a, DType dtype) override { return tl_.cast(a, dtype); }
  Tile fill(Shape shape, DType dtype, double value) override { return tl_.fill(shape, dtype, value); }
  Tile arange(std::int64_t n, DType dtype, std::int64_t start) override { return tl_.arange(n, dtype, start); }
  Tile broadcast(const Tile& a, Shape shape) override { return tl_.broadcast(a, shape); }
  Tile reduce(ReduceKind kind, const Tile& a, int axis) override { return tl_.reduce(kind, a, axis); }
  Tile softmax(const Tile& a) override { return tl_.softmax(a); }
  void composite_gemm(const CompositeGemm& gemm) override { tl_.composite_gemm(gemm); }
  void send(Direction direction, const Tile& tile) override { tl_.send(direction, tile); }
  Tile recv(Direction direction, Shape shape, DType dtype) override { return tl_.recv(direction, shape, dtype); }
  Tile recv_async(Direction direction, Shape shape, DType dtype) override {
    return tl_.recv_async(direction, shape, dtype);
  }
  void wait(const Tile& tile) override { tl_.wait(tile); }
  void fence() override { tl_.fence(); }
  void mark(const std::string& label) override { tl_.mark(label); }

 private:
  Tl& tl_;
  const Va tensor_;
  const ShardView part_;
};

}  // namespace kernbench::ccl
