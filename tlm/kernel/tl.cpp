#include "tlm/kernel/tl.h"

#include <fmt/format.h>

#include <array>

#include "tlm/kernel/operations.h"

namespace kernbench {

namespace {
/// By whom one of the operands was made: an empty one is its to refuse.
Tile elementwise(MathOp op, const Tile& a, const Tile& b) {
  if (!a && !b) throw KernelError(fmt::format("{}: both tiles are empty: they were never made", to_string(op)));
  return (a ? a : b).state().tl->math(op, {a, b});
}
}  // namespace

void Tile::throw_empty(const char* call) {
  throw KernelError(fmt::format("Tile::{}: the tile is empty: it was never made", call));
}

Tile operator+(const Tile& a, const Tile& b) { return elementwise(MathOp::add, a, b); }
Tile operator-(const Tile& a, const Tile& b) { return elementwise(MathOp::sub, a, b); }
Tile operator*(const Tile& a, const Tile& b) { return elementwise(MathOp::mul, a, b); }
Tile operator/(const Tile& a, const Tile& b) { return elementwise(MathOp::div, a, b); }

const Program& Tl::program(ProgramId) const { throw KernelError("program: there are none here"); }

const char* to_string(MathOp op) {
  static constexpr std::array kNames = {"add",  "sub",  "mul",  "div",    "minimum",    "maximum",  "neg",
                                        "abs",  "exp",  "log",  "sqrt",   "rsqrt",      "tanh",     "sigmoid",
                                        "gelu", "silu", "relu", "less",   "less_equal", "equal",    "select",
                                        "cast", "copy", "fill", "arange", "broadcast",  "transpose"};
  return kNames[static_cast<std::size_t>(op)];
}

const char* to_string(ReduceKind kind) {
  static constexpr std::array kNames = {"sum", "max", "min"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* to_string(CollectiveOp op) { return facts_of(op).name; }

const char* to_string(ReduceOp op) {
  static constexpr std::array kNames = {"sum", "avg", "max", "min", "prod"};
  return kNames[static_cast<std::size_t>(op)];
}

const char* to_string(Scope scope) {
  static constexpr std::array kNames = {"sip", "cube", "pe"};
  return kNames[static_cast<std::size_t>(scope)];
}

std::int64_t Parameters::at(const std::string& name) const {
  const auto found = find(name);
  if (found != end()) return found->second;
  std::vector<std::string> names;
  for (const auto& entry : *this) names.push_back(entry.first);
  throw std::invalid_argument(fmt::format("no parameter '{}'; there are: {}", name, fmt::join(names, ", ")));
}

std::string Direction::str() const {
  static constexpr std::array kNames = {"N", "S", "E", "W", "global_N", "global_S", "global_E", "global_W"};
  if (code_ < kNames.size()) return kNames[code_];
  if (code_ >= kFirstGlobal) return fmt::format("global({})", code_ - kFirstGlobal);
  return fmt::format("local({})", code_ - kFirstLocal);
}

void Direction::throw_beyond(const char* kind, unsigned number, unsigned count) {
  throw std::out_of_range(fmt::format("Direction::{0}({1}): give {0}(0) to {0}({2})", kind, number, count - 1));
}

}  // namespace kernbench
