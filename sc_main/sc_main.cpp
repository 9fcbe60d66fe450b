#include <cstddef>
#include <cstdlib>
#include <systemc>

#include "sc_main/cli/tool.h"

// Called by the SystemC kernel, which wants the program's simulation to start here.
int sc_main(int argc, char* argv[]) { return kernbench::run_tool(argc, argv); }

// Where memory is short, a stack that cannot grow ends the process with a signal, a heap that cannot with an error: the
// stack has grown before anything takes the rest.
[[gnu::noinline]] static void grow_stack() {
  constexpr std::size_t kBytes = 512 * 1024, kPage = 4096;  // assumed: more than any command needs
  char stack[kBytes];
  volatile char* const pages = stack;
  for (std::size_t i = 0; i < kBytes; i += kPage) pages[kBytes - 1 - i] = 0;
}

// The library's own main() would print a banner; ours wins over it and silences it first.
int main(int argc, char* argv[]) {
  grow_stack();
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  return sc_core::sc_elab_and_sim(argc, argv);
}
