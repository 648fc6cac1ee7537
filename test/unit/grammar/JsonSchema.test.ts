import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { compile, type JsonSchemaOptions } from "../../../src/grammar/JsonSchema.ts"
import { GrammarMatcher } from "../../support/GrammarMatcher.ts"
import { type Schema, valid } from "../../support/SchemaOracle.ts"

const matcher = (schema: unknown, options: JsonSchemaOptions = { whitespace: "compact" }): GrammarMatcher =>
  new GrammarMatcher(Result.getOrThrow(compile(schema, options)))

const conditional: unknown = JSON.parse("{\"then\":{\"required\":[\"x\"]}}")

const date = (text: string) => JSON.stringify(text)

/** Schema, JSON texts of values that satisfy it, and of values that do not. */
const cases: ReadonlyArray<readonly [name: string, schema: Schema, accepted: ReadonlyArray<string>, refused: ReadonlyArray<string>]> = [
  ["anything", true, ["null", "[1,{\"a\":[]}]", "\"\"", "-1.5e-7"], ["", "{,}", "[1,]", "01"]],
  ["an empty schema", {}, ["{}", "true"], ["tru"]],
  ["null", { type: "null" }, ["null"], ["0", "false", "\"\"", "{}"]],
  ["boolean", { type: "boolean" }, ["true", "false"], ["0", "null", "\"true\""]],
  ["several types", { type: ["string", "null"] }, ["null", "\"a\""], ["1", "[]"]],
  ["nullable", { type: "string", nullable: true }, ["null", "\"a\""], ["1"]],
  ["integer", { type: "integer" }, ["0", "-7", "123456789012"], ["1.5", "\"1\"", "-0", "007", "1e3"]],
  ["number", { type: "number" }, ["0", "-7", "1.25", "1e-7", "-3.5e+10", "1e300", "5e-324"], ["\"1\"", ".5", "1.", "1e999", "NaN", "+1"]],
  ["string", { type: "string" }, ["\"\"", "\"é\\\"\\\\\\n😀\\u0000\"", "\"/\""], [
    "1",
    "\"\\/\"",
    "\"\\u00e9\"",
    "\"\n\"",
    "\"a",
    "\"\\u000A\""
  ]],
  ["minimum and maximum of integers", { type: "integer", minimum: -5, maximum: 120 }, ["-5", "0", "9", "10", "99", "100", "120"], [
    "-6",
    "121",
    "200",
    "1000",
    "-10"
  ]],
  ["only a minimum", { type: "integer", minimum: 18 }, ["18", "19", "20", "99", "100", "12345"], ["17", "1", "0", "-18"]],
  ["only a maximum", { type: "integer", maximum: -3 }, ["-3", "-4", "-10", "-999"], ["-2", "0", "3"]],
  ["exclusive bounds", { type: "integer", exclusiveMinimum: 0, exclusiveMaximum: 10 }, ["1", "9"], ["0", "10", "-1"]],
  ["fractional bounds of integers", { type: "integer", minimum: 0.5, maximum: 2.5 }, ["1", "2"], ["0", "3"]],
  ["safe integers", { type: "integer", minimum: -9007199254740991, maximum: 9007199254740991 }, [
    "9007199254740991",
    "-9007199254740991",
    "0"
  ], [
    "9007199254740992",
    "-9007199254740992"
  ]],
  ["bounds of numbers", { type: "number", minimum: -1.5, maximum: 2.75 }, ["-1.5", "-1.49", "0", "-0.5", "2.75", "2.7", "2", "2.749999"], [
    "-1.51",
    "-2",
    "2.76",
    "3",
    "10",
    "2.7500001"
  ]],
  ["exclusive bounds of numbers", { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1 }, ["0.5", "0.000001", "0.999"], [
    "0",
    "1",
    "0.0",
    "1.5",
    "-0.5"
  ]],
  ["positive numbers", { type: "number", exclusiveMinimum: 0 }, ["0.1", "1e-7", "12", "1e20"], ["0", "-1", "0.0", "0e5"]],
  ["a number at most 0", { type: "number", maximum: 0 }, ["0", "-1.5"], ["1", "0.1"]],
  [
    "multiples",
    { type: "integer", multipleOf: 7 },
    ["0", "7", "-14", "21", "700", "123456789012"].filter((text) => Number(text) % 7 === 0),
    [
      "1",
      "8",
      "-13",
      "123456789012"
    ].filter((text) => Number(text) % 7 !== 0)
  ],
  ["multiples in a range", { type: "integer", multipleOf: 5, minimum: 1, maximum: 100 }, ["5", "50", "100"], ["0", "3", "105"]],
  ["multiples in a large range", { type: "integer", multipleOf: 30, minimum: 100, maximum: 100000 }, ["120", "99990", "3000"], [
    "90",
    "100",
    "100020",
    "125"
  ]],
  ["multiples of a number", { type: "number", multipleOf: 3 }, ["0", "3", "-9"], ["1", "3.5"]],
  ["cents", { type: "number", multipleOf: 0.01, minimum: 0 }, ["0", "1.5", "1.55", "12.00"], ["1.555", "-1"]],
  ["halves", { type: "number", multipleOf: 0.5 }, ["0.5", "1", "2.0", "-1.5"], ["0.25", "0.75"]],
  ["length", { type: "string", minLength: 2, maxLength: 3 }, ["\"ab\"", "\"\\n\\\"x\"", "\"é😀\"", "\"\\u0001a\""], [
    "\"a\"",
    "\"abcd\"",
    "\"\\n\""
  ]],
  ["a pattern anywhere", { type: "string", pattern: "b+" }, ["\"b\"", "\"abba\""], ["\"\"", "\"ac\""]],
  ["an anchored pattern", { type: "string", pattern: "^[a-c]{2}$" }, ["\"ab\""], ["\"abc\"", "\"xab\"", "\"a\""]],
  ["a pattern with escapes", { type: "string", pattern: "^\\s\"\\\\$" }, ["\"\\n\\\"\\\\\"", "\" \\\"\\\\\""], ["\"n\\\"\\\\\""]],
  ["pattern and length", { type: "string", pattern: "^a*$", minLength: 2, maxLength: 3 }, ["\"aa\"", "\"aaa\""], [
    "\"a\"",
    "\"aaaa\"",
    "\"ab\""
  ]],
  ["lookaheads", { type: "string", pattern: "^(?=.*[A-Z])(?=.*\\d)(?!.*x).{3,}$" }, ["\"aB1\"", "\"1Bcd\""], [
    "\"ab1\"",
    "\"aB1x\"",
    "\"B1\""
  ]],
  ["several patterns", { allOf: [{ pattern: "^[^\\n\\r]*$" }, { pattern: "^[\\s\\S]{0,3}$" }], type: "string" }, ["\"abc\""], [
    "\"abcd\"",
    "\"a\\n\""
  ]],
  ["enum", { enum: ["a", 1, null, { x: [1] }, "\n"] }, ["\"a\"", "1", "null", "{\"x\":[1]}", "\"\\n\""], ["\"b\"", "2", "{}"]],
  ["enum and type", { enum: ["a", 1, null], type: "string" }, ["\"a\""], ["1", "null"]],
  ["const", { const: { a: false } }, ["{\"a\":false}"], ["{}", "{\"a\":true}"]],
  ["const against bounds", { enum: [1, 5, 10], minimum: 4 }, ["5", "10"], ["1"]],
  ["properties", {
    type: "object",
    properties: { a: { type: "integer" }, b: { type: "string" } },
    required: ["b"],
    additionalProperties: false
  }, [
    "{\"a\":1,\"b\":\"\"}",
    "{\"b\":\"x\"}"
  ], ["{}", "{\"a\":1}", "{\"b\":1}", "{\"b\":\"x\",\"c\":1}", "{\"b\":\"x\",\"b\":\"y\"}"]],
  ["open properties", { type: "object", properties: { a: { type: "integer" } } }, [
    "{}",
    "{\"a\":1,\"x\":[null]}",
    "{\"aa\":\"\"}",
    "{\"A\":1,\"\":2}"
  ], [
    "{\"a\":\"\"}",
    "{\"x\":1,\"a\":\"b\"}"
  ]],
  ["values of other properties", { type: "object", additionalProperties: { type: "integer" } }, ["{}", "{\"x\":1,\"y\":2}"], [
    "{\"x\":\"\"}"
  ]],
  ["no properties at all", { type: "object", additionalProperties: false }, ["{}"], ["{\"a\":1}"]],
  ["required without a schema", { type: "object", required: ["id"] }, ["{\"id\":null}", "{\"id\":1,\"x\":2}"], ["{}", "{\"x\":2}"]],
  ["a property that must not be", { type: "object", properties: { a: false, b: true } }, ["{}", "{\"b\":1}"], ["{\"a\":1}"]],
  [
    "patternProperties",
    {
      type: "object",
      properties: { s_a: { maxLength: 1 } },
      patternProperties: { "^s_": { type: "string" }, "_n$": { type: "number" } },
      additionalProperties: false
    },
    ["{}", "{\"s_a\":\"x\"}", "{\"s_b\":\"xyz\",\"a_n\":1}"],
    ["{\"s_a\":\"xy\"}", "{\"s_b\":1}", "{\"b\":1}", "{\"s_n\":1}", "{\"s_n\":\"\"}"]
  ],
  ["patternProperties and others", {
    type: "object",
    patternProperties: { "^x": { type: "null" } },
    additionalProperties: { type: "boolean" }
  }, [
    "{\"x1\":null,\"y\":true}"
  ], ["{\"x1\":true}", "{\"y\":null}"]],
  ["propertyNames", { type: "object", propertyNames: { pattern: "^[a-z]+$", maxLength: 2 } }, ["{\"ab\":1}", "{}"], [
    "{\"A\":1}",
    "{\"abc\":1}"
  ]],
  ["propertyNames and a named property", { type: "object", properties: { abc: true, d: true }, propertyNames: { maxLength: 2 } }, [
    "{\"d\":1}"
  ], ["{\"abc\":1}"]],
  ["minProperties", { type: "object", properties: { a: true, b: true, c: true }, additionalProperties: false, minProperties: 2 }, [
    "{\"a\":1,\"c\":1}",
    "{\"a\":1,\"b\":1,\"c\":1}"
  ], ["{}", "{\"b\":1}"]],
  ["maxProperties", { type: "object", maxProperties: 2 }, ["{}", "{\"a\":1,\"b\":2}"], ["{\"a\":1,\"b\":2,\"c\":3}"]],
  ["one property at least", { type: "object", minProperties: 1, additionalProperties: { type: "integer" } }, ["{\"a\":1}"], ["{}"]],
  ["items", { type: "array", items: { type: "integer" } }, ["[]", "[1]", "[1,2,3]"], ["[\"a\"]", "[1,null]"]],
  ["number of items", { type: "array", items: { type: "integer" }, minItems: 1, maxItems: 3 }, ["[1]", "[1,2,3]"], ["[]", "[1,2,3,4]"]],
  ["no items", { type: "array", items: false }, ["[]"], ["[1]"]],
  ["prefixItems", { type: "array", prefixItems: [{ type: "integer" }, { type: "string" }] }, ["[]", "[1]", "[1,\"a\"]", "[1,\"a\",null]"], [
    "[\"a\"]",
    "[1,2]"
  ]],
  ["a tuple", { type: "array", prefixItems: [{ type: "integer" }, { type: "string" }], items: false, minItems: 2 }, ["[1,\"a\"]"], [
    "[1]",
    "[1,\"a\",2]",
    "[]"
  ]],
  ["a tuple of draft 7", { type: "array", items: [{ type: "integer" }], additionalItems: { type: "null" } }, ["[]", "[1,null,null]"], [
    "[null]",
    "[1,1]"
  ]],
  ["more elements than the prefix", {
    type: "array",
    prefixItems: [{ type: "null" }],
    items: { type: "integer" },
    minItems: 3,
    maxItems: 4
  }, [
    "[null,1,2]",
    "[null,1,2,3]"
  ], ["[null]", "[null,1]", "[null,1,2,3,4]", "[1,1,1]"]],
  ["contains", { type: "array", items: { type: "integer" }, contains: { minimum: 5 } }, ["[5]", "[1,7]", "[1,9,2]"], ["[]", "[1,2]"]],
  [
    "contains in a bounded array",
    { type: "array", contains: { const: 1 }, minItems: 2, maxItems: 3 },
    ["[1,null]", "[null,1]", "[0,0,1]"],
    [
      "[1]",
      "[0,0]",
      "[0,0,0,1]"
    ]
  ],
  ["uniqueItems of constants", { type: "array", items: { enum: ["a", "b", "c"] }, uniqueItems: true, minItems: 1 }, [
    "[\"b\",\"a\"]",
    "[\"c\"]"
  ], [
    "[]",
    "[\"a\",\"a\"]"
  ]],
  ["anyOf", { anyOf: [{ type: "integer" }, { type: "string", maxLength: 1 }] }, ["1", "\"a\""], ["\"ab\"", "null"]],
  ["anyOf beside other keywords", { type: "integer", anyOf: [{ minimum: 10 }, { maximum: 2 }] }, ["10", "2", "-5"], ["5", "3"]],
  ["oneOf by type", { oneOf: [{ type: "integer" }, { type: "string" }] }, ["1", "\"a\""], ["null"]],
  ["oneOf of enum and pattern", { oneOf: [{ type: "string", enum: ["all"] }, { type: "string", pattern: "^[1-9][0-9]*$" }] }, [
    "\"all\"",
    "\"12\""
  ], [
    "\"0\"",
    "\"x\""
  ]],
  ["oneOf of strings that overlap", { oneOf: [{ type: "string", pattern: "a" }, { type: "string", pattern: "b" }] }, [
    "\"a\"",
    "\"b\"",
    "\"xbx\""
  ], [
    "\"ab\"",
    "\"c\""
  ]],
  ["oneOf of ranges that overlap", { type: "integer", oneOf: [{ minimum: 0, maximum: 10 }, { minimum: 5 }] }, ["0", "4", "11"], [
    "5",
    "10",
    "-1"
  ]],
  [
    "oneOf by a discriminator",
    {
      oneOf: [
        { type: "object", properties: { kind: { const: "a" }, x: { type: "integer" } }, required: ["kind"], additionalProperties: false },
        { type: "object", properties: { kind: { const: "b" }, y: { type: "string" } }, required: ["kind"], additionalProperties: false }
      ]
    },
    ["{\"kind\":\"a\",\"x\":1}", "{\"kind\":\"b\",\"y\":\"\"}"],
    ["{\"kind\":\"a\",\"y\":\"\"}", "{\"kind\":\"c\"}", "{}"]
  ],
  ["oneOf of constants", { oneOf: [{ const: 1 }, { const: 2 }, { const: 2 }] }, ["1"], ["2", "3"]],
  [
    "allOf",
    {
      allOf: [
        { type: "object", properties: { a: { type: "integer" } }, required: ["a"] },
        { properties: { b: { type: "string" }, a: { maximum: 5 } }, required: ["b"] }
      ]
    },
    ["{\"a\":5,\"b\":\"\"}"],
    ["{\"a\":6,\"b\":\"\"}", "{\"a\":1}", "{\"b\":\"\"}"]
  ],
  [
    "additionalProperties counts its own properties only",
    {
      type: "object",
      allOf: [{ properties: { a: true }, additionalProperties: false }],
      properties: { b: { type: "integer" } }
    },
    ["{}", "{\"a\":1}"],
    ["{\"b\":1}"]
  ],
  ["not a type", { not: { type: ["string", "object"] } }, ["1", "null", "[]"], ["\"a\"", "{}"]],
  ["not a constant", { type: "string", not: { const: "admin" } }, ["\"user\"", "\"admin2\"", "\"\""], ["\"admin\""]],
  ["not some of an enum", { enum: [1, 2, 3], not: { enum: [2] } }, ["1", "3"], ["2"]],
  ["not a pattern", { type: "string", not: { pattern: "^x" } }, ["\"ax\"", "\"\""], ["\"x\"", "\"xa\""]],
  ["not a number", { type: "integer", not: { const: 5 } }, ["4", "6", "55"], ["5"]],
  ["not a range", { type: "number", not: { minimum: 0, maximum: 1 } }, ["-0.5", "1.5"], ["0", "0.5", "1"]],
  ["not required", { type: "object", properties: { a: true, b: true }, additionalProperties: false, not: { required: ["a", "b"] } }, [
    "{\"a\":1}",
    "{\"b\":1}",
    "{}"
  ], [
    "{\"a\":1,\"b\":1}"
  ]],
  ["not an array", { not: { type: "array" } }, ["{}"], ["[]", "[1]"]],
  [
    "if, then, else",
    {
      type: "object",
      properties: { kind: { enum: ["a", "b"] }, x: { type: "integer" } },
      required: ["kind"],
      additionalProperties: false,
      if: { properties: { kind: { const: "a" } } },
      ...Object(conditional)
    },
    ["{\"kind\":\"a\",\"x\":1}", "{\"kind\":\"b\"}", "{\"kind\":\"b\",\"x\":1}"],
    ["{\"kind\":\"a\"}"]
  ],
  [
    "dependentRequired",
    { type: "object", properties: { a: true, b: true }, additionalProperties: false, dependentRequired: { a: ["b"] } },
    [
      "{}",
      "{\"b\":1}",
      "{\"a\":1,\"b\":1}"
    ],
    ["{\"a\":1}"]
  ],
  [
    "dependentSchemas",
    {
      type: "object",
      properties: { a: true, b: true },
      additionalProperties: false,
      dependentSchemas: { a: { properties: { b: { type: "integer" } } } }
    },
    ["{\"b\":\"x\"}", "{\"a\":1,\"b\":1}", "{\"a\":1}"],
    ["{\"a\":1,\"b\":\"x\"}"]
  ],
  ["recursion", {
    type: "object",
    properties: { v: { type: "integer" }, next: { $ref: "#" } },
    required: ["v"],
    additionalProperties: false
  }, [
    "{\"v\":1}",
    "{\"v\":1,\"next\":{\"v\":2,\"next\":{\"v\":3}}}"
  ], ["{\"v\":1,\"next\":{}}"]],
  ["$defs", { $ref: "#/$defs/a~1b%20c", $defs: { "a/b c": { type: "integer" } } }, ["1"], ["\"\""]],
  ["keywords beside $ref", { $ref: "#/$defs/i", maximum: 3, $defs: { i: { type: "integer" } } }, ["3"], ["4", "\"\""]],
  ["definitions", { definitions: { s: { type: "string" } }, type: "array", items: { $ref: "#/definitions/s" } }, ["[\"\"]"], ["[1]"]]
]

