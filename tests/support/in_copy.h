#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace kernbench::testing {

/// The numbers that `work` returns in a copy of this process: SystemC elaborates once in a process, and two runs are to
/// be compared. What fails there fails here. Call it before anything is elaborated.
template <class Work>
std::vector<std::uint64_t> in_copy(const Work& work) {
  std::vector<std::uint64_t> numbers;
  int ends[2];
  if (::pipe(ends) != 0) {
    ADD_FAILURE() << "no pipe";
    return numbers;
  }
  std::fflush(nullptr);
  const pid_t copy = ::fork();
  if (copy == 0) {
    int code = 1;
    try {
      for (const std::uint64_t number : work()) {
        if (::write(ends[1], &number, sizeof number) != sizeof number) ::_exit(2);
      }
      code = ::testing::Test::HasFailure() ? 1 : 0;
    } catch (...) {
      code = 3;
    }
    std::fflush(nullptr);
    ::_exit(code);
  }
  ::close(ends[1]);
  for (std::uint64_t number = 0; ::read(ends[0], &number, sizeof number) == sizeof number;) numbers.push_back(number);
  ::close(ends[0]);
  int status = -1;
  EXPECT_EQ(::waitpid(copy, &status, 0), copy);
  EXPECT_EQ(status, 0) << "the copy of the process failed: see above";
  return numbers;
}

}  // namespace kernbench::testing
