#!/bin/bash
# Every path that the tree cites exists: in its pages, and in the comments of sources, presets and scripts (cited_paths.awk).
# SOURCE: the tree. Tables under bench/reference are as their makers describe them, and cite their tools' files.
set -euo pipefail
cd "$1"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
find . -name .git -prune -o -path './build*' -prune -o -mindepth 1 -printf '%P\n' > "$scratch/paths"

# What has to be found, one kind of citation a line: a check that sees nothing would pass any tree.
printf '%s\n' '[a](no_such_page.md)' 'see docs/no_such_folder' '`plan_that_is_not.h`' 'decisions 0010, 9999' 'tests/no_such_*_test.cpp' > "$scratch/page.md"
printf '%s\n' 'int a = 0;  // docs/no_such_page.md' 'const char* b = "docs/not_a_citation.md";' > "$scratch/source.cpp"
found=$(awk -f tests/install/cited_paths.awk "$scratch/paths" "$scratch/page.md" "$scratch/source.cpp" | grep -c ': no ' || true)
[ "$found" = 6 ] || { echo "$found of 6 wrong citations found"; exit 1; }

mapfile -t citing < <(grep -E '(\.(md|h|cpp|yaml|cmake|sh)|CMakeLists\.txt|Makefile)$' "$scratch/paths" | grep -v '^bench/reference/' | LC_ALL=C sort)
awk -f tests/install/cited_paths.awk "$scratch/paths" "${citing[@]}"

# And the index of decisions lists all of them.
for record in docs/decisions/[0-9]*.md; do
  grep -qF "(${record##*/})" docs/decisions/README.md || { echo "docs/decisions/README.md: no ${record##*/}"; exit 1; }
done
