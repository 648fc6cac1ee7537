#include "gguf/file.hpp"
#include "gguf_writer.hpp"
#include "test.hpp"

#include <cstring>
#include <limits>

using namespace mashbox;
using test::asBytes;
using test::check;
using test::GgufWriter;
using test::Test;

namespace {

constexpr uint32_t F32 = 0, Q4_0 = 2, Q8_0 = 8;

GgufWriter base() {
  GgufWriter writer;
  writer.text("general.architecture", "qwen3");
  return writer;
}

std::string floats(size_t count) { return std::string(4 * count, '\0'); }

/// Reading must fail with this kind, name `subject`, and say `phrase`.
void refuses(const std::string& bytes, ErrorKind kind, const std::string& subject, const std::string& phrase) {
  const auto file = gguf::File::parse(asBytes(bytes));
  check(!file, "accepted, instead of: " + subject + " " + phrase);
  const Error& error = file.error();
  check(error.kind == kind, std::string(errorCode(error.kind)) + ": " + error.message);
  check(error.subject == subject, "subject is " + error.subject + ": " + error.message);
  check(error.message.find(phrase) != std::string::npos, error.message);
}

gguf::File accepts(const std::string& bytes) {
  auto file = gguf::File::parse(asBytes(bytes));
  check(bool(file), file ? "" : file.error().message);
  return *std::move(file);
}

const Test values{"gguf: every value type is read with its value", [] {
  const std::string bytes = base()
                              .number<uint8_t>("u8", 200)
                              .number<int8_t>("i8", -100)
                              .number<uint16_t>("u16", 60000)
                              .number<int16_t>("i16", -30000)
                              .number<uint32_t>("u32", 4000000000)
                              .number<int32_t>("i32", -2000000000)
                              .number<float>("f32", 1.5f)
                              .number<uint64_t>("u64", 1ull << 63)
                              .number<int64_t>("i64", -(1ll << 62))
                              .number<double>("f64", 0.1)
                              .flag("yes", true)
                              .flag("no", false)
                              .text("text", "h\xc3\xa9")
                              .bytes();
  const gguf::File file = accepts(bytes);
  const auto number = [&](const char* key, auto wanted) {
    const auto* value = std::get_if<decltype(wanted)>(file.find(key));
    check(value != nullptr && *value == wanted, key);
  };
  number("u8", uint64_t(200));
  number("i8", int64_t(-100));
  number("u16", uint64_t(60000));
  number("i16", int64_t(-30000));
  number("u32", uint64_t(4000000000));
  number("i32", int64_t(-2000000000));
  number("f32", 1.5);
  number("u64", uint64_t(1) << 63);
  number("i64", -(int64_t(1) << 62));
  number("f64", 0.1);
  number("yes", true);
  number("no", false);
  number("text", std::string_view("h\xc3\xa9"));
  check(file.entries().size() == 14 && file.entries()[1].key == "u8", "entries keep the file's order");
  check(file.find("absent") == nullptr && file.architecture() == "qwen3");
}};

const Test arrays{"gguf: arrays of every element type are read with their values", [] {
  const std::string bytes = base()
                              .numbers<uint8_t>("u8", {1, 255})
                              .numbers<int32_t>("i32", {-1, 7})
                              .numbers<float>("f32", {0.5f, -2})
                              .numbers<uint64_t>("u64", {1ull << 40})
                              .texts("texts", {"", "a b"})
                              .raw("bools", 9, GgufWriter::arrayHead(7, 2) + std::string("\1\0", 2))
                              .numbers<int16_t>("empty", {})
                              .bytes();
  const gguf::File file = accepts(bytes);
  const auto array = [&](const char* key, auto wanted) {
    const auto* value = std::get_if<gguf::Array>(file.find(key));
    check(value != nullptr && value->size() == wanted.size(), key);
    const auto* found = std::get_if<decltype(wanted)>(&value->values);
    check(found != nullptr && *found == wanted, key);
  };
  array("u8", std::vector<uint64_t>{1, 255});
  array("i32", std::vector<int64_t>{-1, 7});
  array("f32", std::vector<double>{0.5, -2});
  array("u64", std::vector<uint64_t>{1ull << 40});
  array("texts", std::vector<std::string_view>{"", "a b"});
  array("bools", std::vector<bool>{true, false});
  array("empty", std::vector<int64_t>{});
  check(std::get<gguf::Array>(*file.find("u8")).elementType == gguf::ValueType::U8);
}};

const Test typedReads{"gguf: typed reads are lenient in width, strict in kind, and name the key", [] {
  const std::string bytes = base()
                              .number<int32_t>("five", 5)
                              .number<int32_t>("negative", -5)
                              .number<float>("half", 0.5f)
                              .number<float>("nan", std::numeric_limits<float>::quiet_NaN())
                              .number<double>("inf", std::numeric_limits<double>::infinity())
                              .number<uint8_t>("one", 1)
                              .flag("yes", true)
                              .text("text", "t")
                              .numbers<int32_t>("layers", {4, 0, 2})
                              .numbers<int32_t>("minus", {4, -1})
                              .numbers<float>("reals", {4})
                              .raw("pattern", 9, GgufWriter::arrayHead(7, 2) + std::string("\1\0", 2))
                              .texts("texts", {"a"})
                              .bytes();
  const gguf::File file = accepts(bytes);
  const auto fails = [](const auto& result, ErrorKind kind, const char* subject) {
    check(!result && result.error().kind == kind && result.error().subject == subject, subject);
  };
  check(*file.requireUint("five") == 5 && *file.uintOr("five", 9) == 5 && *file.uintOr("absent", 9) == 9);
  fails(file.requireUint("absent"), ErrorKind::Invalid, "absent");
  fails(file.requireUint("negative"), ErrorKind::Invalid, "negative");
  fails(file.uintOr("half", 1), ErrorKind::Invalid, "half");
  fails(file.requireUint("yes"), ErrorKind::Invalid, "yes");
  check(*file.requireFloat("half") == 0.5 && *file.requireFloat("negative") == -5 && *file.floatOr("absent", 2) == 2);
  fails(file.requireFloat("nan"), ErrorKind::Invalid, "nan");
  fails(file.floatOr("inf", 1), ErrorKind::Invalid, "inf");
  fails(file.requireFloat("text"), ErrorKind::Invalid, "text");
  check(*file.boolOr("yes", false) && *file.boolOr("one", false) && !*file.boolOr("absent", false));
  fails(file.boolOr("five", false), ErrorKind::Invalid, "five");
  check(*file.requireString("text") == "t");
  fails(file.requireString("five"), ErrorKind::Invalid, "five");
  check((*file.requireStrings("texts"))[0] == "a");
  fails(file.requireStrings("layers"), ErrorKind::Invalid, "layers");
  check(*file.requireUints("five", 3) == std::vector<uint64_t>{5, 5, 5} && *file.requireUints("layers", 3) == std::vector<uint64_t>{4, 0, 2});
  check(*file.requireUints("pattern", 2) == std::vector<uint64_t>{1, 0});
  fails(file.requireUints("layers", 2), ErrorKind::Inconsistent, "layers");
  fails(file.requireUints("minus", 2), ErrorKind::Invalid, "minus");
  fails(file.requireUints("reals", 1), ErrorKind::Invalid, "reals");
  fails(file.requireUints("texts", 1), ErrorKind::Invalid, "texts");
}};

const Test tensors{"gguf: tensors have their shape, format, bytes and data", [] {
  std::string data = floats(64);
  const float mark = 42;
  std::memcpy(data.data() + 4, &mark, 4);
  const std::string bytes = base().tensor("a", {8, 4, 2}, F32, data).tensor("b", {64, 3}, Q8_0, std::string(204, 'x')).bytes();
  const gguf::File file = accepts(bytes);
  check(file.tensors().size() == 2 && file.tensor("c") == nullptr);
  const gguf::Tensor& a = *file.tensor("a");
  check(a.rank == 3 && a.dims == std::array<uint64_t, 4>{8, 4, 2, 1} && a.bytes == 256 && a.rows() == 8 && a.rowBytes() == 32);
  float second;
  std::memcpy(&second, a.data + 4, 4);
  check(second == 42, "data begins where it should");
  const gguf::Tensor& b = *file.tensor("b");
  check(std::string(b.format->name) == "Q8_0" && b.bytes == 204 && static_cast<char>(b.data[203]) == 'x');
  check(file.tensorBytes() == 460);
}};

const Test alignment{"gguf: the alignment moves the data; gaps and any order are fine", [] {
  GgufWriter writer = base().u32("general.alignment", 128);
  writer.alignment = 128;
  const std::string wide = writer.tensor("a", {2}, F32, floats(2)).tensor("b", {2}, F32, floats(2)).bytes();
  const gguf::File file = accepts(wide);
  check(file.tensor("b")->data - file.tensor("a")->data == 128);
  check((file.tensor("a")->data - asBytes(wide).data()) % 128 == 0);

  const std::string mixed = base().tensorAt("late", {2}, F32, 96).tensorAt("early", {2}, F32, 32).bytes() + std::string(104, '\0');
  check(accepts(mixed).tensor("late")->data - accepts(mixed).tensor("early")->data == 64);
}};

const Test badAlignment{"gguf: an alignment that is no power of two from 8, or of the wrong type, is refused", [] {
  for (uint32_t value : {0u, 1u, 4u, 24u, 1u << 21, 0xffffffffu})
    refuses(base().u32("general.alignment", value).bytes(), ErrorKind::Invalid, "general.alignment", std::to_string(value));
  refuses(base().text("general.alignment", "32").bytes(), ErrorKind::Invalid, "general.alignment", "unsigned integer");
  refuses(base().number<int32_t>("general.alignment", 32).bytes(), ErrorKind::Invalid, "general.alignment", "unsigned integer");
}};

const Test header{"gguf: versions, byte order and magic", [] {
  GgufWriter writer = base();
  writer.version = 2;
  accepts(writer.bytes());
  for (uint32_t version : {1u, 4u, 0x03000000u, 0xffffffffu}) {
    writer.version = version;
    refuses(writer.bytes(), ErrorKind::Unsupported, "version", std::to_string(version));
  }
  writer.version = 0x03000000;
  refuses(writer.bytes(), ErrorKind::Unsupported, "version", "big-endian");
  writer.version = 0;
  refuses(writer.bytes(), ErrorKind::Invalid, "version", "0");
  refuses("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", ErrorKind::Invalid, "magic", "Git LFS");
  refuses("\n <!DOCTYPE html><html>", ErrorKind::Invalid, "magic", "web page");
  refuses("{\"error\":\"not found\"}", ErrorKind::Invalid, "magic", "JSON");
  refuses("lmgg\1\0\0\0", ErrorKind::Invalid, "magic", "old GGML format");
  refuses("PK\3\4....", ErrorKind::Invalid, "magic", "zip");
  refuses("ab\nc", ErrorKind::Invalid, "magic", "ab\\x0ac");
  refuses("", ErrorKind::Truncated, "", "too early");
  refuses("GGU", ErrorKind::Truncated, "", "too early");
}};

const Test counts{"gguf: announced counts are bounded before anything is allocated", [] {
  const auto announced = [](uint64_t tensors, uint64_t keys) { return base().announce(tensors, keys).bytes(); };
  refuses(announced(1ull << 60, 1), ErrorKind::Invalid, "tensor_count", "1152921504606846976");
  refuses(announced(0, ~0ull), ErrorKind::Invalid, "metadata_kv_count", "18446744073709551615");
  refuses(announced(0, 1 << 20), ErrorKind::Invalid, "number 1", "empty"); // padding is read as a key
  refuses(announced(1 << 20, 1), ErrorKind::Invalid, "number 0", "empty");
}};

const Test everyCut{"gguf: a file cut at any byte is refused as truncated", [] {
  const std::string whole =
    base().texts("list", {"one", "two"}).numbers<uint16_t>("numbers", {1, 2, 3}).flag("flag", true).tensor("t", {4}, F32, floats(4)).bytes();
  accepts(whole);
  for (size_t length = 0; length < whole.size(); ++length) {
    const std::string cut = whole.substr(0, length); // its own allocation, so that AddressSanitizer sees a read past the end
    const auto file = gguf::File::parse(asBytes(cut));
    check(!file && file.error().kind == ErrorKind::Truncated, "cut at " + std::to_string(length));
  }
}};

const Test keys{"gguf: keys must have a name, in UTF-8, once", [] {
  refuses(base().u32("", 1).bytes(), ErrorKind::Invalid, "number 1", "empty");
  refuses(base().u32("a\xff", 1).bytes(), ErrorKind::Invalid, "a\\xff", "UTF-8");
  refuses(base().u32(std::string_view("a\0b", 3), 1).bytes(), ErrorKind::Invalid, "a\\x00b", "zero byte");
  refuses(base().u32("a", 1).text("b", "").u32("a", 2).bytes(), ErrorKind::Invalid, "a", "twice");
  refuses(base().u32(std::string(65536, 'k'), 1).bytes(), ErrorKind::Invalid, "number 1", "65536");
  accepts(base().u32(std::string(65535, 'k'), 1).bytes());
  refuses(base().raw("k", 13, "").bytes(), ErrorKind::Invalid, "k", "type 13");
  refuses(base().raw("k", 7, "\2").bytes(), ErrorKind::Invalid, "k", "neither 0 nor 1");
}};

const Test badArrays{"gguf: arrays are bounded by the file, by a cap, and do not nest", [] {
  const auto array = [](uint32_t type, uint64_t count, const std::string& data = "") {
    return base().raw("k", 9, GgufWriter::arrayHead(type, count) + data).bytes();
  };
  refuses(array(9, 1, GgufWriter::arrayHead(4, 0)), ErrorKind::Unsupported, "k", "arrays of arrays");
  refuses(array(77, 1), ErrorKind::Invalid, "k", "element type 77");
  refuses(array(4, 1ull << 62), ErrorKind::Invalid, "k", "4611686018427387904");
  refuses(array(4, 1 << 26), ErrorKind::Truncated, "k", "67108864 elements");
  refuses(array(8, 1 << 20), ErrorKind::Truncated, "k", "1048576 elements");
  refuses(array(8, 1, std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8)), ErrorKind::Invalid, "k", "9223372036854775807");
  refuses(array(7, 2, "\1\3"), ErrorKind::Invalid, "k", "boolean 1 is 3");
}};

