#ifndef UNTAX_C_FLASH_DECODE_H
#define UNTAX_C_FLASH_DECODE_H

#include <untax/c/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Attention of one token of each sequence to keys and values that are sharded over the ranks by
 * position in the sequence. */
typedef struct untax_flash_decode_problem {
  size_t size;
  int64_t batch;
  int64_t heads;    /* of the queries; a multiple of kv_heads */
  int64_t kv_heads; /* of keys and values */
  int64_t head_dim;
  int64_t keys;      /* the most keys that a rank has of one sequence */
  int64_t page_size; /* rows of a page; 0: the cache has no pages */
  int64_t pages;     /* pages of the cache of a rank, if it has pages */
  int32_t type;
  int32_t partials; /* element type in which partial results are sent: untax_f32 or untax_bf16 */
  float scale;      /* of the logits; 0: 1 / sqrt(head_dim) */
  float logit_cap;  /* a logit becomes cap * tanh(logit / cap); 0: no cap */
} untax_flash_decode_problem;

typedef struct untax_flash_decode_options {
  size_t size;
  int32_t pattern;
  int32_t eager;   /* 1: start threads for each run; of the host only */
  int32_t workers; /* computing workers of a rank; on GPUs blocks */
  int32_t senders; /* senders of a rank; of the host only */
  /* Parts into which a rank splits its keys of a sequence; on GPUs of one rank, 8 at most. With
   * them the bits of a result depend on its own sequence alone. */
  int32_t splits;
} untax_flash_decode_options;

UNTAX_API int32_t untax_flash_decode_plan(untax_world* world,
                                          const untax_flash_decode_problem* problem,
                                          const untax_flash_decode_options* options,
                                          untax_operator** op);
/* `q` and `out`: [batch * heads, head_dim]; both are the same at every rank. `keys` and `values`:
 * [batch * keys, kv_heads * head_dim], or [pages * page_size, ...]. `lengths`: [batch], the number
 * of keys that this rank has of each sequence. `page_table`: [batch, ceil(keys / page_size)], NULL
 * if there are no pages. */
UNTAX_API int32_t untax_flash_decode_run(untax_operator* op, const untax_const_matrix* q,
                                         const untax_const_matrix* keys,
                                         const untax_const_matrix* values, const int32_t* lengths,
                                         const int32_t* page_table, const untax_matrix* out,
                                         void* stream);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_FLASH_DECODE_H */
