#include "tlm/config/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace kernbench {

std::string Location::str() const {
  std::string name = file;  // a problem stays one line
  for (std::size_t at = 0; (at = name.find('\n', at)) != std::string::npos; ++at) name.replace(at, 1, "\\n");
  return line == 0 ? name : fmt::format("{}:{}:{}", name, line, column);
}

std::string Problem::str() const {
  std::string result = where.str() + ": error: " + text;
  if (!hint.empty()) result += "\n  hint: " + hint;
  return result;
}

void Problems::add(Location where, std::string text, std::string hint) {
  ++reported_;
  const bool known = std::any_of(list_.begin(), list_.end(),
                                 [&](const Problem& old) { return old.where == where && old.text == text; });
  if (!known) list_.push_back({std::move(where), std::move(text), std::move(hint)});
}

std::vector<Problem> Problems::sorted() const {
  std::map<std::string, std::size_t> file_order;
  for (const Problem& problem : list_) file_order.emplace(problem.where.file, file_order.size());
  std::vector<Problem> result = list_;
  std::stable_sort(result.begin(), result.end(), [&](const Problem& a, const Problem& b) {
    return std::tuple(file_order.at(a.where.file), a.where.line, a.where.column) <
           std::tuple(file_order.at(b.where.file), b.where.line, b.where.column);
  });
  return result;
}

namespace {
std::string text_of(const std::vector<Problem>& problems) {
  std::string result;
  for (const Problem& problem : problems) result += (result.empty() ? "" : "\n") + problem.str();
  return result;
}
}  // namespace

std::string Problems::str() const { return text_of(sorted()); }

void Problems::throw_if_any() const {
  if (!empty()) throw ConfigError(*this);
}

ConfigError::ConfigError(const Problems& problems) : std::runtime_error(problems.str()), problems_(problems.sorted()) {}

ConfigError::ConfigError(Location where, std::string text, std::string hint)
    : std::runtime_error(Problem{where, text, hint}.str()),
      problems_{{std::move(where), std::move(text), std::move(hint)}} {}

}  // namespace kernbench
