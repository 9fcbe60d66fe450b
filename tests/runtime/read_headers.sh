#!/bin/sh
# Which folder may read whose headers, looked up in what the compiler read for each object, however it came to it.
# Arguments: ninja, the folder of the sources, the public headers between commas; called in the folder of the build.
set -eu
ninja=$1
root=$2
"$ninja" -t deps | awk -v root="$root/" -v public="$3" '
  BEGIN {
    may["tlm"] = "tlm"
    may["models"] = "tlm models"
    may["topology"] = "tlm models topology"
    may["waves"] = "tlm waves"
    may["ccl"] = "tlm ccl"
    may["runtime"] = "tlm ccl runtime"
    for (folder in may) {
      count = split(may[folder], list, " ")
      for (i = 1; i <= count; ++i) allowed[folder, list[i]] = 1
    }
    split("tlm models topology waves ccl runtime sc_main tests", list, " ")
    for (i in list) known[list[i]] = 1
    count = split(public, list, ",")
    for (i = 1; i <= count; ++i) user[list[i]] = 1
  }
  /^[^ ]/ {  # OBJECT: #deps N, deps mtime M (VALID)
    split($1, part, "/")
    folder = part[1]
    if (folder in may) ++objects[folder]
    object = $1
    sub(/:$/, "", object)
    next
  }
  NF == 1 && folder in may {
    path = $1
    if (index(path, root) == 1) path = substr(path, length(root) + 1)
    while (sub(/^\.\.\//, "", path)) {}
    split(path, part, "/")
    if (!(part[1] in known)) next
    ++looked
    if (!allowed[folder, part[1]]) wrong = wrong object " reads " path "\n"
    # Layers see the machine as a program of a user does; of the tool they read files as it does.
    if (object ~ /^runtime\/tp\// && path !~ /^(runtime\/tp|tlm\/config)\//) {
      ++of_layers
      if (!(path in user)) wrong = wrong object " reads " path ": a layer knows the public API alone\n"
    }
    if (folder == "models" && path ~ /^tlm\/config\//) wrong = wrong object " reads " path ": a model reads no files\n"
  }
  END {
    for (folder in may) if (!objects[folder]) wrong = wrong "no object of " folder " is known\n"
    if (of_layers < 20) wrong = wrong "only " of_layers + 0 " headers of layers are known\n"
    if (looked < 1000) wrong = wrong "only " looked + 0 " headers are known\n"
    if (wrong == "") exit 0
    printf "%s", wrong | "sort"
    exit 1
  }'
