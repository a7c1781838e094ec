#ifndef UNTAX_C_ALL_REDUCE_NORM_H
#define UNTAX_C_ALL_REDUCE_NORM_H

#include <untax/c/gemm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The elements that normalised rows are written as. */
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

/* The inputs of a rank in a run, and the addresses of its results. Rows of results follow each
 * other without gaps. */
typedef struct untax_norm_arguments {
  size_t size;
  const untax_const_matrix* in;       /* [tokens, hidden]: this rank's addend */
  const untax_const_matrix* residual; /* [tokens, hidden], the same at all ranks; may be x */
  const void* weight;                 /* [hidden] */
  void* x;                            /* [tokens, hidden] */
  void* out;                          /* [tokens, hidden] */
  float* scales;                      /* [tokens], only with untax_norm_e4m3_per_token */
  float scale; /* of untax_norm_e4m3, the same at all ranks; positive; 0: 1 */
} untax_norm_arguments;

/* Of the options, tile_m is the number of rows that are sent as a whole; panel_k and tile_n have no
 * effect. */
UNTAX_API int32_t untax_all_reduce_norm_plan(untax_world* world,
                                             const untax_all_reduce_norm_problem* problem,
                                             const untax_operator_options* options,
                                             untax_operator** op);
/* If x and out are NULL, results go to the operator's own. In a world of GPUs everything is at
 * multiples of 16 bytes, without gaps between rows; there is no fp32, and hidden is a multiple of
 * 8. */
UNTAX_API int32_t untax_all_reduce_norm_run(untax_operator* op,
                                            const untax_norm_arguments* arguments, void* stream);
/* The operator's own x, out and scales, which is NULL if there are none. With two phases peers
 * write into them during a run. */
UNTAX_API int32_t untax_all_reduce_norm_result(const untax_operator* op, void** x, void** out,
                                               float** scales);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_ALL_REDUCE_NORM_H */
