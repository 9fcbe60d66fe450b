#include "runtime/tool_work.h"

#include "runtime/runtime_impl.h"

namespace kernbench {

ToolWork::ToolWork(Context& context) : scheduler_(context.runtime_.program.scheduler()), rank_(scheduler_.current()) {
  if (rank_ >= 0) scheduler_.begin_tool_work(rank_);
}

ToolWork::~ToolWork() {
  if (rank_ >= 0) scheduler_.end_tool_work(rank_);
}

}  // namespace kernbench
