#!/usr/bin/env bash
# update.sh KERNBENCH [STUDY...]: runs the studies and writes their results.csv, scatter.png and the tables of their
# README.md. Prints the figures that the texts name; the texts are written by hand. Pictures need Chromium.
set -euo pipefail
export LC_ALL=C.UTF-8
kernbench=$(realpath "$1")
shift
cd "$(dirname "$0")"
studies=("$@")
[ ${#studies[@]} -gt 0 ] || studies=(hbm_gemm mesh_ucie sip_topology)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. ../browser.sh

picture() { # STUDY X Y COLOUR: the report's scatter of three of its columns, alone
  local script="<script>
    const selects = document.querySelectorAll('#scatter select');
    ['$2', '$3', '$4'].forEach((name, i) => {
      selects[i].selectedIndex = [...selects[i].options].findIndex(option => option.text.split(' (')[0] === name);
      selects[i].dispatchEvent(new Event('change'));
    });
    document.querySelectorAll('header, footer, section:not(#scatter), .controls, .note, h2').forEach(e => e.remove());
    document.querySelector('section').style.border = document.body.style.background = 'none';
  </script></body>"
  awk -v script="$script" '{ sub(/<\/body>/, script) } 1' "$work/$1.html" > "$work/picture.html"
  browse "$work/picture.html" --window-size=1180,560 --screenshot="$PWD/$1/scatter.png" > /dev/null
}

sensitivities() { # STUDY: what the report's first bars say
  browse "$work/$1.html" --dump-dom | grep -o '<desc id="sensitivity-chart-d">[^<]*' | sed 's/.*>/  share of the variance: /'
}

between_marks() { # FILE NAME: puts standard input between the two marks of that name
  local new
  new=$(cat)
  awk -v name="$2" -v new="$new" '
    $0 == "<!-- end of " name " -->" { inside = 0 }
    !inside
    $0 == "<!-- " name ", by update.sh -->" { print new; inside = found = 1 }
    END { if (!found) exit 1 }' "$1" > "$work/page"
  cp "$work/page" "$1"
}

# Columns of a CSV file by name. No field before `error` holds a comma.
columns='NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; next }'

table_hbm_gemm() {
  awk -F, "$columns"'
    $at["cube.hbm.generation"] != "HBM3-6400" { next }
    { s = $at["shape"]; c = $at["cube.hbm.channels"] }
    !(s in row) { row[s] = ++rows; shape[rows] = s }
    !(c in column) { column[c] = ++cells; channels[cells] = c }
    { value[s, c] = $at["tflops"] }
    END {
      line = "| m x n x k |"; rule = "|---|"
      for (c = 1; c <= cells; ++c) { line = line " " channels[c] " |"; rule = rule "---|" }
      print line; print rule
      for (r = 1; r <= rows; ++r) {
        line = "| " shape[r] " |"
        for (c = 1; c <= cells; ++c) line = line sprintf(" %.1f |", value[shape[r], channels[c]])
        print line
      }
    }' hbm_gemm/results.csv
}
facts_hbm_gemm() {
  sensitivities hbm_gemm
  awk -F, "$columns"'
    { v[$at["cube.hbm.generation"], $at["shape"], $at["cube.hbm.channels"]] = $at["tflops"]; shapes[$at["shape"]] }
    END {
      for (s in shapes) {
        b = "HBM3-6400"; e = "HBM3E-9200"
        printf "  %-20s 4 to 8 channels: x %.2f; 16 against 12: %+.0f %%; 32 against 24: %+.0f %%; %s at 4, 8, 20, 32: %+.0f, %+.0f, %+.0f, %+.0f %%\n",
          s, v[b, s, 8] / v[b, s, 4], 100 * (v[b, s, 16] / v[b, s, 12] - 1), 100 * (v[b, s, 32] / v[b, s, 24] - 1), e,
          100 * (v[e, s, 4] / v[b, s, 4] - 1), 100 * (v[e, s, 8] / v[b, s, 8] - 1), 100 * (v[e, s, 20] / v[b, s, 20] - 1), 100 * (v[e, s, 32] / v[b, s, 32] - 1)
      }
    }' hbm_gemm/results.csv | sort
}

# Bandwidth of a side in GB/s, and time of the all-reduce, of each mesh.
cells_mesh_ucie="$columns"'
  { split($at["cube.ucie.lane_rate"], rate, " ")
    b = $at["cube.ucie.connections"] * $at["cube.ucie.lanes"] * rate[1] / 8
    m = $at["sip.cube_mesh.w"] " x " $at["sip.cube_mesh.h"]; t = $at["time_ns"] + 0
    if (!((m, b) in low) || t < low[m, b]) low[m, b] = t
    if (!((m, b) in high) || t > high[m, b]) high[m, b] = t }'
table_mesh_ucie() {
  awk -F, "$cells_mesh_ucie"'
    END {
      meshes = split("2 x 1,3 x 1,2 x 2,4 x 1,3 x 2,4 x 2,3 x 3,4 x 3,4 x 4", mesh, ",")
      cells = split("8 32 64 128 256 512 1024", side, " ")
      line = "| cubes |"; rule = "|---|"
      for (c = 1; c <= cells; ++c) { line = line " " side[c] " |"; rule = rule "---|" }
      print line; print rule
      for (r = 1; r <= meshes; ++r) {
        line = "| " mesh[r] " |"
        for (c = 1; c <= cells; ++c) {
          a = sprintf("%.0f", low[mesh[r], side[c]]); z = sprintf("%.0f", high[mesh[r], side[c]])
          line = line " " a (a == z ? "" : " to " z) " |"
        }
        print line
      }
    }' mesh_ucie/results.csv
}
facts_mesh_ucie() {
  sensitivities mesh_ucie
  awk -F, "$cells_mesh_ucie"'
    { n = $at["sip.cube_mesh.w"] * $at["sip.cube_mesh.h"]
      if (!(n in step) || $at["step_ns"] + 0 < step[n]) { step[n] = $at["step_ns"] + 0; part[n] = t } }
    END {
      for (key in low) { split(key, k, SUBSEP); if (k[2] == 512 && k[1] != "1 x 1")
        printf "  %s: 1024 GB/s against 512: %+.0f %%; worst against best split at 128: x %.2f\n", k[1], 100 * (low[k[1], 1024] / low[k[1], 512] - 1), high[k[1], 128] / low[k[1], 128] }
      for (n = 1; n <= 16; ++n) if (n in step) printf "  %2d cubes: best step %.0f ns, of it the all-reduce %.0f ns\n", n, step[n], part[n]
      printf "  2 x 1 at 8 GB/s: all-reduce %.0f ns\n", low["2 x 1", 8]
    }' mesh_ucie/results.csv | sort
  front_mesh_ucie
}
front_mesh_ucie() { # connections of the machines on the front, by number of cubes
  awk -F, "$columns"'{ print $at["cost"], $at["step_ns"], $at["sip.cube_mesh.w"] * $at["sip.cube_mesh.h"], $at["cube.ucie.connections"] }' mesh_ucie/results.csv |
    sort -g -k1,1 -k2,2 | awk 'NR == 1 || $2 < best { best = $2; ++count[$3 " cubes, " $4 " connections"] }
      END { for (c in count) printf "  on the front: %s: %d\n", c, count[c] }' | sort -k4 -n
}
# Shares of the grid's hypervolume that searches reach, from the report of a store that holds all of the grid.
searches_mesh_ucie() {
  local algorithm seed
  for algorithm in nsga2 nspso moead random; do
    for seed in 1 2 3 4 5 6 7 8 9 10; do
      "$kernbench" search mesh_ucie/sweep.yaml --store "$work/mesh_ucie.sqlite" --algorithm $algorithm --seed $seed -q > /dev/null
    done
  done
  "$kernbench" report "$work/mesh_ucie.sqlite" --sweep mesh_ucie -o "$work/searches.html" 2> /dev/null
  echo "| algorithm | share of the grid's hypervolume |"
  echo "|---|---|"
  for algorithm in nsga2 nspso moead random; do
    grep -o "{\"algorithm\":\"$algorithm\",\"seed\":[0-9]*,\"generations\":[^]]*" "$work/searches.html" |
      sed 's/.*"share":\([0-9.e-]*\)}$/\1/' | sort -g |
      awk -v name=$algorithm '{ share[NR] = $1 } END { if (NR != 10) exit 1; printf "| %s | %.4f |\n", name, (share[5] + share[6]) / 2 }'
  done
}

table_sip_topology() {
  awk -F, "$columns"'
    { r = $at["wiring"] ", " $at["system.links.lanes"]; c = $at["minbytes"] }
    !(c in column) { column[c] = ++cells; bytes[cells] = c }
    { value[r, c] = $at["time_ns"] / 1000 }
    END {
      line = "| wiring, lanes |"; rule = "|---|"
      for (c = 1; c <= cells; ++c) { line = line " " bytes[c] " |"; rule = rule "---|" }
      print line; print rule
      split("ring torus mesh", wiring, " "); split("8 16 32", lanes, " ")
      for (w = 1; w <= 3; ++w) for (l = 1; l <= 3; ++l) {
        r = wiring[w] ", " lanes[l]; line = "| " r " |"
        for (c = 1; c <= cells; ++c) line = line sprintf(" %.1f |", value[r, bytes[c]])
        print line
      }
    }' sip_topology/results.csv
}
facts_sip_topology() {
  sensitivities sip_topology
  awk -F, "$columns"'
    { v[$at["wiring"], $at["system.links.lanes"], $at["minbytes"]] = $at["time_ns"]; f[$at["wiring"], $at["system.links.lanes"], $at["minbytes"]] = $at["bound_fraction"] }
    END {
      split("4K 16K 64K 256K 1M", sizes, " ")
      for (i = 1; i <= 5; ++i) { s = sizes[i]
        printf "  %-5s torus against ring, 8 and 32 lanes: x %.2f, %.2f; mesh against torus: x %.2f, %.2f; torus at 32 against 16 lanes: %+.0f %%; of the bound at 8 lanes: ring %.2f torus %.2f mesh %.2f\n", s,
          v["torus", 8, s] / v["ring", 8, s], v["torus", 32, s] / v["ring", 32, s], v["mesh", 8, s] / v["torus", 8, s], v["mesh", 32, s] / v["torus", 32, s],
          100 * (v["torus", 32, s] / v["torus", 16, s] - 1), f["ring", 8, s], f["torus", 8, s], f["mesh", 8, s] }
    }' sip_topology/results.csv
}

for study in "${studies[@]}"; do
  echo "$study"
  "$kernbench" sweep "$study/sweep.yaml" --store "$work/$study.sqlite" --csv "$study/results.csv" -q > /dev/null
  "$kernbench" report "$work/$study.sqlite" -o "$work/$study.html" 2> /dev/null
  "table_$study" | between_marks "$study/README.md" table
  case $study in
    hbm_gemm) picture hbm_gemm cube.hbm.channels tflops shape ;;
    mesh_ucie)
      picture mesh_ucie cost step_ns sip.cube_mesh.w
      searches_mesh_ucie | between_marks mesh_ucie/README.md searches
      ;;
    sip_topology) picture sip_topology minbytes time_ns wiring ;;
  esac
  "facts_$study"
done
