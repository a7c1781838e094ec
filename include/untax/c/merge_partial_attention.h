#ifndef UNTAX_C_MERGE_PARTIAL_ATTENTION_H
#define UNTAX_C_MERGE_PARTIAL_ATTENTION_H

#include <untax/c/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Exchange and merge of partial results of attention that any kernel computed, each rank's over its
 * own part of the keys. */
typedef struct untax_merge_partial_attention_problem {
  size_t size;
  int64_t tokens;
  int64_t heads;
  int64_t head_dim;
  int32_t type; /* of partial_o and out; logarithms are untax_f32 */
  /* 0: every rank gets all heads; 1: its ceil(heads / W), the last ones fewer */
  int32_t own_heads;
  int32_t log2; /* 0: natural logarithms; 1: to base 2 */
} untax_merge_partial_attention_problem;

typedef struct untax_merge_partial_attention_options {
  size_t size;
  int32_t pattern;
  int32_t eager;   /* 1: start threads for each run */
  int32_t workers; /* workers of a rank that merge; on GPUs blocks */
  int32_t senders; /* senders of a rank, if the pattern has them */
  /* 1: tokens is a capacity: a run has any number of tokens up to it, the same at all ranks; the
   * rows of partial_lse say how many. */
  int32_t varying_tokens;
} untax_merge_partial_attention_options;

UNTAX_API int32_t untax_merge_partial_attention_plan(
    untax_world* world, const untax_merge_partial_attention_problem* problem,
    const untax_merge_partial_attention_options* options, untax_operator** op);
/* `partial_o`: [tokens * heads, head_dim]. `partial_lse`: [tokens, heads]; where it is an infinity
 * of either sign a part is empty, and its row may hold any values. `out`: [tokens * own, head_dim]
 * and `lse`: [tokens, own] for the heads that this rank gets; zeros and -infinity if all parts are
 * empty. On GPUs all of them are in memory of the rank's GPU, and `out` and `lse` share none with
 * the others. */
UNTAX_API int32_t untax_merge_partial_attention_run(untax_operator* op,
                                                    const untax_const_matrix* partial_o,
                                                    const untax_const_matrix* partial_lse,
                                                    const untax_matrix* out,
                                                    const untax_matrix* lse, void* stream);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_MERGE_PARTIAL_ATTENTION_H */
