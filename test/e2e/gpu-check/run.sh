#!/usr/bin/env bash
# usage: ./run.sh [--device cuda:0] [--driver FILE] [--level LEVEL]
#
# Builds astra-run with g++ and cmake, runs every case of this folder on the GPU, and compares the SHA-256 of what it writes
# with those that the reference evaluator gave. Prints one table, then measures a product, a copy and a softmax, and products,
# softmax and attention under the plans of the file plans, whose bits must be equal, and writes results.md with the row and the table for docs/gpu-status.md; the last line is "N passed, N failed". With --device cpu it runs the cases on the CPU
# alone, at --level (the best that it has, if not given), with two threads.
set -euo pipefail
cd "$(dirname "$0")"
device=cuda:0 driver= level=
while [ $# -gt 0 ]; do
  case $1 in
    --device | --driver | --level)
      [ $# -gt 1 ] || { echo "$1 needs a value" >&2; exit 2; }
      declare "${1#--}=$2"
      shift ;;
    --help) sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0"; exit ;;
    *) sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
  shift
done
cmake -S . -B build >build.log 2>&1 && cmake --build build -j "$(nproc)" >>build.log 2>&1 || { tail -n 30 build.log; exit 1; }
options=(--device="$device")
if [ -n "$driver" ]; then options+=(--driver="$driver"); fi
if [ -n "$level" ]; then options+=(--level="$level"); fi
if [ "$device" = cpu ]; then options+=(--threads=2); fi
if [ "$device" = cpu ]; then
  gpu="$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), ${level:-its best level}"
else
  gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader -i "${device#*:}" 2>/dev/null || echo "nvidia-smi is not there, -")
fi
today=$(date -u +%F)
echo "device: $device; $gpu; $today"
passed=0 failed=0
printf '%-32s %6s %6s  %s\n' module calls equal "first failure"
for module in cases/*/; do
  calls=0 equal=0 first=
  for call in "$module"*/; do
    calls=$((calls + 1))
    mkdir -p "$call/got"
    mapfile -t arguments <"$call/arguments"
    if (cd "$call" && ASTRA_STAND_IN_BUNDLE=../bundle.astra ../../../build/astra-run ../bundle.astra "${options[@]}" \
        "${arguments[@]}" >log 2>&1 && sha256sum --quiet -c golden >>log 2>&1); then
      equal=$((equal + 1))
    elif [ -z "$first" ]; then
      first="$(basename "$call"): $(head -n 1 "$call/log")"
    fi
  done
  printf '%-32s %6d %6d  %s\n' "$(basename "$module")" "$calls" "$equal" "$first"
  passed=$((passed + equal)) failed=$((failed + calls - equal))
done
if [ "$device" = cpu ]; then
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ]
  exit
fi
# The stand-in driver computes, thread by thread: small sizes, and no clock.
clock=speeds bundle=speeds.astra calls=50 small=
if [[ $driver == *stand-in* ]]; then clock=no-speeds bundle=speeds-small.astra calls=8 small=-small; fi
if speeds=$(ASTRA_STAND_IN_BUNDLE=$bundle build/speeds $bundle "$device" "${driver:--}" $calls $clock); then
  passed=$((passed + 1))
else
  failed=$((failed + 1))
fi
echo "$speeds"
# Works under other plans, each with its results checked; a plan changes no bit of them.
table= number=0
here=cuda:sm_90 # as the stand-in says
[[ $driver == *stand-in* ]] || here=cuda:sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader -i "${device#*:}" 2>/dev/null | tr -d .)
declare -A bits
while read -r work plan; do
  number=$((number + 1))
  kind=contract
  [ "$work" = softmax ] && kind=rows
  targets=${plan%%"$kind":*}
  targets=${targets% }
  if [ -n "$targets" ] && [[ ,${targets//sm_90a/sm_90}, != *,$here,* ]]; then
    table+="| $work | $plan | not of this GPU |"$'\n'
    continue
  fi
  one=plans.d/$number$small.astra
  said=no same=
  if said=$(ASTRA_STAND_IN_BUNDLE=$one build/speeds "$one" "$device" "${driver:--}" "$calls" "${clock/speeds/$work}" build/bits); then
    same=$(<build/bits)
    if [ "${bits[$work]:=$same}" != "$same" ]; then
      said="other bits than under the first plan"
      failed=$((failed + 1))
    else
      passed=$((passed + 1))
    fi
  else
    failed=$((failed + 1))
  fi
  echo "${said:-no answer}  $work $plan"
  table+="| $work | $plan | ${said:-no answer} |"$'\n'
done < <(grep -v '^#' plans)
blas=
[ "$clock" = no-speeds ] || blas=$(build/speeds - "$device" "${driver:--}" "$calls" cublas-bf16 || true)
{
  echo "| GPU | driver | date | cases | strict f32 product 4096, beside cuBLAS in f32 | copy | softmax 8192 x 4096 |"
  echo "|---|---|---|---|---|---|---|"
  echo "| ${gpu%, *} | ${gpu##*, } | $today | $passed passed, $failed failed | $speeds |"
  echo
  echo "Under other plans on $gpu, $today: strict f32 product 4096, softmax 8192 x 4096, bf16 products 4096 of matrix units (hopper16 by warp groups"
  echo "and by mma.sync, ampere8; results f32) beside cublasGemmEx of bf16 at ${blas:-no figure} TFLOP/s, strict f32 attention of 32 heads, 1024 keys:"
  echo
  echo "| work | plan | speed |"
  echo "|---|---|---|"
  printf '%s' "$table"
} >results.md
echo "results.md has the row and the table of plans for docs/gpu-status.md"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
