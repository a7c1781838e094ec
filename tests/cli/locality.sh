# untax locality: one order, the search, and orders that are written as source; wrong input is one line.
source "$(dirname "$0")/helpers.bash"

expect 0 locality list
says "$out" '^ +attention_backward '
says "$out" '^ +mi300x '
says "$out" '^ +swizzleperf_softmax '
expect 0 locality gemm --device mi300x -m 2048 -n 2048 -k 2048 --json "$folder/one.json"
says "$out" '^all .* %$'
expect 0 locality attention --device h200 --heads 8 --keys 4096 --causal 1 --order "naive block-first"
says "$out" '^K .* %$'
says "$out" '^over 5 seeds: hits [0-9.]+ % \+- [0-9.]+ points, time .* %$'
expect 0 locality attention --device mi300x --heads 16 --keys 4096 --seeds 2 --search --json "$folder/seeds.json"
says "$out" '^Over 2 seeds as numbered: hits '
python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["best"][0]["seeds"] == 2' "$folder/seeds.json" || wrong "locality: no seeds in JSON"
expect 0 locality black_scholes --device mi300x n=1048576 --search
says "$out" '^Nothing is to be gained: no order can hit more than 0.0 %'

# A text of one's own begins with one that is there.
expect 0 locality stencil2d --show
cp "$out" "$folder/mine.txt"
expect 0 locality "$folder/mine.txt" --device mi300x m=1024 n=2048 --search --json "$folder/found.json" --svg "$folder/order.svg"
says "$out" '^No order of these blocks hits more than '
python3 - "$folder" <<'PYTHON' || wrong "locality: the figures say something else"
import json, sys, xml.etree.ElementTree as xml
one = json.load(open(sys.argv[1] + "/one.json"))
assert one["blocks"] == 64 and 0 < one["hit_rate"] < 1 and len(one["domain_hit_rates"]) == 8
found = json.load(open(sys.argv[1] + "/found.json"))
assert found["distance"] >= -1e-9 and found["orders_tried"] >= 1 and found["best"]
assert max(b["hit_rate"] for b in found["best"]) <= found["limit"]["hit_rate"] + 1e-9
assert xml.parse(sys.argv[1] + "/order.svg").getroot().tag.endswith("svg")
PYTHON

# The three ways to write an order are the same bijection.
write() {  # NAME OF ORDER, KERNEL AND SIZES
  expect 0 locality "${@:2}" --device mi300x --order "$1" --cpp "$folder/order.hpp" --hip "$folder/order.hip" \
    --triton "$folder/order.py"
  expect 0 locality "${@:2}" --device mi300x --order "$1" --json -
  cat > "$folder/try.cpp" <<'CPP'
#include <cstdio>
#include <cstdlib>
#include "order.hpp"
namespace hip {
#include "order.hip"
}
int main(int, char** arguments) {
  for (int p = 0; p < std::atoi(arguments[1]); ++p) std::printf("%d %d\n", block_of(p), hip::block_of(p));
}
CPP
  ${CXX:-c++} -std=c++20 -Iinclude "-I$folder" "$folder/try.cpp" -o "$folder/try" || wrong "$1: does not compile"
  python3 - "$folder" "$out" "$1" <<'PYTHON' || wrong "$1: C++, HIP and Triton differ"
import json, subprocess, sys, types
folder, figures, name = sys.argv[1:]
blocks = json.load(open(figures))["blocks"]
language = types.ModuleType("triton.language")
language.where = lambda condition, yes, no: yes if condition else no
triton = types.ModuleType("triton")
triton.language, triton.jit = language, lambda f: f
torch = types.ModuleType("torch")
sys.modules.update({"triton": triton, "triton.language": language, "torch": torch})
space = {}
exec(open(folder + "/order.py").read(), space)
if "BLOCKS" in space:  # what order_table makes a tensor of
    language.load = lambda place: space["BLOCKS"][place]
    by_table = space["block_of"]
    space["block_of"] = lambda p: by_table(p, 0)
lines = subprocess.run([folder + "/try", str(blocks)], capture_output=True, text=True, check=True).stdout.splitlines()
of_cpp, of_hip = zip(*(map(int, line.split()) for line in lines))
assert sorted(of_cpp) == list(range(blocks))
assert of_cpp == of_hip == tuple(space["block_of"](p) for p in range(blocks)), name
PYTHON
}
write "remap by 8, snake of 3 along y" gemm m=3328 n=2560
write "full remap, 4 x 2 rectangles, bands of 2" gemm m=3328 n=2560
write "swizzled block-first" attention heads=12 keys=1280 batches=2
write "full remap, axes i kv, i last first" attention heads=6 keys=1280 causal=1
write "full remap, steps joined" attention heads=6 keys=1280
says "$folder/order.hip" 'int first_step\(int latest, int steps\)'
says "$folder/order.py" '^def first_step\(latest, steps\):'
write "remap by 8, Hilbert curve" gemm m=3328 n=2560
seq 129 -1 0 > "$folder/reversed.txt"
write "$folder/reversed.txt" gemm m=3328 n=2560
write "r = p % domains * 16 + p // domains; int = where(p < 128, r, p); y = int // x_blocks; x = max(int % x_blocks, 0)" gemm m=3328 n=2560
# Sizes are arguments: code for some sizes is right for others.
for name in "remap by 8, snake of 3 along y" "full remap, 4 x 2 rectangles, bands of 2" "p % 2 * (blocks // 2) + p // 2"; do
  expect 0 locality gemm --device mi300x m=5120 n=3072 --order "$name" --triton "$folder/large.py"
  expect 0 locality gemm --device mi300x m=3584 n=2560 --order "$name" --triton "$folder/small.py"
  python3 - "$folder" <<'PYTHON' || wrong "$name: the code for other sizes differs"
