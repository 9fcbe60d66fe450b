#include "runtime/tool_work.h"

#include <stdexcept>

#include "runtime/runtime_impl.h"

namespace kernbench {

ToolWork::ToolWork(Context& context) : scheduler_(context.runtime_.program.scheduler()), rank_(scheduler_.current()) {
  if (rank_ >= 0) scheduler_.begin_tool_work(rank_);
}

ToolWork::~ToolWork() {
  if (rank_ >= 0) scheduler_.end_tool_work(rank_);
}

namespace {
void access_untimed(const Tensor& tensor, std::vector<std::uint8_t>& contents, bool write) {
  tensor.state().runtime.lock()->tensors.access_untimed(tensor.state(), contents.data(), write);
}
}  // namespace

std::vector<std::uint8_t> ToolWork::peek(const Tensor& tensor) {
  std::vector<std::uint8_t> contents(tensor.bytes());
  access_untimed(tensor, contents, false);
  return contents;
}

void ToolWork::poke(const Tensor& tensor, std::vector<std::uint8_t> contents) {
  if (contents.size() != tensor.bytes()) throw std::invalid_argument("poke: contents of another size");
  access_untimed(tensor, contents, true);
}

}  // namespace kernbench
