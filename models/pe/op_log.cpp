#include "models/pe/op_log.h"

#include <fmt/format.h>

#include <numeric>

#include "models/pe/compute/composite_plan.h"
#include "models/pe/cpu/kernel_context.h"
#include "tlm/kernel/activation.h"
#include "tlm/machine/names.h"

namespace kernbench::pe {

namespace {
const char* to_string(Stage stage) {
  switch (stage) {
    case Stage::none:
      return "";
    case Stage::dma_in:
      return "dma_in";
    case Stage::gemm:
      return "gemm";
    case Stage::epilogue:
      return "epilogue";
    case Stage::dma_out:
      return "dma_out";
  }
  return "";
}

std::string epilogue_text(const Epilogue& epilogue) {
  std::string text = epilogue.bias != 0 ? "bias" : "";
  const auto add = [&text](const char* part) { text += (text.empty() ? "" : "+") + std::string(part); };
  if (epilogue.activation != Activation::none) add(to_string(epilogue.activation));
  if (epilogue.residual != 0) add("residual");
  return text.empty() ? "none" : text;
}

using Params = std::vector<OpRecord::Param>;

void describe_dma(OpRecord& record, const Op& op, std::optional<MemoryKind> space) {
  const bool write = op.kind == OpKind::store;
  const TileRef& tile = write ? op.in[0] : op.out;
  const std::string va = fmt::format("va:{:#x}", op.va), tcm = fmt::format("tcm:{:#x}", tile.tcm);
  record.kind = "dma";
  record.name = write ? "dma_write" : "dma_read";
  record.params = Params{{"src", write ? tcm : va, 0},
                         {"dst", write ? va : tcm, 0},
                         {"nbytes", "", static_cast<std::int64_t>(tile.bytes())},
                         {"space", space ? kernbench::to_string(*space) : "none", 0}};
}

void describe_composite(OpRecord& record, const PeConfig& config, const Op& op) {
  const CompositeGemm& gemm = op.detail->gemm;
  const CompositePlan plan(config, gemm, 0);
  record.kind = "composite";
  record.name = "composite_gemm";
  record.params = Params{{"m", "", gemm.m},
                         {"n", "", gemm.n},
                         {"k", "", gemm.k},
                         {"tile", fmt::format("{}x{}x{}", plan.tile_m(), plan.tile_n(), plan.tile_k()), 0},
                         {"epilogue", epilogue_text(gemm.epilogue), 0}};
}

void describe_math(OpRecord& record, const char* name, const TileRef& shape) {
  record.kind = "math";
  record.name = "math";
  record.params =
      Params{{"op", name, 0}, {"shape", shape.shape().str(), 0}, {"dtype", kernbench::to_string(shape.dtype), 0}};
}

void describe(OpRecord& record, const Services& services, const Op& op, const FarEnd& far_end) {
  switch (op.kind) {
    case OpKind::load:
    case OpKind::store:
    case OpKind::gather:
      describe_dma(record, op, far_end.space);
      break;
    case OpKind::dot:
      record.kind = record.name = "gemm";
      record.params = Params{{"m", "", op.in[0].rows},
                             {"n", "", op.in[1].cols},
                             {"k", "", op.in[0].cols},
                             {"dtype", kernbench::to_string(op.in[0].dtype), 0}};
      break;
    case OpKind::math:
      describe_math(record, kernbench::to_string(op.math), op.out);
      break;
    case OpKind::softmax:
      describe_math(record, "softmax", op.out);
      break;
    case OpKind::reduce:
      record.kind = "math";
      record.name = "math_reduce";
      record.params = Params{
          {"op", kernbench::to_string(op.reduce), 0}, {"axis", "", op.axis}, {"shape", op.in[0].shape().str(), 0}};
      break;
    case OpKind::composite:
      describe_composite(record, services.config, op);
      break;
    case OpKind::send:
    case OpKind::recv:
      record.kind = "ipcq";
      record.name = "ipcq_copy";
      record.params =
          Params{{"direction", op.direction.str(), 0},
                 {"peer", far_end.peer ? names::pe(*far_end.peer) : "", 0},
                 {"nbytes", "", static_cast<std::int64_t>((op.kind == OpKind::send ? op.in[0] : op.out).bytes())}};
      break;
    default:
      record.kind = record.name = "unknown";
  }
}
}  // namespace

void log_op(const Services& services, const Op& op, const char* component, const FarEnd& far_end) {
  if (services.observer == nullptr || !services.observer->wants_ops() || op.aborted) return;
  OpRecord record;
  record.start = op.started;
  record.end = services.now();
  record.component = names::pe_part(services.coord, component);
  record.kernel = op.context->launch().kernel;
  record.stage = to_string(op.stage);
  record.op = op.id;
  record.launch = op.context->message.id;
  record.queue = far_end.queue;
  record.message = far_end.message;
  describe(record, services, op, far_end);
  if (far_end.spent != nullptr) {
    record.spent.assign(far_end.spent->begin(), far_end.spent->end());
    record.spent[static_cast<std::size_t>(Delay::setup)] += far_end.setup;
    // What is left is waiting: for the bursts before it, and for TCM.
    const Ps sum = std::accumulate(record.spent.begin(), record.spent.end(), Ps{0}), total = record.end - record.start;
    if (sum < total) record.spent[static_cast<std::size_t>(Delay::contention)] += total - sum;
  }
  services.observer->op(record);
}

void log_kernel(const Services& services, const Message& message, Ps start) {
  if (services.observer == nullptr || !services.observer->wants_ops()) return;
  OpRecord record;
  record.start = start;
  record.end = services.now();
  record.component = names::pe(services.coord);
  record.kind = record.name = "kernel";
  record.kernel = std::get<LaunchMessage>(message.body).kernel;
  record.launch = message.id;
  services.observer->kernel(record);
}

void log_mark(const Services& services, const std::string& kernel, const std::string& label, Ps start) {
  if (services.observer == nullptr || !services.observer->wants_ops()) return;
  OpRecord record;
  record.start = start;
  record.end = services.now();
  record.component = names::pe_part(services.coord, "cpu");
  record.kind = record.name = "mark";
  record.kernel = kernel;
  record.params = Params{{"label", label, 0}};
  services.observer->op(record);
}

std::string text_of(const Op& op) {
  const auto tile = [](const TileRef& t) {
    return fmt::format("{} {}", t.shape().str(), kernbench::to_string(t.dtype));
  };
  std::string inputs;
  for (std::size_t i = 0; i < op.inputs; ++i) inputs += (i == 0 ? "" : ", ") + tile(op.in[i]);
  switch (op.kind) {
    case OpKind::load:
      return fmt::format("load({:#x}, {})", op.va, tile(op.out));
    case OpKind::store:
      return fmt::format("store({:#x}, {})", op.va, tile(op.in[0]));
    case OpKind::gather:
      return fmt::format("gather({:#x}, {})", op.va, tile(op.out));
    case OpKind::dot:
      return fmt::format("dot({}, {})", tile(op.in[0]), tile(op.in[1]));
    case OpKind::math:
      return fmt::format("{}({})", kernbench::to_string(op.math), op.inputs == 0 ? tile(op.out) : inputs);
    case OpKind::reduce:
      return fmt::format("reduce_{}({})", kernbench::to_string(op.reduce), inputs);
    case OpKind::softmax:
      return fmt::format("softmax({})", inputs);
    case OpKind::composite: {
      const CompositeGemm& gemm = op.detail->gemm;
      return fmt::format("composite_gemm({}x{}x{} {})", gemm.m, gemm.n, gemm.k, kernbench::to_string(gemm.dtype));
    }
    case OpKind::send:
      return fmt::format("send({}, {})", op.direction.str(), tile(op.in[0]));
    case OpKind::recv:
      return fmt::format("{}({}, {})", op.async ? "recv_async" : "recv", op.direction.str(), tile(op.out));
    case OpKind::wait:
      return "wait";
    case OpKind::fence:
      return "fence";
    case OpKind::mark:
      return fmt::format("mark({})", op.detail->text);
    case OpKind::fault:
      return "fault";
  }
  return "?";
}

}  // namespace kernbench::pe
