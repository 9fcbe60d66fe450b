#pragma once
#include <map>
#include <string>

#include "runtime/pipeline/check.h"
#include "runtime/pipeline/evaluate.h"

namespace kernbench::pipeline {

/// A whole pipeline on the host, supertask by supertask: graphs by evaluate(), exchanges by their definitions.
/// `inputs`: by tensor of the pipeline. Gives every tensor. REQUIRES: a checked document without problems.
std::map<std::string, HostTensor> run_on_host(const Pipeline& pipeline, const Checked& checked,
                                              std::map<std::string, HostTensor> inputs, const std::string& folder);

}  // namespace kernbench::pipeline
