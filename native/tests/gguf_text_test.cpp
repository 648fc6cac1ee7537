#include "base/hash.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "test.hpp"

#include <set>

using namespace mashbox;
using test::check;
using test::Test;

namespace {

const Test utf8{"base: UTF-8 is recognised at every length and place", [] {
  const std::string good[] = {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
  const std::string bad[] = {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xe2\x82",
                             "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf0\x90\x80", "\xff", "\xfe"};
  for (size_t before = 0; before < 18; ++before)
    for (size_t after = 0; after < 10; ++after) {
      const std::string head(before, 'x'), tail(after, 'y');
      for (const auto& text : good) check(isUtf8(head + text + tail), escaped(text));
      for (const auto& text : bad) check(!isUtf8(head + text + tail), escaped(text));
    }
}};

const Test escapes{"base: escaped text is one short line of ASCII that keeps its meaning", [] {
  check(escaped("a.b_c 100%") == "a.b_c 100%");
  check(escaped("\"\\\n\x1b\x7f\xff") == "\\x22\\x5c\\x0a\\x1b\\x7f\\xff");
  check(escaped(std::string_view("\0", 1)) == "\\x00");
  check(escaped(std::string(101, 'x')) == std::string(100, 'x') + "...");
}};

const Test codes{"base: every kind of error has a code of its own", [] {
  std::set<std::string> all;
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::Rejected); ++kind) all.insert(errorCode(static_cast<ErrorKind>(kind)));
  check(all == std::set<std::string>{"not_found", "truncated", "invalid", "unsupported", "inconsistent", "out_of_memory", "rejected"});
}};

const Test hash{"base: the keyed hash tells texts apart by every byte and by length", [] {
  const KeyedHash hash;
  std::set<size_t> seen;
  std::string text;
  for (size_t length = 0; length < 40; ++length, text += '\0') {
    seen.insert(hash(text));
    for (size_t at = 0; at < length; ++at) {
      std::string other = text;
      other[at] = '\1';
      seen.insert(hash(other));
    }
  }
  check(seen.size() == 40 + 39 * 40 / 2, std::to_string(seen.size()) + " different hashes");
  check(hash("abc") == hash(std::string("abc")));
}};

} // namespace
