#include "tests/pipeline/published.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>

#include "runtime/pipeline/graph_text.h"
#include "runtime/pipeline/table.h"

namespace kernbench::pipeline {

namespace {

using Json = nlohmann::ordered_json;

Json schema_of_table(const Table& table);

Json pair_schema() {
  return {{"type", "array"}, {"items", {{"type", "integer"}, {"minimum", 0}}}, {"minItems", 2}, {"maxItems", 2}};
}

Json schema_of_field(const Field& field) {
  Json schema;
  switch (field.type) {
    case FieldType::text:
      schema = {{"type", "string"}};
      if (field.low > 0) schema["minLength"] = field.low;
      break;
    case FieldType::integer:
      schema = {{"type", "integer"}, {"minimum", field.low}};
      break;
    case FieldType::name:
    case FieldType::dtype:
      schema = {{"enum", field.names}};
      break;
    case FieldType::shape:
      schema = {{"type", "array"}, {"items", {{"type", "integer"}, {"minimum", 1}}}, {"maxItems", kMostShapeDims}};
      break;
    case FieldType::range:
      schema = pair_schema();
      break;
    case FieldType::ranges:
      schema = {{"type", "array"}, {"items", pair_schema()}};
      break;
    case FieldType::texts:
      schema = {{"type", "array"}, {"items", {{"type", "string"}}}};
      break;
    case FieldType::metadata:
      schema = {{"type", "object"}, {"additionalProperties", {{"type", {"integer", "string"}}}}};
      break;
    case FieldType::section:
      schema = schema_of_table(*field.table);
      break;
    case FieldType::map:
      schema = {{"type", "object"}, {"additionalProperties", schema_of_table(*field.table)}};
      break;
  }
  if (field.presence != Presence::required) schema = {{"oneOf", {schema, {{"type", "null"}}}}};
  schema["description"] = field.extension ? field.doc + " An extension." : field.doc;
  return schema;
}

/// A list of as many names as a kind has (calls of KindRule). Of `rooted` kinds only one member has it.
Json schema_of_side(int count, bool rooted, bool output) {
  Json schema = {{"type", "array"}};
  if (count == -1) schema["minItems"] = 1;
  if (count >= 0 && !rooted) schema["minItems"] = count;
  if (count >= 0) schema["maxItems"] = count;
  if (output) schema["uniqueItems"] = true;
  return schema;
}

/// What a kind of supertask demands beyond the table. Null, which elsewhere stands for a field that is not there, is
/// none of the types.
Json schema_of_kind(const KindRule& rule) {
  const auto absent = [](Json& properties, const char* key) { properties[key] = {{"type", "null"}}; };
  Json properties = Json::object(), required = Json::array();
  const auto needed = [&](const char* key, const char* type) {
    properties[key] = {{"type", type}};
    required.push_back(key);
  };
  const bool rooted = rule.kind == TaskKind::reduce || rule.kind == TaskKind::broadcast;
  properties["inputs"] = schema_of_side(rule.inputs, rooted, false);
  properties["outputs"] = schema_of_side(rule.outputs, rooted, true);
  if (rule.is == KindRule::Class::boundary) {
    absent(properties, "device");
  } else {
    needed("device", "string");
  }
  if (rule.is == KindRule::Class::compute) {
    needed("data", "string");
  } else {
    absent(properties, "data");
  }
  if (rule.is == KindRule::Class::communication) {
    needed("group", "string");
    needed("device_idx", "integer");
    required.push_back("metadata");
    Json keys = Json::object();
    for (const std::string& key : rule.metadata) {
      if (key == "reduce_op") {
        keys[key] = {{"enum", reduce_ops()}};
      } else if (key == "dst" || key == "src") {
        keys[key] = {{"type", "string"}};
      } else {
        keys[key] = {{"type", "integer"}, {"minimum", 0}};
      }
    }
    properties["metadata"] = {
        {"type", "object"}, {"properties", keys}, {"required", rule.metadata}, {"additionalProperties", false}};
  } else {
    for (const char* key : {"group", "device_idx", "metadata"}) absent(properties, key);
  }
  return {{"if", {{"properties", {{"kind", {{"const", to_string(rule.kind)}}}}}}},
          {"then", {{"properties", properties}, {"required", required}}}};
}

Json schema_of_table(const Table& table) {
  Json schema = {{"type", "object"}, {"additionalProperties", false}};
  Json required = Json::array();
  auto& properties = schema["properties"] = Json::object();
  bool kinds = false;
  for (const Field& field : table.fields) {
    properties[field.key] = schema_of_field(field);
    if (field.presence == Presence::required) required.push_back(field.key);
    kinds = kinds || field.presence == Presence::by_kind;
  }
  schema["required"] = required;
  if (kinds) {
    for (const KindRule& rule : kind_rules()) schema["allOf"].push_back(schema_of_kind(rule));
  }
  return schema;
}

std::string type_text(const Field& field) {
  switch (field.type) {
    case FieldType::text:
      return "text";
    case FieldType::integer:
      return "integer";
    case FieldType::name:
    case FieldType::dtype:
      return fmt::format("{}", fmt::join(field.names, ", "));
    case FieldType::shape:
      return fmt::format("list of integers from 1, {} at most", kMostShapeDims);
    case FieldType::range:
      return "[begin, end]";
    case FieldType::ranges:
      return "list of [begin, end]";
    case FieldType::texts:
      return "list of names";
    case FieldType::metadata:
      return "map of integers and texts";
    case FieldType::section:
      return field.table->title;
    case FieldType::map:
      return "map of names to " + field.table->title;
  }
  return "";
}

void page_of_table(const Table& table, std::set<std::string>& seen, std::string& out) {
  if (!seen.insert(table.title).second) return;
  out += fmt::format("\n#### {}\n\n| field | type | when | meaning |\n|---|---|---|---|\n", table.title);
  for (const Field& field : table.fields) {
    const char* when = field.extension                        ? "optional, an extension"
                       : field.presence == Presence::required ? "always"
                       : field.presence == Presence::by_kind  ? "by kind"
                                                              : "constants only";
    out += fmt::format("| `{}` | {} | {} | {} |\n", field.key, type_text(field), when, field.doc);
  }
  for (const Field& field : table.fields) {
    if (field.table) page_of_table(*field.table, seen, out);
  }
}

std::string count_text(int count) {
  return count == -2 ? "any" : count == -1 ? "1 or more" : count == 0 ? "none" : std::to_string(count);
}

}  // namespace

std::string json_schema() {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "KernBench pipeline"},
                 {"description",
                  "A parallelised model as a compiler hands it over. What one field asks of another one is checked by "
                  "'kernbench pipeline check'."}};
  schema.update(schema_of_table(document_table()));
  return schema.dump(2) + "\n";
}

