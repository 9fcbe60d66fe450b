#pragma once
#include <string>
#include <vector>

namespace kernbench {

struct RuntimeImpl;

/// Waits of the host program that lead back to where they began, in order: "rank 1 waits for launch 'gemm' on sip0,
/// submitted at 12.000 ns". Empty: there are none.
///
/// A rank waits for a message, or at a barrier for others. A message waits for the first one of its stream. A
/// collective waits for ranks that have not called it, and where all have, for parts that stand behind something.
std::vector<std::string> host_cycle(const RuntimeImpl& runtime);

}  // namespace kernbench
