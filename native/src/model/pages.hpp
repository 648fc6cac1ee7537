#pragma once

#include "gguf/file.hpp"

#include <functional>

namespace mashbox::model {

/// Reads the mapped bytes of these tensors into memory with `threads` threads. `onProgress` gets the fraction read, on the calling
/// thread, rising to 1.
void readPages(std::span<const gguf::Tensor* const> tensors, unsigned threads, const std::function<void(double)>& onProgress);

} // namespace mashbox::model
