// Ranks say hello, as threads of this process and as processes of their own.
// docs/tutorials/00-hello-ranks.md explains it.
#include <cstdio>
#include <exception>

#include <untax/untax.hpp>

namespace {

void hello(untax::world& world) {
  std::printf("hello from rank %d of %d (%s)\n", world.rank(), world.size(), world.kind().data());

  // One counter at every rank; all ranks add to the one at rank 0.
  const auto total = world.allocate_cleared<int>(1, "total");
  untax::atomic_add(total.at(0), world.rank() + 1);
  world.barrier();

  const int expected = world.size() * (world.size() + 1) / 2;
  if (untax::load(total.at(0)) != expected) {
    throw untax::error(untax::errc::internal, "somebody was not counted");
  }
  if (world.rank() == 0) std::printf("all %d ranks were counted\n", world.size());
}

int run(const char* program) {
  untax::world world = untax::world::from_environment();
  if (world.size() > 1) {  // a launcher started this process as one of several ranks
    world.run(hello);
    return 0;
  }
  untax::run_threads(4, hello);
  std::fflush(stdout);

  // The same program again, as three processes: each comes by in the branch above.
  untax::process_launch launch;
  launch.ranks = 3;
  launch.command = {program};
  return untax::launch_processes(launch).ok() ? 0 : 1;
}

}  // namespace

int main(int /*argc*/, char** argv) {
  try {
    return run(argv[0]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
