/// Compile times and mask times of grammars over a real vocabulary: mashbox_grammar_bench VOCABULARY.gguf [IR…]
/// Without files of IR (src/grammar): a table for the grammars below. With them: a line of JSON for the vocabulary and one for each file,
/// with every time in microseconds and the token ids of the random outputs.
#include "../tests/ir_writer.hpp"
#include "gguf/file.hpp"
#include "grammar/matcher.hpp"
#include "model/token_merges.hpp"
#include "model/token_texts.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <time.h>

namespace {

using namespace mashbox;
using test::IrWriter;
using Node = IrWriter::Node;

/// Time of this thread alone: other programs on the machine do not count.
struct Clock {
  using duration = std::chrono::nanoseconds;
  static duration now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }
};

double microseconds(Clock::duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }

/// Rules for JSON values of every type, and helpers for those of a schema.
class Json {
public:
  explicit Json(IrWriter& ir) : ir_(ir) {
    const Node hex = ir.set({{'0', '9'}, {'a', 'f'}, {'A', 'F'}});
    const Node escape = ir.choice({ir.set({{'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'b', 'b'}, {'f', 'f'}, {'n', 'n'}, {'r', 'r'}, {'t', 't'}}),
                                   ir.sequence({ir.text("u"), ir.repeat(hex, 4, 4)})});
    character_ = ir.choice({ir.set({{0, 0x1f}, {'"', '"'}, {'\\', '\\'}}, true), ir.sequence({ir.text("\\"), escape})});
    quote_ = ir.text("\"");
    text_ = text(0, IrWriter::Unbounded);
    const Node digits = ir.repeat(ir.set({{'0', '9'}}), 1);
    const Node whole = ir.choice({ir.text("0"), ir.sequence({ir.set({{'1', '9'}}), ir.repeat(ir.set({{'0', '9'}}))})});
    const Node fraction = ir.repeat(ir.sequence({ir.text("."), digits}), 0, 1);
    const Node exponent = ir.repeat(ir.sequence({ir.set({{'e', 'e'}, {'E', 'E'}}), ir.repeat(ir.set({{'+', '+'}, {'-', '-'}}), 0, 1), digits}), 0, 1);
    number_ = ir.lexeme(ir.sequence({ir.repeat(ir.text("-"), 0, 1), whole, fraction, exponent}));
    comma_ = ir.sequence({ir.text(","), ir.repeat(ir.text(" "), 0, 1)});
    colon_ = ir.sequence({ir.text(":"), ir.repeat(ir.text(" "), 0, 1)});
    boolean_ = ir.choice({ir.text("true"), ir.text("false")});
  }

  Node text(uint32_t min, uint32_t max) { return ir_.lexeme(ir_.sequence({quote_, ir_.repeat(character_, min, max), quote_})); }
  Node text() const { return text_; }
  Node number() const { return number_; }
  Node boolean() const { return boolean_; }
  Node list(Node item) {
    return ir_.sequence({ir_.text("["), ir_.repeat(ir_.sequence({item, ir_.repeat(ir_.sequence({comma_, item}))}), 0, 1), ir_.text("]")});
  }
  Node any() {
    if (anyDefined_) return ir_.rule("any");
    anyDefined_ = true;
    const Node value = ir_.rule("any");
    const Node member = ir_.sequence({text_, colon_, value});
    const Node object = ir_.sequence({ir_.text("{"), ir_.repeat(ir_.sequence({member, ir_.repeat(ir_.sequence({comma_, member}))}), 0, 1), ir_.text("}")});
    ir_.define("any", ir_.choice({text_, number_, boolean_, ir_.text("null"), list(value), object}));
    return value;
  }
  Node object(const std::vector<std::pair<std::string, Node>>& members, size_t required, bool ordered) {
    std::vector<IrWriter::Item> items;
    for (const auto& [key, value] : members) items.push_back({ir_.sequence({ir_.text("\"" + key + "\""), colon_, value}), items.size() < required});
    return ir_.sequence({ir_.text("{"), ir_.permutation(items, comma_, ordered), ir_.text("}")});
  }

private:
  IrWriter& ir_;
  Node character_, quote_, text_, number_, comma_, colon_, boolean_;
  bool anyDefined_ = false;
};

Node enumeration(IrWriter& ir, int count, std::mt19937_64& random) {
  std::vector<Node> words;
  for (int i = 0; i < count; ++i) {
    std::string word = "\"";
    for (int rest = 6; rest > 0; --rest) word += static_cast<char>('a' + random() % 26);
    words.push_back(ir.text(word + std::to_string(i) + "\""));
  }
  return ir.choice(words);
}

/// A tool's arguments of about `properties` properties, some of them objects.
Node arguments(IrWriter& ir, Json& json, int properties, int depth, bool ordered, std::mt19937_64& random) {
  std::vector<std::pair<std::string, Node>> members;
  for (int i = 0; i < properties; ++i) {
    const std::string key = "property_" + std::to_string(i) + static_cast<char>('a' + random() % 26);
    switch (random() % 7) {
      case 0: members.emplace_back(key, json.number()); break;
      case 1: members.emplace_back(key, json.boolean()); break;
      case 2: members.emplace_back(key, json.list(json.text())); break;
      case 3: members.emplace_back(key, enumeration(ir, 8, random)); break;
      case 4:
        if (depth > 0) {
          members.emplace_back(key, arguments(ir, json, properties / 2, depth - 1, ordered, random));
          break;
        }
        [[fallthrough]];
      default: members.emplace_back(key, json.text());
    }
  }
  return json.object(members, members.size() / 2, ordered);
}

std::string tools(int count, int properties, bool ordered) {
  IrWriter ir;
  Json json(ir);
  std::mt19937_64 random(1);
  std::vector<Node> calls;
  for (int i = 0; i < count; ++i) {
    ir.define("arguments" + std::to_string(i), arguments(ir, json, properties, 2, ordered, random));
    calls.push_back(ir.sequence({ir.text("{\"name\": \"tool_" + std::to_string(i) + "\", \"arguments\": "), ir.rule("arguments" + std::to_string(i)), ir.text("}")}));
  }
  const Node call = ir.sequence({ir.text("\n"), ir.choice(calls), ir.text("\n</tool_call>")});
  const Node more = ir.sequence({ir.free({{"<tool_call>", {}}}), call});
  ir.define("root", ir.choice({ir.free({}, {"<tool_call>"}), ir.sequence({ir.repeat(more, 1), ir.free({}, {"<tool_call>"})})}));
  return ir.finish("root");
}

struct Subject {
  const char* name;
  std::function<std::string()> write;
};

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all{
    {"JSON, any value", [] { IrWriter ir; Json json(ir); json.any(); return ir.finish("any"); }},
    {"schema, 12 properties in order", [] { IrWriter ir; Json json(ir); std::mt19937_64 random(2); return ir.only(arguments(ir, json, 12, 2, true, random)); }},
    {"schema, 12 properties in any order", [] { IrWriter ir; Json json(ir); std::mt19937_64 random(2); return ir.only(arguments(ir, json, 12, 2, false, random)); }},
    {"4 tools, free text between", [] { return tools(4, 8, true); }},
    {"20 big tools, free text between", [] { return tools(20, 24, true); }},
    {"20 big tools, any order", [] { return tools(20, 24, false); }},
    {"texts of at most 10000 characters", [] { IrWriter ir; Json json(ir); return ir.only(json.list(json.text(0, 10'000))); }},
    {"texts of 5 to 60 characters", [] { IrWriter ir; Json json(ir); return ir.only(json.list(json.text(5, 60))); }},
    {"enum of 10000", [] { IrWriter ir; Json json(ir); std::mt19937_64 random(3); return ir.only(json.list(enumeration(ir, 10'000, random))); }},
    {"pattern of words, at most 200 characters", [] {
      IrWriter ir;
      Json json(ir);
      const Node word = ir.repeat(ir.set({{'a', 'z'}, {'A', 'Z'}, {'0', '9'}, {'_', '_'}}), 1);
      const Node pattern = ir.sequence({word, ir.repeat(ir.sequence({ir.set({{' ', ' '}, {'-', '-'}}), word}))});
      const Node limited = ir.both({pattern, ir.repeat(ir.set({}, true), 3, 200)});
      return ir.only(json.list(ir.lexeme(ir.sequence({ir.text("\""), limited, ir.text("\"")}))));
    }},
    {"identifiers of at most 64 characters", [] {
      IrWriter ir;
      Json json(ir);
      return ir.only(json.list(ir.lexeme(ir.sequence({ir.text("\""), ir.repeat(ir.set({{'a', 'z'}, {'0', '9'}, {'_', '_'}}), 1, 64), ir.text("\"")}))));
    }},
    {"lower-case letters, 1 to 200", [] {
      IrWriter ir;
      Json json(ir);
      return ir.only(json.list(ir.lexeme(ir.sequence({ir.text("\""), ir.repeat(ir.set({{'a', 'z'}}), 1, 200), ir.text("\"")}))));
    }},
    {"at most 50 words with a space after each", [] {
      IrWriter ir;
      Json json(ir);
      const Node word = ir.repeat(ir.set({{'a', 'z'}, {'A', 'Z'}, {'0', '9'}, {'_', '_'}}), 1);
      return ir.only(json.list(ir.lexeme(ir.sequence({ir.text("\""), ir.repeat(ir.sequence({word, ir.set({{' ', ' '}})}), 0, 50), ir.text("\"")}))));
    }},
    {"XML parameters", [] {
      IrWriter ir;
      const Node value = ir.free({{"\n</parameter>\n", {}}});
      std::vector<Node> parameters;
      for (const char* name : {"path", "content", "old_string", "new_string"}) parameters.push_back(ir.sequence({ir.text(std::string("<parameter=") + name + ">\n"), value}));
      return ir.only(ir.sequence({ir.text("<tool_call>\n<function=edit>\n"), ir.repeat(ir.choice(parameters), 1), ir.text("</function>\n</tool_call>")}));
    }},
  };
  return all;
}

int32_t draw(const std::vector<uint64_t>& mask, std::mt19937_64& random) {
  // One of the bytes that end things, sometimes, so that outputs do not stay in one text.
  if (random() % 6 == 0)
    for (const int32_t token : {1, 59, 92, 11, 60}) // " \ ] } , < in GPT-2's order of bytes
      if ((mask[static_cast<size_t>(token) / 64] >> token % 64 & 1) != 0) return token;
  const size_t start = random() % mask.size();
  for (size_t i = 0; i < mask.size(); ++i)
    if (const uint64_t bits = mask[(start + i) % mask.size()]; bits != 0) return static_cast<int32_t>((start + i) % mask.size() * 64 + std::countr_zero(bits));
  return -1;
}

struct Times {
  std::vector<double> all;
  double mean() const {
    double sum = 0;
    for (const double time : all) sum += time;
    return all.empty() ? 0 : sum / static_cast<double>(all.size());
  }
  double percentile(double p) {
    if (all.empty()) return 0;
    std::sort(all.begin(), all.end());
    return all[std::min(all.size() - 1, static_cast<size_t>(p * static_cast<double>(all.size())))];
  }
};

/// What one grammar costs, in microseconds, over random outputs.
struct Measured {
  Times compile, warm;
  Times first, again; ///< masks: each state met for the first time, and once more
  Times accept;
  std::vector<std::vector<int32_t>> outputs;
};

Result<Measured> measure(std::span<const std::byte> ir, const std::shared_ptr<const grammar::Vocabulary>& vocabulary) {
  constexpr int Compiles = 5, Outputs = 8, Steps = 150;
  Measured measured;
  std::shared_ptr<const grammar::Grammar> grammar;
  for (int i = 0; i < Compiles; ++i) {
    const auto start = Clock::now();
    auto compiled = grammar::Grammar::compile(ir, vocabulary);
    const auto between = Clock::now();
    if (!compiled) return compiled.error();
    grammar = *compiled;
    grammar->warm();
    measured.compile.all.push_back(microseconds(between - start));
    measured.warm.all.push_back(microseconds(Clock::now() - between));
  }
  std::vector<uint64_t> mask(vocabulary->maskWords());
  for (Times* masks : {&measured.first, &measured.again}) {
    std::mt19937_64 random(5);
    measured.outputs.assign(Outputs, {});
    for (std::vector<int32_t>& output : measured.outputs) {
      grammar::Matcher matcher(grammar);
      for (int step = 0; step < Steps; ++step) {
        const auto start = Clock::now();
        if (const auto masked = matcher.mask(mask); !masked) return masked.error();
        const auto between = Clock::now();
        masks->all.push_back(microseconds(between - start));
        const int32_t token = draw(mask, random);
        if (token < 0 || !matcher.accept(token)) break;
        measured.accept.all.push_back(microseconds(Clock::now() - between));
        output.push_back(token);
      }
    }
  }
  return measured;
}

void printTable(const std::shared_ptr<const grammar::Vocabulary>& vocabulary) {
  std::printf("%-42s %10s | mask: %8s %8s %8s | %8s | %8s\n", "", "compile ms", "mean us", "p99 us", "max us", "again us", "accept");
  Times every;
  for (const auto& [name, write] : subjects()) {
    const std::string ir = write();
    auto measured = measure(test::irBytes(ir), vocabulary);
    if (!measured) {
      std::printf("%-42s %s\n", name, measured.error().message.c_str());
      std::exit(1);
    }
    auto& [compile, warm, first, again, accept, outputs] = *measured;
    every.all.insert(every.all.end(), first.all.begin(), first.all.end());
    std::printf("%-42s %10.2f | %14.1f %8.1f %8.1f | %8.1f | %8.2f\n", name, compile.percentile(0.5) / 1000, first.mean(), first.percentile(0.99), first.percentile(1), again.mean(), accept.mean());
    std::fflush(stdout);
  }
  std::printf("%-42s %10s | %14.1f %8.1f %8.1f\n", "all, each state met for the first time", "", every.mean(), every.percentile(0.99), every.percentile(1));
}

void printJson(const auto& values) {
  std::printf("[");
  for (size_t i = 0; i < values.size(); ++i)
    if constexpr (std::is_same_v<std::decay_t<decltype(values[i])>, double>) std::printf("%s%.2f", i > 0 ? ", " : "", values[i]);
    else if constexpr (std::is_integral_v<std::decay_t<decltype(values[i])>>) std::printf("%s%d", i > 0 ? ", " : "", values[i]);
    else {
      if (i > 0) std::printf(", ");
      printJson(values[i]);
    }
  std::printf("]");
}

void printMeasured(const Measured& measured) {
  const std::pair<const char*, const Times&> times[] = {
    {"compile", measured.compile}, {"warm", measured.warm}, {"first", measured.first}, {"again", measured.again}, {"accept", measured.accept}};
  std::printf("{");
  for (const auto& [name, values] : times) {
    std::printf("\"%s\": ", name);
    printJson(values.all);
    std::printf(", ");
  }
  std::printf("\"outputs\": ");
  printJson(measured.outputs);
  std::printf("}\n");
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s VOCABULARY.gguf [IR…]\n", argv[0]);
    return 2;
  }
  const auto file = gguf::File::open(argv[1]);
  if (!file) {
    std::fprintf(stderr, "%s\n", file.error().message.c_str());
    return 1;
  }
  auto texts = model::tokenTexts(*file);
  if (!texts) {
    std::fprintf(stderr, "%s\n", texts.error().message.c_str());
    return 1;
  }
  const auto begin = Clock::now();
  const auto vocabulary = std::make_shared<const grammar::Vocabulary>(*std::move(texts), model::tokenMerges(*file));
  const double milliseconds = microseconds(Clock::now() - begin) / 1000;
  if (argc == 2) {
    std::printf("%u tokens, trie of %zu nodes in %.1f ms\n\n", vocabulary->size(), vocabulary->trie().size(), milliseconds);
    printTable(vocabulary);
    return 0;
  }
  std::printf("{\"tokens\": %u, \"milliseconds\": %.2f}\n", vocabulary->size(), milliseconds);
  for (int i = 2; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    const std::string ir{std::istreambuf_iterator<char>(in), {}};
    const auto measured = measure(test::irBytes(ir), vocabulary);
    if (!measured) {
      std::fprintf(stderr, "%s: %s\n", argv[i], measured.error().message.c_str());
      return 1;
    }
    printMeasured(*measured);
  }
}
