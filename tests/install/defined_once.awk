# Types that stand in a header or source outside of an unnamed namespace, a line each: NAMESPACE::NAME FILE:LINE.
# Read as clang-format writes them: namespaces and their types begin a line.
FNR == 1 { depth = 0 }
/^namespace [A-Za-z_][A-Za-z_0-9:]* \{/ { spaces[++depth] = $2; next }
/^namespace \{/ { spaces[++depth] = "-"; next }
/^\} *\/\/ namespace/ { if (depth > 0) --depth; next }
# Of a short namespace with declarations alone.
/^\}$/ && last ~ /^(class|struct|enum class) [^{]*;$/ { --depth }
{ last = $0 }
/^(class|struct|enum class) [A-Za-z_0-9]+ ?(final )?(:[^:;][^;]*)?\{/ {
  name = ""
  for (i = 1; i <= depth; ++i) {
    if (spaces[i] == "-") next
    name = name spaces[i] "::"
  }
  print name ($1 == "enum" ? $3 : $2), FILENAME ":" FNR
}
