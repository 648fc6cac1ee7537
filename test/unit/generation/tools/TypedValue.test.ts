import { assert, describe, it } from "@effect/vitest"
import { typedJson } from "../../../../src/domain/ToolParameters.ts"
import { syntaxNamed } from "../../../../src/generation/tools/syntaxes.ts"
import { TypedValue } from "../../../../src/generation/tools/TypedValue.ts"
import { cuts, piped, random } from "./runs.ts"

const read = (types: ReadonlyArray<string>, pieces: ReadonlyArray<string>) => {
  const deltas: Array<string> = []
  const value = new TypedValue(new Set(types), (json) => deltas.push(json))
  for (const piece of pieces) value.add(piece)
  const whole = value.finish()
  return { deltas, json: deltas.join(""), whole }
}

const long = { items: Array.from({ length: 40 }, (_, index) => ({ index, text: `"${index}" } ] \\ é😀\n`, none: null })) }

const tools = [{ name: "f", parameters: { type: "object", properties: { o: { type: "object" }, either: { type: ["object", "string"] } } } }]

const written: Readonly<Record<string, (key: string, value: string) => string>> = {
  "qwen-xml": (key, value) => `<tool_call>\n<function=f>\n<parameter=${key}>\n${value}\n</parameter>\n</function>\n</tool_call>`,
  "arg-pairs": (key, value) => `<tool_call>f\n<arg_key>${key}</arg_key>\n<arg_value>${value}</arg_value>\n</tool_call>`,
  "deepseek-dsml": (key, value) =>
    `<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="${key}">${value}</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>`
}

describe("an argument between tags that is no string", () => {
  it("comes as it is written once it is long, and is the same as one that comes whole", () => {
    const next = random(5)
    for (let round = 0; round < 300; round++) {
      const value = { items: long.items.slice(0, Math.floor(next() * 20)) }
      const text = next() < 0.5 ? JSON.stringify(value) : `\n ${JSON.stringify(value, null, 2)} \n`
      const { deltas, json, whole } = read(["object"], cuts(text, next))
      assert.isTrue(whole)
      assert.strictEqual(json, typedJson(text, new Set(["object"])))
      if (text.length > 300) assert.isAbove(deltas.length, 100)
    }
  })

  it("is a string where it turns out to be no JSON early enough, and broken where it is too late", () => {
    const cut = "{\"a\": [1, 2"
    assert.deepStrictEqual(read(["object"], [cut]), { deltas: [JSON.stringify(cut)], json: JSON.stringify(cut), whole: true })
    assert.strictEqual(read(["object"], ["{'a': 1}"]).json, "\"{'a': 1}\"")
    assert.strictEqual(read(["array"], ["[1] x"]).json, "\"[1] x\"")
    const text = JSON.stringify(long)
    assert.isFalse(read(["object"], [text.slice(0, -1)]).whole)
    for (const bad of [`${text} x`, `${text.slice(0, 300)}oops`, `${text}}`]) {
      assert.deepStrictEqual([read(["object"], [bad]).json, read(["object"], [...bad]).whole], [bad.replace("} x", "}x"), false])
    }
  })

  it("comes whole where a string may stand in its place, and where its text is no JSON as it is", () => {
    const text = JSON.stringify(long)
    assert.strictEqual(read(["object", "string"], [text]).deltas.length, 1)
    const broken = `{"a": "line\nbreak", "b": ${text}}`
    assert.deepStrictEqual(read(["object"], [broken]).deltas, [JSON.stringify(broken)])
  })

  it("streams in every syntax that has such arguments", () => {
    const value = JSON.stringify(long)
    for (const [name, write] of Object.entries(written)) {
      const syntax = syntaxNamed(name)
      if (syntax === undefined) throw new Error(name)
      for (const key of ["o", "either"]) {
        let deltas = 0
        let json = ""
        const parser = syntax.parser({
          text: () => {},
          start: () => {},
          argument: (text) => {
            deltas++
            json += text
          },
          end: (whole) => assert.isTrue(whole)
        }, tools)
        const text = write(key, value)
        for (const piece of cuts(text, random(6))) parser.push(piece)
        parser.end()
        assert.deepStrictEqual(JSON.parse(json), { [key]: long })
        if (key === "o") assert.isAbove(deltas, 50, name)
      }
      const broken = write("o", `${value} x`)
      assert.deepStrictEqual(piped([broken], { syntax, tools, patience: broken.length }), { text: broken, reasoning: "", calls: [] }, name)
    }
  })
})
