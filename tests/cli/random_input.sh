# Damaged config files and random arguments, other ones each time: one line, and 0, 1 or 2.
source "$(dirname "$0")/helpers.bash"
tests=$((tests + 180 / scale))
python3 "$(dirname "$0")/random_input.py" "$untax" --files $((60 / scale)) --others $((60 / scale)) --arguments $((60 / scale)) \
  --limit $((60 * scale)) >"$out" 2>"$err" || wrong "input that is not answered well"
cat "$out"
finish
