#ifndef UNTAX_C_ALL_REDUCE_NORM_H
#define UNTAX_C_ALL_REDUCE_NORM_H

#include <untax/c/gemm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What normalised rows are written as. */
typedef enum untax_norm_output {
  untax_norm_same = 0,          /* elements of the problem's type */
  untax_norm_e4m3 = 1,          /* e4m3, divided by a scale that the caller gives */
  untax_norm_e4m3_per_token = 2 /* e4m3, with a scale for each token that comes out, too */
} untax_norm_output;

/* x = sum over ranks of in + residual, out = x / sqrt(mean of squares of a row + epsilon) * weight,
 * both [tokens, hidden] and complete at every rank, with the same bits. */
typedef struct untax_all_reduce_norm_problem {
  size_t size;
  int64_t tokens;
  int64_t hidden; /* at most 16384 */
  int32_t type;
  int32_t output; /* untax_norm_output */
  float epsilon;  /* 0: 1e-5 */
} untax_all_reduce_norm_problem;

/* What a rank passes to a run, and where results go. Rows of results lie without gaps. */
typedef struct untax_norm_arguments {
  size_t size;
  const untax_const_matrix* in;       /* [tokens, hidden]: this rank's part of the sum */
  const untax_const_matrix* residual; /* [tokens, hidden], the same at all ranks; may be x */
  const void* weight;                 /* [hidden] */
  void* x;                            /* [tokens, hidden] */
  void* out;                          /* [tokens, hidden] */
  float* scales;                      /* [tokens], of untax_norm_e4m3_per_token */
  float scale;                        /* of untax_norm_e4m3, the same at all ranks; 0: 1 */
} untax_norm_arguments;

/* Of the options, tile_m is the rows that move as a whole, and panel_k and tile_n say nothing. */
UNTAX_API int32_t untax_all_reduce_norm_plan(untax_world* world,
                                             const untax_all_reduce_norm_problem* problem,
                                             const untax_operator_options* options,
                                             untax_operator** op);
/* With x and out NULL results go to the operator's own. In a world of GPUs everything lies at
 * multiples of 16 bytes, without gaps between rows; there is no fp32, and hidden is a multiple
 * of 8.
 */
UNTAX_API int32_t untax_all_reduce_norm_run(untax_operator* op,
                                            const untax_norm_arguments* arguments, void* stream);
/* The operator's own x, out and scales (NULL where there are none). With two phases peers write
 * into them during a run. */
UNTAX_API int32_t untax_all_reduce_norm_result(const untax_operator* op, void** x, void** out,
                                               float** scales);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_ALL_REDUCE_NORM_H */
