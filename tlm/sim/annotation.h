#pragma once
#include <systemc>

#include "tlm/base/time.h"

namespace kernbench {

/// What the SystemC kernel's clock says. The models' queues run ahead of it (Dispatcher); what they do is never behind.
inline Ps kernel_now() { return sc_core::sc_time_stamp().value(); }

/// What a TLM call is to be annotated with that its caller makes at `at`, by its own queue's clock: sc_time_stamp()
/// plus the annotation is the transaction's time, whoever looks. REQUIRES: at >= kernel_now().
inline sc_core::sc_time annotation(Ps at) {
  const Ps kernel = kernel_now();
  sc_assert(at >= kernel);
  return at == kernel ? sc_core::sc_time() : sc_core::sc_time::from_value(at - kernel);
}

/// When a call with this annotation takes place. A model that is further already takes it at its own instant.
inline Ps instant(const sc_core::sc_time& annotation) { return kernel_now() + annotation.value(); }

}  // namespace kernbench
