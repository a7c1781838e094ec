# shellcheck shell=bash
# Shared by demo.sh and test.sh: what the build needs, and how the scripts speak. To be sourced.

# shellcheck disable=SC2034  # used by those who source this
untax_build_packages=(
  g++ cmake ninja-build ccache git python3
  libfmt-dev libcli11-dev nlohmann-json3-dev libopenblas-pthread-dev libgtest-dev relacy-dev
  libcsv-dev zlib1g-dev
)

# heading TEXT: a line with the time since the script started.
heading() {
  printf '\n==> [%02d:%02d] %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"
}

# missing_packages NAME...: prints the Debian packages that are not installed, one a line.
missing_packages() {
  local package
  for package in "$@"; do
    if [[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]]; then
      printf '%s\n' "$package"
    fi
  done
}

# install_packages NAME...: installs missing packages, or prints the command that would and ends the script.
install_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "No apt-get here, so nothing is installed. Needed, by their Debian names: $*"
    return
  fi
  local missing as_root=()
  mapfile -t missing < <(missing_packages "$@")
  if ((${#missing[@]} == 0)); then
    echo "everything is installed"
    return
  fi
  local by_hand="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
  if ((EUID != 0)); then
    if ! sudo -n true 2>/dev/null; then
      echo "Packages are missing, and this user may not install them. Run, then start this script again:" >&2
      echo "  sudo sh -c '$by_hand'" >&2
      exit 1
    fi
    as_root=(sudo -n)
  fi
  echo "installing ${missing[*]}"
  as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
  # An outdated or unreachable list may still suffice; the installation shows that.
  "${as_root[@]}" update </dev/null || true
  if ! "${as_root[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >/dev/null; then
    echo "The installation failed. What was tried: $by_hand" >&2
    exit 1
  fi
}

# install_optional NAME...: as install_packages, for packages that not every release has and that nothing depends on.
install_optional() {
  command -v apt-get >/dev/null || return 0
  local package there=()
  for package in $(missing_packages "$@"); do
    if apt-cache show "$package" >/dev/null 2>&1; then there+=("$package"); fi
  done
  if ((${#there[@]} > 0)) && { ((EUID == 0)) || sudo -n true 2>/dev/null; }; then
    install_packages "${there[@]}"
  fi
}

# choose_compiler: C++20 needs GCC 12; Ubuntu 22.04 has it beside an older default.
choose_compiler() {
  if [[ -z "${CXX:-}" ]] && (($(g++ -dumpversion | cut -d. -f1) < 12)); then
    install_packages g++-12
    export CXX=g++-12
  fi
}

# quietly LOG COMMAND...: on a terminal shows the command's output; else keeps it in LOG and shows its end if it fails.
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  if [[ -t 1 ]]; then
    "$@" </dev/null
  elif ! "$@" </dev/null >"$log" 2>&1; then
    tail -n 80 "$log"
    echo "failed: $*"
    return 1
  fi
}

# has_nvcc: whether nvcc is where the build looks for it.
has_nvcc() {
  PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin" command -v nvcc >/dev/null
}

# with_progress LOG COMMAND...: as quietly; without a terminal it prints a line every so often that shows how far the
# build is.
with_progress() {
  if [[ -t 1 ]]; then
    quietly "$@"
    return
  fi
  local log=$1 every=${UNTAX_PROGRESS_SECONDS:-15} begin=$SECONDS next=0 build steps
  next=$((begin + every))
  mkdir -p "$(dirname "$log")"
  : >"$log"
  "${@:2}" </dev/null >"$log" 2>&1 &
  build=$!
  while kill -0 "$build" 2>/dev/null; do
    sleep 0.2
    ((SECONDS < next)) && continue
    next=$((SECONDS + every))
    # Ninja begins its lines with [n/m]; before the first of them there is nothing to count.
    steps=$(grep -oE '^\[[0-9]+/[0-9]+\]' "$log" | tail -n 1 | tr -d '[]')
    printf '  [%02d:%02d] %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$(if [[ -n $steps ]]; then echo "step ${steps%/*} of ${steps#*/}"; else echo "preparing"; fi)"
  done
  if ! wait "$build"; then
    tail -n 80 "$log"
    echo "failed: ${*:2}"
    return 1
  fi
}
