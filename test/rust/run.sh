#!/bin/sh
# run.sh [BUILD]: the tests of the Rust crate (bindings/rust), its examples and the code in its comments, on the libraries
# of a build folder. Nothing is downloaded: the crate has no dependencies. The last line is "N passed, N failed".
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$root/build}" && pwd)
if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
  echo "skipped: the Rust crate: there is no cargo and rustc here (Debian: apt-get install cargo)"
  exit 0
fi
export ASTRA_LIB_DIR="$build/lib" ASTRA_TEST_BUNDLE="$build/test/unit/runtime/standard.astra" RUSTFLAGS="-D warnings" RUSTDOCFLAGS="-D warnings"
export LD_LIBRARY_PATH="$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" # what rustdoc compiles knows no rpath
log=$build/rust/log
mkdir -p "$build/rust"
export ASTRA_TEST_FUNCTIONS="$build/rust/ranked.astra"
"$build/bin/astra-compile" "$root/bindings/rust/tests/ranked.uop" -o "$ASTRA_TEST_FUNCTIONS" --quiet
code=0
run() { "$@" --offline --locked --manifest-path "$root/bindings/rust/Cargo.toml" --target-dir "$build/rust"; }
run cargo test --features ranks >"$log" 2>&1 || code=1
cat "$log"
# The examples print what the same programs in C do (docs/runtime.md, docs/howto/functions.md).
"$build/bin/astra-compile" "$root/examples/affine/affine.uop" -o "$build/rust/affine.astra" --quiet
"$build/rust/debug/examples/affine" "$build/rust/affine.astra" | tee "$build/rust/example"
example=1
grep -q ': 14.25 46.25$' "$build/rust/example" || example=0
"$build/rust/debug/examples/rank" "$ASTRA_TEST_FUNCTIONS" | tee "$build/rust/example"
printf '%s\n' '[32.0, 10.0, 21.0]' "ASTRA_FUNCTION_FAILED: function 'rank' failed: element 1 is no number" |
  cmp -s - "$build/rust/example" || example=0
# The example of ranks prints the same bits as any number of ranks.
"$build/bin/astra-compile" "$root/examples/mesh/layer.uop" -o "$build/rust/layer.astra" --quiet
for ranks in 1 2 4; do
  "$build/bin/astra-launch" -n $ranks "$build/rust/debug/examples/ranks" "$build/rust/layer.astra" || echo failed
done | tee "$build/rust/ranks"
[ "$(sort -u "$build/rust/ranks" | grep -c '^loss [0-9.]*, w [0-9a-f ]*$')" = 1 ] && [ "$(wc -l <"$build/rust/ranks")" = 3 ] || example=0
sed -n 's/^test result: .* \([0-9]*\) passed; \([0-9]*\) failed;.*/\1 \2/p' "$log" |
  awk -v example=$example '{ p += $1; f += $2 } END { print p + example " passed, " f + 1 - example " failed" }'
[ $example = 1 ] && exit $code
exit 1
