#!/bin/sh
# Which library may need what another one has, looked up in the symbols of the libraries as they were linked.
# Arguments: nm, then LIBRARY=FILE for each; those without a rule below (yaml-cpp, the tool's) are there to be needed.
set -eu
nm=$1
shift
for library in "$@"; do
  case $library in
    *.so*) flags=-D ;;
    *) flags= ;;
  esac
  # shellcheck disable=SC2086  # no flag is no argument
  "$nm" $flags -P "${library#*=}" | awk -v library="${library%%=*}" 'NF >= 2 {
    sub(/@.*/, "", $1)
    if ($2 == "U") print library, "needs", $1
    else if ($2 ~ /^[A-Z]$/) print library, "has", $1
  }'
done | awk '
  BEGIN {
    models = "memory arith noc link ucie hbm sram pe m_cpu io bridge"
    may["tlm"] = ""
    may["config"] = "tlm yaml"
    # A model knows the shared vocabulary, the contents of memories and numerics; of its neighbours only those whose
    # packets (links: of the mesh; UCIe: of links) or page table (the IO chiplet) it handles.
    may["memory"] = may["arith"] = may["noc"] = may["m_cpu"] = "tlm"
    may["link"] = "tlm noc"
    may["ucie"] = "tlm link"
    may["hbm"] = may["sram"] = may["bridge"] = "tlm memory"
    may["pe"] = "tlm memory arith"
    may["io"] = "tlm memory pe"
    may["topology_spec"] = may["topology_plan"] = "tlm config yaml topology_spec " models
    may["topology"] = may["topology_plan"] " topology_plan"
    may["waves"] = "tlm"
    may["ccl"] = "tlm config yaml"
    may["runtime"] = "tlm config yaml ccl"  # never a model: they meet at sockets
    may["tp"] = "tlm config ccl runtime"  # reads model files
    may["pipeline"] = "tlm config"  # the document alone: no machine
    may["pipeline_run"] = "tlm config ccl runtime tp pipeline"
    for (library in may) {
      count = split(may[library], list, " ")
      for (i = 1; i <= count; ++i) allowed[library, list[i]] = 1
    }
  }
  $2 == "has" { has[$1, $3] = 1; owners[$3] = owners[$3] " " $1; ++symbols[$1]; next }
  { needs[$1, $3] = 1 }
  END {
    for (library in may) if (!(library in symbols)) wrong = wrong "library " library " has no symbols: is it one?\n"
    for (need in needs) {
      split(need, part, SUBSEP)
      if (has[part[1], part[2]] || !(part[2] in owners)) continue  # its own, or of the system
      if (!(part[1] in may)) continue                              # shared: what it needs is its own affair
      ++looked
      fits = 0
      count = split(owners[part[2]], list, " ")
      for (i = 1; i <= count; ++i) if (allowed[part[1], list[i]]) fits = 1
      if (!fits) wrong = wrong part[1] " needs " part[2] " of" owners[part[2]] "\n"
    }
    if (looked < 200) wrong = wrong "only " looked + 0 " symbols of other libraries: are these all of them?\n"
    # What happens in another SIP is scheduled by links alone, which know its latency; the endpoint of PCIe takes what
    # the host sends it. They may find that they are late, which nobody else can. A bridge takes what a foreign process
    # does and looks first: whether the check of it is left in the library is up to the compiler.
    late = "_ZNK9kernbench10EventQueue10throw_pastEm"
    for (library in may) {
      if (library == "bridge") continue
      if (!needs[library, late] != !(library == "link" || library == "io")) {
        wrong = wrong library (needs[library, late] ? " schedules" : " does not schedule") " events of another SIP or of the host\n"
      }
    }
    if (wrong == "") exit 0
    printf "%s", wrong | "sort"
    exit 1
  }'
