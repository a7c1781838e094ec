#ifndef UNTAX_C_ROPE_APPEND_H
#define UNTAX_C_ROPE_APPEND_H

#include <untax/c/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The step between the projection to queries, keys and values and the attention of a layer: bias,
 * norm of heads, rotary position embedding, append to the cache. Each rank computes for itself:
 * nothing is sent. */
typedef struct untax_rope_append_problem {
  size_t size;
  int64_t tokens; /* of a run; with varying_tokens the most of a run */
  int64_t heads;  /* of the queries */
  int64_t kv_heads;
  int64_t head_dim;
  int64_t rotated;     /* the first elements of a head, which are rotated; even; 0: all */
  int64_t batch;       /* sequences */
  int64_t keys;        /* the most keys of a sequence */
  int64_t page_size;   /* rows of a page; 0: the cache has no pages */
  int64_t pages;       /* of the cache, if it has pages */
  int64_t positions;   /* rows of the table of rotations */
  int32_t type;        /* of all matrices and weights */
  int32_t interleaved; /* 1: elements 2i and 2i + 1 are a pair, not i and i + rotated / 2 */
  int32_t bias;
  int32_t norm;      /* 1: heads of q and k are divided by their root mean square */
  float norm_offset; /* added to the weights of the norm */
  float epsilon;     /* added to the mean of squares; 0: 1e-6 */
} untax_rope_append_problem;

typedef struct untax_rope_append_options {
  size_t size;
  int32_t varying_tokens;
  int32_t constant_weights; /* 1: no work ahead in the stream writes bias and weights; of GPUs */
} untax_rope_append_options;

/* Key i of sequence b is in row b * keys + i or, with pages, in row
 * page_table[b, i / page_size] * page_size + i % page_size. */
typedef struct untax_rope_append_arguments {
  size_t size;
  const untax_const_matrix* qkv; /* [tokens, (heads + 2 * kv_heads) * head_dim] */
  const void* bias;              /* a row as that of qkv; NULL if the problem has none */
  const void* q_norm;            /* [head_dim]; NULL if the problem has no norm */
  const void* k_norm;
  const float* rotations;    /* [positions, rotated]: cosines, then sines */
  const int32_t* position;   /* [tokens]: of each token in its sequence */
  const int32_t* sequence;   /* [tokens]; NULL: token t belongs to sequence t */
  const int32_t* page_table; /* [batch, ceil(keys / page_size)]; NULL without pages */
  const untax_matrix* keys;  /* the cache, [rows, kv_heads * head_dim]; updated */
  const untax_matrix* values;
  const untax_matrix* q; /* [tokens, heads * head_dim]; written */
} untax_rope_append_arguments;

/* Neither this nor a run is collective. On GPUs there are kernels for fp16 and bf16, heads of
 * multiples of 8 up to 256 elements, and rotated elements that are a multiple of 16; other problems
 * are unsupported. */
UNTAX_API int32_t untax_rope_append_plan(untax_world* world,
                                         const untax_rope_append_problem* problem,
                                         const untax_rope_append_options* options,
                                         untax_operator** op);
/* On hosts a position, sequence or page that is out of range is an error, before anything is
 * written. On GPUs such a token has zeros as its q, and nothing is appended. */
UNTAX_API int32_t untax_rope_append_run(untax_operator* op,
                                        const untax_rope_append_arguments* arguments, void* stream);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_ROPE_APPEND_H */
