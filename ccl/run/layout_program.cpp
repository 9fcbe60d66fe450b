#include "ccl/run/layout_program.h"

#include <vector>

#include "ccl/contract/verbs.h"
#include "ccl/run/part_tl.h"

namespace kernbench::ccl {

namespace {
ShardView moved_to(Va base, ShardView view) {
  view.va += base;
  return view;
}
}  // namespace

void LayoutProgram::start(const Argument* arguments, Tl& tl) const {
  const auto found = layout_.work.find({static_cast<int>(tl.program_id(1)), static_cast<int>(tl.program_id(0))});
  sc_assert(found != layout_.work.end());
  PeWork work = found->second;
  const Va base = arguments[0].va;
  work.shard = moved_to(base, work.shard);
  work.part = moved_to(base, work.part);
  if (work.reduces && work.part.count() > 0) {
    PartTl part(tl, base, work.part);
    kernel().call(arguments, part);
  }
  if (!work.cubes && work.line_size == 1) return;
  Verbs verbs(tl, 1);
  const std::size_t item = size_of(tl.call().dtype);
  if (work.cubes) tree_broadcast(verbs, *work.cubes, {{work.part.va, work.part.count(), item}});
  std::vector<std::vector<Slice>> parts;
  parts.reserve(static_cast<std::size_t>(work.line_size));
  for (int i = 0; i < work.line_size; ++i) {
    parts.push_back({Slice{work.shard.va, work.shard.count(), item}.part(i, work.line_size)});
  }
  line_all_gather(verbs, parts, work.line_index, work.before, work.after);
}

}  // namespace kernbench::ccl
