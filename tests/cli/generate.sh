# untax generate: the same tokens on any number of ranks, and one line for what cannot be done.
source "$(dirname "$0")/helpers.bash"
cd "$folder" || exit 1
cat >tiny.json <<'JSON'
{"model_type": "qwen3", "torch_dtype": "float32", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
 "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 211, "max_position_embeddings": 128,
 "rms_norm_eps": 1e-6, "rope_theta": 1e4}
JSON

expect 0 generate --model tiny.json --random-weights --prompt 9 --tokens 7 --batch 3
says "$out" '^tiny.json, random weights, 1 rank \(threads\), 3 sequences, prompts of 9 tokens$'
says "$out" '^time to first token +[0-9.]+ ms$'
says "$out" '^time per token +[0-9.]+ ms$'
says "$out" '^tokens a second +[0-9.]+$'
for ranks in 1 2 3 4; do
  expect 0 generate --model tiny.json --random-weights --prompt 9 --tokens 7 --batch 3 --ranks "$ranks" --json "$ranks.json"
done
mkdir -m 700 meeting
for rank in 0 1 2; do
  UNTAX_RANK=$rank UNTAX_WORLD_SIZE=3 UNTAX_RENDEZVOUS=$PWD/meeting timeout 300 "$untax" generate --model tiny.json \
    --random-weights --prompt 9 --tokens 7 --batch 3 --json processes.json >"$out" 2>"$err" &
done
wait
expect 0 generate --model tiny.json --random-weights --ids 5,6,7 --tokens 2 --dtype bf16 --json ids.json
for type in fp32 bf16; do
  expect 0 generate --model tiny.json --random-weights --prompt 9 --tokens 7 --batch 3 --ranks 2 --dtype $type --beside library \
    --repeat 2 --json beside-$type.json
  says "$out" '^ +untax +library, graph +factor +library, eager +factor$'
  says "$out" '^time to first token( +[0-9.]+ ms){2} +[0-9.]+ +[0-9.]+ ms +[0-9.]+$'
  says "$out" '^time per token( +[0-9.]+ ms){2} +[0-9.]+ +[0-9.]+ ms +[0-9.]+$'
  says "$out" '^tokens a second( +[0-9.]+){5}$'
done
says "$out" '^The tokens of untax and of '
expect 0 generate --model tiny.json --random-weights --tokens 1 --beside library --repeat 1
says "$out" '^The tokens of untax and of the library are equal.$'
python3 - <<'PYTHON' || wrong "generate: the figures say something else"
import json
runs = [json.load(open(f"{ranks}.json")) for ranks in (1, 2, 3, 4)]
assert [run["ranks"] for run in runs] == [1, 2, 3, 4]
processes = json.load(open("processes.json"))
assert processes["ranks"] == 3 and processes["kind"] == "processes" and processes["tokens"] == runs[0]["tokens"]
assert all(run["tokens"] == runs[0]["tokens"] for run in runs)
assert [len(tokens) for tokens in runs[0]["tokens"]] == [7, 7, 7] and runs[0]["tokens_per_second"] > 0
both = json.load(open("beside-fp32.json"))
assert both["tokens"] == runs[0]["tokens"] and both["repeats"] == 2
assert [way["way"] for way in both["beside"]] == ["library, graph", "library, eager"]
for way in both["beside"]:
    assert way["tokens_equal"] and way["tokens"] == both["tokens"] and "first_difference" not in way
    assert way["first_token_factor"] == way["first_token_seconds"] / both["first_token_seconds"]
    assert way["token_factor"] == way["token_seconds"] / both["token_seconds"] and way["tokens_per_second"] > 0
rounded = json.load(open("beside-bf16.json"))
for way in rounded["beside"]:
    assert way["tokens_equal"] == (way["tokens"] == rounded["tokens"]) == ("first_difference" not in way)
    if not way["tokens_equal"]:
        row, place = way["first_difference"]["sequence"], way["first_difference"]["token"]
        assert way["tokens"][row][:place] == rounded["tokens"][row][:place]
        assert way["tokens"][row][place] != rounded["tokens"][row][place]
ids = json.load(open("ids.json"))
assert ids["prompt"] == 3 and len(ids["tokens"]) == 1 and ids["token_seconds"] > 0
PYTHON

mkdir weightless
cp tiny.json weightless/config.json
while read -r pattern arguments; do
  # shellcheck disable=SC2086 # words on purpose
  expect 2 generate $arguments
  one_line_of_error
  says "$err" "$pattern"
done <<'WRONG'
model
positions --model tiny.json --random-weights --prompt 128 --tokens 1
safetensors --model weightless
vocabulary --model tiny.json --random-weights --ids 211
heads --model tiny.json --random-weights --ranks 9
model_type --model deepseek-v3 --random-weights
neither --model llama-9 --random-weights
dtype --model tiny.json --random-weights --dtype fp8
library --model tiny.json --random-weights --beside torch
beside --model tiny.json --random-weights --repeat 2
WRONG
finish
