#include "models/pe/compute/composite_plan.h"

#include <algorithm>

#include "models/arith/arith.h"
#include "models/pe/compute/gemm_array.h"
#include "models/pe/tcm/tcm_arena.h"
#include "tlm/kernel/activation.h"

namespace kernbench::pe {

namespace {
DType accumulator_of(DType dtype) {
  if (is_float(dtype)) return dtype == DType::f64 ? DType::f64 : DType::f32;
  return dtype == DType::i64 ? DType::i64 : DType::i32;
}
}  // namespace

CompositePlan::CompositePlan(const PeConfig& config, const CompositeGemm& gemm, std::uint32_t workspace)
    : gemm_(gemm), accumulator_(accumulator_of(gemm.dtype)), workspace_(workspace) {
  if (gemm_.lda == 0) gemm_.lda = gemm_.k;
  if (gemm_.ldb == 0) gemm_.ldb = gemm_.n;
  if (gemm_.ldc == 0) gemm_.ldc = gemm_.n;
  choose_tile(config);
  sums_stay_ = config.gemm.dataflow == GemmDataflow::output_stationary && tile_m_ <= config.gemm.rows &&
               tile_n_ <= config.gemm.cols;
  while (!has(phase_)) phase_ = static_cast<Phase>(static_cast<int>(phase_) + 1);
}

void CompositePlan::choose_tile(const PeConfig& config) {
  constexpr std::int64_t kBlocks = 4, kRowBytes = 512, kShare = 4;
  const GemmConfig& array = config.gemm;
  const std::int64_t rows = array.rows, cols = array.cols;
  const auto full_depth =
      static_cast<std::int64_t>(rows * static_cast<std::int64_t>(mac_rate(array, gemm_.dtype).at_once));
  const auto row = kRowBytes / static_cast<std::int64_t>(size_of(gemm_.dtype));
  const auto chosen = [](std::uint32_t given, std::int64_t open, std::int64_t whole) {
    return std::min<std::int64_t>(given != 0 ? given : open, whole);
  };
  tile_m_ = chosen(array.tile_m, kBlocks * rows, gemm_.m);
  tile_n_ = chosen(array.tile_n, std::max(kBlocks * cols, row), gemm_.n);
  tile_k_ = chosen(array.tile_k, std::max(full_depth, row), gemm_.k);
  place_buffers();
  const std::uint64_t room = config.tcm.bytes / config.cpu.kernel_contexts / kShare;
  while (bytes_ > room) {
    const bool m_open = array.tile_m == 0 && tile_m_ > rows, n_open = array.tile_n == 0 && tile_n_ > cols;
    if (m_open && (tile_m_ >= tile_n_ || !n_open)) {
      tile_m_ = (tile_m_ + 1) / 2;
    } else if (n_open) {
      tile_n_ = (tile_n_ + 1) / 2;
    } else if (array.tile_k == 0 && tile_k_ > 1) {
      tile_k_ = (tile_k_ + 1) / 2;
    } else {
      break;  // the kernel may still have room for it
    }
    place_buffers();
  }
}

void CompositePlan::place_buffers() {
  const auto bytes = [](std::int64_t rows, std::int64_t cols, DType dtype) {
    return static_cast<std::uint64_t>(rows * cols) * size_of(dtype);
  };
  bytes_ = 0;
  place(a_, bytes(tile_m_, tile_k_, gemm_.dtype));
  place(b_, bytes(tile_k_, tile_n_, gemm_.dtype));
  place(sum_, bytes(tile_m_, tile_n_, accumulator_));
  place(out_, bytes(tile_m_, tile_n_, gemm_.dtype));
  if (gemm_.epilogue.bias != 0) place(bias_, bytes(1, tile_n_, gemm_.dtype));
  if (gemm_.epilogue.residual != 0) place(residual_, bytes(tile_m_, tile_n_, gemm_.dtype));
}

void CompositePlan::place(Buffer& buffer, std::uint64_t bytes) {
  const std::uint64_t size = (bytes + TcmArena::kAlignment - 1) / TcmArena::kAlignment * TcmArena::kAlignment;
  for (std::uint32_t& at : buffer.at) {
    at = static_cast<std::uint32_t>(workspace_ + bytes_);
    bytes_ += size;
  }
}

bool CompositePlan::has(Phase phase) const {
  switch (phase) {
    case Phase::bias:
    case Phase::add_bias:
      return gemm_.epilogue.bias != 0;
    case Phase::residual:
    case Phase::add_residual:
      return gemm_.epilogue.residual != 0;
    case Phase::activation:
      return gemm_.epilogue.activation != Activation::none;
    default:
      return true;
  }
}

CompositePlan::Phase CompositePlan::last_math() const {
  for (const Phase phase : {Phase::add_residual, Phase::activation, Phase::add_bias}) {
    if (has(phase)) return phase;
  }
  return Phase::product;
}

bool CompositePlan::next(Op& op) {
  if (finished_) return false;
  describe(op);
  advance();
  return true;
}

void CompositePlan::advance() {
  if (phase_ == Phase::product) {
    ++step_;
    k_ += tile_k_;
    if (k_ < gemm_.k) {
      phase_ = Phase::load_a;
      return;
    }
  }
  if (phase_ == Phase::store) {
    ++output_;
    k_ = 0;
    j_ += tile_n_;
    if (j_ >= gemm_.n) {
      j_ = 0;
      i_ += tile_m_;
    }
    finished_ = i_ >= gemm_.m;
    phase_ = Phase::bias;
  } else {
    phase_ = static_cast<Phase>(static_cast<int>(phase_) + 1);
  }
  while (!has(phase_)) phase_ = static_cast<Phase>(static_cast<int>(phase_) + 1);
}

void CompositePlan::describe_load(Op& op, Va base, std::int64_t leading, std::int64_t row, std::int64_t col,
                                  std::uint32_t tcm, std::int64_t rows, std::int64_t cols) const {
  op.kind = OpKind::load;
  op.unit = Unit::dma_r;
  op.stage = Stage::dma_in;
  op.va = base + static_cast<Va>(row * leading + col) * size_of(gemm_.dtype);
  op.stride_bytes = static_cast<std::uint64_t>(leading) * size_of(gemm_.dtype);
  op.out = {tcm, static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(cols), gemm_.dtype};
}

void CompositePlan::describe(Op& op) const {
  const auto m = static_cast<std::uint32_t>(std::min(tile_m_, gemm_.m - i_));
  const auto n = static_cast<std::uint32_t>(std::min(tile_n_, gemm_.n - j_));
  const auto k = static_cast<std::uint32_t>(std::clamp<std::int64_t>(gemm_.k - k_, 0, tile_k_));
  const unsigned out = output_ % 2, step = step_ % 2;
  const TileRef sum{sum_.at[out], m, n, accumulator_};
  const TileRef result{out_.at[out], m, n, gemm_.dtype};
  const TileRef& written = phase_ == last_math() && k_ + k >= gemm_.k ? result : sum;
  const auto math = [&](MathOp what, const TileRef* other) {
    op.kind = OpKind::math;
    op.unit = Unit::math;
    op.stage = Stage::epilogue;
    op.math = what;
    op.in[0] = sum;
    op.inputs = 1;
    if (other != nullptr) op.in[op.inputs++] = *other;
    op.out = phase_ == last_math() ? result : sum;
  };
  const TileRef bias{bias_.at[out], 1, n, gemm_.dtype}, residual{residual_.at[out], m, n, gemm_.dtype};
  switch (phase_) {
    case Phase::bias:
      describe_load(op, gemm_.epilogue.bias, gemm_.n, 0, j_, bias.tcm, 1, n);
      break;
    case Phase::residual:
      describe_load(op, gemm_.epilogue.residual, gemm_.ldc, i_, j_, residual.tcm, m, n);
      break;
    case Phase::load_a:
      describe_load(op, gemm_.a, gemm_.lda, i_, k_, a_.at[step], m, k);
      break;
    case Phase::load_b:
      describe_load(op, gemm_.b, gemm_.ldb, k_, j_, b_.at[step], k, n);
      break;
    case Phase::product:
      op.kind = OpKind::dot;
      op.unit = Unit::gemm;
      op.stage = Stage::gemm;
      op.in = {TileRef{a_.at[step], m, k, gemm_.dtype}, TileRef{b_.at[step], k, n, gemm_.dtype}, sum};
      op.inputs = 3;
      op.accumulates = k_ > 0;
      op.goes_on = sums_stay_ && k_ > 0;
      op.stays = sums_stay_ && k_ + k < gemm_.k;
      op.chain = output_ + 1;
      op.out = written;
      break;
    case Phase::add_bias:
      math(MathOp::add, &bias);
      break;
    case Phase::activation:
      math(*to_math(gemm_.epilogue.activation), nullptr);
      break;
    case Phase::add_residual:
      math(MathOp::add, &residual);
      break;
    case Phase::store:
      op.kind = OpKind::store;
      op.unit = Unit::dma_w;
      op.stage = Stage::dma_out;
      op.va = gemm_.c + static_cast<Va>(i_ * gemm_.ldc + j_) * size_of(gemm_.dtype);
      op.stride_bytes = static_cast<std::uint64_t>(gemm_.ldc) * size_of(gemm_.dtype);
      op.in[0] = result;
      op.inputs = 1;
      break;
  }
}

}  // namespace kernbench::pe
