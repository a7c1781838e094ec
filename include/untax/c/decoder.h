#ifndef UNTAX_C_DECODER_H
#define UNTAX_C_DECODER_H

#include <untax/c/operator.h>
#include <untax/c/world.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A decoder-only transformer, split over the ranks of a world, with its cache of keys and values;
 * decoder/README.md has the idea and the families. All ranks make the same calls with the same
 * sequences and tokens, and all get the same results. A decoder is used by one thread at a time, as
 * its world is, which has to outlive it. Arguments are in host memory; `stream` is as in
 * operator.h. Calls fail with invalid_argument, unsupported and out_of_memory before anything is
 * written, and as runs of operators do. */
typedef struct untax_decoder untax_decoder;

/* Capacities, the same at all ranks; 0 is the default. */
typedef struct untax_decoder_options {
  size_t size;
  int64_t sequences;     /* at a time; 16 */
  int64_t tokens;        /* of a sequence; 2048, or the positions of the model if these are fewer */
  int64_t page_size;     /* tokens of a page of the cache; 64 */
  int64_t pages;         /* of the cache; as many as all sequences may need */
  int64_t prompt_tokens; /* of all prompts of one prefill; 2048 */
  int64_t prompt_keys;   /* of all sequences of one prefill; prompt_tokens, but at least tokens */
  int32_t logits;        /* 1: keep all logits, not only the largest */
  int32_t graphs; /* 1: on GPUs a step is launched as a graph, unless its stream is captured */
  /* 1: the bits of a sequence's logits depend on its own tokens and calls alone, not on the others
   * of a run; steps take longer */
  int32_t invariant;
} untax_decoder_options;

/* This rank's weights of a layer, of the configuration's element type, on a GPU in its memory. Of n
 * units, rank r of W has those from n * r / W up to n * (r + 1) / W: a unit is a head of the keys
 * with its queries, or 8 columns of the MLP. Where there are fewer heads of the keys than ranks,
 * rank r has head n * r / W, and the ranks of a head share its queries. Of the vocabulary each rank
 * has ceil(n / W) tokens, rounded up to a multiple of 8, and the last ones the rest. Vectors are
 * NULL where the model has none. Norms have the offset of the family added already. */
typedef struct untax_decoder_layer {
  size_t size;
  const untax_const_matrix* qkv;     /* rows of queries, then of keys, then of values */
  const untax_const_matrix* output;  /* [hidden, heads * head_dim] */
  const untax_const_matrix* gate_up; /* rows of gate and up, in turn in groups of 8 */
  const untax_const_matrix* down;    /* [hidden, intermediate] */
  const void* qkv_bias;              /* rows of qkv */
  const void* output_bias;           /* [hidden]; at rank 0 alone */
  const void* gate_up_bias;          /* rows of gate_up */
  const void* down_bias;             /* [hidden]; at rank 0 alone */
  const void* q_norm;                /* [head_dim] */
  const void* k_norm;                /* [head_dim] */
  const void* input_norm;            /* [hidden], before attention */
  const void* mlp_norm;              /* [hidden], before the MLP */
  const void* attention_post_norm;   /* [hidden], of what attention adds to the residual */
  const void* mlp_post_norm;         /* the same of the MLP */
} untax_decoder_layer;

/* This rank's weights of a model. */
typedef struct untax_decoder_weights {
  size_t size;
  const untax_const_matrix* embedding; /* this rank's tokens of the vocabulary, [tokens, hidden] */
  const untax_const_matrix* head;      /* of the same shape; may be the embedding */
  const void* final_norm;              /* [hidden] */
  const untax_decoder_layer* layers;
  int64_t count; /* of layers */
} untax_decoder_weights;

/* Collective. Makes a decoder of a folder of Hugging Face, with config.json and model.safetensors
 * or its parts, of which each rank reads what it holds. `options` may be NULL. */
UNTAX_API int32_t untax_decoder_load(untax_world* world, const char* folder,
                                     const untax_decoder_options* options, untax_decoder** decoder);
/* Collective. The same with random weights, which depend on the seed and not on the number of
 * ranks. `config` is the path of a config.json. */
UNTAX_API int32_t untax_decoder_random(untax_world* world, const char* config, uint64_t seed,
                                       const untax_decoder_options* options,
                                       untax_decoder** decoder);
/* Collective. The same with the caller's weights, which have to outlive the decoder. `config` is
 * the text of a config.json. */
UNTAX_API int32_t untax_decoder_create(untax_world* world, const char* config,
                                       const untax_decoder_weights* weights,
                                       const untax_decoder_options* options,
                                       untax_decoder** decoder);
/* Collective. `decoder` may be NULL. */
UNTAX_API int32_t untax_decoder_destroy(untax_decoder* decoder);
/* Ends the use of a decoder by this rank, as untax_operator_drop does. */
UNTAX_API int32_t untax_decoder_drop(untax_decoder* decoder);

/* Begins a sequence without tokens. */
UNTAX_API int32_t untax_decoder_add(untax_decoder* decoder, int32_t* sequence);
/* Begins a sequence with the tokens of another one, whose full pages it shares. */
UNTAX_API int32_t untax_decoder_fork(untax_decoder* decoder, int32_t sequence, void* stream,
                                     int32_t* copy);
/* Ends a sequence; its pages are free. */
UNTAX_API int32_t untax_decoder_remove(untax_decoder* decoder, int32_t sequence);
/* The tokens of a sequence. */
UNTAX_API int32_t untax_decoder_length(const untax_decoder* decoder, int32_t sequence,
                                       int64_t* length);

/* Collective. Appends tokens to `count` sequences, counts[i] of them to sequences[i], one after
 * another in `tokens`, and computes the next token of each. */
UNTAX_API int32_t untax_decoder_prefill(untax_decoder* decoder, const int32_t* sequences,
                                        const int64_t* counts, int32_t count, const int32_t* tokens,
                                        void* stream);
/* Makes room for a token of each of `count` sequences and sets the tokens. If `tokens` is NULL they
 * are the results of the run before. It cannot be captured. */
UNTAX_API int32_t untax_decoder_stage(untax_decoder* decoder, const int32_t* sequences,
                                      int32_t count, const int32_t* tokens, void* stream);
/* Collective. Computes the next tokens of what was staged last. It can be captured in a CUDA graph,
 * whose replays take what was staged before them, as many sequences as in the capture. */
UNTAX_API int32_t untax_decoder_step(untax_decoder* decoder, void* stream);

/* The sequences of the last run, which are the rows of its results, and the tokens of the
 * vocabulary. Any of the two may be NULL. */
UNTAX_API int32_t untax_decoder_shape(const untax_decoder* decoder, int64_t* rows,
                                      int64_t* vocabulary);
/* Where the results of runs are, in the memory of the weights: the next tokens, [rows], and the
 * logits, fp32 [rows, vocabulary], or NULL if they are not kept. Any of the two arguments may be
 * NULL. A caller may write other tokens there, for untax_decoder_stage without tokens. */
UNTAX_API int32_t untax_decoder_results(const untax_decoder* decoder, int32_t** tokens,
                                        const float** logits);
/* The next tokens of the last run, which have the largest logits: `count` is the number of rows. It
 * waits for the run. */
UNTAX_API int32_t untax_decoder_read_tokens(const untax_decoder* decoder, int32_t* tokens,
                                            int64_t count, void* stream);
/* The logits, in fp32: `count` is rows times vocabulary. */
UNTAX_API int32_t untax_decoder_read_logits(const untax_decoder* decoder, float* logits,
                                            int64_t count, void* stream);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_DECODER_H */
