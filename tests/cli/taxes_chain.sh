# untax taxes --chain: a whole model in every step of the ablation, and what makes no sense.
source "$(dirname "$0")/helpers.bash"
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$folder" || exit 1
cat >tiny.json <<'JSON'
{"model_type": "llama", "torch_dtype": "float32", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
 "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 208, "max_position_embeddings": 128,
 "rms_norm_eps": 1e-6, "rope_theta": 1e4}
JSON

expect 0 taxes --chain --backend host --model tiny.json --ranks 2 --tokens 3 --keys 40 --repeat 4 --json step.json --html step.html
says "$out" '^The taxes of tiny .* tensor parallel 2 .* 3 tokens .* fp32 .* host backend$'
says "$out" '^- A run is a step of 3 sequences, each with 40 keys that are its own.$'
says "$out" 'tokens that follow the prompts, 3 of 3 are equal in all steps'
says "$out" 'E3 was not measured'
grep -q "How it was measured" step.html || wrong "no page"
expect 0 taxes --chain --backend host --model tiny.json --ranks 1 --keys 0 --tokens 20 --repeat 2 --layers 2 --json prompt.json
says "$out" '^- A run is a prompt of 20 tokens.$'
says "$out" '^- The model is cut to the first 2 of 3 layers.$'
# 3 ranks do not have equal parts, so there is no bound.
expect 0 taxes --chain --backend host --model tiny.json --ranks 3 --keys 9 --repeat 1 --layers 1 --json uneven.json --compare step.json
says "$out" '^model +1 '
python3 - <<'PYTHON' || wrong "the reports of chains say something else"
import json
step, prompt, uneven = (json.load(open(f"{name}.json")) for name in ("step", "prompt", "uneven"))
assert (step["model"], step["layers"], step["tokens"], step["dtype"]) == ("tiny", 3, 3, "fp32")
assert prompt["layers"] == 2 and uneven["layers"] == 1
for report in (step, prompt, uneven):
    names = [row["name"] for row in report["rows"]]
    assert names in (["layer", "embedding and head"], ["model"]), names
    for row in report["rows"]:
        assert [entry["id"] for entry in row["steps"]] == ["E0", "E1", "E2", "E4"]
        first, last = row["steps"][0]["median"], row["steps"][-1]["median"]
        assert row["derived"]["bulk_synchronous"] == row["derived"]["locality"] == "not separable" or row["derived"]["joint"] == 0
        parts = ("launch", "engine", "bulk_synchronous", "locality", "joint", "stand_in")
        taxes = sum(row["derived"][part] for part in parts if row["derived"][part] != "not separable")
        assert abs(taxes - (first - last)) <= 1e-9 * first
        assert row["layers"] == (report["layers"] if row["name"] == "layer" else 1)
assert all(row["compute_seconds"] > 0 for row in step["rows"])
assert all(row["compute_seconds"] == 0 for report in (prompt, uneven) for row in report["rows"])
PYTHON

# Predicted: steps of a whole model beside what one H200 took, and taxes that add up.
expect 0 taxes --chain --model llama-3.1-70b --machine h200-8 --ranks 8 --tokens 64 --json predicted.json
says "$out" '^- A step is predicted from its parts'
for case in "llama-3.1-8b 1" "llama-3.1-8b 16" "qwen3-32b 1"; do
  read -r model sequences <<<"$case"
  expect 0 taxes --chain --model "$model" --machine h200-8 --ranks 1 --tokens "$sequences" --keys 2080 --json "$model-$sequences.json"
done
python3 - "$root" <<'PYTHON' || wrong "the prediction of a chain says something else"
import glob, json, sys
report = json.load(open("predicted.json"))
assert "predicted" in report["predicted"] and report["layers"] == 80
for row in report["rows"]:
    steps = [entry["median"] for entry in row["steps"]]
    assert steps[0] >= steps[1] >= steps[3] > row["compute_seconds"] > 0, (row["name"], steps)
for path in glob.glob(f"{sys.argv[1]}/bench/results/h200-1-*-torch-models-*.json"):
    measured = json.load(open(path))
    if measured["cut"]:  # the first layers of a model, of which what is no layer is a larger part
        continue
    keys = measured["asked"]["prompt"] + measured["asked"]["tokens"] // 2
    assert abs(keys - 2080) < 64
    for row in measured["rows"]:
        layer, ends = json.load(open(f"{measured['model']}-{row['sequences']}.json"))["rows"]
        predicted = layer["layers"] * layer["steps"][-1]["median"] + ends["steps"][-1]["median"]
        took = min(way["token"]["median"] for name, way in row["ways"].items() if name.startswith("untax"))
        assert abs(predicted / took - 1) <= 0.12, f"{path}: {row['sequences']} sequences: predicted {predicted}, took {took}"
PYTHON

while read -r pattern arguments; do
  # shellcheck disable=SC2086 # words on purpose
  expect 2 taxes $arguments
  one_line_of_error
  says "$err" "$pattern"
done <<'WRONG'
model --chain
operator --chain --operator all_gather_gemm
workers --chain --model tiny.json --workers 2
fp32 --chain --model tiny.json --machine h200-8 --keys 40
prompt --chain --model llama-3.1-8b --machine h200-8 --keys 0
ranks --chain --model llama-3.1-8b --machine h200-nvl-4 --ranks 8
layers --chain --model tiny.json --layers 4
positions --chain --backend host --model tiny.json --keys 120
chain --model tiny.json --layers 1
model_type --chain --model deepseek-v3
WRONG
finish
