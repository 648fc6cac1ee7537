#include "../tests/random_rows.hpp"
#include "cpu/bandwidth.hpp"
#include "cpu/kernels.hpp"
#include "cpu/thread_pool.hpp"
#include "quant/quantize.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include <sys/mman.h>

// What the product kernels reach on this machine: decode (one activation row, weights streamed from memory) as GB/s of weight
// bytes and as a share of the read bandwidth measured in the same run, and prefill (64 rows) as GOP/s.
// Usage: mashbox_kernel_bench [format…]   MASHBOX_BENCH_MB sets the weight bytes (256).
namespace {

using namespace mashbox;
using cpu::Isa;
using quant::Type;

constexpr size_t Length = 2048;
constexpr Type Types[] = {Type::Q4_0, Type::Q4_1, Type::Q5_0,   Type::Q5_1,   Type::Q8_0,  Type::Q2_K,  Type::Q3_K, Type::Q4_K, Type::Q5_K,
                          Type::Q6_K, Type::IQ4_NL, Type::IQ4_XS, Type::MXFP4, Type::NVFP4, Type::F16, Type::BF16, Type::F32};

/// Best seconds of `passes` runs.
template <class Run> double best(int passes, const Run& run) {
  double seconds = 1e30;
  for (int i = 0; i < passes; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    seconds = std::min(seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return seconds;
}

/// Quantized values; of a format without a quantizer bytes that are good for codes and for scales.
void fillRows(Type type, size_t rows, std::byte* weights) {
  const size_t rowBytes = quant::rowBytes(quant::format(type), Length);
  test::Random random(1);
  const std::vector<float> values = test::randomValues(rows * Length, random);
  for (size_t r = 0; r < rows; ++r)
    if (quant::encodable(type)) quant::quantize(type, std::span(values).subspan(r * Length, Length), weights + r * rowBytes);
    else std::generate_n(weights + r * rowBytes, rowBytes, [&] { return std::byte(0x38 | random() % 4); });
}

void multiply(cpu::ThreadPool& pool, const cpu::Kernels& kernels, Type type, const std::byte* weights, size_t rowCount, const cpu::Activations& x, std::vector<float>& out) {
  const size_t rowBytes = quant::rowBytes(quant::format(type), Length);
  pool.parallelFor(rowCount, 16, [&](size_t begin, size_t end, unsigned) {
    kernels.matmulRows(type, weights + begin * rowBytes, rowBytes, end - begin, x, out.data() + begin, rowCount);
  });
}

} // namespace

int main(int argc, char** argv) {
  const char* megabytes = std::getenv("MASHBOX_BENCH_MB");
  const size_t bytes = std::max<size_t>(megabytes ? std::strtoul(megabytes, nullptr, 10) : 256, 1) << 20;
  const Result<Isa> isa = cpu::chooseIsa(std::getenv("MASHBOX_ISA"));
  if (!isa) return std::fprintf(stderr, "%s\n", isa.error().message.c_str()), 1;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return std::fprintf(stderr, "no memory for %zu MB\n", bytes >> 20), 1;
  madvise(mapped, bytes, MADV_HUGEPAGE);
  auto* weights = static_cast<std::byte*>(mapped);

  cpu::ThreadPool one(1), all(cpu::availableCores());
  std::printf("%zu MB of weights, %u threads; GB/s at one activation row as weights / plain reads (share), the reads measured beside each line\n", bytes >> 20, all.size());
  std::printf("%-6s %-7s %24s %24s %16s\n", "format", "tier", "1 thread", "all threads", "64 rows, GOP/s");
  for (const Type type : Types) {
    const quant::Format& format = quant::format(type);
    if (argc > 1 && std::none_of(argv + 1, argv + argc, [&](const char* name) { return std::string_view(name) == format.name; })) continue;
    const size_t rowBytes = quant::rowBytes(format, Length), rowCount = bytes / rowBytes / 16 * 16;
    fillRows(type, 16, weights);
    for (size_t r = 16; r < rowCount; ++r) std::memcpy(weights + r * rowBytes, weights + r % 16 * rowBytes, rowBytes);
    for (int tier = int(*isa); tier >= 0; --tier) {
      const cpu::Kernels& kernels = cpu::kernels(Isa(tier));
      test::Random random(1);
      const test::Rows row(kernels, test::randomValues(Length, random), 1), batch(kernels, test::randomValues(64 * Length, random), 64);
      std::vector<float> out(rowCount * 64);
      double rates[2], limits[2];
      cpu::ThreadPool* pools[] = {&one, &all};
      const int passes = tier ? 3 : 1;
      for (int p = 0; p < 2; ++p) {
        limits[p] = cpu::readBandwidth(*pools[p], bytes);
        rates[p] = double(rowCount * rowBytes) / best(passes, [&] { multiply(*pools[p], kernels, type, weights, rowCount, row.view, out); });
      }
      const size_t batchRows = std::min<size_t>(rowCount, 2048);
      const double seconds = best(passes, [&] { multiply(all, kernels, type, weights, batchRows, batch.view, out); });
      std::printf("%-6s %-7s %8.1f / %4.1f (%4.2f) %8.1f / %4.1f (%4.2f) %16.0f\n", format.name, cpu::isaName(Isa(tier)), rates[0] / 1e9, limits[0] / 1e9,
                  rates[0] / limits[0], rates[1] / 1e9, limits[1] / 1e9, rates[1] / limits[1], 2.0 * 64 * double(batchRows) * Length / seconds / 1e9);
      std::fflush(stdout);
    }
  }
  munmap(mapped, bytes);
  return 0;
}
