#include "test.hpp"

#include "cpu/kernels.hpp"

using namespace mashbox;
using cpu::Isa;
using test::check;
using test::Test;

namespace {

const Test overrides{"isa: MASHBOX_ISA lowers the tier and never raises it", [] {
  const Isa best = cpu::detectIsa();
  check(*cpu::chooseIsa(nullptr) == best && *cpu::chooseIsa("") == best, "no override");
  check(*cpu::chooseIsa("scalar") == Isa::Scalar, "scalar");
  check(*cpu::chooseIsa("avx2") == std::min(best, Isa::Avx2), "avx2");
  check(*cpu::chooseIsa("avx512") == best, "avx512");
}};

const Test unknown{"isa: an unknown MASHBOX_ISA is an error that lists the tiers", [] {
  for (const char* name : {"AVX2", "sse4", "avx512 ", "0"}) {
    const Result<Isa> chosen = cpu::chooseIsa(name);
    check(!chosen, name);
    check(chosen.error().kind == ErrorKind::Invalid && chosen.error().subject == "MASHBOX_ISA", name);
    for (const char* tier : {"scalar", "avx2", "avx512", name}) check(chosen.error().message.find(tier) != std::string::npos, tier);
  }
}};

const Test tables{"isa: each tier up to this CPU's has its own kernels", [] {
  for (const Isa isa : {Isa::Scalar, Isa::Avx2, Isa::Avx512})
    if (isa <= cpu::detectIsa()) check(cpu::kernels(isa).isa == isa, cpu::isaName(isa));
}};

const Test formats{"isa: usesInt8 names the formats with integer kernels", [] {
  using quant::Type;
  for (const Type type : {Type::Q4_0, Type::Q4_1, Type::Q5_0, Type::Q5_1, Type::Q8_0, Type::Q2_K, Type::Q3_K, Type::Q4_K, Type::Q5_K, Type::Q6_K,
                          Type::IQ4_NL, Type::IQ4_XS, Type::MXFP4, Type::NVFP4})
    check(cpu::usesInt8(type));
  for (const Type type : {Type::F32, Type::F16, Type::BF16}) check(!cpu::usesInt8(type));
}};

} // namespace
