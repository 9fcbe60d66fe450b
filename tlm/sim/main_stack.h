#pragma once

#if defined(__SANITIZE_ADDRESS__)
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>

#include <cstddef>
#endif

namespace kernbench {

/// To be called after sc_start by whoever goes on to throw or catch. SystemC 2.3.4 does not tell AddressSanitizer that
/// a thread's end leads back to the main stack; until told, it does not clean up after exceptions there and reports
/// overflows that are none. Does nothing in other builds.
inline void back_on_main_stack() {
#if defined(__SANITIZE_ADDRESS__)
  pthread_attr_t attributes;
  void* bottom = nullptr;
  std::size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  pthread_attr_getstack(&attributes, &bottom, &size);
  pthread_attr_destroy(&attributes);
  __sanitizer_start_switch_fiber(nullptr, bottom, size);
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

}  // namespace kernbench
