#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

/// The entry point of libFuzzer: reads `data` as a model file and checks what must hold for any input.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace mashbox::fuzz {

/// What became of the last input: "accepted", or where it was refused and why, without numbers and names of the file.
const std::string& lastOutcome();

} // namespace mashbox::fuzz
