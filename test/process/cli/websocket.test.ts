import { assert, describe, it } from "@effect/vitest"
import { once } from "node:events"
import { checkResponseEvents } from "../../support/ResponsesStreamChecker.ts"
import { SocketClient } from "../../support/SocketClient.ts"
import { serve } from "./program.ts"

const textOf = (events: Parameters<typeof checkResponseEvents>[0]): string => {
  const [item] = checkResponseEvents(events).response.output
  return item?.type === "message" ? item.content[0]?.text ?? "" : ""
}

describe("mashbox run --websocket", () => {
  it("serves the bundled model over a WebSocket, and finishes the running response after SIGTERM", async () => {
    await using server = await serve(["--websocket"])
    const client = await SocketClient.open(server.url)
    client.send({ input: "What is the capital of France?", store: false, generate: false })
    const prepared = checkResponseEvents(await client.answer()).response
    assert.deepStrictEqual(prepared.output, [])
    client.send({ input: "What is the capital of France?", store: false })
    assert.strictEqual(textOf(await client.answer()), "The capital of France is Paris.")
    client.send({ input: "Tell me a story about a shy dragon." })
    const first = await client.next()
    server.child.kill("SIGTERM")
    assert.match(textOf([first, ...await client.answer()]), /^Once there was a shy dragon .*\.$/s)
    assert.strictEqual(await client.closed, 1001)
    const [code] = server.child.exitCode === null ? await once(server.child, "close") : [server.child.exitCode]
    assert.strictEqual(code, 0)
  })

  it("is off unless a flag, the environment or the file turns it on", async () => {
    {
      await using server = await serve()
      const refused = await SocketClient.open(server.url).then(() => "opened", (error: Error) => error.message)
      assert.include(refused, "426")
    }
    await using server = await serve([], { MASHBOX_WEBSOCKET: "true" })
    const client = await SocketClient.open(server.url)
    client.send({ input: "What is the capital of France?" })
    assert.strictEqual(textOf(await client.answer()), "The capital of France is Paris.")
    assert.strictEqual(await client.close(), 1005)
  })
})
