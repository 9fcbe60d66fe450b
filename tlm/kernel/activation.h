#pragma once
#include <optional>

#include "tlm/kernel/tl.h"

namespace kernbench {

inline const char* to_string(Activation activation) {
  constexpr const char* kNames[] = {"none", "relu", "gelu", "silu", "tanh", "sigmoid"};
  return kNames[static_cast<std::size_t>(activation)];
}

/// The elementwise op of an activation; nothing for none.
inline std::optional<MathOp> to_math(Activation activation) {
  switch (activation) {
    case Activation::none:
      return std::nullopt;
    case Activation::relu:
      return MathOp::relu;
    case Activation::gelu:
      return MathOp::gelu;
    case Activation::silu:
      return MathOp::silu;
    case Activation::tanh:
      return MathOp::tanh;
    case Activation::sigmoid:
      return MathOp::sigmoid;
  }
  return std::nullopt;
}

}  // namespace kernbench
