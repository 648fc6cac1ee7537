#include "cpu/bandwidth.hpp"
#include "cpu/thread_pool.hpp"

#include <cstdio>
#include <cstdlib>

// Prints what this machine reads from memory, in bytes per second: a buffer far larger than the caches, the threads of the argument.
int main(int argc, char** argv) {
  const unsigned threads = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 0;
  mashbox::cpu::ThreadPool pool(threads == 0 ? mashbox::cpu::availableCores() : threads);
  std::printf("%.0f\n", mashbox::cpu::readBandwidth(pool, size_t{1} << 30));
}
