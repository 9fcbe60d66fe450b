#pragma once
#include <exception>
#include <string>

namespace kernbench {

/// The text of what `f` throws.
template <class F>
std::string thrown_by(F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace kernbench
