#pragma once
#include <functional>
#include <string>

#include "tests/pe/harness.h"

namespace kernbench::test {

inline constexpr Va kMapped = 0x10000, kMappedToo = 0x20000;

/// Runs `body` on PE 0; the reason of its one fault.
inline std::string reason_of(Bench& bench, std::function<void(Tl&)> body) {
  bench.ending = Bench::Ending::failed;
  Message& message = bench.launch(std::move(body));
  EXPECT_EQ(bench.answers(message, CommandKind::failed), 1u);
  EXPECT_EQ(bench.pool.outstanding(), 0u);
  EXPECT_EQ(bench.stacks.in_use(), 0u);
  return message.faults.size() == 1 ? message.faults[0].reason : "not one fault";
}

}  // namespace kernbench::test
