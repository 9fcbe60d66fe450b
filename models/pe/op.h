#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/pe/cpu/scoreboard.h"
#include "tlm/base/time.h"
#include "tlm/kernel/tl.h"
#include "tlm/observe/cause.h"

namespace kernbench::pe {

enum class OpKind : std::uint8_t {
  // DMA
  load,
  store,
  gather,
  // GEMM engine
  dot,
  // math engine
  math,
  reduce,
  softmax,
  // sequencer: expands into tiles on all engines
  composite,
  // IPCQ
  send,
  recv,
  // PE_CPU
  wait,
  fence,
  mark,
  fault
};

/// The unit that executes an op.
enum class Unit : std::uint8_t { dma_r, dma_w, gemm, math, composite, ipcq_send, ipcq_recv, cpu };

/// What a tile of a composite is doing.
enum class Stage : std::uint8_t { none, dma_in, gemm, epilogue, dma_out };

/// A dense tile in TCM. Offsets and dimensions fit 32 bits: a TCM is smaller than 4 GiB.
struct TileRef {
  std::uint32_t tcm = 0, rows = 0, cols = 0;
  DType dtype = DType::f16;
  Shape shape() const { return {rows, cols}; }
  std::uint64_t bytes() const { return std::uint64_t{rows} * cols * size_of(dtype); }
};

/// What few ops need.
struct OpDetail {
  std::vector<std::int64_t> index;  ///< gather: rows of the table
  std::string text;                 ///< mark: its label; fault: the reason
  CompositeGemm gemm;               ///< composite
  TileRef workspace;                ///< composite: its TCM, as bytes
};

class KernelContext;
class Composite;

/// One recorded op. It lives from recording to completion and is then deleted.
struct Op : Hazard {
  std::uint64_t id = 0;        ///< unique in the run
  std::uint64_t sequence = 0;  ///< order of issue on this PE
  KernelContext* context = nullptr;
  Composite* composite = nullptr;  ///< of which it is a tile; null for ops of the program
  Op* next = nullptr;              ///< in the queue it waits in
  Va va = 0;                       ///< load, store, gather: first byte
  std::uint64_t stride_bytes = 0;  ///< of rows at `va`
  double value = 0;                ///< fill: the value
  std::int64_t first = 0;          ///< arange: the first value
  std::uint64_t target = 0;        ///< wait: id of the op waited for; recv: number of its last message
  std::unique_ptr<OpDetail> detail;
  Ps issued = 0, started = 0;
  Ps ready = 0;  ///< its last operand came; before `issued`: it never waited
  Cause cause;   ///< why it started, or came to an end, when it did
  TileRef out;
  std::array<TileRef, 3> in{};
  std::uint32_t flight = 0;  ///< its place in the context's list of ops in flight
  OpKind kind = OpKind::fence;
  Unit unit = Unit::cpu;
  Stage stage = Stage::none;
  MathOp math = MathOp::copy;
  ReduceKind reduce = ReduceKind::sum;
  std::uint8_t axis = 0;
  std::uint8_t inputs = 0;   ///< how many of `in` count
  bool accumulates = false;  ///< dot: in[2] is the accumulator
  bool goes_on = false;      ///< dot of a composite: its sums stand in the array since the step before
  bool stays = false;        ///< dot of a composite: its sums stay in the array for the next step
  bool async = false;        ///< recv_async, not yet waited for: fences do not wait for it
  bool aborted = false;      ///< its kernel failed: ends as soon as the hardware lets go of it
  Direction direction;
};

/// "recv(W, 1x2048 f16)"
std::string text_of(const Op& op);

}  // namespace kernbench::pe
