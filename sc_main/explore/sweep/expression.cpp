#include "sc_main/explore/sweep/expression.h"

#include <fmt/format.h>
#include <muParser.h>
#include <xxhash.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "tlm/config/nearest.h"

namespace kernbench::sweep {
namespace {
constexpr const char* kNameCharacters = "0123456789_.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Figures in base units: bytes, ps, Hz.
constexpr std::pair<const char*, double> kConstants[] = {
    {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
    {"TB", 1e12},    {"ps", 1},          {"ns", 1e3},           {"us", 1e6}, {"ms", 1e9}, {"s", 1e12},
    {"MHz", 1e6},    {"GHz", 1e9},       {"GTps", 1e9},         {"true", 1}, {"false", 0}};

double floor_of(double x) { return std::floor(x); }
double ceil_of(double x) { return std::ceil(x); }
double mod(double x, double y) { return x - y * std::floor(x / y); }
double divides(double x, double y) { return mod(y, x) == 0 ? 1 : 0; }
double negate(double x) { return x == 0 ? 1 : 0; }
}  // namespace

struct Expression::Parser {
  mu::Parser parser;
  std::vector<double> values;  // of the names, in their order
};

Expression::Expression(const std::string& text) : text_(text), parser_(std::make_unique<Parser>()) {
  mu::Parser& parser = parser_->parser;
  parser.DefineNameChars(kNameCharacters);
  try {
    for (const auto& [name, value] : kConstants) parser.DefineConst(name, value);
    parser.DefineFun("floor", floor_of);
    parser.DefineFun("ceil", ceil_of);
    parser.DefineFun("mod", mod);
    parser.DefineFun("divides", divides);
    parser.DefineFun("not", negate);
    parser.SetExpr(text);
    for (const auto& [name, variable] : parser.GetUsedVar()) names_.push_back(name);
    parser_->values.resize(names_.size());
    for (std::size_t i = 0; i < names_.size(); ++i) parser.DefineVar(names_[i], &parser_->values[i]);
    parser.Eval();  // what GetUsedVar() leaves unchecked
  } catch (const mu::Parser::exception_type& error) {
    throw std::invalid_argument(fmt::format("{}: {}", quote(text), error.GetMsg()));
  }
}

Expression::~Expression() = default;
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;

double Expression::value(const std::function<double(const std::string&)>& lookup) const {
  for (std::size_t i = 0; i < names_.size(); ++i) parser_->values[i] = lookup(names_[i]);
  double result = 0;
  try {
    result = parser_->parser.Eval();
  } catch (const mu::Parser::exception_type& error) {
    throw std::invalid_argument(fmt::format("{}: {}", quote(text_), error.GetMsg()));
  }
  if (!std::isfinite(result)) throw std::invalid_argument(fmt::format("{} is no number", quote(text_)));
  return result;
}

double number_of_text(const std::string& text) {
  if (text == "true") return 1;
  if (text == "false") return 0;
  // 52 bits and a half: two texts differ, and none is a whole number.
  constexpr std::uint64_t kMask = (std::uint64_t{1} << 51) - 1;
  return static_cast<double>(XXH3_64bits(text.data(), text.size()) & kMask) + 0.5;
}

}  // namespace kernbench::sweep
