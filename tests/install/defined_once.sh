#!/bin/bash
# No two types of the libraries and the tool have one name: the linker would take the functions of one for those of the other.
# SOURCE: the tree.
set -euo pipefail
cd "$1"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
twice() { awk -f tests/install/defined_once.awk "$@" | LC_ALL=C sort | awk '$1 == last { print $1 ": " place ", " $2; wrong = 1 } { last = $1; place = $2 } END { exit wrong }'; }

# A check that sees nothing would pass any tree: of these pairs one is wrong.
printf '%s\n' 'namespace a {' 'struct S {' '};' 'class T final : public S {' '};' 'struct S::Impl {' '};' '}  // namespace a' > "$scratch/one.h"
printf '%s\n' 'namespace a {' 'namespace {' 'struct S {' '};' '}  // namespace' 'class T {' '};' '}  // namespace a' > "$scratch/other.h"
found=$(twice "$scratch/one.h" "$scratch/other.h" || true)
[ "$found" = "a::T: $scratch/one.h:4, $scratch/other.h:6" ] || { echo "found '$found' in two headers that define a::T"; exit 1; }

mapfile -t sources < <(find ccl models runtime sc_main tlm topology waves -name '*.h' -o -name '*.cpp' | LC_ALL=C sort)
twice "${sources[@]}"
