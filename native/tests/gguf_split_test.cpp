#include "gguf/file.hpp"
#include "gguf_writer.hpp"
#include "test.hpp"

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

using namespace mashbox;
using test::check;
using test::GgufWriter;
using test::Test;

namespace {

/// A folder of its own for one test.
class Folder {
public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mashbox-gguf-XXXXXX").string();
    check(::mkdtemp(pattern.data()) != nullptr, "no temporary folder");
    path_ = pattern;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream((path_ / name).string(), std::ios::binary) << bytes;
    return (path_ / name).string();
  }
  std::string path(const std::string& name) const { return (path_ / name).string(); }

private:
  std::filesystem::path path_;
};

/// Part `index` (from 0) of `count` with one tensor of that name.
GgufWriter part(uint16_t index, uint16_t count, int32_t tensors, const char* tensor) {
  GgufWriter writer;
  if (index == 0) writer.text("general.architecture", "qwen3");
  writer.number<uint16_t>("split.no", index).number<uint16_t>("split.count", count).number<int32_t>("split.tensors.count", tensors);
  return writer.tensor(tensor, {4}, 0, std::string(16, static_cast<char>('a' + index)));
}

const char* first = "m-00001-of-00002.gguf";
const char* second = "m-00002-of-00002.gguf";

void refuses(const Folder& folder, const char* name, ErrorKind kind, const std::string& subject, const std::string& phrase) {
  const auto file = gguf::File::open(folder.path(name));
  check(!file, "accepted");
  check(file.error().kind == kind && file.error().subject == subject, std::string(errorCode(file.error().kind)) + ": " + file.error().message);
  check(file.error().message.find(phrase) != std::string::npos, file.error().message);
}

const Test goldenSplits{"gguf: split models hold the tensors of all their parts", [] {
  const auto whole = gguf::File::open(test::golden("qwen3/model-f32.gguf").string());
  check(bool(whole));
  for (const char* name : {"split/qwen3-00001-of-00003.gguf", "split/qwen3-meta-first-00001-of-00003.gguf"}) {
    const auto split = gguf::File::open(test::golden(name).string());
    check(bool(split), split ? "" : split.error().message);
    check(split->tensors().size() == whole->tensors().size() && split->architecture() == whole->architecture());
    for (const gguf::Tensor& tensor : whole->tensors()) {
      const auto* found = split->tensor(tensor.name);
      check(found != nullptr && found->dims == tensor.dims, std::string(tensor.name));
    }
  }
}};

const Test parts{"gguf: parts are found by name and merged in order", [] {
  const Folder folder;
  folder.write(first, part(0, 2, 2, "a").bytes());
  folder.write(second, part(1, 2, 2, "b").bytes());
  const auto file = gguf::File::open(folder.path(first));
  check(bool(file), file ? "" : file.error().message);
  check(file->tensors().size() == 2 && file->tensors()[1].name == "b" && static_cast<char>(*file->tensor("b")->data) == 'b');
}};

const Test brokenParts{"gguf: parts that contradict each other are refused by key and by file", [] {
  const Folder folder;
  folder.write(first, part(0, 2, 2, "a").bytes());
  refuses(folder, first, ErrorKind::Inconsistent, "split.count", second);
  folder.write(second, part(1, 2, 2, "b").bytes());
  refuses(folder, second, ErrorKind::Inconsistent, "split.no", first);
  folder.write(second, part(0, 2, 2, "b").bytes());
  refuses(folder, first, ErrorKind::Inconsistent, "split.no", second);
  folder.write(second, part(1, 3, 2, "b").bytes());
  refuses(folder, first, ErrorKind::Inconsistent, "split.count", second);
  folder.write(second, part(1, 2, 2, "a").bytes());
  refuses(folder, first, ErrorKind::Invalid, "a", "twice");
  folder.write(second, part(1, 2, 2, "b").bytes().substr(0, 40));
  refuses(folder, first, ErrorKind::Truncated, "split.no", second);
  folder.write(second, part(1, 2, 2, "b").bytes());
  folder.write(first, part(0, 2, 3, "a").bytes());
  refuses(folder, first, ErrorKind::Inconsistent, "split.tensors.count", "2 tensors");
  folder.write("other.gguf", part(0, 2, 2, "a").bytes());
  refuses(folder, "other.gguf", ErrorKind::Inconsistent, "split.count", "-00001-of-00002.gguf");
  folder.write(first, part(2, 2, 2, "a").bytes());
  refuses(folder, first, ErrorKind::Invalid, "split.no", "2 of 2");
}};

const Test single{"gguf: a count of 0 or 1 means that there is one part", [] {
  const Folder folder;
  for (uint16_t count : {0, 1}) {
    folder.write("merged.gguf", part(0, count, 1, "a").bytes());
    check(bool(gguf::File::open(folder.path("merged.gguf"))));
  }
  const std::string bytes = part(0, 2, 2, "a").bytes();
  check(!gguf::File::parse(test::asBytes(bytes)), "one part of two is not a model");
}};

const Test noFile{"gguf: what is no regular file is not found, and nothing blocks", [] {
  const Folder folder;
  folder.write("empty.gguf", "");
  refuses(folder, "absent.gguf", ErrorKind::NotFound, "", "No such file");
  refuses(folder, ".", ErrorKind::NotFound, "", "directory");
  refuses(folder, "empty.gguf", ErrorKind::Truncated, "", "too early");
  check(::mkfifo(folder.path("pipe.gguf").c_str(), 0600) == 0);
  refuses(folder, "pipe.gguf", ErrorKind::NotFound, "", "not a regular file");
  const auto zero = gguf::File::open(folder.write("x.gguf", "GGUF") + std::string(1, '\0') + ".gguf");
  check(!zero && zero.error().kind == ErrorKind::NotFound);
  refuses(folder, "new\nline.gguf", ErrorKind::NotFound, "", "new\\x0aline");
}};

} // namespace
