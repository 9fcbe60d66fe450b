#include "runtime/host_memory.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/test_folder.h"

namespace kernbench {
namespace {
constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

class Cgroup {
 public:
  void write(const char* file, const std::string& text) const { std::ofstream(folder_.file(file)) << text; }
  std::uint64_t left(CgroupVersion version) const { return left_of_cgroup(folder_.path().string(), version); }

 private:
  TestFolder folder_;
};

// What the kernel gives back at once is not used: files that were read once fill a group to its limit.
TEST(HostMemory, InactivePageCacheOfACgroupIsNotUsed) {
  const Cgroup group;
  group.write("memory.max", "1000000\n");
  group.write("memory.current", "990000\n");
  EXPECT_EQ(group.left(CgroupVersion::two), 10'000u) << "without memory.stat all is used";
  group.write("memory.stat", "anon 300000\nfile 690000\ninactive_anon 1\ninactive_file 600000\nactive_file 90000\n");
  EXPECT_EQ(group.left(CgroupVersion::two), 610'000u);
  group.write("memory.current", "500000\n");  // read after the cache went
  EXPECT_EQ(group.left(CgroupVersion::two), 1'000'000u);
}

TEST(HostMemory, VersionOneCountsTheGroupsBelow) {
  const Cgroup group;
  group.write("memory.limit_in_bytes", "1000000\n");
  group.write("memory.usage_in_bytes", "990000\n");
  group.write("memory.stat", "inactive_file 100\ntotal_inactive_file 200000\n");
  EXPECT_EQ(group.left(CgroupVersion::one), 210'000u);
}

TEST(HostMemory, ACgroupWithoutALimitLeavesAll) {
  const Cgroup group;
  EXPECT_EQ(group.left(CgroupVersion::two), kNoLimit);
  group.write("memory.max", "max\n");
  group.write("memory.current", "990000\n");
  EXPECT_EQ(group.left(CgroupVersion::two), kNoLimit);
}

}  // namespace
}  // namespace kernbench
