#include "gguf/tensor_table.hpp"

#include "gguf/error.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace mashbox::gguf {
namespace {

constexpr uint64_t largestName = 63;
constexpr uint64_t smallestTensor = 8 + 1 + 4 + 8 + 4 + 8; // length, name, rank, one dimension, type, offset

std::string number(uint64_t value) { return std::to_string(value); }

/// Fills `bytes` in from the dimensions and the format.
Result<void> measure(Tensor& tensor) {
  constexpr uint64_t mostValues = std::numeric_limits<int64_t>::max() / 8; // no format has more than 8 bytes per value
  uint64_t values = 1;
  for (const uint64_t dim : tensor.dims) {
    if (dim == 0) return tensorError(ErrorKind::Invalid, tensor.name, "one of its dimensions is 0");
    if (dim > mostValues / values) return tensorError(ErrorKind::Invalid, tensor.name, "the product of its dimensions overflows");
    values *= dim;
  }
  const quant::Format& format = *tensor.format;
  if (tensor.dims[0] % format.blockLength != 0)
    return tensorError(ErrorKind::Invalid, tensor.name,
                       "its rows of " + number(tensor.dims[0]) + " values are no multiple of the " + number(format.blockLength) +
                         " values of a " + format.name + " block");
  tensor.bytes = values / format.blockLength * format.blockBytes;
  return {};
}

class TableReader {
public:
  TableReader(Cursor& cursor, uint64_t alignment) : cursor_(cursor), alignment_(alignment) {}

  Result<std::vector<Tensor>> read(uint64_t count) {
    const uint64_t room = std::min(count, cursor_.remaining() / smallestTensor);
    tensors_.reserve(room);
    offsets_.reserve(room);
    for (uint64_t i = 0; i < count; ++i)
      if (auto tensor = readTensor(i); !tensor) return tensor.error();
    if (auto names = orderByName(tensors_); !names) return names.error();
    if (auto data = findData(); !data) return data.error();
    if (auto overlap = checkOverlap(); !overlap) return overlap.error();
    return std::move(tensors_);
  }

private:
  Result<void> readTensor(uint64_t index) {
    const auto name = cursor_.takeName(largestName, tensorError, "number " + number(index));
    if (!name) return name.error();
    Tensor tensor{*name, nullptr, 0, {1, 1, 1, 1}, nullptr, 0};
    const auto ended = [&] { return tensorError(ErrorKind::Truncated, *name, "the file ends within its description"); };
    if (!cursor_.take(tensor.rank)) return ended();
    if (tensor.rank < 1 || tensor.rank > tensor.dims.size())
      return tensorError(ErrorKind::Invalid, *name, "it has " + number(tensor.rank) + " dimensions; it must have 1 to 4");
    for (uint32_t d = 0; d < tensor.rank; ++d)
      if (!cursor_.take(tensor.dims[d])) return ended();
    uint32_t type = 0;
    uint64_t offset = 0;
    if (!cursor_.take(type) || !cursor_.take(offset)) return ended();
    tensor.format = quant::findFormat(type);
    if (tensor.format == nullptr)
      return tensorError(ErrorKind::Invalid, *name, "its type " + number(type) + " is unknown or was removed from GGUF");
    if (auto measured = measure(tensor); !measured) return measured;
    if (offset % alignment_ != 0)
      return tensorError(ErrorKind::Invalid, *name,
                         "its offset " + number(offset) + " is not a multiple of the alignment " + number(alignment_));
    tensors_.push_back(tensor);
    offsets_.push_back(offset);
    return {};
  }

  /// The data begin at the next multiple of the alignment after the header.
  Result<void> findData() {
    const auto bytes = cursor_.bytes();
    const uint64_t start = (cursor_.position() + alignment_ - 1) / alignment_ * alignment_;
    const uint64_t size = bytes.size() > start ? bytes.size() - start : 0;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      Tensor& tensor = tensors_[i];
      if (offsets_[i] > size || tensor.bytes > size - offsets_[i])
        return tensorError(ErrorKind::Truncated, tensor.name,
                           "its " + number(tensor.bytes) + " bytes at offset " + number(offsets_[i]) +
                             " reach past the end of the file, which has " + number(size) + " bytes of data");
      tensor.data = bytes.data() + start + offsets_[i];
    }
    return {};
  }

  Result<void> checkOverlap() const {
    std::vector<uint32_t> order(tensors_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return offsets_[a] < offsets_[b]; });
    for (size_t i = 1; i < order.size(); ++i) {
      const Tensor& before = tensors_[order[i - 1]];
      if (offsets_[order[i]] < offsets_[order[i - 1]] + before.bytes)
        return tensorError(ErrorKind::Invalid, tensors_[order[i]].name, "its bytes overlap those of " + escaped(before.name));
    }
    return {};
  }

  Cursor& cursor_;
  uint64_t alignment_;
  std::vector<Tensor> tensors_;
  std::vector<uint64_t> offsets_;
};

} // namespace

Result<std::vector<Tensor>> readTensors(Cursor& cursor, uint64_t count, uint64_t alignment) {
  return TableReader(cursor, alignment).read(count);
}

Result<std::vector<uint32_t>> orderByName(std::span<const Tensor> tensors) {
  std::vector<uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return tensors[a].name < tensors[b].name; });
  const auto twice =
    std::adjacent_find(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return tensors[a].name == tensors[b].name; });
  if (twice != order.end()) return tensorError(ErrorKind::Invalid, tensors[*twice].name, "it appears twice");
  return order;
}

} // namespace mashbox::gguf
