#include <fmt/format.h>

#include <cstdlib>
#include <set>

#include "runtime/pipeline/graph_text.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"
#include "tlm/config/read.h"

namespace kernbench::pipeline {

namespace {

constexpr const char* kFxKinds[] = {"placeholder", "get_attr", "call_function", "output"};

/// "-1", "1e-5", "inf"; nothing if the text is no number.
std::optional<RawArgument> number_of_text(const std::string& text) {
  if (text.empty()) return std::nullopt;
  RawArgument argument;
  char* end = nullptr;
  if (text.find_first_not_of("+-0123456789") == std::string::npos && text.size() < 19) {
    argument.kind = RawArgument::Kind::integer;
    argument.integer = std::strtoll(text.c_str(), &end, 10);
    argument.number = static_cast<double>(argument.integer);
  } else if (text.find_first_not_of("+-.0123456789eE") == std::string::npos || text == "inf" || text == "-inf") {
    argument.kind = RawArgument::Kind::number;
    argument.number = std::strtod(text.c_str(), &end);
  }
  return end != nullptr && *end == '\0' ? std::optional(argument) : std::nullopt;
}

class FxReader {
 public:
  explicit FxReader(GraphProblems& problems) : problems_(problems) {}

  RawGraph read(const ConfigNode& root) {
    check(root, "the graph", {"nodes"});
    const ConfigNode* nodes = root.find("nodes");
    if (nodes == nullptr || !nodes->is_list()) {
      problems_.add(root.where, "the graph has no list 'nodes'", "give {\"nodes\": [...]}: docs/pipeline.md");
      return std::move(graph_);
    }
    bool ended = false;
    for (const ConfigNode& item : nodes->items) {
      if (ended) {
        problems_.add(item.where, "a node behind the output", "the output is the last node");
        break;
      }
      ended = node(item);
      graph_.end = item.where;
    }
    if (!ended) problems_.add(nodes->where, "the graph has no output", "end it with a node whose op is 'output'");
    return std::move(graph_);
  }

 private:
  void check(const ConfigNode& map, const std::string& what, const std::vector<std::string>& keys) {
    for (const ConfigNode::Entry& entry : map.entries) {
      bool known = false;
      for (const std::string& key : keys) known = known || key == entry.key;
      if (!known)
        problems_.add(entry.key_where, fmt::format("unknown field {} in {}", quote(entry.key), what),
                      suggest(entry.key, keys, "fields"));
    }
  }

  std::string text_of(const ConfigNode& item, const char* key, const std::string& what, bool needed) {
    const ConfigNode* value = item.find(key);
    if (value != nullptr && value->is_scalar() && value->quoted) return value->text;
    if (needed || (value != nullptr && !value->is_null()))
      problems_.add(value != nullptr ? value->where : item.where, fmt::format("{} has no text '{}'", what, key),
                    fmt::format("give {{\"{}\": \"...\"}}", key));
    return {};
  }

  /// True: it is the output.
  bool node(const ConfigNode& item) {
    if (!item.is_map()) {
      problems_.add(item.where, "a node is no map", "give {\"name\": ..., \"op\": ..., ...}");
      return false;
    }
    check(item, "a node", {"name", "op", "target", "args", "kwargs", "meta"});
    RawNode made;
    made.where = item.where;
    const std::string name = text_of(item, "name", "a node", true);
    const std::string what = "node " + quote(name);
    const std::string op = text_of(item, "op", what, true);
    made.names = {name};
    if (op == "output") {
      output(item, what);
      return true;
    }
    if (!name.empty() && !names_.insert(name).second)
      problems_.add(item.where, fmt::format("{} is there twice", what), "names are unique");
    if (op == "placeholder") {
      made.kind = RawNode::Kind::placeholder;
    } else if (op == "get_attr") {
      made.kind = RawNode::Kind::get_attr;
      made.target = text_of(item, "target", what, true);
    } else if (op == "call_function") {
      const std::string target = text_of(item, "target", what, true);
      if (target.empty()) return false;
      made.operation = find_operation(TaskKind::fx, target, name, item.where, problems_);
      arguments(item, what, made);
    } else if (!op.empty()) {
      problems_.add(item.where, fmt::format("{}: op {} is unknown", what, quote(op)),
                    suggest(op, {std::begin(kFxKinds), std::end(kFxKinds)}, "ops"));
      return false;
    }
    graph_.nodes.push_back(std::move(made));
    return false;
  }

  void arguments(const ConfigNode& item, const std::string& what, RawNode& made) {
    if (const ConfigNode* args = item.find("args"); args != nullptr && !args->is_null()) {
      if (!args->is_list()) {
        problems_.add(args->where, what + ": args is no list", "give {\"args\": [...]}");
      } else {
        for (const ConfigNode& value : args->items) made.arguments.push_back(argument(value, what));
      }
    }
    if (const ConfigNode* kwargs = item.find("kwargs"); kwargs != nullptr && !kwargs->is_null()) {
      if (!kwargs->is_map()) problems_.add(kwargs->where, what + ": kwargs is no map", "give {\"kwargs\": {...}}");
      for (const ConfigNode::Entry& entry : kwargs->entries)
        made.keywords.emplace_back(entry.key, argument(entry.value, what));
    }
  }

  RawArgument argument(const ConfigNode& value, const std::string& what) {
    RawArgument made;
    switch (value.kind) {
      case ConfigNode::Kind::null:
        break;
      case ConfigNode::Kind::scalar:
        if (!value.quoted) {
          if (auto number = number_of_text(value.text)) {
            made = *number;
            break;
          }
          if (value.text == "true" || value.text == "false") {
            made.kind = RawArgument::Kind::boolean;
            made.flag = value.text == "true";
            break;
          }
        }
        made.kind = RawArgument::Kind::text;
        made.text = value.text;
        break;
      case ConfigNode::Kind::list:
        made.kind = RawArgument::Kind::list;
        for (const ConfigNode& item : value.items) made.items.push_back(argument(item, what));
        break;
      case ConfigNode::Kind::map:
        check(value, "a reference of " + what, {"node"});
        made.kind = RawArgument::Kind::node;
        made.text = text_of(value, "node", "a reference of " + what, true);
        break;
    }
    made.where = value.where;
    return made;
  }

  void output(const ConfigNode& item, const std::string& what) {
    RawNode made;
    arguments(item, what, made);
    for (RawArgument& value : made.arguments) {
      if (value.kind == RawArgument::Kind::list) {
        for (RawArgument& inner : value.items) graph_.outputs.push_back(std::move(inner));
      } else {
        graph_.outputs.push_back(std::move(value));
      }
    }
  }

  GraphProblems& problems_;
  RawGraph graph_;
  std::set<std::string> names_;
};

}  // namespace

RawGraph parse_fx(const std::string& text, GraphProblems& problems) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos || text[text.find_first_not_of(" \t\r\n")] != '{') {
    problems.add({"graph", 1, 1}, "the graph is no JSON map",
                 "kind 'FX' takes {\"nodes\": [...]}; lines of calls are of kind 'dfg'");
    return {};
  }
  try {
    check_json(text, "graph", "check quotes, commas and brackets around here");
    Problems inner;
    const ConfigNode root = parse_config(text, "graph", &inner);
    for (const Problem& problem : inner.sorted()) problems.add(problem.where, problem.text, problem.hint);
    return FxReader(problems).read(root);
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems()) problems.add(problem.where, problem.text, problem.hint);
    return {};
  }
}

}  // namespace kernbench::pipeline
