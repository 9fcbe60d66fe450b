#pragma once
#include <systemc>

namespace kernbench {

/// To be called after sc_start by whoever goes on to throw or catch. SystemC 2.3.4 does not tell AddressSanitizer that
/// a thread's end leads back to the main stack; until told, it does not clean up after exceptions there, reports
/// overflows that are none, and looks for leaks on a stack that is gone. Does nothing in other builds. Not inline:
/// tests that run the tool are compiled without the sanitizer, and theirs would do nothing.
void back_on_main_stack();

/// While it lives, new SystemC objects are children of `parent`, as they are in its constructor. SystemC 2.3.4 has this
/// for modules under construction only in the standard's terms; its kernel's own calls do it at any time.
class HierarchyScope {
 public:
  explicit HierarchyScope(sc_core::sc_module& parent) { sc_core::sc_get_curr_simcontext()->hierarchy_push(&parent); }
  ~HierarchyScope() { sc_core::sc_get_curr_simcontext()->hierarchy_pop(); }
  HierarchyScope(const HierarchyScope&) = delete;
  HierarchyScope& operator=(const HierarchyScope&) = delete;
};

}  // namespace kernbench
