#ifndef UNTAX_C_LINEAR_H
#define UNTAX_C_LINEAR_H

#include <untax/c/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum untax_activation {
  untax_activation_none = 0,
  untax_activation_silu = 1,
  untax_activation_gelu = 2,
  untax_activation_gelu_tanh = 3,
  untax_activation_swiglu = 4, /* gated: silu(gate) * up */
  untax_activation_geglu = 5   /* gated: gelu_tanh(gate) * up */
} untax_activation;

/* A linear layer: out = activation(x * transpose(weights) + bias). Each rank computes for itself:
 * nothing is sent. */
typedef struct untax_linear_problem {
  size_t size;
  int64_t rows;       /* of x and out; with varying_rows the most of a run */
  int64_t n;          /* columns of out; of gated activations a multiple of 8 */
  int64_t k;          /* columns of x */
  int32_t type;       /* of all matrices */
  int32_t activation; /* untax_activation */
} untax_linear_problem;

typedef struct untax_linear_options {
  size_t size;
  int32_t varying_rows;
  int32_t invariant;        /* 1: a row has the same bits for every number of rows and place */
  int32_t constant_weights; /* 1: no work ahead in the stream writes the weights; of GPUs */
  int32_t library;          /* 1: cuBLASLt multiplies, and no kernel of untax; of GPUs */
} untax_linear_options;

/* Weights have a row for each column of out. Those of gated activations have two, in groups of
 * eight: eight rows of gate, the eight of up, the next eight of gate, and so on. */
typedef struct untax_linear_arguments {
  size_t size;
  const untax_const_matrix* x;       /* [rows, k] */
  const untax_const_matrix* weights; /* [n, k], or [2 * n, k] */
  const void* bias;                  /* an element for each row of the weights; may be NULL */
  const untax_matrix* out;           /* [rows, n]; written */
} untax_linear_arguments;

/* Neither this nor a run is collective. On GPUs there are kernels for fp16 and bf16, and for n and
 * k that are multiples of 8; others are refused. */
UNTAX_API int32_t untax_linear_plan(untax_world* world, const untax_linear_problem* problem,
                                    const untax_linear_options* options, untax_operator** op);
UNTAX_API int32_t untax_linear_run(untax_operator* op, const untax_linear_arguments* arguments,
                                   void* stream);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_LINEAR_H */
