import { assert, describe, it } from "@effect/vitest"
import { choice, type Grammar, type Node, repeat, rule, sequence, text } from "../../../src/grammar/Ir.ts"
import { encodeGrammar } from "../../../src/grammar/IrEncoder.ts"

const magic = [0x4d, 0x42, 0x47, 0x31]
const only = (node: Node): Grammar => ({ root: "r", rules: [{ name: "r", node }] })
const head = [...magic, 1, 1, 0x72]
const tail = (node: number) => [1, 0, node, 0]
const encoded = (grammar: Grammar) => [...encodeGrammar(grammar)]

describe("encodeGrammar", () => {
  it("writes every kind of node as native/GRAMMAR.md says", () => {
    const x = text("x")
    const cases: ReadonlyArray<readonly [Node, ReadonlyArray<number>]> = [
      [text("é"), [1, 1, 2, 0xc3, 0xa9, ...tail(0)]],
      [{ kind: "class", ranges: [[0x61, 0x10ffff]], negated: true }, [1, 2, 1, 1, 0x61, 0xff, 0xff, 0x43, ...tail(0)]],
      [sequence(), [1, 3, 0, ...tail(0)]],
      [repeat(x, 300, 4294967294), [2, 1, 1, 0x78, 5, 0, 0xac, 2, 0xff, 0xff, 0xff, 0xff, 0x0f, ...tail(1)]],
      [repeat(x, 1), [2, 1, 1, 0x78, 5, 0, 1, 0, ...tail(1)]],
      [rule("r"), [1, 6, 0, ...tail(0)]],
      [{ kind: "and", items: [x, x] }, [2, 1, 1, 0x78, 7, 2, 0, 0, ...tail(1)]],
      [{ kind: "not", item: x }, [2, 1, 1, 0x78, 8, 0, ...tail(1)]],
      [{ kind: "lexeme", item: x }, [2, 1, 1, 0x78, 9, 0, ...tail(1)]],
      [{ kind: "content", item: x }, [2, 1, 1, 0x78, 13, 0, ...tail(1)]],
      [
        { kind: "permutation", items: [{ node: x, required: true }, { node: x, many: true }], separator: x, ordered: true, min: 1, max: 3 },
        [2, 1, 1, 0x78, 10, 1, 1, 4, 0, 2, 1, 0, 2, 0, ...tail(1)]
      ],
      [{ kind: "free", until: ["a", { tokens: [200] }], except: ["b"] }, [1, 11, 2, 0, 1, 0x61, 1, 1, 0xc8, 1, 1, 1, 0x62, ...tail(0)]],
      [{ kind: "token", ids: [1, 2] }, [1, 12, 2, 1, 2, ...tail(0)]]
    ]
    for (const [node, bytes] of cases) assert.deepStrictEqual(encoded(only(node)), [...head, ...bytes])
  })

  it("writes a shared node once and children before their parents", () => {
    const shared = sequence(text("a"), text("b"))
    assert.deepStrictEqual(encoded(only(choice(shared, shared))), [...head, 4, 1, 1, 0x62, 1, 1, 0x61, 3, 2, 1, 0, 4, 2, 2, 2, ...tail(3)])
  })

  it("gives names to rules that are not defined, which the engine then names", () => {
    const bytes = encoded({ root: "main", rules: [{ name: "a", node: rule("missing") }] })
    assert.deepStrictEqual(bytes, [...magic, 3, 1, 0x61, 7, ...Buffer.from("missing"), 4, ...Buffer.from("main"), 1, 6, 1, 1, 0, 0, 2])
  })

  it("is not recursive", () => {
    let node = text("x")
    for (let i = 0; i < 100_000; i++) node = sequence(node)
    assert.isAbove(encodeGrammar(only(node)).length, 200_000)
  })

  it("refuses numbers that do not fit", () => {
    for (const min of [-1, 0.5, 2 ** 32, NaN]) assert.throws(() => encodeGrammar(only(repeat(text("x"), min))), RangeError)
  })
})
