// GoogleTest's entry point for programs that link SystemC: the library's own main would win over gtest_main's
// and pass with no test executed.
#include <gtest/gtest.h>
#include <cstdlib>
#include <systemc>

int sc_main(int, char**) { return 0; }

int main(int argc, char** argv) {
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