const Test tensorTable{"gguf: tensor names, dimensions and types are checked", [] {
  refuses(base().tensor("", {4}, F32, floats(4)).bytes(), ErrorKind::Invalid, "number 0", "empty");
  refuses(base().tensor("a\xc0", {4}, F32, floats(4)).bytes(), ErrorKind::Invalid, "a\\xc0", "UTF-8");
  refuses(base().tensor(std::string(64, 't'), {4}, F32, floats(4)).bytes(), ErrorKind::Invalid, "number 0", "64");
  accepts(base().tensor(std::string(63, 't'), {4}, F32, floats(4)).bytes());
  refuses(base().tensor("t", {4}, F32, floats(4)).tensor("t", {4}, F32, floats(4)).bytes(), ErrorKind::Invalid, "t", "twice");
  refuses(base().tensor("t", {}, F32, floats(4)).bytes(), ErrorKind::Invalid, "t", "0 dimensions");
  refuses(base().tensor("t", {1, 1, 1, 1, 1}, F32, floats(4)).bytes(), ErrorKind::Invalid, "t", "5 dimensions");
  refuses(base().tensor("t", {4, 0}, F32, "").bytes(), ErrorKind::Invalid, "t", "is 0");
  refuses(base().tensor("t", {1ull << 33, 1ull << 31}, F32, "").bytes(), ErrorKind::Invalid, "t", "overflows");
  refuses(base().tensor("t", {1ull << 32, 1ull << 31, 2, 4}, F32, "").bytes(), ErrorKind::Invalid, "t", "overflows");
  refuses(base().tensor("t", {48}, Q8_0, std::string(51, '\0')).bytes(), ErrorKind::Invalid, "t", "no multiple of the 32 values of a Q8_0 block");
  for (uint32_t type : {4u, 5u, 31u, 36u, 43u, 99u, 0xffffffffu})
    refuses(base().tensor("t", {32}, type, floats(32)).bytes(), ErrorKind::Invalid, "t", "type " + std::to_string(type));
}};

