# untax select: trains on a public table, and what comes out of it is used; wrong input is one line.
source "$(dirname "$0")/helpers.bash"
schema=bench/select/V100.json
table=bench/select/V100.csv.gz
file=$folder/chooser.json

expect 0 select train --schema $schema --table $table --folds 2 --leaves 8 --json "$file" --header "$folder/chooser.hpp" \
  --namespace chooser --svg "$folder/chooser.svg" --text -
says "$out" '^Does gathering pay\?$'
says "$out" '^Which candidate, by what was gathered\?$'
python3 - "$folder/chooser.svg" <<'PYTHON' || wrong "select train: the picture is no XML"
import sys, xml.etree.ElementTree as xml
assert xml.parse(sys.argv[1]).getroot().tag.endswith("svg")
PYTHON

expect 0 select evaluate --selector "$file" --table $table --json "$folder/figures.json" --svg "$folder/figures.svg"
says "$out" '^gathered for free +1000 '
python3 - "$folder" <<'PYTHON' || wrong "select evaluate: the figures say something else"
import json, sys, xml.etree.ElementTree as xml
found = json.load(open(sys.argv[1] + "/figures.json"))
assert {f["iterations"] for f in found} == {1, 10, 100, 1000}
for f in found:
    assert f["records"] == 2838 and f["mean_ratio"] >= 1 and f["p99_ratio"] <= f["worst_ratio"]
assert xml.parse(sys.argv[1] + "/figures.svg").getroot().tag.endswith("svg")
PYTHON

expect 0 select explain --selector "$file" rows=1000 cols=1000 nnz=9000 iterations=100
says "$out" '^Which candidate, by what'
expect 0 select emit --selector "$file"
says "$out" '^Does gathering pay'

# A long table, with names of kernels that have hyphens, tabs, and a time of 0; a schema is drafted from it.
printf 'kernel\tname\trows\telapsed\n' > "$folder/long.csv"
for i in $(seq 1 40); do
  printf 'merge-path\tm%s\t%s\t%s\n' "$i" "$((i * 100))" "$((50 + i))" >> "$folder/long.csv"
  printf 'row.wise\tm%s\t%s\t%s\n' "$i" "$((i * 100))" "$((i * i * i / 50))" >> "$folder/long.csv"
done
expect 0 select schema "$folder/long.csv"
cp "$out" "$folder/long.json"
expect 0 select train --schema "$folder/long.json" --table "$folder/long.csv" --folds 2 --header "$folder/long.hpp" --namespace long_table \
  --json "$folder/long-selector.json"
says "$err" ': 3 times are 0, below what its clock can tell; they are left out$'
says "$folder/long.hpp" 'enum class candidate : int \{ merge_path, row_wise \};'
expect 0 select explain --selector "$folder/long-selector.json" rows=1000
says "$out" '^  row.wise$'
expect 0 select explain --selector "$folder/long-selector.json" rows=4000
says "$out" '^  merge-path$'
# Seer's three tables: times, features, costs.
python3 - "$folder" <<'PYTHON'
import sys
folder = sys.argv[1]
lines = [(f"m{i}", i * 100, i % 7, 50 + i, i * i) for i in range(1, 41)]
open(folder + "/times.csv", "w").write("name;t_a;t_b\n" + "".join(f"{n};{a};{b}\n" for n, _, _, a, b in lines))
open(folder + "/features.csv", "w").write("name,rows,row_max\n" + "".join(f"{n},{r},{m}\n" for n, r, m, _, _ in lines[::-1]))
open(folder + "/costs.csv", "w").write("name,collect\n" + "".join(f"{n},0.01\n" for n, *_ in lines[:30]))
open(folder + "/three.json", "w").write('{"labels": ["name"], "known": ["rows"], "gathered": ["row_max"], "gathering": "collect", '
                                        '"candidates": [{"name": "a", "time": "t_a"}, {"name": "b", "time": "t_b"}]}')
