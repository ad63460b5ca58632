# Shared by the scripts: sourced, not run.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

if [ -t 2 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'; else bold= red= green= plain=; fi
say() { printf '%s\n' "$*" >&2; }
die() { say "${red}error:${plain} $*"; exit 1; }

# help_of FILE: the comment at the head of a script, without its marks.
help_of() { sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$1"; }
