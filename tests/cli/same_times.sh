#!/usr/bin/env bash
# The simulated times of two builds are the same: same_times.sh KERNBENCH KERNBENCH
set -euo pipefail
times() { "$1" run "${@:2}" --json - --no-progress | grep -E '"(sim_time_ps|time_ns)"'; }
for run in "all_reduce -b 1K -e 64K -f 4" "all_reduce -b 16K -e 16K --topology ring8 --dtype f32" \
  "all_reduce -b 4K -w 0 --topology torus4x4" "all_reduce -b 4K -w 0 --scope cube" "gemm_single_pe" \
  "gemm --m 128 --n 128 --k 64" "p2p" "stream --topology minimal --bytes 64K" "probe --bytes 4K"; do
  # A run that fails ends the script; inside <(...) its status would be lost.
  # shellcheck disable=SC2086  # words of a command line
  first=$(times "$1" $run)
  # shellcheck disable=SC2086
  second=$(times "$2" $run)
  if ! diff <(echo "$first") <(echo "$second"); then
    echo "same_times: '$run' differs between $1 and $2" >&2
    exit 1
  fi
done
echo "same_times: ok"
