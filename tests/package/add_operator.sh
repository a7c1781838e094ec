#!/usr/bin/env bash
# An operator that is added to a copy of the tree as CONTRIBUTING.md says is in the command, the checkers, C and, where
# nanobind and numpy are, Python; its own tests pass, and few files outside its folder were touched.
# Usage: add_operator.sh COMMAND, where COMMAND is the build's untax.
set -euo pipefail
build=$(cd "$(dirname "$1")" && while [ ! -f CMakeCache.txt ] && [ "$PWD" != / ]; do cd ..; done && pwd)
most_files=8
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

wrong() {
  failures=$((failures + 1))
  echo "WRONG: $*"
}

cached() {
  sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"
}

if ! command -v clang-format-14 >/dev/null; then
  echo "skipped: clang-format-14, which the steps of CONTRIBUTING.md run, is not installed"
  exit 77
fi

git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$folder"
cd "$folder"
git init -q
git add -A
git -c user.name=test -c user.email=test@localhost commit -qm tree

# The first two blocks of commands are the steps that make the operator; the third builds it.
awk '/^## Add an operator/ {inside=1} /^```sh$/ && inside {block++; copying=block<3; next} /^```$/ {copying=0} copying' \
  CONTRIBUTING.md >steps.sh
bash -euo pipefail steps.sh
rm steps.sh

python=OFF
if python3 -c 'import nanobind, numpy' 2>/dev/null; then python=ON; fi
targets=(untax_cli untax_c my_op_test my_op_model_test)
if [ "$python" = ON ]; then targets+=(untax_python); fi
# In a folder of the same depth the compiler's cache has all objects that the new operator does not change.
if ! { cmake --preset release -D CMAKE_CXX_COMPILER="$(cached CMAKE_CXX_COMPILER)" \
  -D UNTAX_EXAMPLES=OFF -D UNTAX_INSTALL=OFF -D UNTAX_PYTHON=$python &&
  cmake --build --preset release --target "${targets[@]}"; } >log 2>&1; then
  tail -40 log
  exit 1
fi
rm log

build/release/untax run my_op --ranks 3 --pattern all --verify --repeat 1 -m 37 -n 53 -k 72 >out || wrong "a run failed"
[ "$(grep -c ' right$' out)" -ge 5 ] || wrong "not every pattern is right: $(cat out)"
build/release/untax check my_op --quick >out || wrong "the checkers found something: $(cat out)"
find build -name my_op_test -type f -perm -u+x -exec {} --gtest_brief=1 \; || wrong "its tests fail"
grep -q 'untax_operator_plan' include/untax/c/operator.h || wrong "C has no plans by name"
if [ "$python" = ON ]; then
  cp "$(find build -name '_core*.so' | head -1)" build/release/libuntax_c.so python/untax
  PYTHONPATH=python python3 - <<'TEXT' || wrong "Python does not run it"
import numpy
import untax

def body(world):
    op = untax.MyOp(world, m=6, n=5, k=16, dtype="fp32")
    a = numpy.arange(6 * 16, dtype=numpy.float32).reshape(6, 16)[world.rank * 3:][:3]
    weights = numpy.ones((5, 16), numpy.float32)
    assert (op(a, weights) == (numpy.arange(96).reshape(6, 16).sum(1)[:, None])).all()

untax.run_threads(2, body)
TEXT
  rm -f python/untax/*.so out
else
  echo "Python was not tried: nanobind or numpy is not installed"
fi
rm -f out

git add -A
touched=$(git diff --cached --name-only | grep -v '^ops/my_op/' || true)
echo "outside ops/my_op: ${touched//$'\n'/, }"
[ "$(wc -l <<<"$touched")" -le $most_files ] || wrong "more than $most_files files outside its folder were touched"
[ "$failures" -eq 0 ]
