#include "cpu/kernels.hpp"

#include <string>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace mashbox::cpu {
namespace {

#if defined(__x86_64__)
struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf) {
  Registers r;
  if (__get_cpuid_max(0, nullptr) >= leaf) __cpuid_count(leaf, 0, r.eax, r.ebx, r.ecx, r.edx);
  return r;
}

/// The register sets that the operating system saves (XCR0).
unsigned enabledState() {
  unsigned low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

bool all(unsigned value, unsigned bits) { return (value & bits) == bits; }
#endif

} // namespace

const char* isaName(Isa isa) {
  switch (isa) {
  case Isa::Avx512: return "avx512";
  case Isa::Avx2: return "avx2";
  default: return "scalar";
  }
}

Isa detectIsa() {
#if defined(__x86_64__)
  const Registers basic = cpuid(1), extended = cpuid(7);
  constexpr unsigned Osxsave = 1u << 27, Fma = 1u << 12, Avx = 1u << 28, F16c = 1u << 29;
  constexpr unsigned Avx2 = 1u << 5;
  constexpr unsigned Avx512f = 1u << 16, Avx512dq = 1u << 17, Avx512bw = 1u << 30, Avx512vl = 1u << 31, Avx512vnni = 1u << 11;
  constexpr unsigned YmmState = 0x6, ZmmState = 0xe6;
  if (!all(basic.ecx, Osxsave | Avx | Fma | F16c) || !all(extended.ebx, Avx2) || !all(enabledState(), YmmState)) return Isa::Scalar;
  if (!all(extended.ebx, Avx512f | Avx512dq | Avx512bw | Avx512vl) || !all(extended.ecx, Avx512vnni) || !all(enabledState(), ZmmState)) return Isa::Avx2;
  return Isa::Avx512;
#else
  return Isa::Scalar;
#endif
}

Result<Isa> chooseIsa(const char* override) {
  const Isa best = detectIsa();
  const std::string_view name = override ? override : "";
  if (name.empty()) return best;
  for (const Isa isa : {Isa::Scalar, Isa::Avx2, Isa::Avx512})
    if (name == isaName(isa)) return isa < best ? isa : best;
  return Error{ErrorKind::Invalid, "MASHBOX_ISA is \"" + std::string(name) + "\"; it takes scalar, avx2 or avx512", "MASHBOX_ISA"};
}

} // namespace mashbox::cpu
