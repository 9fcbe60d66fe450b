#!/usr/bin/env python3
"""GEMMs of language models on one SIP: time, bound and share of every shape of the specification's table.

    bench/gemm_table.py build/release/sc_main/kernbench [--fidelity fast] [--rows 1 128] [--topology default]

Shapes: (n, k) of 4096 x 4096, 14336 x 4096, 4096 x 14336 and 1024 x 4096, whole and as 2, 4 and 8 ranks share them
(column-parallel: n, row-parallel: k), with 1 to 2048 rows, operands as layers have them. Weights are packed; so are
results, and the input of a row-parallel layer as the column-parallel layer before leaves it; of more than
512 rows all of these lie over the cubes. Targets: 0.75 of the bound for up to 128 rows, 0.85 from
512 on. The exit code is 1 if a shape misses its target.
"""
import argparse
import json
import subprocess
import sys

SHAPES = [(4096, 4096), (14336, 4096), (4096, 14336), (1024, 4096)]


def cases(rows):
    for n, k in SHAPES:
        for ranks in (1, 2, 4, 8):
            for m in rows:
                many = m > 512
                yield m, n // ranks, k, "over-cubes" if many else "packed"
                if ranks > 1:
                    yield m, n, k // ranks, "over-cubes-row" if many else "packed-row"


def run(tool, m, n, k, operands, options):
    # Of a short one it counts whether a refresh falls into it: a mean of several.
    launches = 8 if m <= 64 else 4 if m <= 128 else 2
    command = [tool, "run", "gemm", "--m", m, "--n", n, "--k", k, "--operands", operands, "--data", "off", "--iters", launches,
               "--fidelity", options.fidelity, "--topology", options.topology, "--json", "-"]
    output = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE).stdout
    result = json.loads(output)
    return result["results"][0], result["host"]["cpu_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("--fidelity", default="accurate")
    parser.add_argument("--topology", default="default")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 8, 16, 32, 64, 128, 512, 2048])
    options = parser.parse_args()
    print(f"{'m':>6} {'n':>6} {'k':>6} {'operands':>15} {'time (us)':>10} {'bound':>9} {'share':>6} {'target':>6}"
          f" {'cpu (s)':>8}  bound by; mapping")
    missed = total = 0
    for m, n, k, operands in cases(options.rows):
        row, cpu = run(options.tool, m, n, k, operands, options)
        target = 0.85 if m >= 512 else 0.75
        total += 1
        missed += row["bound_share"] < target
        print(f"{m:>6} {n:>6} {k:>6} {operands:>15} {row['time_ns'] / 1e3:>10.2f} {row['bound_ns'] / 1e3:>9.2f}"
              f" {row['bound_share']:>6.3f} {target:>6} {cpu:>8.2f}  {row['bound_binds']}; {row['mapping']}", flush=True)
    print(f"# {total - missed} of {total} shapes reach their target")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