PYTHON
expect 0 select evaluate --schema "$folder/three.json" --table "$folder/times.csv" --table "$folder/features.csv" \
  --table "$folder/costs.csv" --folds 2 --json "$folder/three-figures.json"
python3 -c 'import json, sys; assert all(f["records"] == 30 for f in json.load(open(sys.argv[1])))' "$folder/three-figures.json" ||
  wrong "select: three tables are not joined by their labels"

expect 2 select guess
expect 2 select schema
expect 2 select schema "$folder/three.json"
expect 2 select train --schema $schema
expect 2 select train --schema /etc --table $table
expect 2 select train --schema $schema --table /nonexistent.csv
expect 2 select evaluate --table $table
expect 2 select explain --selector "$file" rows=1000
expect 2 select explain --selector "$file" rows=many
expect 2 select explain --selector "$file" width=3
expect 2 select emit --selector $schema
expect 2 select emit --selector "$file" nothing

# Options without effect, files that would be written twice or are read, and features that would not be used.
ignored() {  # PATTERN ARGUMENT...
  expect 2 select "${@:2}"
  one_line_of_error
  says "$err" "$1"
}
ignored 'header means nothing to untax select evaluate; it is for train or emit' \
  evaluate --schema $schema --table $table --header x
ignored 'folds means nothing to untax select evaluate with --selector' evaluate --selector "$file" --table $table --folds 3
ignored 'json means nothing to untax select explain' explain --selector "$file" --json x rows=1 cols=1 nnz=1
ignored 'selector means nothing to untax select train' train --schema $schema --table $table --selector "$file"
ignored 'against means nothing to untax select train' train --schema $schema --table $table --against csr
ignored 'namespace means nothing without --header' emit --selector "$file" --namespace x
ignored 'is missing; .* or none of the features' explain --selector "$file" rows=9 cols=9 nnz=9 row_max=7
ignored 'rows is given twice' explain --selector "$file" rows=9 rows=8 cols=9 nnz=9
kept=$(cksum <"$file")
ignored 'json and --header are both' emit --selector "$file" --json "$folder/x" --header "$folder/x"
ignored 'json and --selector are both' emit --selector "$file" --json "$file"
ignored 'header and --text are both -' emit --selector "$file" --header - --text -
[ "$(cksum <"$file")" = "$kept" ] || wrong "the selector was overwritten"

# The header that docs/select.md asks for compiles with the code that it shows.
expect 0 select emit --selector "$file" --header "$folder/chooser.hpp" --namespace chooser
grep -q -- '--header chooser.hpp --namespace chooser ' docs/select.md || wrong "docs/select.md asks for another header"
echo '#include "chooser.hpp"
auto kernel = chooser::choose({9, 9, 9}, 1);' | ${CXX:-c++} -std=c++20 "-I$folder" -fsyntax-only -x c++ - ||
  wrong "the header does not compile"

# Tables and schemas that cannot be used: a sentence each.
small=$folder/small.json
refused() {  # TABLE PATTERN
  printf '%b' "$1" > "$folder/small.csv"
  expect 2 select evaluate --schema "$small" --table "$folder/small.csv"
  one_line_of_error
  says "$err" "$2"
}
echo '{"known": ["n"], "candidates": [{"name": "a", "time": "t_a"}, {"name": "b", "time": "t_b"}]}' > "$small"
refused 'n,t_a\n1,2\n' 'no column "t_b"'
refused 'n,t_a,t_b\n1,2,3\n2,fast,3\n' 'line 3: "fast" in column "t_a"'
refused 'n,t_a,t_b\n1,2,-3\n' 'the time of b is -3'
refused 'n,t_a,t_b\n1,2,3\n' '5 folds of 1 records'
refused '' 'it is empty'
echo '{"known": ["n"], "candidates": [{"name": "a", "time": "t_a"}]}' > "$small"
refused 'n,t_a\n1,2\n' 'a selector needs 2 or more'
finish
