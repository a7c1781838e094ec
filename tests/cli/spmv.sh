# untax run spmv, untax bench spmv: right results, one line for what cannot be read, and a selector from end to end.
source "$(dirname "$0")/helpers.bash"
cd "$folder" || exit 1
python3 - <<'PYTHON'
import gzip, random
random.seed(1)
for i in range(12):
    rows = 20 + 30 * i
    entries = {(r, random.randrange(rows)) for r in range(rows) for _ in range(1 + (r % 7) * (i % 3))}
    if i % 2:
        entries |= {(3, c) for c in range(rows)}
    text = "%%MatrixMarket matrix coordinate real general\n" + f"{rows} {rows} {len(entries)}\n"
    text += "".join(f"{r + 1} {c + 1} {random.uniform(-1, 1)}\n" for r, c in sorted(entries))
    with gzip.open(f"m{i:02}.mtx.gz", "wt") as out:
        out.write(text)
PYTHON

expect 0 run spmv --matrix m05.mtx.gz --iterations 10 --repeat 3 --threads 3 --verify
says "$out" '^m05.mtx.gz: 170 x 170, '
for kernel in csr_thread csr_warp2 csr_warp32 csr_mixed4 csr_mixed16 csr_block csr_adaptive csr_merge_path csr_balanced coo ell sellp; do
  says "$out" "^$kernel .* (same|by threads) +[0-9.e-]+$"
done
expect 0 run spmv --matrix m05.mtx.gz --dtype fp32 --kernel csr_merge_path --repeat 3 --verify --json -
python3 - "$out" <<'PYTHON' || wrong "run spmv: the figures say something else"
import json, sys
found = json.load(open(sys.argv[1]))
assert found["dtype"] == "fp32" and found["rows"] == 170
[one] = found["kernels"]
assert one["kernel"] == "csr_merge_path" and one["error"] <= 1e-5 and not one["reproducible"]
PYTHON

expect 0 bench spmv --matrices . --repeat 3 --threads 2 --json table.json --schema schema.json
says "$out" '^m11.mtx.gz +[0-9]+ '
expect 0 select train --schema schema.json --table table.json --folds 3 --json chooser.json
expect 0 run spmv --matrix m05.mtx.gz --selector chooser.json --repeat 3
says "$out" '^the selector takes [a-z_0-9]+, by (size alone|the lengths of rows)$'

printf 'group,name,rows,cols,nnz,row_min,row_q1,row_median,row_q3,row_max,row_variance\nA,b,100,90,500,1,3,5,6,20,9\n' >profiles.csv
expect 0 bench spmv --twins profiles.csv --repeat 2
says "$out" '^twin of A/b +500 '
expect 0 bench spmv --stencils --most-elements 3000 --verify --repeat 2
says "$out" '^27 points, 3-D +[0-9]+ '
# A record that no matrix has is left out, and those behind it are measured.
python3 - profiles.csv impossible.csv <<'PYTHON'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
no_matrix = {**rows[0], "name": "none", "row_min": "3", "row_q1": "2"}
with open(sys.argv[2], "w") as to:
    writer = csv.DictWriter(to, rows[0])
    writer.writeheader()
    writer.writerows([no_matrix, *rows])
PYTHON
expect 0 bench spmv --twins impossible.csv --repeat 2
says "$out" '^twin of A/b +500 '
says "$err" 'left out: twin of A/none: a twin: rows of 3 to .*; these have to ascend'

# So is a file that is none, and one that says that it has more rows than memory holds.
mkdir batch
cp m05.mtx.gz batch/b.mtx.gz
echo '%%MatrixMarket matrix' >batch/a.mtx
printf '%%%%MatrixMarket matrix coordinate real general\n2147483647 2147483647 1\n1 1 1\n' >batch/c.mtx
mkfifo batch/d.mtx
cp m06.mtx.gz batch/e.mtx.gz
(
  ulimit -v 8000000
  expect 0 bench spmv --matrices batch --repeat 2 --threads 2
  exit "$failures"
) || wrong "bench spmv: a bad file ends the batch"
says "$out" '^b.mtx.gz +[0-9]+ '
says "$out" '^e.mtx.gz +[0-9]+ '
says "$err" 'left out: batch/a.mtx, line 1: its format is'
says "$err" 'left out: batch/c.mtx: '
says "$err" 'left out: batch/d.mtx: is a pipe, not a regular file'

# A selector that cannot be used is refused before the work, by its name.
echo '{"title": "t", "known": ["width"], "candidates": [{"name": "a", "time": "a"}, {"name": "b", "time": "b"}]}' >odd.json
printf 'width,a,b\n1,1,2\n2,2,1\n3,1,2\n' >odd.csv
expect 0 select train --schema odd.json --table odd.csv --folds 2 --json odd-chooser.json
expect 2 run spmv --matrix m05.mtx.gz --selector odd-chooser.json --repeat 3
one_line_of_error
says "$err" 'the selector asks for width'
echo '[{"name": ' >broken.json
expect 2 bench spmv --matrices . --json broken.json --resume
one_line_of_error
says "$err" '^untax: broken.json: '

printf '%%%%MatrixMarket matrix coordinate complex general\n1 1 0\n' >complex.mtx
printf '%%%%MatrixMarket matrix coordinate real general\n1 1 5\n1 1 1\n' >short.mtx
while read -r line; do
  # shellcheck disable=SC2086 # words are arguments
  expect 2 $line
  one_line_of_error
done <<'COMMANDS'
run spmv
run spmv --matrix nothing.mtx
run spmv --matrix complex.mtx
run spmv --matrix short.mtx
run spmv --matrix m05.mtx.gz --dtype bf16
run spmv --matrix m05.mtx.gz --kernel csr
run spmv --matrix m05.mtx.gz --ranks 2
run spmv --matrix m05.mtx.gz --selector table.json
run all_reduce --matrix m05.mtx.gz
bench spmv
bench spmv --matrices nowhere
bench spmv --twins table.json
bench host --matrices .
COMMANDS
finish
