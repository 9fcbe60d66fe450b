#!/bin/sh
# man.sh TOOL CLI.MD VERSION: kernbench(1) on standard output: commands as the tool lists them, exit codes of the page.
set -eu
help=$("$1" --help)
printf '.TH KERNBENCH 1 "" "KernBench %s" "User Commands"\n.SH NAME\nkernbench \\- a multi-chip AI accelerator as a transaction-level model\n' "$3"
printf '.SH SYNOPSIS\n.B kernbench\n.I COMMAND\n.RI [ ARGUMENTS ]\n.SH DESCRIPTION\n'
printf '%s\n' "$help" | sed -n '3p'
printf 'Each command lists its options and an example with\n.BR \\-\\-help .\n.SH COMMANDS\n'
printf '%s\n' "$help" | awk '/^Commands:/ {on = 1; next} /^$/ {on = 0}
  on {split($0, part, /  +/); gsub(/-/, "\\-", part[2]); print ".TP\n.B " part[2] "\n" part[3]}'
printf '.SH EXIT STATUS\n'
awk -F' *[|] *' '/^## Exit codes/ {on = 1; next} /^## / {on = 0} on && $2 ~ /^[0-9]+$/ {gsub(/`/, "", $3); gsub(/\\/, "\\\\", $3); gsub(/-/, "\\-", $3); print ".TP\n.B " $2 "\n" $3}' "$2"
printf '.SH EXAMPLE\n.B '
printf '%s\n' "$help" | awk '/^Example:/ {getline; sub(/^ */, ""); gsub(/-/, "\\-"); print}'
printf '.SH SEE ALSO\nThe pages in share/doc/kernbench beside the folder of the tool.\n'
