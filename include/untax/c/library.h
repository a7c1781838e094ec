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

/* Is raised by one when the meaning of something changes; additions do not change it. */
#define UNTAX_ABI_VERSION 1

typedef struct untax_world untax_world;
typedef struct untax_operator untax_operator;
typedef struct untax_mapping untax_mapping;

typedef enum untax_status {
  untax_ok = 0,
  untax_invalid_argument, /* a shape, pointer, type or option that cannot be used */
  untax_not_symmetric,    /* a pointer is not in symmetric memory, where it has to be */
  untax_out_of_memory,    /* the symmetric heap, or the machine, has too little memory left */
  untax_unsupported,      /* a combination that this machine or build does not offer */
  untax_disagreement,     /* ranks make different calls, or the same with different arguments */
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

/* Element types. Sums are accumulated in fp32. The last two are of some operands of
 * untax_operator_run only. */
typedef enum untax_type {
  untax_f32 = 0,
  untax_f16,
  untax_bf16,
  untax_i32 = 16,
  untax_e4m3 = 17
} untax_type;

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

/* The version of the library, "0.2.0". All ranks of a world have to use the same one. */
UNTAX_API const char* untax_version(void);
/* The UNTAX_ABI_VERSION that the library was built with. */
UNTAX_API int32_t untax_abi_version(void);
/* The name of a status: "invalid_argument", "peer_lost", ...; "ok" for 0, "?" for other values. */
UNTAX_API const char* untax_status_name(int32_t status);
/* The last failure of a call of this thread. The text is valid until the next call of the thread
 * fails. */
UNTAX_API untax_error_info untax_last_error(void);
/* Sets a function that a thread which waits for other ranks calls about every 20 ms; NULL for none.
 * If it returns anything but 0, the wait ends with aborted, and the rank has failed: all waits of
 * all ranks end. Any thread may call it, also while others wait. */
UNTAX_API void untax_set_interrupt(int (*interrupted)(void));
/* Names an OpenBLAS that the first product on a host loads if the system has none; NULL for none.
 * Any thread may call it. Returns out_of_memory if the path cannot be kept. */
UNTAX_API int32_t untax_offer_openblas(const char* path);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_LIBRARY_H */
