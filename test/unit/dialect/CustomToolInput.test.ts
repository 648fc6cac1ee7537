import { assert, describe, it } from "@effect/vitest"
import { CustomToolInput } from "../../../src/dialect/CustomToolInput.ts"

const read = (pieces: ReadonlyArray<string>) => {
  const input = new CustomToolInput()
  let streamed = ""
  for (const piece of pieces) {
    const delta = input.push(piece)
    assert.isTrue(delta.isWellFormed(), JSON.stringify(delta))
    streamed += delta
  }
  streamed += input.end()
  assert.strictEqual(streamed, input.value)
  return streamed
}

const texts = [
  "",
  "*** Begin Patch\n*** Add File: a.txt\n+hi \"there\"\\n\n*** End Patch",
  "\t\b\f\r\n/\\\"",
  "Wörld 🌍 \u2028 \u0000",
  "}\"}]"
]

const escaped = (text: string) =>
  `{"input":"${Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")}"}`

describe("CustomToolInput", () => {
  it("reads the input however it is cut and written", () => {
    for (const text of texts) {
      for (const json of [JSON.stringify({ input: text }), escaped(text), ` {\n "input" : ${JSON.stringify(text)} } `]) {
        assert.strictEqual(read([json]), text)
        const characters = Array.from(json)
        assert.strictEqual(read(characters), text)
        for (let at = 0; at <= characters.length; at++) {
          assert.strictEqual(read([characters.slice(0, at).join(""), characters.slice(at).join("")]), text)
        }
      }
    }
  })

  it("streams: what is there comes out before the end", () => {
    const input = new CustomToolInput()
    assert.strictEqual(input.push("{\"input\": \"*** Begin"), "*** Begin")
    assert.strictEqual(input.push(" Patch\\n\\"), " Patch\n")
    assert.strictEqual(input.push("nx\"}"), "\nx")
    assert.strictEqual(input.end(), "")
  })

  it("hands out other shapes as they are", () => {
    for (const text of ["plain text", "{\"patch\":\"x\"}", "[1]", "{\"input\":5}", "", "{\"other\":1", "null"]) {
      assert.strictEqual(read(Array.from(text)), text)
    }
    assert.strictEqual(read(["{\"a\":1,\"input\":\"x\"}"]), "x")
  })

  it("keeps what came of an input that breaks off, without half an escape", () => {
    assert.strictEqual(read(["{\"input\":\"abc"]), "abc")
    assert.strictEqual(read(["{\"input\":\"abc\\"]), "abc")
    assert.strictEqual(read(["{\"input\":\"abc\\u00"]), "abc")
    assert.strictEqual(read(["{\"input\":\"abc\\ud83d"]), "abc")
  })

  it("replaces lone surrogates and keeps escapes that JSON has not", () => {
    assert.strictEqual(read(["{\"input\":\"\\ud83dx \\udc00 \\q\"}"]), "\ufffdx \ufffd \\q")
  })
})
