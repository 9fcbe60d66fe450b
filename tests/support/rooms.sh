#!/bin/sh
# Which room of a folder includes headers of which: nothing runs back.
#
#   rooms.sh SOURCES FOLDER 'ROOM: ROOM ...' ...    each room and those that it may include besides itself
cd "$1/$2" || exit 1
folder=$2
shift 2
grep -r "^#include \"$folder/[a-z]*/" --include='*.h' --include='*.cpp' . | awk -F/ -v rules="$(printf '%s;' "$@")" '
  BEGIN {
    count = split(rules, rule, ";")
    for (i = 1; i < count; ++i) {
      room = rule[i]
      sub(/:.*/, "", room)
      sub(/^[^:]*:/, "", rule[i])
      may[room] = rule[i] " " room " "
    }
  }
  { ++looked[$2] }
  index(may[$2], " " $4 " ") == 0 { wrong = wrong $0 "\n" }
  END {
    for (room in may) if (!looked[room]) wrong = wrong "no header is included in " room "\n"
    printf "%s", wrong
    exit wrong != ""
  }'
