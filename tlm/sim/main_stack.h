#pragma once

namespace kernbench {

/// To be called after sc_start by whoever goes on to throw or catch. SystemC 2.3.4 does not tell AddressSanitizer that
/// a thread's end leads back to the main stack; until told, it does not clean up after exceptions there, reports
/// overflows that are none, and looks for leaks on a stack that is gone. Does nothing in other builds. Not inline:
/// tests that run the tool are compiled without the sanitizer, and theirs would do nothing.
void back_on_main_stack();

}  // namespace kernbench
