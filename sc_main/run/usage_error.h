#pragma once
#include <string>
#include <utility>

#include "tlm/config/refusals.h"

namespace kernbench {

/// One thing is wrong with the command line: exit code 2.
class UsageError : public Refused {
 public:
  explicit UsageError(std::string text, std::string hint = {}) : Refused({{std::move(text), std::move(hint)}}) {}
};

}  // namespace kernbench
