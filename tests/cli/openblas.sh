# OpenBLAS is loaded by the first product. One that is of no use is an error that says so, and what cannot be loaded is
# looked for elsewhere.
source "$(dirname "$0")/helpers.bash"
compiler=$(command -v cc || command -v gcc || command -v clang) || { echo "skipped: no C compiler is here"; exit 77; }

mkdir "$folder/empty" "$folder/damaged"
"$compiler" -shared -x c -o "$folder/empty/libopenblas.so.0" - <<<"" || wrong "no shared library can be made"
echo "no library" >"$folder/damaged/libopenblas.so.0"

export LD_LIBRARY_PATH=$folder/empty
expect 0 --version
expect 0 run all_gather --repeat 1
for launch in eager graph; do
  expect 2 run all_gather_gemm --repeat 1 --launch "$launch"
  one_line_of_error
  says "$err" 'libopenblas.so.0 has no cblas_sgemm; an OpenBLAS with the C interface is needed'
done
export LD_LIBRARY_PATH=$folder/damaged
expect 0 run all_gather_gemm --repeat 1
finish
