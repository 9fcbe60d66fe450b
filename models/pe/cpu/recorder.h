#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "models/pe/cpu/fiber.h"
#include "models/pe/op.h"
#include "models/pe/pe_config.h"
#include "models/pe/tcm/tcm_arena.h"
#include "tlm/ext/message.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::pe {

class DirectionTable;

/// What a PE has by number. Few: a process group has not many (runtime).
struct InstalledProgram {
  ProgramId id{};
  std::shared_ptr<const Program> program;
};
using Programs = std::vector<InstalledProgram>;

/// What a kernel can see and use of its PE. Everything outlives the recorder.
struct KernelEnvironment {
  PeCoord self;
  const PeConfig& config;
  const MachineMap& map;
  const LaunchMessage& launch;
  const DirectionTable& directions;  ///< queue pairs by (group, direction)
  const Programs& programs;
  std::shared_ptr<TcmArena> arena;  ///< this launch's share of TCM
  std::uint64_t first_op_id;        ///< its ops are numbered from there
  unsigned window;                  ///< ops that may be recorded and not yet taken
  StackPool& stacks;
  KernelContext* context;
  Activity* activity;           ///< null: nobody asks
  unsigned* unwritten_reports;  ///< --debug: reads of tiles that nothing wrote, of all kernels; else null
};

/// Turns a kernel into a stream of ops. The kernel runs on a fiber; it is suspended while `window` ops are waiting to
/// be taken, and goes on when the next one is asked for. What it throws becomes the last op of the stream, a fault, so
/// that errors too surface at the same instant whatever the window.
///
/// TCM is allocated as the kernel calls, in program order, from the launch's own share; a range is free again when the
/// last handle to it is gone and, while there is room, no send of it can be under way.
class Recorder : public Tl {
 public:
  explicit Recorder(const KernelEnvironment& environment);

  /// Runs the kernel until the window is full or it returns. Called when the launch arrives.
  void start();
  /// The next op; null when the kernel has returned and everything was taken.
  const Op* front();
  std::unique_ptr<Op> pop();
  /// Takes a range of TCM out of use; false if some of it is in use.
  bool reserve(std::uint64_t begin, std::uint64_t end) { return env_.arena->reserve(begin, end); }
  /// Bytes of tiles that the launch held at once, at most.
  std::uint64_t most_held() const { return env_.arena->most_in_use(); }
  /// Drops what was recorded and unwinds the kernel.
  void cancel();

  std::int64_t program_id(int axis) const override;
  std::int64_t num_programs(int axis) const override;
  ShardView shard(Va tensor) const override;
  unsigned cube_place(Va tensor) const override;
  std::uint64_t tcm() const override;
  const CollectiveCall& call() const override;
  const Program& program(ProgramId id) const override;

  Tile load(Va va, Shape shape, DType dtype, std::int64_t row_stride) override;
  void store(Va va, const Tile& tile, std::int64_t row_stride) override;
  Tile gather(Va table, const std::vector<std::int64_t>& index, std::int64_t cols, DType dtype,
              std::int64_t row_stride) override;
  Tile alloc(Shape shape, DType dtype) override;
  Tile slice(const Tile& tile, std::int64_t begin, std::int64_t count) override;
  void hold(const Tile& tile, std::size_t count, unsigned list) override;

  Tile dot(const Tile& a, const Tile& b, const Tile& acc) override;
  Tile math(MathOp op, const std::vector<Tile>& operands) override;
  Tile cast(const Tile& a, DType dtype) override;
  Tile fill(Shape shape, DType dtype, double value) override;
  Tile arange(std::int64_t n, DType dtype, std::int64_t start) override;
  Tile broadcast(const Tile& a, Shape shape) override;
  Tile reduce(ReduceKind kind, const Tile& a, int axis) override;
  Tile softmax(const Tile& a) override;
  void composite_gemm(const CompositeGemm& gemm) override;

  void send(Direction direction, const Tile& tile) override;
  Tile recv(Direction direction, Shape shape, DType dtype) override;
  Tile recv_async(Direction direction, Shape shape, DType dtype) override;
  void wait(const Tile& tile) override;
  void fence() override;
  void mark(const std::string& label) override;

 private:
  using OpPtr = std::unique_ptr<Op>;
  [[noreturn]] void fail(const std::string& op, const std::string& reason) const;
  const LaunchMessage::TensorArg& argument_at(const char* call, Va tensor) const;
  void check_enumerator(const char* op, const char* type, int value, int last) const;
  void check_shape(const char* op, Shape shape, DType dtype) const;
  void check_tile(const char* op, const Tile& tile) const;
  void check_direction(const char* op, Direction direction, Shape shape, DType dtype) const;
  std::uint64_t stride_in_bytes(const char* op, std::int64_t row_stride, Shape shape, DType dtype) const;
  OpPtr make(OpKind kind, Unit unit);
  void add_input(Op& op, const Tile& tile);
  void report_unwritten(const Op& op);
  Tile allocate(const char* label, Shape shape, DType dtype, std::uint64_t op_id);
  Tile result(const char* label, OpPtr op, Shape shape, DType dtype);  ///< allocates op->out and records it
  void record(OpPtr op);
  void end_with_fault(const std::string& reason);
  Tile receive(Direction direction, Shape shape, DType dtype, bool async);
  struct Kept {
    std::uint64_t op_id;
    Tile tile;
  };
  template <class Key>
  using KeptBy = std::vector<std::pair<Key, std::deque<Kept>>>;
  template <class Key>
  void keep(KeptBy<Key>& all, Key key, const Tile& tile, std::size_t most) const;
  template <class Key>
  static bool give_up_one(KeptBy<Key>& all);
  KernelEnvironment env_;
  mutable std::vector<std::shared_ptr<const Program>> used_;  ///< programs that the kernel follows
  std::uint64_t next_op_id_;
  bool unwritten_ = false;  ///< --debug: the op that is being made reads a tile of alloc()
  /// TCM of the last composite's tiles. Kept until the next one, or until nothing else is free, so that the ops that
  /// follow a composite are not placed there and need not wait for it.
  Tile workspace_;
  /// Tiles whose sends may be under way, in order: as many as can wait in a direction's queue, and the one that leaves.
  /// What takes their place waits for the peer; were that a receive, two peers that send first would wait for each
  /// other. Given up, the oldest first, where nothing else is free.
  KeptBy<Direction> sent_;
  KeptBy<unsigned> held_;  ///< by list of hold(); given up before what was sent
  std::deque<OpPtr> ops_;
  KernelFiber fiber_;
};

}  // namespace kernbench::pe
