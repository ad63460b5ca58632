#!/bin/sh
# check-library.sh LIBRARY: what libastra_rt.so promises about itself. Exit code 1 and a sentence if it does not hold.
set -eu
lib=$1
fail() { echo "$lib: $*" >&2; exit 1; }

needed=$(readelf -dW "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for n in $needed; do
  case $n in libc.so.6 | libm.so.6 | ld-linux-*) ;; *) fail "it needs $n; libc, libm and the loader are allowed" ;; esac
done
readelf -dW "$lib" | grep -q 'SONAME.*\[libastra_rt.so.1\]' || fail "its soname is not libastra_rt.so.1"

# Symbols in .data and .bss. What the C compiler's start files bring is theirs.
writable=$(readelf -sW "$lib" | awk -v sections="$(readelf -SW "$lib" | sed -n 's/^ *\[ *\([0-9]*\)\] \.\(data\|bss\|tdata\|tbss\) .*/\1/p')" \
  'BEGIN { split(sections, list); for (i in list) writable[list[i]] } NF >= 8 && $7 in writable { print $8 }' |
  sort -u | grep -vxE '\.?(data|bss)|completed\.0|__dso_handle|__TMC_END__|__bss_start|_edata|_end' || true)
[ -z "$writable" ] || fail "it has writable globals:" $writable

exported=$(nm -D --defined-only "$lib" | awk '{ print $3 }' | grep -vE '^astra_[a-z0-9_]+@@ASTRA_1\.0$|^ASTRA_1\.0' || true)
[ -z "$exported" ] || fail "it exports:" $exported

stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$lib"
size=$(stat -c %s "$stripped")
[ "$size" -lt 307200 ] || fail "it has $size bytes stripped; 307200 are allowed"
echo "$lib: $size bytes stripped, needs: $(echo $needed)"