import sys, types
language = types.ModuleType("triton.language")
language.where = lambda condition, yes, no: yes if condition else no
triton = types.ModuleType("triton")
triton.language, triton.jit = language, lambda f: f
sys.modules.update({"triton": triton, "triton.language": language})
large, small = {}, {}
exec(open(sys.argv[1] + "/large.py").read(), large)
exec(open(sys.argv[1] + "/small.py").read(), small)
assert [large["block_of"](p, y_blocks=14, x_blocks=10) for p in range(140)] == [small["block_of"](p) for p in range(140)]
PYTHON
done

# Orders of one's own: a formula, a file with one, a list of blocks; to judge, and to compare a search with.
expect 0 locality gemm --device mi300x --orders
says "$out" '^full remap, Hilbert curve$'
expect 0 locality gemm --device mi300x m=4096 n=4096 k=1024 --order "full remap, bands of 8 along y" --json "$folder/named.json"
expect 0 locality gemm --device mi300x m=4096 n=4096 k=1024 --json "$folder/formula.json" \
  --order "r = p % 8 * (blocks // 8) + p // 8; y = r // 128 * 8 + r % 8; x = r % 128 // 8"
cat > "$folder/order.txt" <<'FORMULA'
r = p % domains * (blocks // domains) + p // domains   # one run of blocks for each domain
band = 8 * x_blocks
y = r // band * 8 + r % 8
x = r % band // 8
FORMULA
expect 0 locality gemm --device mi300x m=4096 n=4096 k=1024 --order "$folder/order.txt" --json "$folder/file.json"
seq 255 -1 0 > "$folder/list.txt"
expect 0 locality gemm --device mi300x m=4096 n=4096 k=1024 --order "$folder/list.txt" --search --json "$folder/list.json"
expect 1 locality gemm --device mi300x m=4096 n=4096 k=1024 --order "p // 4" --json "$folder/wrong.json"
says "$out" '^No bijection: 64 of 256 blocks are done'
python3 - "$folder" <<'PYTHON' || wrong "locality: orders of one's own say something else"
import json, sys
named, formula, file, listed, wrong = (json.load(open(f"{sys.argv[1]}/{name}.json"))
                                       for name in ("named", "formula", "file", "list", "wrong"))
assert named["hit_rate"] == formula["hit_rate"] == file["hit_rate"]
assert named["domain_hit_rates"] == formula["domain_hit_rates"]
assert any(row["order"].endswith("list.txt") for row in listed["best"]), listed["best"]
assert wrong["verdict"] == {"is_bijection": False, "distinct": 64, "repeated": 64, "outside": 0}
PYTHON

# The document has what is simulated of the published figures.
expect 0 locality published GEMM
grep '^|.*%' "$out" | grep -vxFf docs/locality.md && wrong "docs/locality.md: run bench/locality/generate.py again"

# Patterns of others that are no bijections are told from those that are.
expect 0 locality published softmax
says "$out" '^\| softmax \| final \| \*\*64 of 32768\*\* \|'
says "$out" '^\| softmax \| runs dealt to the domains \| all, once \|'

# refused PATTERN ARGUMENT...: the line on stderr has to match.
refused() {
  expect 2 locality "${@:2}"
  one_line_of_error
  says "$err" "$1"
}
refused 'there is no kernel "gem"; .*; did you mean gemm\?' gem
refused 'did you mean list\?' lst
refused 'there is no device "mi300"; .*; did you mean mi300x\?' gemm --device mi300
refused 'the size m is given twice' gemm m=100 -m 200
refused 'the size m is given twice' gemm m=100 m=100
refused '"extra" means nothing to untax locality list' list extra
refused 'json means nothing to untax locality list' list --json -
refused '-m means nothing to untax locality published' published -m 3
refused '-m means nothing to untax locality sweeps' sweeps -m 3
refused 'device means nothing to untax locality --show' gemm --show --device h200
refused 'svg and --cpp are both' gemm --device h200 --svg "$folder/x" --cpp "$folder/x"
refused 'svg and --cpp are both -' gemm --device h200 --svg - --cpp -
refused 'cpp and KERNEL are both' "$folder/mine.txt" --device h200 --cpp "$folder/mine.txt"
refused 'untax locality --orders lists those' gemm --device h200 --order nix
refused 'no bijection: 512 of 1024 blocks' gemm --device h200 --order "p // 2" --search
refused 'no bijection: 512 of 1024 blocks' gemm --device h200 --order "p // 2" --cpp "$folder/x"
refused 'a division that rounds down is //' gemm --device h200 --order "p / 2"
refused 'q is not known; known are p, blocks, domains, y, x' gemm --device h200 --order "q + 1"
refused 'a division by 0 at position 5' gemm --device h200 --order "p // (p - 5)"
refused 'a list of 256 blocks does not fit a kernel of 1024' gemm --device h200 --order "$folder/list.txt"
expect 2 locality
expect 2 locality gemm
expect 2 locality sort --device h200
expect 2 locality gemm --device h2
expect 2 locality gemm --device h200 depth=3
expect 2 locality gemm --device h200 m
expect 2 locality gemm --device h200 m=0
expect 2 locality gemm --device h200 --order nix
expect 2 locality /etc --device h200
expect 2 locality gemm --device /nonexistent.json
printf 'axis x = 3\nread A = 0, 1, 0, 1\n' > "$folder/bad.txt"
expect 2 locality "$folder/bad.txt" --device h200
finish
