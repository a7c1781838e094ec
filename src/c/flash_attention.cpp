#include <untax/c/flash_attention.h>

#include "given.hpp"
#include "ops/flash_attention/spec.hpp"
#include "planned.hpp"
#include "reading.hpp"

using namespace untax::c;

int32_t untax_flash_attention_plan(untax_world* world, const untax_flash_attention_problem* problem,
                                   const untax_flash_attention_options* options,
                                   untax_operator** op) {
  return plan<untax::flash_attention>(world, problem, options, op);
}

int32_t untax_flash_attention_run(untax_operator* op, const untax_attention_arguments* arguments,
                                  void* stream) {
  return run<untax::flash_attention>(op, [&](untax::flash_attention& attention) {
    attention.run(operands_of(arguments), stream_of(stream));
  });
}
