#!/usr/bin/env bash
# Installs missing packages, builds, and runs every test and the style gates: the release build, with CUDA if nvcc is
# found. With --all the same tests run under ThreadSanitizer, and under AddressSanitizer with
# UndefinedBehaviorSanitizer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source cmake/dependencies.sh

usage() {
  cat <<'TEXT'
Usage: ./test.sh [--quick | --all] [--preset NAME]... [--with-torch | --without-torch]
Without arguments: the release build, which is the one called cuda where nvcc is found, and the Python
package, for hosts, in a virtual environment. Where there is no GPU torch is installed there too, without
the packages of CUDA, and also Triton and transformers (760 MB are loaded), and their tests run on the CPU.
  --quick         what CI runs: the release build and its tests, all gates, and, where nvcc is, a
                  sixth of the sources that need CUDA, others for each commit, but neither the tests
                  that need GPUs nor the kernels of the GEMM and of attention, of which the gate ptx
                  compiles one of each kind; clang-tidy looks at a seventh of the sources, and a seventh
                  of the headers is compiled alone, others for each commit
  --all           ThreadSanitizer, and AddressSanitizer with UndefinedBehaviorSanitizer, too
  --with-torch    installs torch with all that it needs for GPUs, and scipy, which takes gigabytes, and runs
                  the tests that need them
  --without-torch installs no torch; the tests that need it are skipped
  --preset NAME   only this build (release, dev, tsan, asan or cuda); may be given several times
The last line says how many tests passed, failed and were skipped in all builds together.
TEXT
}

configuration=(-D UNTAX_GPU_TESTS=ON -D UNTAX_UNITY=OFF)  # a build folder remembers
release=release
if has_nvcc; then release=cuda; fi

