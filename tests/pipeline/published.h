#pragma once
#include <string>

/// What is published of a pipeline's format, from its tables.
namespace kernbench::pipeline {

/// Draft-07 JSON Schema of a pipeline, for editors and compilers; published as runtime/pipeline/pipeline.schema.json.
std::string json_schema();
/// Markdown tables of all fields and kinds, for docs/pipeline.md.
std::string reference_page();
/// Markdown table of the operations, for docs/pipeline.md.
std::string operations_page();

}  // namespace kernbench::pipeline
