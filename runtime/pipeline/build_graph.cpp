#include <fmt/format.h>

#include <map>
#include <set>

#include "runtime/pipeline/calls.h"
#include "tlm/config/nearest.h"

namespace kernbench::pipeline {

void GraphProblems::add(const Location& inner, const std::string& text, const std::string& hint) {
  ++count_;
  problems_.add(where_, fmt::format("{}, {}:{}: {}", path_, inner.line, inner.column, text), hint);
}

namespace {

/// Names of a graph while it is built.
class GraphBuilder {
 public:
  GraphBuilder(const Pipeline& pipeline, const SuperTask& task, GraphProblems& problems)
      : pipeline_(pipeline), task_(task), problems_(problems), emit_(graph_) {}

  std::optional<Graph> build() {
    const RawGraph raw = task_.kind.value == TaskKind::fx ? parse_fx(task_.data.value, problems_)
                                                          : parse_dfg(task_.data.value, problems_);
    if (raw.end.line == 0) return std::nullopt;
    task_.kind.value == TaskKind::fx ? bind_fx(raw) : bind_dfg();
    for (const RawNode& node : raw.nodes) {
      if (node.kind == RawNode::Kind::call) call(node);
    }
    task_.kind.value == TaskKind::fx ? fx_outputs(raw) : dfg_outputs(raw);
    if (problems_.count() > 0) return std::nullopt;
    return std::move(graph_);
  }

 private:
  const TensorInfo& tensor_of(std::size_t input) const { return *pipeline_.tensor(task_.inputs.value[input].value); }

  void add_input(const std::string& name, std::size_t input) {
    emit_.name = name;
    Named named;
    named.id = emit_.input(input, type_of(tensor_of(input)));
    names_[name] = named;
  }

  /// A get_attr takes the constant of its name among the inputs, placeholders the others in order.
  void bind_fx(const RawGraph& raw) {
    std::set<std::size_t> taken;
    for (const RawNode& node : raw.nodes) {
      if (node.kind != RawNode::Kind::get_attr) continue;
      std::optional<std::size_t> found;
      std::vector<std::string> constants;
      for (std::size_t i = 0; i < task_.inputs.value.size(); ++i) {
        const auto& value = tensor_of(i).value;
        if (!value) continue;
        if (value->name_in_graph.given) constants.push_back(value->name_in_graph.value);
        if (value->name_in_graph.value == node.target && !found) found = i;
      }
      if (!found) {
        problems_.add(node.where,
                      fmt::format("node {}: no constant among the inputs has the name {} in graphs",
                                  quote(node.names.front()), quote(node.target)),
                      suggest_known(node.target, constants, "names in graphs"));
        names_[node.names.front()].broken = true;
        continue;
      }
      taken.insert(*found);
      add_input(node.names.front(), *found);
    }
    std::size_t next = 0, placeholders = 0;
    const std::size_t inputs = task_.inputs.value.size();
    for (const RawNode& node : raw.nodes) {
      if (node.kind != RawNode::Kind::placeholder) continue;
      ++placeholders;
      while (taken.count(next) > 0) ++next;
      if (next < inputs) {
        add_input(node.names.front(), next++);
      } else {
        names_[node.names.front()].broken = true;
      }
    }
    if (placeholders != inputs - taken.size())
      problems_.add(
          raw.end,
          fmt::format("{} placeholders, but {} inputs that no get_attr takes", placeholders, inputs - taken.size()),
          "placeholders take the inputs in order");
  }

  void bind_dfg() {
    for (std::size_t i = 0; i < task_.inputs.value.size(); ++i) add_input(task_.inputs.value[i].value, i);
  }

  void call(const RawNode& node) {
    Named made;
    made.broken = true;
    const std::string& name = node.names.front();
    emit_.name = name;
    if (node.operation != nullptr) {
      try {
        const Bound bound(node, names_, emit_, pipeline_.f8);
        made = node.operation->word == "getitem" ? item(bound) : emit_call(node.operation->word, bound, emit_);
      } catch (const EmitError& error) {
        problems_.add(node.where, fmt::format("node {}: {}", quote(name), error.text), error.hint);
      } catch (const Skip&) {
      }
    }
    if (task_.kind.value == TaskKind::dfg && (made.split || node.names.size() > 1)) {
      parts(node, made);
    } else {
      define(node, name, made);
    }
  }

