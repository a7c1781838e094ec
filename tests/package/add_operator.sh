#!/usr/bin/env bash
# An operator that is added to a copy of the tree as CONTRIBUTING.md says is in the command, the checkers, C and, where
# nanobind and numpy are, Python; its own tests pass, and few files outside its folder were touched.
# Usage: add_operator.sh COMMAND, where COMMAND is the build's untax.
set -euo pipefail
# shellcheck source=tests/package/build_folder.bash
source "$(dirname "$0")/build_folder.bash"
most_files=8

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
cat >program.c <<'TEXT'
#include <untax/untax.h>

/* C = A x B^T of one rank, by the names of operands and fields: 2 x 1 of k = 2. */
int main(void) {
  untax_world* world = NULL;
  untax_operator* op = NULL;
  const untax_setting problem[] = {{.name = "m", .integer = 2},
                                   {.name = "n", .integer = 1},
                                   {.name = "k", .integer = 2},
                                   {.name = "type", .kind = untax_field_choice, .word = "fp32"}};
  float a[] = {1, 2, 3, 4}, weights[] = {10, 1}, c[] = {0, 0};
  const untax_operand operands[] = {{.name = "a", .data = a, .rows = 2, .cols = 2},
                                    {.name = "weights", .data = weights, .rows = 1, .cols = 2},
                                    {.name = "c", .data = c, .rows = 2, .cols = 1}};
  if (untax_world_threads(1, NULL, &world) != untax_ok) return 1;
  if (untax_operator_plan(world, "my_op", problem, 4, &op) != untax_ok) return 2;
  if (untax_operator_run(op, operands, 3, NULL) != untax_ok) return 3;
  return c[0] == 12 && c[1] == 34 ? 0 : 4;
}
TEXT
{ cc -I include program.c -L build/release -Wl,-rpath,"$PWD/build/release" -luntax_c -o program && ./program; } ||
  wrong "C does not plan and run it by its name: $?"
rm -f program.c program
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
