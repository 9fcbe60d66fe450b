#pragma once
#include "runtime/pipeline/run/plan.h"

namespace kernbench::pipeline {

/// Tensors of a slot share places where the layers of runtime/tp do, as far as nobody reads any more what was there:
///
/// - the result of an elementwise operation takes the place of its first operand;
/// - a supertask has the tensors of an earlier one that is alike: the same steps on tensors of the same form.
///
/// Then buffers are numbered in the order in which they are to be placed: constants, then all others, either as the
/// document lists tensors; those of a supertask stand where its first output does.
void share_places(const Pipeline& pipeline, SlotPlan& slot);

}  // namespace kernbench::pipeline
