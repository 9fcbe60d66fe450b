#pragma once
#include <vector>

#include "runtime/pipeline/graph.h"
#include "runtime/pipeline/safetensors.h"

/// Graphs on the host: what cpu slots compute, and what tests hold the machine against.
namespace kernbench::pipeline {

/// What an operation asks of a computer.
struct HostWork {
  double flops = 0, bytes = 0;  ///< arithmetic; operands read and results written
};
HostWork work_of(const Graph& graph, const Node& node);

/// The result of one node. Floats are computed in f64 and rounded once to the result's type; integers wrap. A
/// cast of a float to an integer drops the fraction; what is out of the range of an integer type becomes its limit.
/// `inputs`: of its inputs, in order.
HostTensor evaluate_node(const Graph& graph, const Node& node, const std::vector<const HostTensor*>& inputs);

/// The graph's outputs, from the supertask's inputs.
std::vector<HostTensor> evaluate(const Graph& graph, const std::vector<HostTensor>& inputs);

}  // namespace kernbench::pipeline
