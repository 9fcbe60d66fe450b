#include "tests/cli/schema_check.h"

#include <fstream>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace kernbench {

nlohmann::ordered_json json_of(const std::string& text) { return nlohmann::ordered_json::parse(text, nullptr, false); }

std::string schema_errors(const nlohmann::ordered_json& ordered, const std::string& name) {
  return errors_by_schema(ordered, "sc_main/" + name);
}

std::string errors_by_schema(const nlohmann::ordered_json& ordered, const std::string& path) {
  std::ifstream in(KERNBENCH_SOURCE_DIR "/" + path);
  const nlohmann::json rules = nlohmann::json::parse(in), json = nlohmann::json::parse(ordered.dump());
  valijson::Schema schema;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(rules), schema);
  valijson::ValidationResults results;
  valijson::Validator(valijson::Validator::kStrongTypes)
      .validate(schema, valijson::adapters::NlohmannJsonAdapter(json), &results);
  std::string text;
  valijson::ValidationResults::Error error;
  while (results.popError(error)) {
    for (const std::string& step : error.context) text += step;
    text += ": " + error.description + "\n";
  }
  return text;
}

}  // namespace kernbench
