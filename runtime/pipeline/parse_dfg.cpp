#include <fmt/format.h>

#include <cctype>
#include <cstdlib>

#include "runtime/pipeline/graph_text.h"
#include "tlm/config/nearest.h"

namespace kernbench::pipeline {

namespace {

/// What ends the reading of a line.
struct DfgError {
  std::size_t at;
  std::string text, hint;
};

/// One line: `a, b = op(x, 2, [1, -1], dim=0)`.
class DfgLine {
 public:
  DfgLine(const std::string& text, unsigned number) : text_(text), number_(number) {}

  bool blank() {
    skip();
    return at_ == text_.size();
  }

  RawNode read(GraphProblems& problems) {
    RawNode made;
    made.where = here();
    do {
      made.names.push_back(name());
    } while (take(','));
    expect('=', "write 'result = operation(arguments)'");
    skip();
    const Location where = here();
    const std::string word = name();
    made.operation = find_operation(TaskKind::dfg, word, made.names.front(), where, problems);
    expect('(', "write 'result = operation(arguments)'");
    if (!take(')')) {
      do {
        argument(made);
      } while (take(','));
      expect(')', "close the arguments with ')'");
    }
    if (!blank()) throw DfgError{at_, "something stands behind the call", "one call a line"};
    return made;
  }

 private:
  Location here() const { return {"graph", number_, static_cast<unsigned>(at_ + 1)}; }

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
    if (at_ < text_.size() && text_[at_] == '#') at_ = text_.size();
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, const char* hint) {
    if (!take(c)) throw DfgError{at_, fmt::format("'{}' is missing", c), hint};
  }
  bool quoted() {
    skip();
    return at_ < text_.size() && text_[at_] == '"';
  }
  std::string text() {
    const std::size_t begin = at_++;
    const std::size_t end = text_.find('"', at_);
    if (end == std::string::npos) throw DfgError{begin, "a text has no end", "close it with '\"'"};
    const std::string value = text_.substr(at_, end - at_);
    at_ = end + 1;
    return value;
  }
  std::string name() {
    if (quoted()) return text();
    const std::size_t begin = at_;
    const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; };
    while (at_ < text_.size() && part(text_[at_])) ++at_;
    if (at_ == begin) throw DfgError{at_, "a name is missing", "names of other characters stand in quotes: \"a-b\""};
    return text_.substr(begin, at_ - begin);
  }

  void argument(RawNode& made) {
    skip();
    const std::size_t begin = at_;
    if (!quoted() && at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])) != 0) {
      const std::string word = name();
      if (take('=')) {
        made.keywords.emplace_back(word, value());
        return;
      }
      at_ = begin;
    }
    if (!made.keywords.empty()) throw DfgError{begin, "an argument without a name behind one with", "name it, too"};
    made.arguments.push_back(value());
  }

  RawArgument value() {
    skip();
    RawArgument made;
    made.where = here();
    if (take('[')) {
      made.kind = RawArgument::Kind::list;
      if (take(']')) return made;
      do {
        made.items.push_back(value());
      } while (take(','));
      expect(']', "close the list with ']'");
      return made;
    }
    const bool plain = !quoted();
    const char first = at_ < text_.size() ? text_[at_] : '\0';
    if (plain &&
        (std::isdigit(static_cast<unsigned char>(first)) != 0 || first == '-' || first == '+' || first == '.')) {
      number(made);
      return made;
    }
    made.text = name();
    made.kind = RawArgument::Kind::node;
    if (!plain) return made;
    if (made.text == "none") made.kind = RawArgument::Kind::none;
    if (made.text == "true" || made.text == "false") {
      made.kind = RawArgument::Kind::boolean;
      made.flag = made.text == "true";
    }
    if (made.text == "inf") {
      made.kind = RawArgument::Kind::number;
      made.number = std::strtod("inf", nullptr);
    }
    return made;
  }

  void number(RawArgument& made) {
    const std::size_t begin = at_;
    if (text_.compare(at_, 4, "-inf") == 0) at_ += 4;
    while (at_ < text_.size() && std::string("+-.0123456789eE").find(text_[at_]) != std::string::npos) ++at_;
    const std::string digits = text_.substr(begin, at_ - begin);
    char* end = nullptr;
    made.number = std::strtod(digits.c_str(), &end);
    if (digits.empty() || *end != '\0')
      throw DfgError{begin, fmt::format("{} is no number", quote(digits)), "write 2, -0.5, 1e-3, inf"};
    const bool whole = digits.find_first_of(".eEn") == std::string::npos && digits.size() < 19;
    made.kind = whole ? RawArgument::Kind::integer : RawArgument::Kind::number;
    if (whole) made.integer = std::strtoll(digits.c_str(), nullptr, 10);
  }

  const std::string& text_;
  const unsigned number_;
  std::size_t at_ = 0;
};

}  // namespace

RawGraph parse_dfg(const std::string& text, GraphProblems& problems) {
  RawGraph graph;
  unsigned number = 0;
  if (const std::size_t first = text.find_first_not_of(" \t\r\n"); first != std::string::npos && text[first] == '{') {
    problems.add({"graph", 1, 1}, "the graph is a JSON map",
                 "kind 'dfg' takes lines such as 'y = relu(x)'; {\"nodes\": [...]} is of kind 'FX'");
    return graph;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string content = text.substr(begin, end - begin);
    begin = end + 1;
    DfgLine line(content, ++number);
    graph.end = {"graph", number, 1};
    if (line.blank()) continue;
    try {
      graph.nodes.push_back(line.read(problems));
    } catch (const DfgError& error) {
      problems.add({"graph", number, static_cast<unsigned>(error.at + 1)}, error.text, error.hint);
    }
  }
  return graph;
}

}  // namespace kernbench::pipeline
