#!/usr/bin/env bash
# The simulated times of two builds are the same: same_times.sh KERNBENCH KERNBENCH
set -euo pipefail
times() { "$1" run "${@:2}" --json - --no-progress | grep -E '"(sim_time_ps|time_ns)"'; }
for run in "all_reduce -b 1K -e 64K -f 4" "all_reduce -b 16K -e 16K --topology ring8 --dtype f32" "gemm_single_pe" "p2p"; do
  # shellcheck disable=SC2086  # words of a command line
  if ! diff <(times "$1" $run) <(times "$2" $run); then
    echo "same_times: '$run' differs between $1 and $2" >&2
    exit 1
  fi
done
echo "same_times: ok"
