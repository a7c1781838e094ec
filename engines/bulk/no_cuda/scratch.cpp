#include "engines/bulk/scratch.hpp"

#include <utility>

#include <untax/core/error.hpp>

#include "engines/bulk/quickest.hpp"

namespace untax::bulk {
namespace {

[[noreturn]] void refuse() {
  throw error(errc::unsupported,
              "the bulk engine is for GPUs, and this program was built without CUDA; configure "
              "with -DUNTAX_CUDA=ON where nvcc is installed");
}

}  // namespace

scratch::scratch(std::size_t /*bytes*/) { refuse(); }
scratch::scratch(scratch&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
scratch& scratch::operator=(scratch&& other) noexcept {
  std::swap(data_, other.data_);
  return *this;
}
scratch::~scratch() = default;

void copy_bytes(void* /*to*/, const void* /*from*/, std::size_t /*bytes*/, stream_ref /*stream*/) {
  refuse();
}
void copy_and_wait(void* /*to*/, const void* /*from*/, std::size_t /*bytes*/) { refuse(); }

std::vector<double> seconds_of(
    int /*ways*/, const std::function<void(int way, int round, stream_ref stream)>& /*run*/) {
  refuse();
}
int runs_in_graph(double /*seconds*/) noexcept { return 1; }
double seconds_in_graph(world& /*w*/,
                        const std::function<void(int run, stream_ref stream)>& /*launch*/) {
  refuse();
}
int least_of(const std::vector<double>& /*values*/) noexcept { return 0; }
std::vector<double> values_of_ranks(world& /*w*/, const std::vector<double>& /*mine*/) { refuse(); }
std::vector<double> longest_of_ranks(world& /*w*/, const std::vector<double>& /*seconds*/) {
  refuse();
}

}  // namespace untax::bulk
