# Are trees of untax/select as good as scikit-learn's? SCIKIT_PYTHON is a Python that has it, python3 if it is not set.
set -euo pipefail
untax=$1
python=${SCIKIT_PYTHON:-python3}
if ! "$python" -c 'import sklearn' 2>/dev/null; then
  echo "skipped: $python has no scikit-learn; make a virtual environment with it and set SCIKIT_PYTHON to its python"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for device in V100 MI100; do
  python3 - bench/select/$device.json "$folder/schema.json" <<'PYTHON'
import json, sys
schema = json.load(open(sys.argv[1]))
schema["iterations"] = [1]
json.dump(schema, open(sys.argv[2], "w"))
PYTHON
  "$untax" select evaluate --schema "$folder/schema.json" --table bench/select/$device.csv.gz \
    --json "$folder/figures.json" >"$folder/out"
  "$python" tests/select/scikit.py "$folder/figures.json" bench/select/$device.csv.gz
done
