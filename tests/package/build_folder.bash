# What the tests of this folder share: the build that a command is of, a folder of their own, and what was wrong.
build=$(cd "$(dirname "$1")" && while [ ! -f CMakeCache.txt ] && [ "$PWD" != / ]; do cd ..; done && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

wrong() {
  failures=$((failures + 1))
  echo "WRONG: $*"
}

# cached NAME: the value of a variable of the build.
cached() {
  sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"
}
