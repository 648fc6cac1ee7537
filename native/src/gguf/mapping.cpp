#include "gguf/mapping.hpp"

#include "base/text.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mashbox::gguf {
namespace {

class Descriptor {
public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

private:
  int fd_;
};

Error failure(ErrorKind kind, const std::string& path, const std::string& why) { return {kind, "file " + escaped(path) + ": " + why, ""}; }

} // namespace

Result<Mapping> Mapping::open(const std::string& path) {
  // A NUL would silently shorten the path; O_NONBLOCK keeps a FIFO from blocking until a writer comes.
  if (path.find('\0') != std::string::npos) return failure(ErrorKind::NotFound, path, "the path contains a zero byte");
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return failure(ErrorKind::NotFound, path, std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return failure(ErrorKind::NotFound, path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) return failure(ErrorKind::NotFound, path, "is a directory, not a GGUF file");
  if (!S_ISREG(status.st_mode)) return failure(ErrorKind::NotFound, path, "is not a regular file");
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return Mapping({});
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) {
    const ErrorKind kind = errno == ENOMEM ? ErrorKind::OutOfMemory : ErrorKind::NotFound;
    return failure(kind, path, std::string("cannot be mapped: ") + std::strerror(errno));
  }
  return Mapping({static_cast<const std::byte*>(address), size});
}

Mapping::Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

} // namespace mashbox::gguf
