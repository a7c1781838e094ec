#!/usr/bin/env bash
# A selector of ways to multiply a sparse matrix by a vector on this GPU: measured on twins of the matrices of a table,
# trained on them, and judged on real matrices, which training has not seen.
#
#   train_spmv.sh measure UNTAX RESULTS MATRICES [SECONDS]   needs the GPU; again, it goes on where it was
#   train_spmv.sh judge UNTAX RESULTS                        needs none
#
# MATRICES is a folder of Matrix Market files. RESULTS gets the tables, the selector, and how good it is.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
action=${1:?measure or judge} untax=${2:?the command untax} results=${3:?a folder for results}
mkdir -p "$results"

measure() {
  local matrices=${1:?a folder of matrices} seconds=${2:-0}
  "$untax" bench spmv --backend cuda --matrices "$matrices" --repeat 9 --json "$results/real.json"
  "$untax" bench spmv --backend cuda --stencils --most-elements 64000000 --repeat 9 --json "$results/regular.json"
  "$untax" bench spmv --backend cuda --twins "$here/V100.csv.gz" --take 1000000 --most-elements 30000000 \
    --mixed-bands --repeat 5 --seconds "$seconds" --resume --json "$results/twins.json" --schema "$results/schema.json"
}

# A table as measured, or as kept in the repository.
table() { [[ -f $results/$1.json ]] && echo "$results/$1.json" || echo "$results/$1.json.gz"; }

judge() {
  "$untax" select train --schema "$results/schema.json" --table "$(table twins)" \
    --json "$results/selector.json" --header "$results/selector.hpp" --text "$results/selector.txt" \
    --svg "$results/selector.svg"
  echo "twins, five-fold:"
  "$untax" select evaluate --schema "$results/schema.json" --table "$(table twins)" --against cusparse_ \
    --json "$results/twins-evaluation.json" --svg "$results/twins.svg"
  echo "real matrices, which training has not seen:"
  "$untax" select evaluate --selector "$results/selector.json" --table "$(table real)" --against cusparse_ \
    --json "$results/real-evaluation.json" --svg "$results/real.svg"
}

case $action in
  measure) measure "${@:4}" ;;
  judge) judge ;;
  *) echo "measure or judge, not $action" >&2 && exit 2 ;;
esac
