#pragma once
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "ccl/select/registry.h"

namespace kernbench::test {

/// The entries of a ccl.yaml with this text.
inline ccl::Registry registry_of(const std::string& text) {
  const std::string path =
      "registry_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) + ".yaml";
  std::ofstream(path) << text;
  try {
    ccl::Registry registry(path);
    std::remove(path.c_str());
    return registry;
  } catch (...) {
    std::remove(path.c_str());
    throw;
  }
}

}  // namespace kernbench::test
