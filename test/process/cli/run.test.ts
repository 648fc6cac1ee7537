import { assert, describe, it } from "@effect/vitest"
import { once } from "node:events"
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir, totalmem } from "node:os"
import { join } from "node:path"
import { chat, mashbox, root, serve } from "./program.ts"

const oneLine = (stderr: string) => {
  assert.match(stderr, /^mashbox: [^\n]+\n$/)
  assert.notInclude(stderr, "    at ")
  return stderr
}

interface BrokenCase {
  readonly file: string
  readonly expect: ReadonlyArray<string>
}
const broken = join(root, "test/fixtures/golden/broken")
const cases: ReadonlyArray<BrokenCase> = JSON.parse(readFileSync(join(broken, "index.json"), "utf8")).cases

describe("mashbox run", () => {
  it("serves the bundled model and says where, with what, and what it costs", async () => {
    await using server = await serve()
    assert.match(
      server.readyLine,
      /^http:\/\/127\.0\.0\.1:\d+ serves mashbox-demo \(qwen3, .*\): 4 slots of \d+ tokens; memory: weights .*, KV cache .*, scratch/
    )
    const answer = await chat(server.url, { messages: [{ role: "user", content: "What is the capital of France?" }] })
    assert.strictEqual(answer.status, 200)
    assert.include(await answer.text(), "The capital of France is Paris.")
  })

  it("finishes the running answer after Ctrl-C and ends with 0", async () => {
    await using server = await serve()
    const answer = await chat(server.url, { messages: [{ role: "user", content: "Tell me a story about a shy dragon." }], stream: true })
    server.child.kill("SIGINT")
    assert.match(await answer.text(), /"finish_reason":"stop".*\n\ndata: \[DONE\]\n\n$/s)
    const [code] = server.child.exitCode === null ? await once(server.child, "close") : [server.child.exitCode]
    assert.strictEqual(code, 0)
  })

  it("refuses what it cannot load in one line, with exit code 1", async () => {
    const sample = ["cut-in-value", "magic-ggml", "architecture-unknown", "block_count-0", "empty", "absent", "directory", "pre-unknown"]
    const chosen = cases.filter(({ file }) => sample.includes(file.replace(".gguf", "")))
    assert.strictEqual(chosen.length, sample.length)
    for (const { file } of chosen) {
      const { code, stderr } = await mashbox(["run", join(broken, file), "--port", "0"])
      assert.strictEqual(code, 1, file)
      assert.include(oneLine(stderr), file)
    }
  })

  it("names the largest context and slots that fit before it allocates", async (context) => {
    if (totalmem() > 200e9) context.skip("this machine has room for everything that the bundled model can be asked for")
    const { code, stderr } = await mashbox(["run", "--port", "0", "--ctx", "131072", "--slots", "256", "--kv-type", "f32"])
    assert.strictEqual(code, 1)
    assert.match(oneLine(stderr), /the largest ctx with 256 slots is \d+, the most slots with ctx 131072 is \d+/)
  })

  it("says which port is taken and what to do", async () => {
    const other = createServer().listen(0, "127.0.0.1")
    await once(other, "listening")
    const address = other.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    const { code, stderr } = await mashbox(["run", "--port", String(port)])
    other.close()
    assert.strictEqual(code, 1)
    assert.include(oneLine(stderr), `127.0.0.1:${port} (EADDRINUSE)`)
  })

  it("reads settings from a file and the environment, and names a bad one", async () => {
    const file = join(mkdtempSync(join(tmpdir(), "mashbox-")), "config.toml")
    writeFileSync(file, "slots = 2\nctx = 512\n")
    {
      await using server = await serve(["--config", file], { MASHBOX_CTX: "1024" })
      assert.include(server.readyLine, "2 slots of 1024 tokens")
    }
    writeFileSync(file, "slots = \"many\"\n")
    assert.include(oneLine((await mashbox(["run", "--config", file])).stderr), "--slots")
    writeFileSync(file, "slots = = 2\n")
    assert.include(oneLine((await mashbox(["run", "--config", file])).stderr), "not TOML")
    assert.include(oneLine((await mashbox(["run"], { MASHBOX_PORT: "http" })).stderr), "--port")
    assert.include(oneLine((await mashbox(["run", "--config", "/nonexistent.toml"])).stderr), "/nonexistent.toml")
  })

  it("does not open to other machines without a key", async () => {
    const { code, stderr } = await mashbox(["run", "--host", "0.0.0.0", "--port", "0"])
    assert.strictEqual(code, 1)
    assert.include(oneLine(stderr), "--api-key-file")
  })

  it("has help worth reading", async () => {
    const { code, stdout } = await mashbox(["run", "--help"])
    assert.strictEqual(code, 0)
    for (const flag of ["--host", "--port", "--ctx", "--slots", "--threads", "--kv-type", "--cache-ram", "--api-key-file", "--config"]) {
      assert.include(stdout, flag)
    }
  })
})
