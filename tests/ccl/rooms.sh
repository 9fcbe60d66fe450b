#!/bin/sh
# Which room of ccl includes headers of which: nothing runs back. Argument: the folder of the sources.
cd "$1/ccl" || exit 1
grep -r '^#include "ccl/[a-z]*/' --include='*.h' --include='*.cpp' . | awk -F/ '
  BEGIN {
    may["contract"] = "contract"
    may["schedule"] = may["algorithms"] = "contract schedule"
    may["data"] = may["schedule"] " data"
    may["import"] = may["schedule"] " import"
    may["bounds"] = may["schedule"] " bounds"
    may["run"] = may["data"] " import run"
    may["select"] = may["run"] " select"
  }
  { ++looked[$2] }
  index(" " may[$2] " ", " " $4 " ") == 0 { wrong = wrong $0 "\n" }
  END {
    for (room in may) if (!looked[room]) wrong = wrong "no header is included in " room "\n"
    printf "%s", wrong
    exit wrong != ""
  }'
