#include "topology/spec/resolve.h"
#include "topology/spec/schema.h"

namespace kernbench::topology {

namespace {

using nlohmann::ordered_json;

/// Draft 7 has no units: a pattern checks the form, the tool checks the value.
std::string pattern_of(Dimension dimension) {
  const std::string number = R"(^[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)? *)";
  switch (dimension) {
    case Dimension::bytes:
      return number + "([kKMGT]B|[KMGT]iB|B)$";
    case Dimension::bandwidth:
      return number + "([kKMGT]B|[KMGT]iB|B|[MGT]b)/s$";
    case Dimension::time:
      return number + "([pnum\xC2\xB5\xCE\xBC]?s)$";
    case Dimension::frequency:
      return number + "([kMG]?Hz)$";
    case Dimension::transfers:
      return number + "([kMG]?T/s)$";
    case Dimension::energy:
      return number + "([afpn]J)$";
    case Dimension::power:
      return number + "([um]?W)$";
  }
  return "";
}

constexpr const char* kPoint = "^r(0|[1-9][0-9]*)c(0|[1-9][0-9]*)$";

ordered_json schema_of(const Section& section, const ordered_json& defaults, bool with_defaults);

ordered_json schema_of_overrides() {
  ordered_json entry = {{"type", "object"}, {"additionalProperties", false}};
  entry["properties"] = {
      {"match", {{"type", "string"}, {"description", "Structural name or glob: sip0, sip0.cube3, sip*.cube0.pe*."}}},
      {"cube", schema_of(cube_section(), {}, false)},
      {"pe", schema_of(pe_section(), {}, false)},
      {"missing", {{"type", "boolean"}, {"description", "The PEs do not exist."}}},
      {"link",
       {{"type", "array"},
        {"items", {{"type", "string"}}},
        {"minItems", 2},
        {"maxItems", 2},
        {"description", "Broken link between two neighbouring SIPs or cubes."}}},
  };
  return {{"type", "array"}, {"items", entry}};
}

ordered_json schema_of(const Field& field, const ordered_json& value, bool with_defaults) {
  ordered_json schema;
  switch (field.kind) {
    case FieldKind::section:
      schema = schema_of(*field.section, value, with_defaults);
      schema["description"] = field.doc;
      return schema;
    case FieldKind::overrides:
      schema = schema_of_overrides();
      break;
    case FieldKind::integer:
      schema = {{"type", "integer"}, {"minimum", field.range.low}, {"maximum", field.range.high}};
      break;
    case FieldKind::quantity:
      schema = {{"type", "string"}, {"pattern", pattern_of(field.dimension)}};
      break;
    case FieldKind::boolean:
      schema = {{"type", "boolean"}};
      break;
    case FieldKind::enumeration:
      schema = {{"enum", field.names}};
      break;
    case FieldKind::ratio:
      schema = {{"type", {"string", "number"}}};
      break;
    case FieldKind::grid_point:
      schema = {{"type", "string"}, {"pattern", kPoint}};
      break;
    case FieldKind::grid_points:
      schema = {{"type", "array"}, {"items", {{"type", "string"}, {"pattern", kPoint}}}};
      break;
    case FieldKind::text:
      schema = {{"type", "string"}};
      break;
  }
  if (field.optional && schema.contains("type")) schema["type"] = ordered_json::array({schema["type"], "null"});
  schema["description"] = field.doc;
  if (field.kind == FieldKind::quantity) {
    schema["description"] = field.doc + " Range: " + format_quantity(field.range.low, field.dimension) + " to " +
                            format_quantity(field.range.high, field.dimension) +
                            (field.range.power_of_two ? ", a power of two." : ".");
  } else if (field.kind == FieldKind::integer && field.range.power_of_two) {
    schema["description"] = field.doc + " A power of two.";
  }
  if (with_defaults && !value.is_null()) schema["default"] = value;
  return schema;
}

ordered_json schema_of(const Section& section, const ordered_json& defaults, bool with_defaults) {
  ordered_json schema = {{"type", "object"}, {"additionalProperties", false}};
  auto& properties = schema["properties"] = ordered_json::object();
  for (const Field& field : section.fields) {
    const ordered_json value = defaults.is_object() ? defaults.value(field.key, ordered_json()) : ordered_json();
    properties[field.key] = schema_of(field, value, with_defaults);
  }
  return schema;
}

}  // namespace

nlohmann::ordered_json json_schema() {
  ordered_json schema = {
      {"$schema", "http://json-schema.org/draft-07/schema#"},
      {"title", "KernBench topology.yaml"},
      {"description", "A machine for KernBench. Values that a file leaves out are those of what it extends."}};
  schema.update(schema_of(root_section(), resolve("default").config, true));
  return schema;
}

}  // namespace kernbench::topology
