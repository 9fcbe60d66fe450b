#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kernbench::sweep {

/// A formula of a sweep file, such as "sip.cube_mesh.w * sip.cube_mesh.h <= 16".
///
/// Operators: + - * / ^, comparisons, && || ?:; functions: those of muparser, and floor, ceil, mod, divides, not.
/// Quantities count in base units (bytes, bytes/s, ps, Hz, transfers/s, aJ, uW); constants such as KiB, GB, ns, GHz
/// turn figures into them. A text (a name of an enumeration) is a number that only equals itself.
class Expression {
 public:
  /// Throws std::invalid_argument: what is wrong, and where in the text.
  explicit Expression(const std::string& text);
  ~Expression();
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;

  const std::string& text() const { return text_; }
  const std::vector<std::string>& names() const { return names_; }  ///< that it needs values of, sorted
  /// `lookup` gives each name's value. Throws what `lookup` throws; std::invalid_argument if the result is no number.
  double value(const std::function<double(const std::string&)>& lookup) const;

 private:
  struct Parser;
  std::string text_;
  std::vector<std::string> names_;
  std::unique_ptr<Parser> parser_;
};

/// The number that stands for a text in expressions.
double number_of_text(const std::string& text);

}  // namespace kernbench::sweep
