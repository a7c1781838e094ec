/* The first fused operator, in C: four ranks as threads. docs/c.md quotes this file. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <untax/untax.h>

enum { ranks = 4, m = 512, n = 256, k = 1024 };

static int failed(const char* what) {
  const untax_error_info e = untax_last_error();
  fprintf(stderr, "%s: %s: %s (suspect: rank %d)\n", what, untax_status_name(e.status), e.text,
          e.suspect);
  return 1;
}

static float* filled(size_t count, float value) {
  float* p = malloc(count * sizeof *p);
  for (size_t i = 0; p != NULL && i < count; ++i) p[i] = value;
  return p;
}

static int multiply(untax_world* world) {
  /* Planned once, by all ranks together. */
  const untax_all_gather_gemm_problem problem = {
      .size = sizeof problem, .m = m, .n = n, .k = k, .type = untax_f32};
  untax_operator* op = NULL;
  if (untax_all_gather_gemm_plan(world, &problem, NULL, &op) != untax_ok) return failed("plan");

  float* a = filled(m / ranks * k, 1.0F); /* this rank's rows of A */
  float* weights = filled(n * k, 0.5F);   /* its own weights, [n, k] */
  float* c = filled(m * n, 0.0F);         /* its result: all rows of A times its weights */
  int result = 0;

  /* Run many times. Rows of A travel while tiles that do not need them are multiplied. */
  const untax_const_matrix in = {a, m / ranks, k, 0, untax_f32};
  const untax_const_matrix by = {weights, n, k, 0, untax_f32};
  const untax_matrix out = {c, m, n, 0, untax_f32};
  if (untax_all_gather_gemm_run(op, &in, &by, &out, NULL) != untax_ok) {
    result = failed("run");
  } else {
    printf("rank %d: c[0] is %g\n", untax_world_rank(world), c[0]);
    result = c[0] != 0.5F * k || c[m * n - 1] != 0.5F * k;
  }

  /* A wrong argument is refused before anything moves, and the operator goes on. */
  const untax_matrix too_small = {c, m / 2, n, 0, untax_f32};
  if (untax_all_gather_gemm_run(op, &in, &by, &too_small, NULL) == untax_ok) result = 1;
  if (untax_world_rank(world) == 0) printf("refused: %s\n", untax_last_error().text);

  if (untax_operator_destroy(op) != untax_ok) result = failed("destroy");
  free(a);
  free(weights);
  free(c);
  return result;
}

static void* rank_body(void* world) {
  const int result = multiply(world);
  if (result != 0) untax_world_fail(world, "the example's body failed");
  untax_world_destroy(world);
  return result == 0 ? NULL : (void*)"failed";
}

int main(void) {
  untax_world* worlds[ranks];
  pthread_t threads[ranks];
  if (untax_world_threads(ranks, NULL, worlds) != untax_ok) return failed("world");
  for (int r = 0; r < ranks; ++r) pthread_create(&threads[r], NULL, rank_body, worlds[r]);
  int result = 0;
  for (int r = 0; r < ranks; ++r) {
    void* end = NULL;
    pthread_join(threads[r], &end);
    if (end != NULL) result = 1;
  }
  return result;
}