const Test tensorData{"gguf: tensor data must lie inside the file, aligned, each on its own bytes", [] {
  refuses(base().tensor("t", {4}, F32, floats(3)).bytes(), ErrorKind::Truncated, "t", "past the end");
  refuses(base().tensorAt("t", {4}, F32, 64).bytes() + floats(4), ErrorKind::Truncated, "t", "past the end");
  refuses(base().tensorAt("t", {4}, F32, ~0ull - 31).bytes() + floats(4), ErrorKind::Truncated, "t", "past the end");
  refuses(base().tensorAt("t", {4}, F32, 8).bytes() + floats(8), ErrorKind::Invalid, "t", "multiple of the alignment");
  refuses(base().tensorAt("a", {4}, F32, 0).tensorAt("b", {4}, F32, 0).bytes() + floats(8), ErrorKind::Invalid, "b", "overlap those of a");
  refuses(base().tensorAt("a", {4}, F32, 32).tensorAt("b", {16}, F32, 0).bytes() + floats(32), ErrorKind::Invalid, "a", "overlap those of b");
  accepts(base().tensor("t", {32}, Q4_0, std::string(18, '\0')).bytes());
}};

const Test architecture{"gguf: an architecture is required, and hostile text is escaped in messages", [] {
  refuses(GgufWriter().bytes(), ErrorKind::Invalid, "general.architecture", "missing");
  refuses(GgufWriter().u32("general.architecture", 1).bytes(), ErrorKind::Invalid, "general.architecture", "string");
  refuses(GgufWriter().text("general.architecture", "").bytes(), ErrorKind::Invalid, "general.architecture", "empty");
  refuses(base().raw("\x1b[31m\n%s\"\xe2\x80\xae", 13, "").bytes(), ErrorKind::Invalid, "\\x1b[31m\\x0a%s\\x22\\xe2\\x80\\xae", "type 13");
  refuses(base().raw(std::string(500, 'k'), 13, "").bytes(), ErrorKind::Invalid, std::string(100, 'k') + "...", "type 13");
}};

} // namespace