std::string reference_page() {
  std::string out;
  std::set<std::string> seen;
  page_of_table(document_table(), seen, out);
  out += "\n#### Kinds of supertasks\n\n| kind | inputs | outputs | metadata | meaning |\n|---|---|---|---|---|\n";
  for (const KindRule& rule : kind_rules()) {
    const std::string keys = rule.is != KindRule::Class::communication ? "-"
                             : rule.metadata.empty()                   ? "`{}`"
                                                     : fmt::format("`{}`", fmt::join(rule.metadata, "`, `"));
    out += fmt::format("| `{}` | {} | {} | {} | {} |\n", to_string(rule.kind), count_text(rule.inputs),
                       count_text(rule.outputs), keys, rule.doc);
  }
  return out;
}

std::string operations_page() {
  std::string out = "\n| dfg | FX targets | parameters | types |\n|---|---|---|---|\n";
  std::set<std::string> seen;
  for (const Operation& first : operations()) {
    if (!seen.insert(first.word).second) continue;
    std::string targets, parameters;
    for (const Operation& operation : operations()) {
      if (operation.word == first.word) targets += (targets.empty() ? "`" : ", `") + operation.target + "`";
    }
    for (const Parameter& parameter : first.parameters) {
      parameters += (parameters.empty() ? "" : ", ") + parameter.name + (parameter.needed ? "" : "?");
    }
    const char* types = first.types == Operation::Types::floats    ? "floats"
                        : first.types == Operation::Types::numbers ? "floats, integers"
                                                                   : "all";
    out += fmt::format("| `{}` | {} | {} | {} |\n", first.word, targets, parameters, types);
  }
  return out;
}

}  // namespace kernbench::pipeline
