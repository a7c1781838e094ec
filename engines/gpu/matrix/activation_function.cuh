#pragma once

#include <untax/core/activation.hpp>

namespace untax::gpu {

/// The function of an activation; for a gated activation the function of its gate.
[[nodiscard]] __device__ inline float function_of(activation_function function, float x) {
  switch (function) {
    case activation_function::silu:
    case activation_function::swiglu:
      return x / (1.0F + __expf(-x));
    case activation_function::gelu: {
      constexpr float inverse_root_of_two = 0.70710678F;
      return 0.5F * x * (1.0F + erff(x * inverse_root_of_two));
    }
    case activation_function::gelu_tanh:
    case activation_function::geglu: {
      constexpr float scale = 0.79788456F;  // sqrt(2 / pi)
      return 0.5F * x * (1.0F + tanhf(scale * (x + 0.044715F * x * x * x)));
    }
    case activation_function::none:
      break;
  }
  return x;
}

}  // namespace untax::gpu
