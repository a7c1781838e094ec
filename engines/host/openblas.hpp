#pragma once

#include <string>

#include <cblas.h>

namespace untax::host {

/// The functions of OpenBLAS that are used.
struct openblas {
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&cblas_sgemv) sgemv = nullptr;
  decltype(&cblas_dgemm) dgemm = nullptr;
  decltype(&openblas_set_num_threads) set_num_threads = nullptr;
};

/// The OpenBLAS of this machine, with one thread a call. The first call loads it; it is not linked,
/// because a linked OpenBLAS creates threads before `main` and ends the program if the system
/// refuses them. Throws `unsupported` if there is no OpenBLAS, at this and at every later call.
[[nodiscard]] const openblas& blas();

/// The path of an OpenBLAS that the first product loads if the system has none. It is not loaded
/// before. An empty path takes the offer back. Any thread may call it.
void offer_openblas(std::string path);

}  // namespace untax::host
