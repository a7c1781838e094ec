#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <untax/core/stream_ref.hpp>
#include <untax/ops/linear.hpp>

#include "decoder/exchange.hpp"
#include "decoder/operators.hpp"

namespace untax {

/// What follows the last layer: the logits of this rank's part of the vocabulary, the largest over
/// all ranks and, as an option, all of them.
class decoder_head {
 public:
  /// Collective.
  explicit decoder_head(std::shared_ptr<decoder_operators> operators);

  /// Collective. Computes the next tokens of rows of `normed`, [rows, hidden].
  void run(const const_matrix& normed, const const_matrix& weights, stream_ref stream);

  [[nodiscard]] std::int32_t* next_tokens() const noexcept {
    return static_cast<std::int32_t*>(tokens_.get());
  }
  [[nodiscard]] const float* logits() const noexcept {
    return static_cast<const float*>(joined_.get());
  }

 private:
  void join(const matrix& own, stream_ref stream);

  std::shared_ptr<decoder_operators> operators_;
  std::int64_t width_;  ///< columns of the largest part of the vocabulary
  linear head_;
  rank_gather scores_;
  std::optional<rank_gather> logits_;
  std::shared_ptr<void> begins_, own_, best_, gathered_best_, gathered_, tokens_, joined_;
};

}  // namespace untax
