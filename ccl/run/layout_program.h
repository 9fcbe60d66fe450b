#pragma once
#include <memory>
#include <utility>

#include "ccl/data/layout.h"
#include "ccl/run/call_program.h"

namespace kernbench::ccl {

/// A kernel algorithm's calls: which part of the tensor is whose, and how copies get the result.
class LayoutProgram final : public CallProgram {
 public:
  /// `layout`: of a tensor at base 0.
  LayoutProgram(std::shared_ptr<const Algorithm> algorithm, Layout layout)
      : CallProgram(std::move(algorithm)), layout_(std::move(layout)) {}
  void start(const Argument* arguments, Tl& tl) const override;
  /// A shard and a part of 24 B each, places in the tree of cubes and in the line of PEs: one header's worth.
  std::uint64_t bytes(PeCoord) const override { return 2 * kProgramHeaderBytes; }

 private:
  const Layout layout_;
};

}  // namespace kernbench::ccl