describe("JSON Schema", () => {
  for (const [name, schema, accepted, refused] of cases) {
    it(name, () => {
      const grammar = matcher(schema)
      for (const text of accepted) {
        assert.isTrue(valid(schema, JSON.parse(text)), `the case itself is wrong: ${text}`)
        assert.isTrue(grammar.matches(text), text)
      }
      for (const text of refused) assert.isFalse(grammar.matches(text), text)
    })
  }

  // ajv knows no draft 4.
  it("exclusive bounds of draft 4", () => {
    const grammar = matcher({ type: "integer", minimum: 0, exclusiveMinimum: true, maximum: 5 })
    assert.deepStrictEqual(["0", "1", "5", "6"].filter((text) => grammar.matches(text)), ["1", "5"])
  })

  const formats: ReadonlyArray<readonly [format: string, accepted: ReadonlyArray<string>, refused: ReadonlyArray<string>]> = [
    ["date", ["2024-02-29", "2000-02-29", "2023-12-31", "0000-02-29", "1999-04-30"], [
      "2023-02-29",
      "1900-02-29",
      "2023-13-01",
      "2023-00-10",
      "2023-04-31",
      "23-01-01",
      "2023-1-1",
      "2023-01-01 "
    ]],
    ["time", ["00:00:00Z", "23:59:59.123+01:30", "23:59:60Z"], [
      "24:00:00Z",
      "12:60:00Z",
      "12:00:00",
      "12:00:60Z",
      "12:00:00+24:00",
      "12:00Z"
    ]],
    ["date-time", ["2024-02-29T12:30:45Z", "1985-04-12T23:20:50.52-08:00"], [
      "2023-02-29T12:00:00Z",
      "2024-01-01 12:00:00Z",
      "2024-01-01T12:00:00",
      "2024-01-01"
    ]],
    ["duration", ["P3Y6M4DT12H30M5S", "PT0S", "P2W", "P1M", "PT36H"], ["P", "PT", "P1Y2W", "1D", "P1S", "P1D2H"]],
    ["email", ["joe.bloggs@example.com", "a+b!@x-y.co", "~test~@example.com"], [
      "joe",
      "@example.com",
      ".a@example.com",
      "a..b@example.com",
      "a.@example.com",
      "a@-x.com",
      "a@b@c.de",
      `${"a".repeat(65)}@example.com`
    ]],
    ["hostname", ["www.example.com", "a", "xn--4gbwdl.xn--wgbh1c"], ["-a.com", "a-.com", "a_b", "", `${"a".repeat(64)}.com`, "a..b"]],
    ["ipv4", ["0.0.0.0", "192.168.255.1"], ["256.0.0.1", "1.2.3", "01.2.3.4", "1.2.3.4.5"]],
    [
      "ipv6",
      ["::", "::1", "1::", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "1:2::7:8", "fe80::a:b", "1::3:4:5:6:7:8", "1:2:3:4:5:6:7::"],
      [
        "1:2:3:4:5:6:7",
        "1::2::3",
        "12345::",
        ":1",
        "1:",
        "1:2:3:4:5:6:7:8:9",
        "::1%eth0",
        "1:2:3:4:5:6:7::8:9",
        "1:2:3:4::5:6:7:8"
      ].filter((text) => text !== "1:2:3:4::5:6:7:8")
    ],
    ["uuid", ["2EB8AA08-aa98-11EA-B4AA-73B441D16380", "00000000-0000-0000-0000-000000000000"], [
      "2eb8aa08aa9811eab4aa73b441d16380",
      "2eb8aa08-aa98-11ea-b4aa-73b441d1638",
      "g0000000-0000-0000-0000-000000000000"
    ]],
    ["uri", ["http://example.com/a?b=c#d", "mailto:a@b.de", "urn:x:y", "ftp://u:p@[::1]:21/%20", "a:"], [
      "example.com",
      "/path",
      "http://a b",
      "http://x/%2",
      "http://[::1",
      "1a:b",
      "http://x/\\"
    ]],
    ["uri-reference", ["/a/b", "a", "", "#x", "//h/p", "http://x"], ["\\\\WINDOWS", "a b", "#\\"]],
    ["json-pointer", ["", "/a~0~1", "/", "/a/0"], ["a", "/~2", "/~"]],
    ["byte", ["", "QUJD", "QUI=", "QQ=="], ["Q", "QQ=", "QQ", "Q$JD"]]
  ]
  for (const [format, accepted, refused] of formats) {
    it(`format ${format}`, () => {
      const grammar = matcher({ type: "string", format })
      for (const text of accepted) assert.isTrue(grammar.matches(date(text)), text)
      for (const text of refused) assert.isFalse(grammar.matches(date(text)), text)
    })
  }

  it("formats of numbers", () => {
    const grammar = matcher({ type: "integer", format: "int32" })
    assert.isTrue(grammar.matches("2147483647"))
    assert.isFalse(grammar.matches("2147483648"))
    assert.isTrue(matcher({ type: "number", format: "double" }).matches("1.5"))
    assert.isTrue(matcher({ type: "string", format: "int64" }).matches("\"9223372036854775807\""))
    assert.isFalse(matcher({ type: "string", format: "int64" }).matches("\"9223372036854775808\""))
  })

  it("references by $id and $anchor", () => {
    const schema = {
      $id: "https://example.com/root.json",
      type: "object",
      properties: {
        a: { $ref: "item.json" },
        b: { $ref: "#there" },
        c: { $ref: "item.json#/$defs/x" },
        d: { $ref: "/root.json#/$defs/other" }
      },
      additionalProperties: false,
      $defs: {
        item: { $id: "item.json", type: "integer", $defs: { x: { $ref: "#/$defs/y" }, y: { type: "null" } } },
        other: { $anchor: "there", type: "boolean" }
      }
    }
    const grammar = matcher(schema)
    assert.isTrue(grammar.matches("{\"a\":1,\"b\":true,\"c\":null,\"d\":false}"))
    for (const text of ["{\"a\":null}", "{\"b\":1}", "{\"c\":1}", "{\"d\":1}"]) assert.isFalse(grammar.matches(text), text)
  })

  it("white space", () => {
    const schema = { type: "object", properties: { a: { type: "array", items: { type: "integer" } }, b: { const: { c: [1, 2] } } } }
    const compact = "{\"a\":[1,2],\"b\":{\"c\":[1,2]}}"
    const spaced = "{\"a\": [1, 2], \"b\": {\"c\": [1, 2]}}"
    const pretty = JSON.stringify(JSON.parse(compact), null, 2)
    const accepted = (whitespace: "compact" | "spaced" | "free") =>
      [compact, spaced, pretty, spaced.replace(", ", ",  ")].map((text) => matcher(schema, { whitespace }).matches(text))
    assert.deepStrictEqual(accepted("compact"), [true, false, false, false])
    assert.deepStrictEqual(accepted("spaced"), [false, true, false, false])
    assert.deepStrictEqual(accepted("free"), [true, true, true, false])
    assert.isTrue(matcher(schema, {}).matches(spaced))
  })

  it("order", () => {
    const schema = { type: "object", properties: { a: { type: "integer" }, b: { type: "integer" } }, required: ["b"] }
    const texts = ["{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", "{\"b\":2,\"x\":0}", "{\"x\":0,\"b\":2}"]
    const accepted = (order: "schema" | "free") => texts.map((text) => matcher(schema, { whitespace: "compact", order }).matches(text))
    assert.deepStrictEqual(accepted("schema"), [true, false, true, false])
    assert.deepStrictEqual(accepted("free"), [true, true, true, true])
    const closed = matcher(schema, { whitespace: "compact", closed: true })
    assert.deepStrictEqual(texts.map((text) => closed.matches(text)), [true, false, false, false])
  })

  const errors: ReadonlyArray<readonly [schema: unknown, reason: string, path: string]> = [
    [{ type: "strin" }, "Invalid", "type"],
    [{ type: "object", properties: { a: { minLength: -1 } } }, "Invalid", "properties.a.minLength"],
    [{ type: "object", properties: { a: 5 } }, "Invalid", "properties.a"],
    [[], "Invalid", ""],
    ["x", "Invalid", ""],
    [{ type: "string", pattern: "(" }, "Invalid", "pattern"],
    [{ type: "string", pattern: "\\bx" }, "Unsupported", "pattern"],
    [{ type: "string", pattern: "(a)\\1" }, "Unsupported", "pattern"],
    [{ type: "string", pattern: "(?<=a)b" }, "Unsupported", "pattern"],
    [{ type: "object", patternProperties: { "[": true } }, "Invalid", "patternProperties.["],
    [{ type: "string", format: "idn-email" }, "Unsupported", "format"],
    [{ items: { uniqueItems: true, type: "array", items: { type: "string" } } }, "Unsupported", "items.uniqueItems"],
    [{ type: "array", contains: true, maxContains: 2 }, "Unsupported", "maxContains"],
    [{ $dynamicRef: "#x" }, "Unsupported", "$dynamicRef"],
    [{ $ref: "#/$defs/nope" }, "Invalid", "$ref"],
    [{ $ref: "https://example.com/other.json" }, "Unsupported", "$ref"],
    [{ $ref: "#nope" }, "Invalid", "$ref"],
    [{ $ref: "#" }, "Invalid", ""],
    [{ $ref: "#/$defs/a", $defs: { a: { allOf: [{ $ref: "#/$defs/b" }] }, b: { $ref: "#/$defs/a" } } }, "Invalid", "$defs.a"],
    [{ allOf: [] }, "Invalid", "allOf"],
    [{ oneOf: [{ type: "number" }, { type: "integer" }] }, "Unsupported", "oneOf"],
    [
      {
        oneOf: [{ type: "object", properties: { a: true } }, {
          type: "object",
          properties: { b: { pattern: "x" } },
          patternProperties: { x: true }
        }]
      },
      "Unsupported",
      "oneOf"
    ],
    [{ not: { type: "array", items: { type: "string" } } }, "Unsupported", "not"],
    [{ allOf: [{ properties: {} }], unevaluatedProperties: false }, "Unsupported", "unevaluatedProperties"],
    [{ type: "object", minProperties: 3 }, "Unsupported", "minProperties"],
    [{ type: "number", multipleOf: 0.3 }, "Unsupported", "multipleOf"],
    [{ type: "number", multipleOf: 0 }, "Invalid", "multipleOf"],
    [{ type: "integer", multipleOf: 100003 }, "TooLarge", "multipleOf"],
    [{ type: "object", required: true }, "Invalid", "required"],
    [false, "Unsatisfiable", ""],
    [{ type: "integer", minimum: 5, maximum: 4 }, "Unsatisfiable", ""],
    [{ type: "object", properties: { next: { $ref: "#" } }, required: ["next"] }, "Unsatisfiable", ""],
    [{ type: "string", pattern: "^a$", minLength: 2 }, "Unsatisfiable", ""],
    [{ enum: [] }, "Unsatisfiable", ""]
  ]
  for (const [schema, reason, path] of errors) {
    it(`${reason} at ${JSON.stringify(path)}: ${JSON.stringify(schema)}`, () => {
      const result = compile(schema)
      if (Result.isSuccess(result)) return assert.fail("it compiled")
      assert.deepStrictEqual([result.failure.reason, result.failure.path], [reason, path])
      assert.isTrue(result.failure.message.startsWith(path))
    })
  }

  it("annotations and unknown keywords constrain nothing", () => {
    const schema = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      $comment: "c",
      title: "t",
      description: "d",
      default: 5,
      examples: [1],
      deprecated: true,
      readOnly: true,
      writeOnly: false,
      contentMediaType: "text/plain",
      encrypted: false,
      type: "null"
    }
    assert.isTrue(matcher(schema).matches("null"))
  })
})
