#pragma once
#include <stdexcept>

namespace kernbench::ccl {

/// What the user asked of a collective cannot be done; says why and what to do. Bad input: exit code 2.
class Error : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

}  // namespace kernbench::ccl
