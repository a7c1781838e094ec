# untax taxes on the host: models, single operators, attention, and what makes no sense.
source "$(dirname "$0")/helpers.bash"
file=$folder/taxes.json

expect 0 taxes --backend host --operator all_gather_gemm --ranks 2 -m 8 -n 16 -k 24 --gather k --repeat 2 --json "$file" \
  --html "$folder/taxes.html"
says "$out" 'all_gather_gemm +1 '
python3 - "$file" <<'PYTHON' || wrong "terms do not add up to E0"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["backend"] == "host" and report["tensor_parallel"] == 2 and "gpus" not in report
(row,) = report["rows"]
assert row["gather"] == "k" and (row["m"], row["n"], row["k"]) == (8, 16, 24)
total = row["steps"][0]["median"]
assert abs(row["derived"]["total"] - total) < 1e-9 * total
assert len(row["compute_spread"]) == 2
PYTHON
grep -q "How it was measured" "$folder/taxes.html" || wrong "no page"

expect 0 taxes --backend host --operator flash_decode --ranks 2 -m 2 --heads 4 --kv-heads 2 --head-dim 16 --keys 31 --repeat 2
says "$out" 'flash_decode +flash_decode +2 +64 +16 '

cat >"$folder/small.json" <<'JSON'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
 "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100, "torch_dtype": "bfloat16"}
JSON
expect 0 taxes --backend host --model "$folder/small.json" --tensor-parallel 2 --tokens 4 --keys 20 --repeat 2
says "$out" '^attention +2 '
says "$out" 'a sequence of 20 keys'
expect 0 taxes --backend host --model "$folder/small.json" --tensor-parallel 2 --tokens 4 --keys 0 --repeat 2
grep -q '^attention' "$out" && wrong "attention without keys"
expect 0 taxes --backend host --model "$folder/small.json" --layer all-reduce --tensor-parallel 2 --tokens 4 --keys 0 --repeat 2
says "$out" '^o +gemm_all_reduce +4 +64 +64 '
says "$out" '^down +gemm_all_reduce +4 +64 +96 '
says "$out" 'All ranks have all tokens'
grep -q '^qkv' "$out" && wrong "what communicates nothing was measured"

# A report claims only what it measured: no layers for one operator, no certainty after one run, no barrier for one
# rank.
expect 0 taxes --backend host --operator all_gather_gemm --ranks 1 -m 8 -n 16 -k 24 --repeat 1 --html "$folder/one.html" \
  --json "$folder/one.json"
says "$out" '^all_gather_gemm takes '
says "$out" 'The effect of chance on a single run'
says "$out" 'A single rank waits for no peer'
for file in "$out" "$folder/one.html" "$folder/one.json"; do
  grep -qiE 'average.layer|whole.model|times as fast|the largest tax is|no difference' "$file" && wrong "too much is said in $file"
done
python3 - "$folder/one.json" <<'PYTHON' || wrong "what JSON says of one run"
import json, sys
report = json.load(open(sys.argv[1]))
(row,) = report["rows"]
assert report["one_operator"] and report["verdict"]["fusing"] == "unknown" and report["verdict"]["largest_tax"] is None
assert row["derived"]["bulk_synchronous"] == 0 and row["link_seconds"] == 0
assert [step["id"] for step in row["steps"]] == ["E0", "E1", "E2", "E4"]
PYTHON
cores=$(nproc)
if [ "$cores" -lt 16 ]; then
  expect 0 taxes --backend host --operator flash_decode --ranks 16 -m 1 --heads 1 --kv-heads 1 --head-dim 8 --keys 16 --repeat 1
  says "$out" "^Warning: $cores cores for 16 ranks"
fi

# Beside another report.
expect 0 taxes --backend host --operator all_gather_gemm --ranks 2 -m 8 -n 16 -k 24 --repeat 2 --compare "$folder/one.json"
says "$out" '^this: +all_gather_gemm, 2 ranks, 8 tokens'
says "$out" '^other: all_gather_gemm, 1 rank, 8 tokens'
says "$out" '^launch tax '
says "$out" '^all_gather_gemm, E4 '
expect 2 taxes --backend host --operator all_gather_gemm --compare "$folder/small.json"
says "$err" '^untax: --compare: .*small.json: tax report: "format" is missing; `untax taxes --json` writes it$'
for other in /nowhere/report.json "$folder"; do
  expect 2 taxes --backend host --operator all_gather_gemm --compare "$other"
  one_line_of_error
  says "$err" 'give a file that untax taxes --json wrote'
