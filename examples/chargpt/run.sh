#!/bin/sh
# usage: examples/chargpt/run.sh [FOLDER]
#
# Trains a small GPT on the characters of the Jargon File, which Debian has as a package, and lets it write: a quarter of an
# hour on two cores, nearly all of it training. The weights (weights.sha256) and the picture of the loss (curve.svg) are the
# same on every machine. FOLDER is where files go; build/chargpt if not given. Build first: scripts/build.
set -eu
cd "$(dirname "$0")/../.."
here=examples/chargpt bin=$PWD/build/bin out=${1:-build/chargpt}
mkdir -p "$out"
rm -f "$out/weights.safetensors" "$out/run.csv"
fail() { echo "chargpt: $*" >&2; exit 1; }

# The package is unpacked, not installed: that needs no rights, and some systems leave documents out when they install.
if [ ! -f "$out/jargon.txt.gz" ]; then
  (cd "$out" && apt-get download -q jargon-text) || fail "the package jargon-text cannot be fetched: has this machine apt-get, its lists (apt-get update) and a network?"
  dpkg-deb --fsys-tarfile "$out"/jargon-text_*.deb | tar -xO ./usr/share/doc/jargon-text/jargon.txt.gz >"$out/jargon.txt.gz"
fi
python3 $here/text.py "$out/jargon.txt.gz" "$out"

cp $here/chargpt.onnx $here/decode.onnx "$out"
python3 $here/begin.py "$out/chargpt.weights"
$bin/astra-compile "$out/chargpt.onnx" --dim batch=1..64 -o "$out/chargpt.astra" -j 2 --train --loss=cross_entropy --clip-norm=1 \
  --optimizer='adamw(lr=4e-3, beta2=0.99, weight_decay=0.1)' --schedule='cosine(steps=1932, warmup=100, min=0.05)'
$bin/astra-train "$out/chargpt.astra" --epochs 3 --batch 16 --seed 1 --threads "$(nproc)" \
  --data token="$out/train_token.npy",target="$out/train_target.npy" \
  --eval token="$out/heldout_token.npy",target="$out/heldout_target.npy" --out "$out/weights.safetensors" --log "$out/run.csv"
(cd "$out" && sha256sum --quiet -c "$OLDPWD/$here/weights.sha256") || fail "the weights have other bytes"
python3 examples/digits_train/curve.py "$out/run.csv" "$out/curve.svg"
cmp "$out/curve.svg" $here/curve.svg || fail "the picture of the loss is another one"

$bin/astra-compile "$out/decode.onnx" --dim length=0..127 -o "$out/decode.astra" -j 2 --weights "$out/weights.safetensors"
for seed in 1 2 3; do
  $bin/chargpt "$out/decode.astra" --prompt "
:hacker: n.

" --length 400 --temperature 0.7 --seed $seed
  echo "----"
done >"$out/samples.txt"
$bin/chargpt "$out/decode.astra" --prompt "The " --length 100 --temperature 0 >>"$out/samples.txt"
cat "$out/samples.txt"
cmp "$out/samples.txt" $here/samples.txt || fail "the samples are others"
