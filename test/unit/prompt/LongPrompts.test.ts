import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Option, Scope } from "effect"
import { MessageChannel, Worker } from "node:worker_threads"
import type { Conversation, Message } from "../../../src/domain/Conversation.ts"
import { CurrentTenant } from "../../../src/domain/Tenant.ts"
import * as Prompts from "../../../src/generation/Prompts.ts"
import { ChatTemplate } from "../../../src/prompt/ChatTemplate.ts"
import { LongPrompts as Long, startThread } from "../../../src/prompt/LongPrompts.ts"
import { Assembly, type LongPrompt, parcels, threadData, unitsPerParcel } from "../../../src/prompt/PromptThread.ts"
import * as GgufTokenizer from "../../../src/tokenizer/GgufTokenizer.ts"
import { unpack } from "../../../src/tokenizer/PackedVocabulary.ts"
import { goldenVocabulary, readVocabulary } from "../tokenizer/vectors.ts"

const vocabulary = readVocabulary("models/mashbox-demo.gguf")
const template = {
  template:
    "{% if tools %}{{ tools|tojson }}{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.reasoning_content }}{{ m.content }}" +
    "{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}<|im_end|>\n{% endfor %}" +
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% if think %}<think>\n{% endif %}{% endif %}",
  bos: undefined,
  eos: "<|im_end|>",
  specialTexts: ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<|endoftext|>"]
}

/** Text that is different for each seed, with a special token and characters of two units. */
const prose = (units: number, seed: number) =>
  `<|im_end|>👋🏽 ${Array.from({ length: Math.ceil(units / 12) }, (_, i) => `word${seed} no${i * 7919 % 977}, `).join("")}`.slice(0, units)

const user = (content: string): Message => ({ role: "user", content })
const talk = (messages: ReadonlyArray<Message>, changes: Partial<Conversation> = {}): LongPrompt => ({
  _tag: "Chat",
  conversation: { messages, tools: [], templateVariables: {}, ...changes }
})

/** Prompts of every shape that the pieces have to keep. */
const shapes: ReadonlyArray<readonly [string, LongPrompt]> = [
  [
    "many short messages",
    talk(Array.from({ length: 3000 }, (_, i) => i % 2 === 0 ? user(`${i}`) : { role: "assistant", content: `<${i}>` }))
  ],
  ["a long message", talk([user(prose(4 * unitsPerParcel + 17, 1)), { role: "assistant", content: "short" }, user(prose(10, 2))])],
  [
    "long reasoning, calls and results",
    talk([
      { role: "system", content: prose(9_000, 3) },
      user("Hi"),
      {
        role: "assistant",
        content: prose(unitsPerParcel + 1, 4),
        reasoning: prose(2 * unitsPerParcel, 5),
        toolCalls: [
          { id: "1", name: "f", arguments: JSON.stringify({ text: prose(2 * unitsPerParcel, 6) }) },
          { id: "2", name: "g", arguments: JSON.stringify({ text: prose(3 * unitsPerParcel, 7) }) }
        ]
      },
      { role: "tool", toolCallId: "1", content: prose(unitsPerParcel * 2, 8) },
      { role: "tool", toolCallId: "2", content: "" }
    ], {
      tools: Array.from({ length: 40 }, (_, i) => ({ name: `f${i}`, description: prose(500, i), parameters: { type: "object" } })),
      templateVariables: { think: true }
    })
  ],
  ["a text", { _tag: "Text", text: prose(3 * unitsPerParcel + 5, 9) }],
  ["a text of halves of characters", {
    _tag: "Text",
    text: `${"x".repeat(unitsPerParcel - 1)}👋🏽\ud800y`.repeat(2),
    parseSpecial: true,
    addBos: false
  }]
]

const start = (threads: () => Worker) =>
  Effect.gen(function*() {
    const tokenizer = yield* GgufTokenizer.make(vocabulary)
    const chat = yield* ChatTemplate.make(template)
    const long = yield* Long.make(threads)
    return { here: Prompts.make(chat, tokenizer), there: Prompts.make(chat, tokenizer, Option.some(long)), long }
  })

const realThread = startThread(vocabulary, template)

const stub = (program: string) => () =>
  new Worker(`const { parentPort, workerData } = require("node:worker_threads"); ${program}`, { eval: true })

const text = (units: number, seed = 1): LongPrompt => ({ _tag: "Text", text: prose(units, seed) })

