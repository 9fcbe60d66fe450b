// GoogleTest's entry point for programs that link SystemC: the library's own main would win over gtest_main's
// and pass with no test executed.
#include <gtest/gtest.h>
#include <cstdlib>
#include <systemc>

#include "tlm/sim/main_stack.h"

int sc_main(int, char**) { return 0; }

int main(int argc, char** argv) {
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  ::testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  kernbench::back_on_main_stack();  // else LeakSanitizer looks at the stack of the last SC_THREAD, guard page and all
  return result;
}
