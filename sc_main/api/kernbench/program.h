#pragma once

/// What a program of ranks is written with: kernels, the host, tensor-parallel layers, collective algorithms.

// Kernels: the Tl context, tiles, data types, queues.
#include "tlm/kernel/call.h"
#include "tlm/kernel/direction.h"
#include "tlm/kernel/dtype.h"
#include "tlm/kernel/launch.h"
#include "tlm/kernel/tile.h"
#include "tlm/kernel/tl.h"

// The host: ranks, tensors, placement, launches, collectives.
#include "runtime/errors.h"
#include "runtime/placement.h"
#include "runtime/runtime.h"
#include "runtime/tensor.h"
#include "runtime/tensor_geometry.h"

// Tensor-parallel layers and models.
#include "runtime/tp/attention.h"
#include "runtime/tp/embedding.h"
#include "runtime/tp/gemm.h"
#include "runtime/tp/kv_cache.h"
#include "runtime/tp/linear.h"
#include "runtime/tp/mlp.h"
#include "runtime/tp/model.h"
#include "runtime/tp/norm.h"
#include "runtime/tp/parallel_state.h"
#include "runtime/tp/regions.h"
#include "runtime/tp/rotary.h"
#include "runtime/tp/transformer.h"
#include "runtime/tp/vocabulary.h"

// Collective algorithms.
#include "ccl/contract/contract.h"
#include "ccl/contract/grid.h"
#include "ccl/contract/verbs.h"
#include "ccl/schedule/check.h"
