#include "cpu/tiers.hpp"

#include <memory>
#include <new>

namespace mashbox::cpu {
namespace {

constexpr std::align_val_t CacheLine{64};

struct Freed {
  void operator()(std::byte* memory) const { ::operator delete(memory, CacheLine); }
};

struct Scratch {
  std::unique_ptr<std::byte, Freed> memory;
  size_t bytes = 0;
};

thread_local Scratch scratch;

} // namespace

std::byte* threadScratch(size_t bytes) {
  if (bytes > scratch.bytes) {
    scratch.memory.reset();
    scratch.bytes = 0;
    scratch.memory.reset(static_cast<std::byte*>(::operator new(bytes, CacheLine)));
    scratch.bytes = bytes;
  }
  return scratch.memory.get();
}

void dequantizeRow(Type type, const std::byte* row, float* out, size_t length) { quant::dequantize(type, row, {out, length}); }

const Kernels& kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
  case Isa::Avx512: return avx512Kernels;
  case Isa::Avx2: return avx2Kernels;
#endif
  default: return scalarKernels;
  }
}

bool usesInt8(Type type) {
  switch (type) {
  case Type::Q4_0:
  case Type::Q4_1:
  case Type::Q5_0:
  case Type::Q5_1:
  case Type::Q8_0:
  case Type::Q2_K:
  case Type::Q3_K:
  case Type::Q4_K:
  case Type::Q5_K:
  case Type::Q6_K:
  case Type::IQ4_NL:
  case Type::IQ4_XS:
  case Type::MXFP4:
  case Type::NVFP4: return true;
  default: return false;
  }
}

bool hasKernel(Type type) { return usesInt8(type) || type == Type::F32 || type == Type::F16 || type == Type::BF16; }

} // namespace mashbox::cpu
