#include "base/result.hpp"

namespace mashbox {

const char* errorCode(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::NotFound: return "not_found";
    case ErrorKind::Truncated: return "truncated";
    case ErrorKind::Invalid: return "invalid";
    case ErrorKind::Unsupported: return "unsupported";
    case ErrorKind::Inconsistent: return "inconsistent";
    case ErrorKind::OutOfMemory: return "out_of_memory";
    case ErrorKind::Rejected: return "rejected";
    case ErrorKind::TooComplex: return "too_complex";
    case ErrorKind::DeadEnd: return "dead_end";
  }
  return "invalid";
}

} // namespace mashbox
