#!/bin/sh
# The simulator has no mutable globals: what it defines in writable memory are constants that are set once, named kLikeThis
# or held by a function (such a one has a guard variable). Arguments: nm, then the
# static libraries.
nm=$1
shift
found=$(for library in "$@"; do "$nm" -C -f sysv "$library" 2>/dev/null; done | awk -F'|' '
  function trim(text) { gsub(/^ +| +$/, "", text); return text }
  trim($7) == ".bss" || trim($7) == ".data" || $7 ~ /\.(bss|data)\._Z/ {
    name = trim($1)
    if (sub(/^guard variable for /, "", name)) guarded[name] = 1
    else if (name ~ /kernbench::/ && name !~ /(^|::)k[A-Z][A-Za-z0-9]*(\[abi:cxx11\])?$/) writable[name] = 1
    ++symbols
  }
  END {
    for (name in writable) if (!(name in guarded)) print name
    if (symbols == 0) print "no symbols: are these the libraries?"
  }')
test -z "$found" && exit 0
echo "mutable globals:"
echo "$found"
exit 1
