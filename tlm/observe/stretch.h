#pragma once
#include <string>

#include "tlm/base/time.h"

namespace kernbench {

/// A part of a program that it names, such as an iteration; waves and traces show it.
struct Stretch {
  std::string name;  ///< as people read it
  /** when */ Ps begin = 0, end = 0;
  bool timed = false;  ///< its time counts: no warm-up
};

}  // namespace kernbench
