#pragma once
#include <systemc>

namespace kernbench {

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
