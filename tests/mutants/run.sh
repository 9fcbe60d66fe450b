#!/usr/bin/env bash
# Builds each mutant of mutants.txt in a copy of the sources and runs the tests of its module, one of which has to fail.
# See README.md.
set -euo pipefail

usage() {
  cat <<'TEXT'
run.sh [--list | --check] [NAME | NUMBER | PATTERN]...
  Without names all mutants; a pattern is the shell's: 'noc-*'. Numbers are those of --list.
  --list   names and files
  --check  only whether each mutant still applies exactly once; builds nothing
Environment: JOBS (default: all processors), LIMIT (seconds for the tests of a mutant, default 300),
KERNBENCH_MUTANTS (where to copy and build, default build/mutants).
TEXT
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
table=$root/tests/mutants/mutants.txt
work=${KERNBENCH_MUTANTS:-$root/build/mutants}
copy=$work/source
jobs=${JOBS:-$(nproc)}
limit=${LIMIT:-300}

declare -a names=() files=() olds=() news=() builds=() tests=()
read_table() {
  local line key value number=0
  while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    case $line in '' | '#'*) continue ;; esac
    key=${line%% *}
    value=${line#"$key"}
    value=${value# }
    local last=$((${#names[@]} - 1))
    case $key in
      mutant) names+=("$value") files+=("") olds+=("") news+=("") builds+=("") tests+=("") ;;
      file) files[last]=$value ;;
      old) olds[last]=$value ;;
      new) news[last]=$value ;;
      build) builds[last]=$value ;;
      tests) tests[last]=$value ;;
      *)
        echo "mutants.txt:$number: unknown key '$key'" >&2
        exit 2
        ;;
    esac
  done < "$table"
}

# $1: file. How often the text $OLD occurs in it.
count_of() { OLD=$2 perl -0777 -ne 'my $n = () = /\Q$ENV{OLD}\E/g; print $n' "$1"; }
# $1: file to read, $2: file to write, $3: old text, $4: new text.
replace() { OLD=$3 NEW=$4 perl -0777 -pe 's/\Q$ENV{OLD}\E/$ENV{NEW}/' "$1" > "$2"; }

# The sources as they are, with what is not committed. Files that are alike stay, so that nothing is built anew.
copy_sources() {
  mkdir -p "$copy"
  local list=$work/files
  (cd "$root" && git ls-files -z --cached --others --exclude-standard | sort -zu) > "$list"
  while IFS= read -r -d '' file; do
    [ -f "$root/$file" ] || continue
    cmp -s "$root/$file" "$copy/$file" && continue
    mkdir -p "$(dirname "$copy/$file")"
    cp -p "$root/$file" "$copy/$file"
    touch "$copy/$file"
  done < "$list"
  (cd "$copy" && find . -path ./build -prune -o -type f -printf '%P\0') | sort -z |
    comm -z -23 - "$list" | (cd "$copy" && xargs -0 -r rm --)
}

only=run
declare -a wanted=()
for argument in "$@"; do
  case $argument in
    --list | --check) only=${argument#--} ;;
    -h | --help)
      usage
      exit 0
      ;;
    -*)
      usage >&2
      exit 2
      ;;
    *) wanted+=("$argument") ;;
  esac
done

read_table
declare -a chosen=()
for i in "${!names[@]}"; do
  fits=$([ ${#wanted[@]} -eq 0 ] && echo yes || true)
  for want in "${wanted[@]+"${wanted[@]}"}"; do
    # shellcheck disable=SC2053  # a pattern
    if [[ $want == $((i + 1)) || ${names[i]} == $want ]]; then fits=yes; fi
  done
  [ -z "$fits" ] || chosen+=("$i")
done
if [ ${#chosen[@]} -eq 0 ]; then
  echo "no such mutant; see --list" >&2
  exit 2
fi
if [ $only = list ]; then
  for i in "${chosen[@]}"; do printf '%3d  %-40s %s\n' $((i + 1)) "${names[i]}" "${files[i]}"; done
  exit 0
fi

stale=0
for i in "${chosen[@]}"; do
  found=none
  [ ! -f "$root/${files[i]}" ] || found=$(count_of "$root/${files[i]}" "${olds[i]}")
  if [ "$found" != 1 ] || [ -z "${olds[i]}" ] || [ -z "${builds[i]}" ] || [ -z "${tests[i]}" ]; then
    echo "does not apply: ${names[i]}: its text is in ${files[i]} $found times, or a line of it is missing"
    stale=$((stale + 1))
  fi
done
[ "$stale" = 0 ] || exit 1
if [ $only = check ]; then
  echo "${#chosen[@]} mutants apply"
  exit 0
fi

copy_sources
mutated=
restore() {
  [ -z "$mutated" ] || cp "$root/$mutated" "$copy/$mutated"
  mutated=
}
trap restore EXIT
trap 'exit 130' INT TERM

# The compiler options of the release preset, but file by file: a mutant costs one of them.
export CCACHE_BASEDIR=$copy CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
tree=$copy/build/release
results=$work/results.txt
: > "$results"
(cd "$copy" && cmake --preset release -DBUILD_TESTING=ON -DCMAKE_UNITY_BUILD=OFF) > "$work/configure.log"

build() {
  local -a targets
  read -ra targets <<< "$1"
  nice cmake --build "$tree" -j "$jobs" --target "${targets[@]}" > "$work/build.log" 2>&1
}
# 0: all pass; 124: more time than the limit.
run_tests() {
  timeout --kill-after=10 "$limit" nice ctest --test-dir "$tree" -R "$1" -LE '^slow$' -j "$jobs" --no-tests=error \
    --stop-on-failure > "$work/test.log" 2>&1
}
first_failure() {
  sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+).*(\*\*\*[A-Za-z]+).*/\1 \2/p' "$work/test.log" | head -1
}

say() { printf '%s\n' "$1" | tee -a "$results"; }
declare -A passes=()
killed=0 wrong=0
for i in "${chosen[@]}"; do
  name=${names[i]}
  began=$SECONDS
  # Without the mutant its tests have to pass: a failure would say nothing otherwise.
  if [ -z "${passes[${tests[i]}]:-}" ]; then
    if ! build "${builds[i]}"; then
      say "error     $name: the sources do not build: $work/build.log"
      tail -20 "$work/build.log"
      exit 1
    fi
    if run_tests "${tests[i]}"; then passes[${tests[i]}]=yes; else
      say "error     $name: its tests fail without it: $(first_failure)"
      wrong=$((wrong + 1))
      continue
    fi
  fi
  mutated=${files[i]}
  replace "$root/$mutated" "$copy/$mutated" "${olds[i]}" "${news[i]}"
  if ! build "${builds[i]}"; then
    say "error     $name: does not compile"
    grep -m 3 error "$work/build.log" || true
    wrong=$((wrong + 1))
  else
    status=0
    run_tests "${tests[i]}" || status=$?
    case $status in
      0)
        say "SURVIVED  $name ($((SECONDS - began)) s): ${files[i]}: '${olds[i]}' -> '${news[i]}'"
        wrong=$((wrong + 1))
        ;;
      124 | 137)
        say "killed    $name ($((SECONDS - began)) s): by the time limit"
        killed=$((killed + 1))
        ;;
      *)
        say "killed    $name ($((SECONDS - began)) s): $(first_failure)"
        killed=$((killed + 1))
        ;;
    esac
  fi
  restore
done
say "$killed of ${#chosen[@]} mutants killed"
[ "$wrong" = 0 ]
