#!/usr/bin/env bash
# Installs what is missing, builds the command, and measures the taxes of a real model's layers on this machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source cmake/dependencies.sh

model=models/llama-3.2-1b.json
page=build/taxes.html

heading "Packages"
install_packages "${untax_build_packages[@]}"
choose_compiler

heading "Build (a few minutes the first time)"
quietly build/release/configure.log cmake --preset release
quietly build/release/build.log cmake --build --preset release --target untax_cli

heading "untax doctor"
build/release/untax doctor

heading "untax taxes --model $model --tensor-parallel 4 --tokens 64"
build/release/untax taxes --model "$model" --tensor-parallel 4 --tokens 64 --html "$page" --json build/taxes.json

heading "Done"
echo "The same as a page with the waterfall: $PWD/$page"
