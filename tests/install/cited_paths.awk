# Finds paths that are cited and not there: in Markdown everywhere, elsewhere in comments. First file: all paths of the
# tree. Prints what is wrong, a line each, and ends with 1 if there is anything; with 2 if it found next to nothing.
#
# A path is: the target of a Markdown link, from its page's folder; a name that ends like a page, a source or a script,
# from wherever (plan.h, noc/router.h); whatever begins with a folder of the tree, from its root; a decision's number.
function parts(path, rest) {  # a file may be cited by the end of its path, a program or a group of files without endings
  here[path] = 1
  rest = path
  if (sub(/\.[^\/]*$/, "", rest)) stems[rest] = 1  # a.b.c: a
  for (rest = path; ; rest = substr(rest, index(rest, "/") + 1)) {
    ends[rest] = 1
    if (!index(rest, "/")) return
  }
}
function wrong(what) {
  print FILENAME ":" FNR ": no " what
  bad = 1
}
function link(target, path) {
  sub(/#.*/, "", target)
  if (target == "" || target ~ /^[a-z]+:/) return
  path = FILENAME
  sub(/[^\/]*$/, "", path)
  path = path target
  gsub(/\/\.\//, "/", path)
  while (path ~ /[^\/]+\/\.\.\//) sub(/[^\/]+\/\.\.\//, "", path)
  sub(/^\.\//, "", path)
  sub(/\/$/, "", path)
  ++cited
  if (!(path in here)) wrong(target)
}
function matches(pattern, path) {  # with * in it
  gsub(/\./, "\\.", pattern)
  gsub(/\*/, "[^/]*", pattern)
  for (path in here) if (path ~ "(^|/)" pattern "$") return 1
  return 0
}
function name(path, first, folder) {
  sub(/^\.\//, "", path)
  sub(/[.\/-]+$/, "", path)
  while (sub(/^\.\.\//, "", path)) {}
  first = path
  sub(/\/.*/, "", first)
  if (path ~ /^\// || path == "" || first == "build") return
  if (path ~ /\.(md|h|cpp|cmake|sh|awk)$/) {
    if (path ~ /^(\.|[*])/ || path ~ /^[^\/]*\.[^\/]*\.h$/) return  # an ending; a key such as sip.cube_mesh.h
    ++cited
    if (index(path, "*") ? !matches(path) : !(path in ends)) wrong(path)
  } else if (index(path, "/") && first in top) {
    ++cited
    folder = path
    sub(/\/[^\/]*$/, "", folder)
    # A class, or a name to be filled in, of a folder that is there.
    if (path ~ /\/[A-Z][A-Za-z_]*(\.[a-z]+)?$/ && folder in here) return
    if (index(path, "*") ? !matches(path) : !(path in here || path in stems)) wrong(path)
  }
}
function decisions(text, number) {
  while (match(text, /[Dd]ecisions?[ \/][0-9][0-9][0-9][0-9]((,| and) [0-9][0-9][0-9][0-9])*/)) {
    number = substr(text, RSTART, RLENGTH)
    text = substr(text, RSTART + RLENGTH)
    while (match(number, /[0-9][0-9][0-9][0-9]/)) {
      ++cited
      if (!(substr(number, RSTART, 4) in recorded)) wrong("decision " substr(number, RSTART, 4))
      number = substr(number, RSTART + 4)
    }
  }
}
BEGIN {
  count = split("bench ccl cmake docs models runtime sc_main tests tlm topology waves reference spec shared", folders, " ")
  for (i = 1; i <= count; ++i) top[folders[i]] = 1
}
NR == FNR {
  parts($0)
  if ($0 ~ /^docs\/decisions\/[0-9]/) recorded[substr($0, 16, 4)] = 1
  next
}
{
  text = $0
  if (FILENAME ~ /\.(h|cpp)$/) {
    if (!match(text, /(^|[ \t])\/\//)) next
    text = substr(text, RSTART)
    sub(/^[ \t]*\/+/, "", text)
  } else if (FILENAME !~ /\.md$/) {
    if (!match(text, /(^|[ \t])#/)) next
    text = substr(text, RSTART)
  }
  decisions(text)
  if (FNR == 1) fenced = 0
  if (text ~ /^ *```/) fenced = !fenced
  while (FILENAME ~ /\.md$/ && !fenced && match(text, /\]\([^)]+\)/)) {
    link(substr(text, RSTART + 2, RLENGTH - 3))
    text = substr(text, 1, RSTART - 1) " " substr(text, RSTART + RLENGTH)
  }
  gsub(/[~$<{][^ ]*/, " ", text)  # what the reader fills in
  gsub(/[a-z]+:\/\/[^ )]*/, " ", text)
  while (match(text, /[A-Za-z0-9_.*\/-]+/)) {
    word = substr(text, RSTART, RLENGTH)
    text = substr(text, RSTART + RLENGTH)
    name(word)
  }
}
END {
  if (cited < 500) {
    print "only " cited + 0 " paths found"
    exit 2
  }
  exit bad
}
