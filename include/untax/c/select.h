#ifndef UNTAX_C_SELECT_H
#define UNTAX_C_SELECT_H

#include <untax/c/library.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Three decision trees that choose one of some kernels for an input, trained from a table of run
 * times; docs/select.md has the idea, and the schema. One that is made does not change, and any
 * threads may use it. */
typedef struct untax_selector untax_selector;

/* Gathers features of an input: fills those that are gathered and given, in their order. Returns 0,
 * or anything else if it failed; then nothing is chosen. */
typedef int (*untax_gather)(void* context, double* features);

/* Trains one. `schema` is a JSON text, `table` the text of a table: a list of JSON objects, or
 * comma-separated values with a line of names first. The same table and seed make the same trees.
 * It takes seconds for thousands of records. invalid_argument. */
UNTAX_API int32_t untax_selector_train(const char* schema, const char* table, uint64_t seed,
                                       untax_selector** selector);
/* Reads one back from the JSON text that untax_selector_json or `untax select train` has written.
 * invalid_argument. */
UNTAX_API int32_t untax_selector_read(const char* json, untax_selector** selector);
/* NULL is fine. */
UNTAX_API int32_t untax_selector_destroy(untax_selector* selector);

/* As untax_selector_read takes it. */
UNTAX_API const char* untax_selector_json(const untax_selector* selector);
/* The trees for people to read. */
UNTAX_API const char* untax_selector_text(const untax_selector* selector);
/* The features that who asks has to give, by number from 0; NULL behind the last. First come those
 * that are known; `gathered`, which may be NULL, gets 1 for the others. */
UNTAX_API const char* untax_selector_feature(const untax_selector* selector, int32_t number,
                                             int32_t* gathered);
/* The names of the kernels, by number from 0; NULL behind the last. */
UNTAX_API const char* untax_selector_candidate(const untax_selector* selector, int32_t number);

/* The number of the kernel for an input of which the `count` features `known` are known, and which
 * is iterated so many times. `gather` is called, at most once and with `context`, where that pays;
 * without one the choice is by what is known. `gathered`, which may be NULL, says whether it was.
 * invalid_argument, and aborted if `gather` failed. */
UNTAX_API int32_t untax_selector_choose(const untax_selector* selector, const double* known,
                                        int32_t count, double iterations, untax_gather gather,
                                        void* context, int32_t* candidate, int32_t* gathered);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_SELECT_H */
