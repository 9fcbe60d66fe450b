#pragma once
#include <map>
#include <string>

#include "runtime/pipeline/document.h"
#include "runtime/pipeline/safetensors.h"

/// Whole tensors of the model and the pipeline's parts of them, by the metadata's slices.
namespace kernbench::pipeline {

using HostTensors = std::map<std::string, HostTensor>;

/// What each input of the pipeline is of the whole tensors in a file. Throws ConfigError at the file on tensors that
/// are missing or of another shape or dtype; those that are no input are another's affair.
HostTensors cut_inputs(const Pipeline& pipeline, const Safetensors& file, const std::string& path);

/// The same of whole tensors that are there already. REQUIRES: every origin is among them.
HostTensors cut_inputs(const Pipeline& pipeline, const HostTensors& wholes);

/// The whole outputs from the pipeline's. Parts of one output that overlap must be equal to the bit: `conflicts` counts
/// elements that are not.
HostTensors stitch_outputs(const Pipeline& pipeline, const HostTensors& parts, std::uint64_t& conflicts);

/// Throws ConfigError at the file on whole outputs that it does not have, or has in another form.
void check_expected(const Pipeline& pipeline, const Safetensors& file, const std::string& path);

/// How outputs differ from what was expected: floats by rtol = atol = 1e-2 of f16, in proportion to the roundoff of
/// other types (f64 and f32 by 1e-5); integers exactly.
struct OutputDifference {
  std::uint64_t mismatches = 0;
  double max_abs_error = 0;
};
/// Throws as check_expected().
OutputDifference compare_outputs(const HostTensors& outputs, const Safetensors& file, const std::string& path);

}  // namespace kernbench::pipeline
