#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "ccl/collective.h"
#include "tlm/kernel/tl.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

inline constexpr std::int32_t kNothing = -1;

/// What a kernel asks of its PE's engines, as far as time depends on it.
struct RehearsedOp {
  enum class Kind : std::uint8_t { load, store, send, recv, math, wait, fence };
  Kind kind = Kind::fence;
  std::uint32_t bytes = 0;
  std::int32_t place = 0;  ///< load, store: PE of the SIP at whose memory; send, recv: queue; math: B of an element
  std::uint64_t at = 0;    ///< load, store: from where on in that memory
  std::int32_t needs[2]{kNothing, kNothing};  ///< ops of the same PE whose values it takes, or that write what it loads
};

/// Where the bytes of a call's tensors lie, by virtual address.
class TensorPlaces {
 public:
  TensorPlaces(const MachineMap& map, const CallTensors& tensors);
  struct Place {
    std::int32_t pe = 0;   ///< cube * PEs + PE
    std::uint64_t at = 0;  ///< bytes from the first tensor's beginning there
  };
  /// What a PE reaches under an address: of copies its own, or the nearest by number.
  Place at(Va va, PeCoord self) const;
  ShardView shard(Va tensor, PeCoord self) const;

 private:
  struct Part {
    std::uint64_t begin = 0, end = 0;
    std::uint16_t cube = 0, pe = 0;
    std::uint64_t at = 0;  ///< in that memory
  };
  struct Tensor {
    Va base = 0;
    std::vector<Part> parts;  // by begin
    const LaunchMessage::TensorArg* argument = nullptr;
  };
  const MachineMap& map_;
  std::vector<Tensor> tensors_;
};

/// Writes down the ops of a kernel. Nothing is checked: what a kernel may not do shows when it really runs.
class RehearsalTl final : public Tl {
 public:
  struct Queues {
    std::int32_t send = kNothing, recv = kNothing;
  };
  /// `queues`: by code of a direction.
  using QueuesOfPe = std::unordered_map<std::uint16_t, Queues>;
  /// Thrown out of a kernel that asks for more than `most` ops, or for what no collective does.
  struct CannotRehearse {};
  RehearsalTl(const MachineMap& map, const TensorPlaces& places, const CollectiveCall& call, const Program& program,
              std::size_t most)
      : map_(map), places_(places), call_(call), program_(program), most_(most) {}

  void begin(PeCoord self, const QueuesOfPe& queues, std::uint32_t slot_bytes, std::vector<RehearsedOp>& ops);

  std::int64_t program_id(int axis) const override;
  std::int64_t num_programs(int axis) const override;
  ShardView shard(Va tensor) const override { return places_.shard(tensor, self_); }
  const CollectiveCall& call() const override { return call_; }
  const Program& program(ProgramId) const override { return program_; }

  Tile load(Va va, Shape shape, DType dtype, std::int64_t row_stride) override;
  void store(Va va, const Tile& tile, std::int64_t row_stride) override;
  Tile gather(Va table, const std::vector<std::int64_t>& index, std::int64_t cols, DType dtype,
              std::int64_t row_stride) override;
  Tile alloc(Shape shape, DType dtype) override { return tile(kNothing, shape, dtype); }
  Tile slice(const Tile& tile, std::int64_t begin, std::int64_t count) override;

  Tile dot(const Tile& a, const Tile& b, const Tile& acc) override;
  Tile math(MathOp op, const std::vector<Tile>& operands) override;
  Tile cast(const Tile& a, DType dtype) override { return compute({&a}, a.shape(), dtype); }
  Tile fill(Shape shape, DType dtype, double) override { return compute({}, shape, dtype); }
  Tile arange(std::int64_t n, DType dtype, std::int64_t) override { return compute({}, {1, n}, dtype); }
  Tile broadcast(const Tile& a, Shape shape) override { return compute({&a}, shape, a.dtype()); }
  Tile reduce(ReduceKind kind, const Tile& a, int axis) override;
  Tile softmax(const Tile& a) override { return compute({&a}, a.shape(), a.dtype()); }
  void composite_gemm(const CompositeGemm&) override { throw CannotRehearse(); }  // no collective has one

  void send(Direction direction, const Tile& tile) override;
  Tile recv(Direction direction, Shape shape, DType dtype) override;
  Tile recv_async(Direction direction, Shape shape, DType dtype) override { return recv(direction, shape, dtype); }
  void wait(const Tile& tile) override;
  void fence() override { add({}); }
  void mark(const std::string&) override {}

 private:
  struct Written {
    Va end = 0;
    std::int32_t op = kNothing;
  };
  std::int32_t add(const RehearsedOp& op);
  /// Makes a load of bytes that this PE has stored wait for the last two stores there.
  void wait_for_stores(Va begin, Va end, RehearsedOp& load) const;
  Tile tile(std::int32_t op, Shape shape, DType dtype);
  Tile compute(std::initializer_list<const Tile*> operands, Shape shape, DType dtype);
  static std::int32_t op_of(const Tile& tile);
  Queues queue(Direction direction) const;
  /// A message for each slot that the bytes fill; returns the last.
  std::int32_t messages(RehearsedOp op, std::uint64_t bytes);

  const MachineMap& map_;
  const TensorPlaces& places_;
  const CollectiveCall& call_;
  const Program& program_;
  const std::size_t most_;
  PeCoord self_;
  const QueuesOfPe* queues_ = nullptr;
  std::uint32_t slot_bytes_ = 1;
  std::vector<RehearsedOp>* ops_ = nullptr;
  std::map<Va, Written> written_;  ///< by first byte; whole rows that follow each other
  Va longest_ = 0;                 ///< of them
  std::size_t added_ = 0;
};

}  // namespace kernbench::ccl
