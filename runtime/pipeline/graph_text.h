#pragma once
#include <string>
#include <utility>
#include <vector>

#include "runtime/pipeline/graph.h"

/// A graph as it is written, before names and types mean anything.
namespace kernbench::pipeline {

/// An argument of a call.
struct RawArgument {
  enum class Kind : std::uint8_t { none, boolean, integer, number, text, node, list } kind = Kind::none;
  bool flag = false;
  std::int64_t integer = 0;
  double number = 0;
  std::string text;  ///< of text and node
  std::vector<RawArgument> items;
  Location where;
};

/// A parameter of an operation, by the name that torch gives it.
struct Parameter {
  std::string name;
  /// t tensor, s tensor or number, o tensor or none, l tensors, i integer, j integer or none, v integers (or one),
  /// n number, m number or none, b flag, d type, x whatever (it changes nothing here)
  char kind = 't';
  bool needed = true;
};

/// An operation that graphs may call. Several FX targets may share a word.
struct Operation {
  std::string word;                                                                ///< in dfg
  std::string target;                                                              ///< in FX
  enum class Types : std::uint8_t { floats, numbers, all } types = Types::floats;  ///< numbers: all but bool
  std::vector<Parameter> parameters;
  bool takes(DType dtype) const;  ///< as the type of its tensors: indices and conditions have types of their own
};
const std::vector<Operation>& operations();

struct RawNode {
  enum class Kind : std::uint8_t { placeholder, get_attr, call } kind = Kind::call;
  std::vector<std::string> names;  ///< of its results: several where a list is taken apart
  std::string target;              ///< of get_attr
  const Operation* operation = nullptr;
  std::vector<RawArgument> arguments;
  std::vector<std::pair<std::string, RawArgument>> keywords;
  Location where;
};

struct RawGraph {
  std::vector<RawNode> nodes;
  std::vector<RawArgument> outputs;  ///< of FX
  Location end;                      ///< where outputs are said; no line: the text is no graph
};

/// Both report what is wrong and give what is left.
RawGraph parse_fx(const std::string& text, GraphProblems& problems);
RawGraph parse_dfg(const std::string& text, GraphProblems& problems);

/// The operation of that name; reports an unknown one with the nearest.
const Operation* find_operation(TaskKind kind, const std::string& name, const std::string& node, const Location& where,
                                GraphProblems& problems);

}  // namespace kernbench::pipeline