quick=no
torch=cpu
if nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then torch=no; fi
presets=()
while (($# > 0)); do
  case "$1" in
    --quick)
      quick=yes
      presets+=(release)
      export UNTAX_GATE_SHARE=7
      ;;
    --with-torch) torch=yes ;;
    --without-torch) torch=no ;;
    --all) presets+=("$release" tsan asan) ;;
    --preset)
      if (($# < 2)); then
        echo "--preset needs a name: release, dev, tsan, asan or cuda" >&2
        exit 2
      fi
      shift
      presets+=("$1")
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      echo "Unknown argument '$1'." >&2
      usage >&2
      exit 2
      ;;
  esac
  shift
done
if ((${#presets[@]} == 0)); then presets=("$release"); fi
for preset in "${presets[@]}"; do
  case "$preset" in
    release | dev | tsan | asan | cuda) ;;
    *)
      echo "There is no build '$preset'; there are release, dev, tsan, asan and cuda." >&2
      exit 2
      ;;
  esac
done

heading "Packages"
install_packages "${untax_build_packages[@]}" python3-dev python3-venv
install_optional clang-format-14 clang-tidy-14 shellcheck pkg-config
choose_compiler

passed=0 failed=0 skipped=0

# build PRESET CMAKE_BUILD_ARGUMENT...: configures and builds; counts a failure.
build() {
  local preset=$1
  shift
  heading "$preset: build"
  local precompile=ON
  if [[ "$preset" == release ]]; then precompile=OFF; fi  # there a missing #include is an error
  if ! { quietly "build/$preset/configure.log" cmake --preset "$preset" "${configuration[@]}" \
    -D UNTAX_PRECOMPILE=$precompile &&
    quietly "build/$preset/build.log" cmake --build --preset "$preset" "$@"; }; then
    failed=$((failed + 1))
    return 1
  fi
}

# run_stage PRESET STAGE CTEST_ARGUMENT...: runs tests and adds up their cases.
run_stage() {
  local preset=$1 stage=$2 counts
  local results=build/$preset/results
  shift 2
  rm -rf "$results"
  mkdir -p "$results"
  ctest --preset "$preset" -j "$(nproc)" --output-junit "$PWD/$results/ctest.xml" "$@" </dev/null || true
  counts=$(python3 tests/summary.py "$results")
  echo "$preset, $stage: $counts"
  read -r p _ f _ s _ <<<"${counts%%$'\n'*}"
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

# install_torch_for_cpus VENV: installs torch from PyPI with only the packages that its import and gloo need:
# python/tests/cuda_stand_ins.py replaces its packages of CUDA.
install_torch_for_cpus() {
  if [[ "$torch" != cpu ]]; then return; fi
  quietly build/python-torch.log "$1/bin/pip" install -q --no-deps \
    torch triton nvidia-cuda-runtime filelock typing-extensions sympy mpmath networkx jinja2 markupsafe fsspec setuptools &&
    quietly build/python-stand-ins.log "$1/bin/python" python/tests/cuda_stand_ins.py "$("$1/bin/python" -c \
      'import sysconfig; print(sysconfig.get_path("platlib"))')" &&
    quietly build/python-transformers.log "$1/bin/pip" install -q transformers
}

# test_python PRESET: makes a wheel, installs it in a virtual environment of its own, checks its contents and runs
# pytest. The compiler is that of the build PRESET, so that ccache has its objects. Without GPUs two files of tests run
# at a time: their imports and compilations use one core each.
test_python() {
  local venv=build/venv wheels=build/wheels counts at_a_time=()
  if [[ "$torch" == cpu ]]; then at_a_time=(-n 2 --dist loadfile); fi
  heading "Python: wheel"
  # shellcheck disable=SC2046
  if ! { rm -rf "$wheels" && python3 -m venv "$venv" &&
    quietly build/python-packages.log "$venv/bin/pip" install -q \
      scikit-build-core nanobind nanobind-backend numpy pytest pytest-xdist abi3audit auditwheel $([[ "$torch" == yes ]] && echo torch triton scipy transformers) &&
    install_torch_for_cpus "$venv" &&
    CXX=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "build/$1/CMakeCache.txt") quietly build/python-wheel.log \
      "$venv/bin/pip" -v wheel . --no-build-isolation --no-deps -w "$wheels" &&
    quietly build/python-install.log "$venv/bin/pip" install --force-reinstall --no-deps "$wheels"/untax-*.whl &&
    quietly build/python-abi3.log "$venv/bin/abi3audit" --verbose "$wheels"/untax-*.whl &&
    quietly build/python-auditwheel.log "$venv/bin/auditwheel" show "$wheels"/untax-*.whl; }; then
    failed=$((failed + 1))
    return
  fi
  find "$wheels" -name '*.whl' -printf '%f, %k KiB\n'
  if [[ -n $(find "$wheels" -name '*.whl' -size +39999k) ]]; then
    echo "The wheel has to be smaller than 40 MB." >&2
    failed=$((failed + 1))
  fi
  heading "Python: tests"
  rm -f build/pytest.xml
  "$venv/bin/python" -m pytest -q -rs "${at_a_time[@]}" --junitxml build/pytest.xml </dev/null || true
  counts=$(python3 tests/summary.py --pytest build/pytest.xml)
  echo "Python: $counts"
  read -r p _ f _ s _ <<<"$counts"
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

# Gates read sources, which do not depend on the build, so they run once, in the build that has most sources.
gates=${presets[0]}
if [[ "$quick" == yes && "$release" == cuda ]]; then
  configuration=(-D UNTAX_GPU_TESTS=OFF -D UNTAX_UNITY=OFF -D UNTAX_CUDA_SHARE=6)
  build cuda --target untax_cuda_objects && passed=$((passed + 1))
  gates=cuda
fi
for preset in "${presets[@]}"; do
  build "$preset" || continue
  if [[ "$preset" == "${presets[0]}" ]]; then
    heading "$gates: style gates"
    run_stage "$gates" "style gates" --label-regex '^style$'
  fi
  heading "$preset: tests"
  run_stage "$preset" tests --label-exclude '^style$'
  if [[ "$preset" == release || "$preset" == cuda ]]; then test_python "$preset"; fi
done

heading "Done"
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0 && passed > 0))