describe("long prompts in their thread", () => {
  it.live("get the tokens and the text that this thread gives them", () =>
    Effect.gen(function*() {
      let threads = 0
      const { here, there } = yield* start(() => {
        threads++
        return realThread()
      })
      for (const [name, prompt] of shapes) {
        const expected = yield* here.encode(prompt)
        const found = yield* there.encode(prompt)
        assert.isTrue(Buffer.from(found.tokens.buffer).equals(Buffer.from(expected.tokens.buffer)), name)
        assert.deepEqual(found.reasoning, expected.reasoning, name)
        if (prompt._tag === "Chat") {
          assert.strictEqual(yield* there.render(prompt.conversation), yield* here.render(prompt.conversation), name)
        }
      }
      const [, [, again] = []] = shapes
      if (again !== undefined) {
        assert.deepEqual((yield* there.encode(again)).tokens, (yield* here.encode(again)).tokens)
      }
      assert.strictEqual(threads, 1)
    }))

  it.live("are refused with the template's words", () =>
    Effect.gen(function*() {
      const refusing = {
        ...template,
        template:
          "{% for m in messages %}{% if m.content|length > 9000 %}{{ raise_exception('too long for me') }}{% endif %}{{ m.content }}{% endfor %}"
      }
      const long = yield* Long.make(startThread(vocabulary, refusing))
      const error = yield* Effect.flip(long.encode(talk([user(prose(10_000, 1))])))
      assert.deepInclude(error, { _tag: "TemplateError", message: "messages.0: too long for me" })
      const without = yield* Long.make(startThread(vocabulary, { ...template, template: undefined, specialTexts: [] }))
      assert.include((yield* Effect.flip(without.encode(talk([user(prose(10_000, 1))])))).message, "no chat template")
    }))

  it.live("take turns: a short one is not kept waiting by one that takes long, and interrupting that one ends its work", () =>
    Effect.gen(function*() {
      const { long } = yield* start(realThread)
      const huge = yield* Effect.forkChild(long.encode({ _tag: "Text", text: "ab".repeat(4_000_000) }), { startImmediately: true })
      assert.isAbove((yield* long.encode(text(10_000))).tokens.length, 0)
      assert.isUndefined(huge.pollUnsafe())
      yield* Fiber.interrupt(huge)
      assert.isAbove((yield* long.encode({ _tag: "Text", text: "ba".repeat(200_000) })).tokens.length, 0)
    }))

  it.live("of one tenant leave room for another's", () =>
    Effect.gen(function*() {
      const { port1, port2 } = new MessageChannel()
      const begun: Array<string> = []
      const three = yield* Deferred.make<void>()
      port1.on("message", (tenant: string) => {
        if (begun.push(tenant) === 3) Deferred.doneUnsafe(three, Effect.void)
      })
      const program = "parentPort.on('message', (m) => { if (m.begin) workerData.postMessage(m.begin.tenant) })"
      const long = yield* Long.make(() =>
        new Worker(`const { parentPort, workerData } = require("node:worker_threads"); ${program}`, {
          eval: true,
          workerData: port2,
          transferList: [port2]
        })
      )
      const ask = (tenant: string) =>
        Effect.forkChild(Effect.provideService(long.encode(text(10)), CurrentTenant, tenant), { startImmediately: true })
      for (const tenant of ["a", "a", "a", "a", "b"]) yield* ask(tenant)
      yield* Deferred.await(three)
      assert.deepEqual(begun.toSorted(), ["a", "a", "b"])
      port1.close()
    }))

  it.live("start the thread again after it died, in the middle of a prompt too", () =>
    Effect.gen(function*() {
      let starts = 0
      const { here, long } = yield* start(() => ++starts === 1 ? stub("parentPort.on('message', () => process.exit(3))")() : realThread())
      const prompts = [1, 2, 3].map((seed) => text(20_000, seed))
      const found = yield* Effect.forEach(prompts, (prompt) => long.encode(prompt), { concurrency: 3 })
      const expected = yield* Effect.forEach(prompts, (prompt) => here.encode(prompt))
      assert.deepEqual(found.map(({ tokens }) => tokens), expected.map(({ tokens }) => tokens))
      assert.strictEqual(starts, 2)
    }))

  it.live("that end the thread every time fail alone, and those beside them do not", () =>
    Effect.gen(function*() {
      const program = (answers: boolean) =>
        `parentPort.on('message', ({ job, begin }) => {
          if (begin?.prompt.text === 'bad') throw new Error('boom')
          if (${answers} && begin) parentPort.postMessage({ job, tokens: Int32Array.of(7), reasoning: { _tag: 'None' } })
        })`
      let starts = 0
      const long = yield* Long.make(() => stub(program(++starts > 1))())
      const encode = (what: string) => Effect.exit(long.encode({ _tag: "Text", text: what }))
      const [good, bad] = yield* Effect.all([encode("good"), encode("bad")], { concurrency: 2 })
      assert.isTrue(Exit.isSuccess(good))
      assert.isTrue(Exit.isFailure(bad))
      assert.include(String(bad), "ended twice")
    }))

  it.live("end their thread with the layer's scope", () =>
    Effect.gen(function*() {
      const threads: Array<Worker> = []
      const scope = yield* Scope.make()
      const long = yield* Scope.provide(
        Long.make(() => {
          const thread = realThread()
          threads.push(thread)
          return thread
        }),
        scope
      )
      yield* long.encode(text(20_000))
      const exited = new Promise<void>((resolve) => threads[0]?.once("exit", () => resolve()))
      yield* Scope.close(scope, Exit.void)
      yield* Effect.promise(() => exited)
    }))
})

describe("pieces of prompts", () => {
  for (const [name, prompt] of shapes) {
    it(`put together again are ${name}`, () => {
      let assembly: Assembly | undefined
      let longest = 0
      for (const parcel of parcels({ prompt, tenant: "a", now: 1, want: "tokens" })) {
        longest = Math.max(longest, "more" in parcel ? parcel.more.length : JSON.stringify(parcel).length)
        if ("begin" in parcel) assembly = new Assembly(structuredClone(parcel.begin))
        else if (!("end" in parcel)) assembly?.add(structuredClone(parcel))
      }
      assert.deepEqual(assembly?.prompt, prompt)
      assert.deepEqual(assembly?.work, { tenant: "a", now: 1, want: "tokens" })
      assert.isAtMost(longest, 6 * unitsPerParcel)
    })
  }

  it("hold the vocabulary unchanged", () => {
    const spm = goldenVocabulary("spm-llama")
    assert.isDefined(spm)
    for (const one of [vocabulary, spm]) assert.deepEqual(unpack(structuredClone(threadData(one, template)).vocabulary), one)
  })
})
