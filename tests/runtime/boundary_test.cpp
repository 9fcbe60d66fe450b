#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "tests/support/test_folder.h"

namespace kernbench {
namespace {
namespace fs = std::filesystem;

/// Calls `look(path from the root, text)` for every source of a folder; returns how many there are.
int for_each_source(const std::string& folder,
                    const std::function<void(const std::string&, const std::string&)>& look) {
  const fs::path root = KERNBENCH_SOURCE_DIR;
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp") continue;
    look(fs::relative(entry.path(), root).string(), read(entry.path().string()));
    ++files;
  }
  return files;
}

/// A later version runs groups of SIPs in separate processes: what happens in another SIP is scheduled by links alone,
/// which know its latency.
TEST(Boundary, OnlyLinksReachFromOneSipIntoAnother) {
  std::set<std::string> callers;
  int files = 0;
  for (const char* folder : {"tlm", "models", "topology", "ccl", "runtime", "waves"}) {
    files += for_each_source(folder, [&](const std::string& path, const std::string& text) {
      if (text.find("at_from(") != std::string::npos) callers.insert(path);
    });
  }
  EXPECT_GT(files, 200) << "not the sources";
  EXPECT_EQ(callers, (std::set<std::string>{"models/link/link_port.cpp", "tlm/sim/event_queue.h"}));
}

/// The host knows sockets of PCIe endpoints and messages, and no model; algorithms know neither.
TEST(Boundary, TheHostReachesASipThroughItsPcieEndpointOnly) {
  int files = 0;
  for (const char* folder : {"runtime", "ccl"}) {
    files += for_each_source(folder, [&](const std::string& path, const std::string& text) {
      for (const char* never : {"#include \"models/", "#include \"topology/", "#include \"sc_main/"}) {
        EXPECT_EQ(text.find(never), std::string::npos) << path << ": " << never;
      }
    });
  }
  EXPECT_GT(files, 40) << "not the sources";
}

}  // namespace
}  // namespace kernbench
