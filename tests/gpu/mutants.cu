// Chooses what the kernels leave out (engines/gpu/channel/mutant.hpp), by UNTAX_MUTANT, in a
// build with -DUNTAX_MUTANTS.
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "engines/gpu/channel/mutant.hpp"
#include "tests/gpu/gpus.hpp"

namespace {

class chosen_mutant_environment : public testing::Environment {
 public:
  void SetUp() override {
    const char* number =
        std::getenv("UNTAX_MUTANT");  // NOLINT(concurrency-mt-unsafe): nobody sets it
    if (number == nullptr) return;
#ifdef UNTAX_MUTANTS
    int devices = 0;
    gpu_test::ok(cudaGetDeviceCount(&devices));
    for (int device = 0; device < devices; ++device) {
      gpu_test::ok(cudaSetDevice(device));
      for (const untax::gpu::mutant_setter set : untax::gpu::mutant_setters)
        gpu_test::ok(set(static_cast<untax::gpu::mutant>(std::stoi(number))));
    }
    gpu_test::ok(cudaSetDevice(0));
#else
    GTEST_FAIL() << "UNTAX_MUTANT=" << number << " needs a build with -DUNTAX_MUTANTS";
#endif
  }
};

[[maybe_unused]] const testing::Environment* const chosen =
    testing::AddGlobalTestEnvironment(new chosen_mutant_environment);

}  // namespace
