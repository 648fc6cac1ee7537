#include "model/pages.hpp"

#include "cpu/thread_pool.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace mashbox::model {
namespace {

constexpr size_t Stride = 4 << 20;
constexpr unsigned MostReaders = 4;

struct Piece {
  const std::byte* data;
  size_t bytes;
};

std::vector<Piece> piecesOf(std::span<const gguf::Tensor* const> tensors) {
  std::vector<Piece> pieces;
  for (const gguf::Tensor* tensor : tensors)
    for (uint64_t at = 0; at < tensor->bytes; at += Stride) pieces.push_back({tensor->data + at, static_cast<size_t>(std::min<uint64_t>(Stride, tensor->bytes - at))});
  return pieces;
}

void readPiece(const Piece& piece, size_t page) {
  const auto address = reinterpret_cast<uintptr_t>(piece.data);
  const uintptr_t start = address / page * page;
  void* const at = reinterpret_cast<void*>(start);
  const size_t bytes = address + piece.bytes - start;
#ifdef MADV_POPULATE_READ
  if (madvise(at, bytes, MADV_POPULATE_READ) == 0) return;
#endif
  madvise(at, bytes, MADV_WILLNEED);
  for (size_t offset = 0; offset < piece.bytes; offset += page) static_cast<void>(*static_cast<const volatile std::byte*>(piece.data + offset));
}

} // namespace

void readPages(std::span<const gguf::Tensor* const> tensors, unsigned threads, const std::function<void(double)>& onProgress) {
  const std::vector<Piece> pieces = piecesOf(tensors);
  uint64_t total = 1;
  for (const Piece& piece : pieces) total += piece.bytes;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::atomic<uint64_t> done = 0;
  cpu::ThreadPool pool(std::min(threads == 0 ? cpu::availableCores() : threads, MostReaders));
  pool.parallelFor(pieces.size(), 1, [&](size_t begin, size_t end, unsigned worker) {
    for (size_t i = begin; i < end; ++i) {
      readPiece(pieces[i], page);
      const uint64_t read = done.fetch_add(pieces[i].bytes) + pieces[i].bytes;
      if (worker == 0 && onProgress) onProgress(static_cast<double>(read) / static_cast<double>(total));
    }
  });
  if (onProgress) onProgress(1);
}

} // namespace mashbox::model
