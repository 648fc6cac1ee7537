import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { root, serve } from "./program.ts"

const execute = promisify(execFile)
const readme = readFileSync(join(root, "README.md"), "utf8")
const scripts: Readonly<Record<string, string>> = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).scripts

/** Fenced blocks of one language, in order. */
const blocks = (text: string, language: string) =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))].map(([, body]) => body ?? "")

const documented = "http://127.0.0.1:8000"

describe("README", () => {
  it("its curl streams a coherent answer", async () => {
    const command = blocks(readme, "sh").find((block) => block.startsWith("curl"))
    assert.isDefined(command)
    await using server = await serve()
    const { stdout } = await execute("sh", ["-c", command.replace(documented, server.url)])
    const text = stdout.split("\n\n").filter((frame) => frame.startsWith("data: {"))
      .map((frame) => JSON.parse(frame.slice(6)).choices[0]?.delta?.content ?? "").join("")
    assert.match(text, /^Once there was a shy dragon .*\.$/s)
    assert.match(stdout, /data: \[DONE\]\n\n$/)
  })

  it("its SDK example prints the answer", async () => {
    const [example] = blocks(readme, "js")
    assert.isDefined(example)
    await using server = await serve()
    const { stdout } = await execute(process.execPath, ["--input-type=module", "-e", example.replace(documented, server.url)], {
      cwd: root
    })
    assert.strictEqual(stdout, "The capital of France is Paris.")
  })

  it("its library example starts a server", async () => {
    const [example] = blocks(readme, "ts")
    assert.isDefined(example)
    const program = example.replace("port: 8001", "port: 0") + `
import { Engine } from "mashbox"
void Engine`
    const probe = program.replace(
      "Effect.runFork(Layer.launch(layer.pipe(Layer.provide(settings))))",
      `const model = await Effect.runPromise(Effect.gen(function*() { return yield* (yield* Engine).ready }).pipe(Effect.provide(layer.pipe(Layer.provide(settings)))))
console.log(model.architecture)`
    )
    assert.notStrictEqual(probe, program)
    const { stdout } = await execute(process.execPath, ["--input-type=module", "-e", probe], { cwd: root })
    assert.strictEqual(stdout, "qwen3\n")
  })
})

describe("documentation", () => {
  for (const file of ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"]) {
    it(`${file} names only scripts and files that exist`, () => {
      const text = readFileSync(join(root, file), "utf8")
      for (const [, name = ""] of text.matchAll(/npm run ([\w:]+)/g)) assert.property(scripts, name)
      for (const [, path = ""] of text.matchAll(/`((?:src|schema|native|test|scripts|bench|models|nix)\/[\w./-]*)`/g)) {
        assert.isTrue(existsSync(join(root, path)), path)
      }
    })
  }
})
