#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/pipeline/emit.h"
#include "runtime/pipeline/graph_text.h"
#include "tlm/config/nearest.h"

namespace kernbench::pipeline {

/// What a name stands for: a value, or the parts of a split.
struct Named {
  Emitter::Id id = 0;
  bool split = false, broken = false;
  std::int64_t dim = 0;
  std::vector<std::int64_t> sizes;
};

/// Something before it is wrong already.
struct Skip {};

/// The arguments of a call by the names of its parameters.
class Bound {
 public:
  using Id = Emitter::Id;

  /// `f8`: what the document's f8 is.
  Bound(const RawNode& raw, const std::map<std::string, Named>& names, Emitter& emit, DType f8)
      : names_(names), emit_(emit), f8_(f8) {
    const auto& parameters = raw.operation->parameters;
    if (raw.arguments.size() > parameters.size())
      throw EmitError{fmt::format("{} arguments are too many", raw.arguments.size()), list(parameters)};
    for (std::size_t i = 0; i < raw.arguments.size(); ++i) given_[parameters[i].name] = &raw.arguments[i];
    for (const auto& [key, value] : raw.keywords) {
      std::vector<std::string> valid;
      for (const Parameter& parameter : parameters) valid.push_back(parameter.name);
      if (std::find(valid.begin(), valid.end(), key) == valid.end())
        throw EmitError{fmt::format("there is no parameter {}", quote(key)), suggest(key, valid, "parameters")};
      if (!given_.emplace(key, &value).second)
        throw EmitError{fmt::format("parameter '{}' is given twice", key), "give it once"};
    }
    for (const Parameter& parameter : parameters) {
      if (parameter.needed && given(parameter.name) == nullptr)
        throw EmitError{fmt::format("parameter '{}' is missing", parameter.name), list(parameters)};
    }
  }

  const RawArgument* given(const std::string& name) const {
    const auto found = given_.find(name);
    return found == given_.end() || found->second->kind == RawArgument::Kind::none ? nullptr : found->second;
  }
  const Named& named(const std::string& parameter) const { return resolve(parameter, *given(parameter)); }
  Id tensor(const std::string& parameter) const { return value(parameter, *given(parameter)); }
  std::optional<Id> maybe_tensor(const std::string& parameter) const {
    return given(parameter) == nullptr ? std::nullopt : std::optional(tensor(parameter));
  }
  std::vector<Id> tensors(const std::string& parameter) const {
    const RawArgument& list = *given(parameter);
    if (list.kind != RawArgument::Kind::list) wrong(parameter, "a list of tensors");
    std::vector<Id> ids;
    for (const RawArgument& item : list.items) {
      if (item.kind != RawArgument::Kind::node) wrong(parameter, "a list of tensors");
      ids.push_back(value(parameter, item));
    }
    return ids;
  }
  bool is_number(const std::string& parameter) const {
    const auto kind = given(parameter)->kind;
    return kind == RawArgument::Kind::integer || kind == RawArgument::Kind::number;
  }
  double number(const std::string& parameter, double otherwise = 0) const {
    if (given(parameter) == nullptr) return otherwise;
    if (!is_number(parameter)) wrong(parameter, "a number");
    return given(parameter)->number;
  }
  std::int64_t integer(const std::string& parameter, std::int64_t otherwise = 0) const {
    if (given(parameter) == nullptr) return otherwise;
    if (given(parameter)->kind != RawArgument::Kind::integer) wrong(parameter, "an integer");
    return given(parameter)->integer;
  }
  std::vector<std::int64_t> integers(const std::string& parameter) const {
    const RawArgument* list = given(parameter);
    if (list == nullptr) return {};
    if (list->kind == RawArgument::Kind::integer) return {list->integer};
    if (list->kind != RawArgument::Kind::list) wrong(parameter, "a list of integers");
    std::vector<std::int64_t> values;
    for (const RawArgument& item : list->items) {
      if (item.kind != RawArgument::Kind::integer) wrong(parameter, "a list of integers");
      values.push_back(item.integer);
    }
    return values;
  }
  bool flag(const std::string& parameter) const {
    if (given(parameter) == nullptr) return false;
    if (given(parameter)->kind != RawArgument::Kind::boolean) wrong(parameter, "true or false");
    return given(parameter)->flag;
  }
  std::string text(const std::string& parameter) const {
    const RawArgument* argument = given(parameter);
    if (argument == nullptr) return {};
    if (argument->kind != RawArgument::Kind::text && argument->kind != RawArgument::Kind::node)
      wrong(parameter, "a text");
    return argument->text;
  }
  DType dtype(const std::string& parameter) const {
    static const std::map<std::string, const char*> kTorch = {{"float64", "f64"},
                                                              {"double", "f64"},
                                                              {"float32", "f32"},
                                                              {"float", "f32"},
                                                              {"float16", "f16"},
                                                              {"half", "f16"},
                                                              {"bfloat16", "bf16"},
                                                              {"float8_e4m3fn", "f8e4m3"},
                                                              {"float8_e5m2", "f8e5m2"},
                                                              {"int64", "i64"},
                                                              {"int32", "i32"},
                                                              {"int16", "i16"},
                                                              {"int8", "i8"}};
    std::string name = text(parameter);
    if (name == "f8") return f8_;
    if (name.rfind("torch.", 0) == 0) name = name.substr(6);
    const auto found = kTorch.find(name);
    if (const auto dtype = parse_dtype(found == kTorch.end() ? name : found->second)) return *dtype;
    throw EmitError{fmt::format("'{}' is {}, no type", parameter, quote(name)), "give f16 or torch.float16, and so on"};
  }

 private:
  static std::string list(const std::vector<Parameter>& parameters) {
    std::string text = "parameters: ";
    for (const Parameter& parameter : parameters)
      text += (&parameter == &parameters.front() ? "" : ", ") + parameter.name + (parameter.needed ? "" : "?");
    return text;
  }
  [[noreturn]] static void wrong(const std::string& parameter, const char* what) {
    throw EmitError{fmt::format("'{}' is not {}", parameter, what), fmt::format("give {}", what)};
  }
  const Named& resolve(const std::string& parameter, const RawArgument& argument) const {
    if (argument.kind != RawArgument::Kind::node) wrong(parameter, "a tensor");
    const auto found = names_.find(argument.text);
    if (found == names_.end()) {
      std::vector<std::string> known;
      for (const auto& [name, unused] : names_) known.push_back(name);
      throw EmitError{fmt::format("'{}' is {}, which is nothing before it", parameter, quote(argument.text)),
                      suggest_known(argument.text, known, "names before it")};
    }
    if (found->second.broken) throw Skip();
    return found->second;
  }
  Id value(const std::string& parameter, const RawArgument& argument) const {
    const Named& named = resolve(parameter, argument);
    if (named.split)
      throw EmitError{fmt::format("'{}' is the list {}", parameter, quote(argument.text)), "take an element of it"};
    return named.id;
  }

  const std::map<std::string, Named>& names_;
  Emitter& emit_;
  const DType f8_;
  std::map<std::string, const RawArgument*> given_;
};

/// Calls the emitter as the operation says. Throws EmitError.
Named emit_call(const std::string& word, const Bound& in, Emitter& emit);

}  // namespace kernbench::pipeline
