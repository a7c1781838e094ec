#ifndef UNTAX_C_LIBRARY_H
#define UNTAX_C_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define UNTAX_API __attribute__((visibility("default")))
#else
#define UNTAX_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Grows by one when something that was there has changed its meaning; additions leave it as it is.
 */
#define UNTAX_ABI_VERSION 1

typedef struct untax_world untax_world;
typedef struct untax_operator untax_operator;

typedef enum untax_status {
  untax_ok = 0,
  untax_invalid_argument, /* a shape, pointer, type or option that cannot be used */
  untax_not_symmetric,    /* a pointer that does not lie in symmetric memory where it has to */
  untax_out_of_memory,    /* the symmetric heap, or the machine, has no room */
  untax_unsupported,      /* a combination that this machine or build does not offer */
  untax_disagreement,     /* ranks do not do the same thing */
  untax_peer_lost,        /* a rank ended while others waited for it */
  untax_timeout,          /* a bounded wait reached its limit */
  untax_aborted,          /* another rank failed and stopped the world */
  untax_internal          /* a broken invariant of untax itself */
} untax_status;

typedef struct untax_error_info {
  untax_status status;
  int32_t
      suspect; /* the rank that others wait for in vain, or that failed; -1: nobody in particular */
  const char*
      text; /* rank, operator and site, what was wrong, and what would be right; never NULL */
} untax_error_info;

/* Element types. Arithmetic accumulates in fp32. */
typedef enum untax_type { untax_f32 = 0, untax_f16, untax_bf16 } untax_type;

/* Ways to overlap communication with computation; docs/design.md describes them. */
typedef enum untax_pattern {
  untax_automatic = 0,
  untax_bulk_library,
  untax_bulk_synchronous,
  untax_producer_consumer,
  untax_copy_engine,
  untax_fused_sequential,
  untax_fused_specialized,
  untax_fused_warp_specialized
} untax_pattern;

typedef enum untax_reduction { untax_sum = 0, untax_max, untax_min } untax_reduction;

/* "0.1.0". All ranks of a world have to run the same one. */
UNTAX_API const char* untax_version(void);
/* UNTAX_ABI_VERSION of the library. */
UNTAX_API int32_t untax_abi_version(void);
/* "invalid_argument", "peer_lost", ...; "ok" for 0, "?" for what is none. */
UNTAX_API const char* untax_status_name(int32_t status);
/* What was wrong in the last call of this thread that failed. It is good until the next one fails.
 */
UNTAX_API untax_error_info untax_last_error(void);
/* The names of all operators and collectives that the library has, by number from 0; NULL behind
 * the last. For each NAME there is untax_NAME_plan and untax_NAME_run. */
UNTAX_API const char* untax_operator_name(int32_t number);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_LIBRARY_H */