  void define(const RawNode& node, const std::string& name, const Named& made) {
    if (task_.kind.value == TaskKind::dfg && names_.count(name) > 0)
      problems_.add(node.where, fmt::format("node {} is there twice", quote(name)), "names are unique");
    names_[name] = made;
  }

  Named item(const Bound& bound) {
    const Named& list = bound.named("list");
    if (!list.split) throw EmitError{"it takes an element of what is no list", "only split makes lists"};
    const auto count = static_cast<std::int64_t>(list.sizes.size());
    std::int64_t index = bound.integer("index");
    if (index < -count || index >= count)
      throw EmitError{fmt::format("index is {}, but the list has {} parts", index, count),
                      fmt::format("give {} to {}", -count, count - 1)};
    return part(list, index < 0 ? index + count : index);
  }

  Named part(const Named& list, std::int64_t index) {
    std::int64_t begin = 0;
    for (std::int64_t i = 0; i < index; ++i) begin += list.sizes[static_cast<std::size_t>(i)];
    Named made;
    made.id = emit_.slice(list.id, list.dim, begin, begin + list.sizes[static_cast<std::size_t>(index)], 1);
    return made;
  }

  void parts(const RawNode& node, const Named& made) {
    const bool fits = !made.broken && made.split && made.sizes.size() == node.names.size();
    if (!made.broken && !fits)
      problems_.add(
          node.where,
          fmt::format("{} names take apart a list of {} parts", node.names.size(), made.split ? made.sizes.size() : 1),
          "give a name for each part");
    for (std::size_t i = 0; i < node.names.size(); ++i) {
      Named broken;
      broken.broken = true;
      emit_.name = node.names[i];
      define(node, node.names[i], fits ? part(made, static_cast<std::int64_t>(i)) : broken);
    }
  }

  void output(const Location& where, const std::string& name, std::size_t number) {
    const auto found = names_.find(name);
    const std::string& tensor = task_.outputs.value[number].value;
    if (found != names_.end() && found->second.split) {
      problems_.add(where, fmt::format("output {} is the list {}", number, quote(name)), "take an element of it");
      return;
    }
    if (found == names_.end()) {
      std::vector<std::string> known;
      for (const auto& [key, value] : names_) known.push_back(key);
      problems_.add(where, fmt::format("output {} is {}, which the graph does not make", number, quote(name)),
                    suggest_known(name, known, "nodes"));
      return;
    }
    if (found->second.broken) return;
    const TensorType &made = graph_.nodes[found->second.id].type, wanted = type_of(*pipeline_.tensor(tensor));
    if (made != wanted)
      problems_.add(where,
                    fmt::format("output {}: the graph makes {}, but tensor {} is {}", number, made.str(), quote(tensor),
                                wanted.str()),
                    "change the graph, or the tensor's shape or dtype");
    graph_.outputs.push_back(found->second.id);
  }

  void fx_outputs(const RawGraph& raw) {
    const std::size_t count = task_.outputs.value.size();
    if (raw.outputs.size() != count) {
      problems_.add(raw.end, fmt::format("the graph has {} outputs, the supertask {}", raw.outputs.size(), count),
                    "they are the same tensors in the same order");
      return;
    }
    for (std::size_t i = 0; i < raw.outputs.size(); ++i) {
      if (raw.outputs[i].kind == RawArgument::Kind::node) {
        output(raw.outputs[i].where, raw.outputs[i].text, i);
      } else {
        problems_.add(raw.outputs[i].where, fmt::format("output {} is no node", i), "give {\"node\": NAME}");
      }
    }
  }

  void dfg_outputs(const RawGraph& raw) {
    for (std::size_t i = 0; i < task_.outputs.value.size(); ++i) output(raw.end, task_.outputs.value[i].value, i);
  }

  const Pipeline& pipeline_;
  const SuperTask& task_;
  GraphProblems& problems_;
  Graph graph_;
  Emitter emit_;
  std::map<std::string, Named> names_;
};

}  // namespace

std::optional<Graph> build_graph(const Pipeline& pipeline, const SuperTask& task, Problems& problems) {
  GraphProblems inner(problems, task.data.where, json_path(task.path, "data"));
  return GraphBuilder(pipeline, task, inner).build();
}

}  // namespace kernbench::pipeline
