#ifndef UNTAX_C_SELECT_H
#define UNTAX_C_SELECT_H

#include <untax/c/library.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Three decision trees that choose one of some kernels for an input, trained from a table of run
 * times; docs/select.md has the idea, and the schema. A selector does not change, and any threads
 * may use it. */
typedef struct untax_selector untax_selector;

/* Gathers features of an input: fills those that are gathered and given, in their order. It returns
 * 0, or any other value if it failed; then nothing is chosen. */
typedef int (*untax_gather)(void* context, double* features);

/* Trains a selector. `schema` is a JSON text, `table` the text of a table: a list of JSON objects,
 * or comma-separated values whose first line has the names. The same table and seed give the same
 * trees. invalid_argument. */
UNTAX_API int32_t untax_selector_train(const char* schema, const char* table, uint64_t seed,
                                       untax_selector** selector);
/* Reads a selector from the JSON text of untax_selector_json or `untax select train`.
 * invalid_argument. */
UNTAX_API int32_t untax_selector_read(const char* json, untax_selector** selector);
/* Destroys a selector. It may be NULL. */
UNTAX_API int32_t untax_selector_destroy(untax_selector* selector);

/* The JSON text that untax_selector_read reads. */
UNTAX_API const char* untax_selector_json(const untax_selector* selector);
/* The trees as text for people. */
UNTAX_API const char* untax_selector_text(const untax_selector* selector);
/* The names of the features that a caller has to give, by number from 0; NULL for other numbers.
 * Known features come first; `gathered`, which may be NULL, gets 1 for the others. */
UNTAX_API const char* untax_selector_feature(const untax_selector* selector, int32_t number,
                                             int32_t* gathered);
/* The names of the kernels, by number from 0; NULL for other numbers. */
UNTAX_API const char* untax_selector_candidate(const untax_selector* selector, int32_t number);

/* Writes the number of the kernel for an input to `candidate`. `known` are the values of the
 * `count` known features, and `iterations` how often the kernel is run. `gather` is called with
 * `context`, at most once, if gathering pays; if it is NULL, the choice is by the known features.
 * `gathered`, which may be NULL, gets 1 if it was called. invalid_argument, and aborted if `gather`
 * failed. */
UNTAX_API int32_t untax_selector_choose(const untax_selector* selector, const double* known,
                                        int32_t count, double iterations, untax_gather gather,
                                        void* context, int32_t* candidate, int32_t* gathered);

#ifdef __cplusplus
}
#endif

#endif /* UNTAX_C_SELECT_H */
