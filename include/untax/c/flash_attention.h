#ifndef UNTAX_C_FLASH_ATTENTION_H
#define UNTAX_C_FLASH_ATTENTION_H

#include <untax/c/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The order in which a GPU works on blocks. No bit of the result depends on it. */
typedef enum untax_attention_order {
  untax_attention_automatic = 0, /* sections if causal, else head_first */
  untax_attention_head_first = 1,
  untax_attention_block_first = 2, /* all heads of a sequence at the same time */
  untax_attention_group_first = 3, /* the query heads that share keys at the same time */
  untax_attention_sections = 4     /* as many heads as keys and values of fit into half of L2 */
} untax_attention_order;

/* Attention of all queries of each sequence to the keys of the same sequence (prefill, forward
 * only). Each rank computes for itself: nothing is sent. A query that sees no keys gets zeros, and
 * minus infinity as its logarithm. */
typedef struct untax_flash_attention_problem {
  size_t size;
  int64_t batch; /* sequences */
  int64_t heads; /* of the queries; a multiple of kv_heads */
  int64_t kv_heads;
  int64_t head_dim;
  int64_t queries; /* of a sequence; the most if lengths differ */
  int64_t keys;    /* of a sequence; the most if lengths differ */
  int32_t type;
  int32_t causal; /* 1: the last query sees all keys, the one before it one less, ... */
  float scale;    /* of the logits; 0: 1 / sqrt(head_dim) */
} untax_flash_attention_problem;

typedef struct untax_flash_attention_options {
  size_t size;
  int32_t order; /* untax_attention_order; of GPUs only */
} untax_flash_attention_options;

/* A row has all heads of a token, head_dim elements each, side by side. Sequence b is in rows
 * begins[b] to begins[b + 1] - 1. Without begins all sequences have the length of the problem and
 * follow each other. */
typedef struct untax_attention_arguments {
  size_t size;
  const untax_const_matrix* q;    /* [rows of queries, heads * head_dim] */
  const untax_const_matrix* keys; /* [rows of keys, kv_heads * head_dim] */
  const untax_const_matrix* values;
  const untax_matrix* out; /* as q; written */
  /* [rows of queries, heads], dense, written: the natural logarithm of the sum of the exponentials
   * of scaled logits. May be NULL. */
  float* log_sums;
  const int32_t* query_begins; /* [batch + 1], not decreasing; NULL if key_begins is */
  const int32_t* key_begins;
} untax_attention_arguments;

/* Neither this nor a run is collective. On GPUs there are kernels for fp16 and bf16, and heads of
 * 64, 128 or 256 elements; other problems are unsupported. */
UNTAX_API int32_t untax_flash_attention_plan(untax_world* world,
                                             const untax_flash_attention_problem* problem,
                                             const untax_flash_attention_options* options,
                                             untax_operator** op);
UNTAX_API int32_t untax_flash_attention_run(untax_operator* op,
                                            const untax_attention_arguments* arguments,
                                            void* stream);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_FLASH_ATTENTION_H */
