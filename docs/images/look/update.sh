#!/usr/bin/env bash
# update.sh KERNBENCH: the pictures of docs/look.md that show its three questions and its comparison, from the commands
# that stand there. Needs Chromium.
set -euo pipefail
export LC_ALL=C.UTF-8
kernbench=$(realpath "$1")
pictures=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$pictures/../../browser.sh"
cd "$work"

picture() { # NAME PAGE WIDTHxHEIGHT SECTIONS [OPTION-OF-THE-TIMELINE]: the named sections of a page alone
  local script="<script>
    addEventListener('load', () => setTimeout(() => {
      document.querySelectorAll('#timeline option').forEach(option => {
        if (option.text !== '${5:-}') return;
        option.parentElement.value = option.value;
        option.parentElement.dispatchEvent(new Event('change'));
      });
      const kept = '$4'.split(' ');
      document.querySelectorAll('section').forEach(section => { if (!kept.includes(section.id)) section.remove(); });
    }, 500));
  </script></body>"
  awk -v script="$script" '{ sub(/<\/body>/, script) } 1' "$2" > page.html
  browse "$work/page.html" --window-size="${3/x/,}" --screenshot="$pictures/$1.png"
}

"$kernbench" run all_reduce -b 64K -e 64K --report run.html > /dev/null
picture report run.html 1240x790 'where timeline'

"$kernbench" run tp_mlp --topology minimal --data off --json mlp.json > /dev/null
"$kernbench" what-if mlp.json --html what_if.html > /dev/null 2>&1
picture what_if what_if.html 1240x1000 whatif

"$kernbench" run tp_mlp --topology ring8 --batch 128 --in 1024 --hidden 4096 --out 1024 --data off --fidelity fast \
  --report mlp.html > /dev/null
picture roofline mlp.html 1240x1180 'timeline roofline' sip0.cube0

"$kernbench" run tp_mlp --topology minimal --json a.json > /dev/null
"$kernbench" run tp_mlp --topology minimal --set cube.hbm.clock="800 MHz" --json b.json > /dev/null
"$kernbench" diff a.json b.json --html diff.html > /dev/null
picture diff diff.html 1160x800 'difference rows'
