#include <cstdlib>
#include <systemc>

#include "sc_main/cli/tool.h"

// Called by the SystemC kernel, which wants the program's simulation to start here.
int sc_main(int argc, char* argv[]) { return kernbench::run_tool(argc, argv); }

// The library's own main() would print a banner; ours wins over it and silences it first.
int main(int argc, char* argv[]) {
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  return sc_core::sc_elab_and_sim(argc, argv);
}
