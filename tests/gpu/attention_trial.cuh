#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <cuda_runtime.h>

#include "gpus.hpp"
#include "ops/flash_decode/workload.hpp"

namespace gpu_test {

/// One rank's flash_decode on a GPU, with inputs that the host makes.
class attention_trial {
 public:
  /// Collective.
  attention_trial(untax::world& w, const stream& s, const untax::attention_work& work,
                  const untax::flash_decode_options& options, std::uint64_t seed);
  attention_trial(const attention_trial&) = delete;
  attention_trial& operator=(const attention_trial&) = delete;
  ~attention_trial();

  /// New inputs.
  void refresh(std::uint64_t seed);
  /// On the stream: the result becomes NaN, then an epoch.
  void launch();
  /// On the stream: up to so many microseconds of nothing, another number at each rank and in each
  /// epoch; then lengths number `epoch modulo sets`, and an epoch, and its result is compared with
  /// the one that is expected of these lengths.
  void launch_and_compare(unsigned most_microseconds);
  /// Keeps `sets` shards of lengths, and what comes out with each.
  void expect_lengths(const std::vector<std::vector<std::int32_t>>& sets);
  /// Elements that were not as expected, in all epochs.
  [[nodiscard]] unsigned long long wrong() const;

  /// The bits of the last result.
  [[nodiscard]] std::vector<std::uint16_t> bits() const;
  /// Of the last result, against fp64.
  [[nodiscard]] double relative_error() const;
  [[nodiscard]] untax::flash_decode& op() noexcept { return op_; }

 private:
  [[nodiscard]] untax::matrix on_device(const untax::extent& size) const;
  void run();

  untax::world* world_;
  const stream* stream_;
  untax::attention_work work_;
  untax::attention_inputs inputs_;
  std::vector<std::byte> host_keys_;
  std::vector<std::byte> host_values_;
  untax::matrix q_;
  untax::matrix keys_;
  untax::matrix values_;
  untax::matrix out_;
  std::int32_t* lengths_ = nullptr;
  std::int32_t* table_ = nullptr;
  std::int32_t* length_sets_ = nullptr;
  std::uint16_t* expected_ = nullptr;
  int sets_ = 0;
  unsigned long long* account_ = nullptr;  ///< epoch, wrong
  untax::flash_decode op_;
};

}  // namespace gpu_test
