#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tlm/ext/message.h"
#include "tlm/kernel/launch.h"

namespace kernbench {

/// A body that looks at the test around it, which no kernel can. The launch carries its place in the test.
struct TestBody {
  std::uint64_t place = 0;
};

/// Keeps `body` for the rest of the process.
inline TestBody test_body(std::function<void(Tl&)> body) {
  static std::deque<std::function<void(Tl&)>> kept;
  return {reinterpret_cast<std::uint64_t>(&kept.emplace_back(std::move(body)))};
}

/// The kernel that runs it.
inline void run_test_body(TestBody body, Tl& tl) {
  (*reinterpret_cast<const std::function<void(Tl&)>*>(body.place))(tl);
}

/// A launch of `body` on `targets`, below the runtime.
inline LaunchMessage launch_of(const std::string& name, std::vector<PeCoord> targets, std::function<void(Tl&)> body) {
  LaunchMessage message;
  message.kernel = name;
  message.targets = std::move(targets);
  BoundKernel kernel = bind_kernel(run_test_body, test_body(std::move(body)));
  message.entry = kernel.entry;
  message.arguments = std::move(kernel.arguments);
  return message;
}

}  // namespace kernbench
