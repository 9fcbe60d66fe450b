#!/bin/bash
# Every public symbol has a comment: doxygen's warnings, less those for names that share one declaration with its comment
# (it takes the comment for the first or last name only), and less the few below, which docs/kernels.md explains. Of the
# interior that public headers lead to (messages, maps, schedules, queues) every type has one; its members speak for
# themselves.
set -euo pipefail
cd "$1"
exempt='Member (local|global|select)\(|Member bytes\(\) const|Compound kernbench::Epilogue'
interior='/(ccl/contract/(grid|plan_request|schedule|verbs)|ccl/schedule/[a-z_]+|runtime/(deadlock|replay_options|tensor_geometry)|tlm/base/[a-z_]+|tlm/ext/[a-z_]+|tlm/machine/(fidelity|machine_map|routing)|tlm/observe/[a-z_]+|tlm/sim/[a-z_]+)\.h$'
missing=0
while IFS= read -r warning; do
  [[ $warning =~ ([^ ]+):([0-9]+):\ warning:\ (.*) ]] || { echo "$warning"; missing=1; continue; }
  file=${BASH_REMATCH[1]} line=${BASH_REMATCH[2]} text=${BASH_REMATCH[3]}
  [[ $text =~ $exempt ]] && continue
  [[ $file =~ $interior && $text == Member* && $text != *'(enumeration)'* ]] && continue
  before=$((line > 1 ? line - 1 : 1))
  if [[ $text == *"is not documented"* ]] && sed -n "${line}p" "$file" | grep -qE '///|/\*\*'; then continue; fi
  if [[ $text == *"is not documented"* ]] && sed -n "${before}p" "$file" | grep -qE '^ *///'; then continue; fi
  echo "$warning"
  missing=1
done < <({ cat docs/Doxyfile; echo "OUTPUT_DIRECTORY = $2"; echo "WARN_IF_UNDOCUMENTED = YES"; } | doxygen - 2>&1 | grep -E 'warning|error' | sort -u)
[ -s "$2/html/index.html" ] || { echo "no documentation was written"; missing=1; }
exit $missing
