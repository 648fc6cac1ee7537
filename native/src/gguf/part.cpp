#include "gguf/part.hpp"

#include "gguf/error.hpp"
#include "gguf/tensor_table.hpp"

#include <algorithm>
#include <initializer_list>

namespace mashbox::gguf {
namespace {

constexpr uint64_t largestCount = 1 << 20; // keys or tensors; real models have a few thousand
constexpr uint64_t defaultAlignment = 32, smallestAlignment = 8, largestAlignment = 1 << 20;

struct Header {
  uint32_t version = 0;
  uint64_t tensors = 0, keys = 0;
};

std::string number(uint64_t value) { return std::to_string(value); }

bool startsWith(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view prefix) { return text.starts_with(prefix); });
}

/// What the file may be when it is no GGUF; people meet these after a download went wrong.
std::string guessContents(std::string_view head) {
  if (head.starts_with("version https://git-lfs"))
    return "this is a Git LFS pointer: fetch the file itself, for example with `git lfs pull`";
  const std::string_view text = head.substr(std::min(head.find_first_not_of(" \t\r\n\xef\xbb\xbf"), head.size()));
  if (startsWith(text, {"<!DOCTYPE", "<!doctype", "<html", "<HTML", "<head", "<?xml"}))
    return "this is a web page: the download got an error or log-in page instead of the model";
  if (text.starts_with("{")) return "this looks like JSON: the download got an answer of the server instead of the model";
  if (startsWith(head, {"lmgg", "ggml", "fmgg", "ggmf", "tjgg", "ggjt", "algg", "ggla"}))
    return "this is a model in the old GGML format: convert it to GGUF";
  if (head.starts_with("PK\x03\x04")) return "this is a zip archive, perhaps a PyTorch checkpoint";
  if (head.starts_with("\x1f\x8b")) return "this is a gzip archive: unpack it first";
  return "expected GGUF, found \"" + escaped(head.substr(0, 4)) + "\"";
}

Error endsIn(const std::string& where) { return {ErrorKind::Truncated, "the file ends too early, within " + where, ""}; }

Result<void> checkVersion(uint32_t version) {
  const auto error = [](ErrorKind kind, const std::string& why) { return Error{kind, why, "version"}; };
  if (version == 2 || version == 3) return {};
  if (version == 0) return error(ErrorKind::Invalid, "GGUF version 0 does not exist");
  if ((version & 0xffff) == 0)
    return error(ErrorKind::Unsupported, "the version reads as " + number(version) +
                                           ": this is a big-endian GGUF file; only little-endian ones can be read");
  return error(ErrorKind::Unsupported, "GGUF version " + number(version) + " cannot be read; versions 2 and 3 can");
}

Result<void> checkCount(uint64_t count, const char* field) {
  if (count <= largestCount) return {};
  const std::string limit = "more than " + number(largestCount) + " cannot be right";
  return Error{ErrorKind::Invalid, std::string(field) + " is " + number(count) + "; " + limit, field};
}

Result<Header> readHeader(Cursor& cursor) {
  constexpr std::string_view magic = "GGUF";
  const std::string_view head = cursor.rest().substr(0, 256);
  if (head.size() < magic.size() && magic.starts_with(head)) return endsIn("the magic: it has " + number(head.size()) + " bytes");
  if (!head.starts_with(magic)) return Error{ErrorKind::Invalid, "not a GGUF file, wrong magic: " + guessContents(head), "magic"};
  uint32_t skipped = 0;
  Header header;
  if (!cursor.take(skipped) || !cursor.take(header.version)) return endsIn("the version");
  if (auto version = checkVersion(header.version); !version) return version.error();
  if (!cursor.take(header.tensors)) return endsIn("tensor_count");
  if (!cursor.take(header.keys)) return endsIn("metadata_kv_count");
  if (auto tensors = checkCount(header.tensors, "tensor_count"); !tensors) return tensors.error();
  if (auto keys = checkCount(header.keys, "metadata_kv_count"); !keys) return keys.error();
  return header;
}

Result<uint64_t> readAlignment(const Metadata& metadata) {
  constexpr std::string_view key = "general.alignment";
  const Value* value = metadata.find(key);
  if (value == nullptr) return defaultAlignment;
  const auto* alignment = std::get_if<uint64_t>(value);
  if (alignment == nullptr) return keyError(ErrorKind::Invalid, key, "it must be an unsigned integer");
  if (std::has_single_bit(*alignment) && *alignment >= smallestAlignment && *alignment <= largestAlignment) return *alignment;
  return keyError(ErrorKind::Invalid, key,
                  "it is " + number(*alignment) + "; it must be a power of two from " + number(smallestAlignment) + " to " +
                    number(largestAlignment));
}

} // namespace

Result<Part> readPart(std::span<const std::byte> bytes) {
  Cursor cursor(bytes);
  const auto header = readHeader(cursor);
  if (!header) return header.error();
  auto metadata = readMetadata(cursor, header->keys);
  if (!metadata) return metadata.error();
  const auto alignment = readAlignment(*metadata);
  if (!alignment) return alignment.error();
  auto tensors = readTensors(cursor, header->tensors, *alignment);
  if (!tensors) return tensors.error();
  return Part{std::move(*metadata), std::move(*tensors)};
}

} // namespace mashbox::gguf