done

# The waterfall alone. Libraries without instrumentation draw PNGs, so builds with sanitizers have none.
small=(taxes --backend host --operator all_gather_gemm --ranks 2 -m 8 -n 16 -k 24 --repeat 2)
expect 0 "${small[@]}" --plot "$folder/plot.svg"
says "$out" '^Plot: .*plot.svg$'
# Which parts are separable is up to what was measured.
python3 - "$folder/plot.svg" "$out" <<'PYTHON' || wrong "no picture of a bar for each part"
import re, sys, xml.etree.ElementTree as xml
root = xml.parse(sys.argv[1]).getroot()
text = open(sys.argv[2], encoding="utf-8").read()
bars = len(re.findall(r"^(?:E0|[a-z -]+?)  .* %$", text, re.M))
gone = len(re.findall(r"^[a-z -]+ +not separable$", text, re.M))
assert root.tag.endswith("svg") and bars + gone in (7, 8, 9), (bars, gone)
assert len([e for e in root if e.tag.endswith("rect")]) == bars + 1, bars
assert len([e for e in root if e.text == "not separable"]) == gone, gone
PYTHON
# A report that was written is shown, split and written anew.
expect 0 "${small[@]}" --json "$folder/first.json"
expect 0 taxes --report "$folder/first.json" --json "$folder/second.json" --html "$folder/second.html" --plot "$folder/second.svg"
cmp "$folder/first.json" "$folder/second.json" || wrong "a report is not what was read"
expect 2 taxes --report "$folder/first.json" --ranks 2
says "$err" '^untax: --tensor-parallel.* means nothing to --report'
expect 2 taxes --report "$folder/small.json"
one_line_of_error
if [ "$scale" -eq 1 ]; then
  if ldconfig -p 2>/dev/null | grep -q librsvg-2.so.2; then
    expect 0 "${small[@]}" --plot "$folder/plot.png"
    [ "$(head -c 4 "$folder/plot.png" | tail -c 3)" = PNG ] || wrong "no PNG"
  else
    expect 2 "${small[@]}" --plot "$folder/plot.png"
    says "$err" 'librsvg2-2'
  fi
fi
expect 2 "${small[@]}" --plot "$folder/plot.pdf"
says "$err" 'has to end in .svg or .png'
expect 2 "${small[@]}" --plot "/nowhere/plot.svg"

expect 2 taxes
says "$err" 'model FILE or --operator NAME'
expect 2 taxes --model "$folder/small.json" -n 8
says "$err" '^untax: -n means nothing with --model'
expect 2 taxes --operator gemm_all_reduce --layer all-reduce
expect 2 taxes --operator gemm_reduce_scatter --keys 8
says "$err" '^untax: --keys means nothing to a GEMM'
expect 2 taxes --operator gemm_reduce_scatter --gather k
says "$err" 'gathers nothing'
expect 2 taxes --operator flash_decode -k 8
expect 2 taxes --operator flash_decode --heads 6 --kv-heads 4
says "$err" 'a multiple of'
expect 2 taxes --operator all_gather_gem
says "$err" 'did you mean all_gather_gemm'
expect 2 taxes --backend gpu --operator all_gather_gemm
expect 2 taxes --backend cuda --ranks 1 --operator all_gather_gemm
says "$err" '2 or more'
for layer in sequence-parallel all-reduce; do
  UNTAX_RANKS_PER_GPU=2 expect 2 taxes --model models/llama-3.1-70b.json --layer $layer --tensor-parallel 2 --backend cuda
  one_line_of_error
  says "$err" 'UNTAX_RANKS_PER_GPU is 2.*no honest times'
done

expect 2 bench tune --operator gemm
says "$err" 'all_gather_gemm, gemm_all_scatter, gemm_reduce_scatter or gemm_all_reduce'
expect 2 bench rma --ranks 2 --ranks 4
says "$err" 'takes one'

# An operation that is too wide to be simulated soon is left out, with the reason.
sed 's/"hidden_size": [0-9]*/"hidden_size": 4194304, "head_dim": 128/' models/llama-3.1-8b.json >"$folder/wide.json"
expect 0 taxes --model "$folder/wide.json" --tokens 16 --machine machines/h200-8.json
says "$out" 'qkv, 32 times in the model: .*k 4194304 would take minutes to simulate'
finish
