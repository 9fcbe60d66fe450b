#!/bin/sh
# What a launch may not be does not compile, and the message says what to do. The same file without it does compile.
#   wrong_launch.sh <compiler> <source folder>
# What it includes is compiled once.
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
grep '^#include' "$2/tests/runtime/wrong_launch.cpp" > "$folder/headers.h"
"$1" -std=c++17 -DFMT_SHARED -I "$2" -x c++-header -o "$folder/headers.h.gch" "$folder/headers.h" || exit 1
compile() {
  "$1" -std=c++17 -fsyntax-only -DFMT_SHARED -DWRONG="$3" -I "$2" -include "$folder/headers.h" \
    "$2/tests/runtime/wrong_launch.cpp" 2>&1
}

compile "$1" "$2" 0 || exit 1
number=0
while read -r text; do
  number=$((number + 1))
  said=$(compile "$1" "$2" $number) && { echo "wrong launch $number compiles"; exit 1; }
  case $said in
    *"$text"*) ;;
    *) echo "wrong launch $number: the compiler does not say '$text' but: $said"; exit 1 ;;
  esac
done <<TEXTS
a kernel is a function, or a lambda without captures, void kernel(P..., Tl& tl)
a kernel's parameters are Va (for a tensor), numbers, and trivially copyable structs without pointers
a launch gives as many arguments as the kernel has parameters before Tl&
a tensor argument is a Va to the kernel: declare its parameter so
a kernel's parameters are Va (for a tensor), numbers, and trivially copyable structs without pointers
an argument of this launch is not what the kernel's parameter takes
a kernel takes its arguments by value, or as const references
a kernel's parameters are Va (for a tensor), numbers, and trivially copyable structs without pointers
a kernel's parameters are Va (for a tensor), numbers, and trivially copyable structs without pointers
TEXTS
