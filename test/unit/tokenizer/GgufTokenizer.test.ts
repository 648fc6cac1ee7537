import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Result, Scope } from "effect"
import { MessageChannel, Worker } from "node:worker_threads"
import type { Vocabulary } from "../../../src/models/ModelMetadata.ts"
import * as GgufTokenizer from "../../../src/tokenizer/GgufTokenizer.ts"
import * as LongEncoder from "../../../src/tokenizer/LongEncoder.ts"
import { pack, unpack } from "../../../src/tokenizer/PackedVocabulary.ts"
import { PromptEncoder } from "../../../src/tokenizer/PromptEncoder.ts"
import { Tokenizer } from "../../../src/tokenizer/Tokenizer.ts"
import { goldenVocabulary, readVocabulary } from "./vectors.ts"

const vocabulary = readVocabulary("models/mashbox-demo.gguf")
const encoder = Result.getOrThrow(PromptEncoder.make(vocabulary))

const trusted = (text: string) => ({ text, untrusted: [] })

/** Text without special tokens; different for each seed. */
const prose = (characters: number, seed: number) =>
  Array.from({ length: Math.ceil(characters / 12) }, (_, i) => `word${seed} no${i * 7919 % 977}, `).join("").slice(0, characters)

/** Counts the threads that a tokenizer starts. */
const countingThread = (of: Vocabulary) => {
  const threads: Array<Worker> = []
  const startThread = () => {
    const thread = LongEncoder.startThread(of)()
    threads.push(thread)
    return thread
  }
  return { threads, startThread }
}

const stub = (program: string) => () => new Worker(`const { parentPort } = require("node:worker_threads"); ${program}`, { eval: true })

describe("the Tokenizer service", () => {
  it.live("describes the vocabulary", () =>
    Effect.gen(function*() {
      const tokenizer = yield* Tokenizer
      assert.deepEqual([tokenizer.bos, tokenizer.eos, tokenizer.size], ["<|endoftext|>", "<|im_end|>", 4096])
      assert.deepEqual(Array.from(tokenizer.endTokens), [4087, 4089])
      assert.sameMembers(Array.from(tokenizer.specialTexts), vocabulary.tokens.slice(4087))
      assert.deepEqual(["<|im_start|>", "</think>", "Ġthe", "nothing like it"].map(tokenizer.tokenId), [
        4088,
        4091,
        vocabulary.tokens.indexOf("Ġthe"),
        undefined
      ])
    }).pipe(Effect.provide(GgufTokenizer.layer(vocabulary))))

  it.live("gives the bytes of every token, control tokens' texts and none for what is no token", () =>
    Effect.gen(function*() {
      const tokenizer = yield* Tokenizer
      const text = "a €👋🏽"
      const ids = yield* tokenizer.encode(trusted(text))
      assert.strictEqual(Buffer.concat(Array.from(ids, tokenizer.tokenBytes)).toString(), text)
      assert.strictEqual(Buffer.from(tokenizer.tokenBytes(4089)).toString(), "<|im_end|>")
      assert.strictEqual(tokenizer.tokenBytes(4089), tokenizer.tokenBytes(4089))
      for (const id of [-1, 4096, 1 << 30, 0.5]) assert.lengthOf(tokenizer.tokenBytes(id), 0)
      const shown = tokenizer.decoder(true)
      assert.deepStrictEqual([tokenizer.decoder().push(4089), shown.push(4089)], ["", "<|im_end|>"])
    }).pipe(Effect.provide(GgufTokenizer.layer(vocabulary))))

  it.live("puts BOS first where the vocabulary wants it and the caller does not object", () =>
    Effect.gen(function*() {
      const tokenizer = yield* GgufTokenizer.make({ ...vocabulary, addBos: true })
      const bos = vocabulary.bosId ?? -1
      const plain = Array.from(yield* tokenizer.encode({ ...trusted("hi"), addBos: false }))
      assert.notInclude(plain, bos)
      assert.deepStrictEqual(Array.from(yield* tokenizer.encode(trusted("hi"))), [bos, ...plain])
      assert.deepStrictEqual(Array.from(yield* tokenizer.encode(trusted("<|endoftext|>hi"))), [bos, ...plain])
    }))

  it.live("refuses an unknown pre-tokenizer by name", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(GgufTokenizer.make({ ...vocabulary, pre: "martian" }))
      assert.deepEqual([error.reason, error.subject], ["Unsupported", "tokenizer.ggml.pre"])
      assert.include(error.message, "martian")
    }))

  it.live("round-trips text with untrusted special tokens and lone surrogates", () =>
    Effect.gen(function*() {
      const tokenizer = yield* GgufTokenizer.make(vocabulary)
      const text = "<|im_start|>user\na \ud800 <|im_end|> b 👋🏽\u0000<|im_end|>\n"
      const at = text.indexOf("<|im_end|> b")
      const ids = yield* tokenizer.encode({ text, untrusted: [[at, at + "<|im_end|>".length]] })
      assert.deepEqual(Array.from(ids).filter((id) => id >= 4087), [4088, 4089])
      const decoder = tokenizer.decoder()
      assert.strictEqual(
        Array.from(ids, (id) => decoder.push(id)).join("") + decoder.end(),
        "user\na \ufffd <|im_end|> b 👋🏽\u0000\n"
      )
      assert.strictEqual(decoder.push(-1) + decoder.push(4096) + decoder.push(2 ** 31), "")
    }))

  it.live("encodes nothing to nothing", () =>
    Effect.gen(function*() {
      const tokenizer = yield* GgufTokenizer.make(vocabulary)
      assert.strictEqual((yield* tokenizer.encode(trusted(""))).length, 0)
    }))
})

describe("BOS", () => {
  const idsOf = (of: Vocabulary, prompt: { readonly text: string; readonly untrusted: ReadonlyArray<readonly [number, number]> }) =>
    Effect.map(Effect.flatMap(GgufTokenizer.make(of), (tokenizer) => tokenizer.encode(prompt)), (ids) => Array.from(ids))

  for (const name of ["llama-bpe", "spm-llama"]) {
    it.live(`of ${name} comes first exactly once, and not from a user's text`, () =>
      Effect.gen(function*() {
        const found = goldenVocabulary(name)
        assert.isDefined(found)
        const bosId = found.bosId ?? -1
        const bos = found.tokens[bosId] ?? ""
        const count = (ids: ReadonlyArray<number>) => ids.filter((id) => id === bosId).length
        const bare = yield* idsOf(found, trusted("Hi"))
        const written = yield* idsOf(found, trusted(`${bos}Hi`))
        const user = yield* idsOf(found, { text: `${bos}Hi`, untrusted: [[0, bos.length]] })
        assert.deepEqual(written, bare)
        assert.deepEqual([bare[0], user[0], count(bare), count(user)], [bosId, bosId, 1, 1])
        assert.isAbove(user.length, bare.length)
        assert.deepEqual(yield* idsOf(found, trusted("")), [bosId])
        assert.strictEqual(count(yield* idsOf({ ...found, addBos: false }, trusted("Hi"))), 0)
      }))
  }

  it.live("is put first without a key where the kind of tokenizer says so", () =>
    Effect.gen(function*() {
      for (const [name, expected] of [["spm-llama", true], ["llama-bpe", true], ["qwen2", false], ["gpt-2", false]] as const) {
        const found = goldenVocabulary(name)
        assert.isDefined(found)
        assert.strictEqual((yield* idsOf({ ...found, addBos: undefined }, trusted("Hi")))[0] === found.bosId, expected, name)
      }
    }))
})

describe("long prompts", () => {
  it.live("have the ids of short ones and leave the thread alone once they are known", () =>
    Effect.gen(function*() {
      const { startThread, threads } = countingThread(vocabulary)
      const tokenizer = yield* GgufTokenizer.make(vocabulary, { startThread })
      const turns = (count: number) => Array.from({ length: count }, (_, i) => `<|im_start|>user\n${prose(3000, i)}<|im_end|>\n`).join("")
      const expected = (text: string) =>
        Array.from(encoder.join(encoder.specials.cut(text, []).map((part) => typeof part === "number" ? part : encoder.encodeText(part))))
      yield* tokenizer.encode(trusted(turns(2)))
      assert.strictEqual(threads.length, 0)
      for (const count of [40, 40, 41, 42]) {
        assert.deepEqual(Array.from(yield* tokenizer.encode(trusted(turns(count)))), expected(turns(count)))
      }
      assert.strictEqual(threads.length, 1)
      yield* Effect.promise(() => threads[0]?.terminate() ?? Promise.resolve(0))
      assert.deepEqual(Array.from(yield* tokenizer.encode(trusted(turns(42)))), expected(turns(42)))
      assert.strictEqual(threads.length, 1)
    }))

  it.live("start the thread again after it died, in the middle of a text too", () =>
    Effect.gen(function*() {
      let starts = 0
      const tokenizer = yield* GgufTokenizer.make(vocabulary, {
        startThread: () =>
          ++starts === 1 ? stub("parentPort.on('message', () => process.exit(3))")() : LongEncoder.startThread(vocabulary)()
      })
      const text = prose(20_000, 1)
      assert.deepEqual(Array.from(yield* tokenizer.encode(trusted(text))), Array.from(encoder.encodeText(text)))
      assert.strictEqual(starts, 2)
    }))

  it.live("that kill the thread every time end in a defect with its cause", () =>
    Effect.gen(function*() {
      const tokenizer = yield* GgufTokenizer.make(vocabulary, {
        startThread: stub("parentPort.on('message', () => { throw new Error('boom') })")
      })
      const exit = yield* Effect.exit(tokenizer.encode(trusted(prose(20_000, 1))))
      assert.isTrue(Exit.isFailure(exit))
      assert.include(String(exit), "ended twice")
    }))

  it.live("are interruptible, waiting or at work, and the next one is served", () =>
    Effect.gen(function*() {
      const { port1, port2 } = new MessageChannel()
      const got = yield* Deferred.make<void>()
      port1.once("message", () => Deferred.doneUnsafe(got, Effect.void))
      // Holds the first answer back until it is told to go.
      const program = `
        const { parentPort, workerData: control } = require("node:worker_threads")
        let held
        control.on("message", () => held())
        parentPort.on("message", (texts) => {
          const reply = () => parentPort.postMessage(texts.map((text) => Int32Array.of(text.length)))
          if (held !== undefined) return reply()
          held = reply
          control.postMessage("got")
        })`
      const tokenizer = yield* GgufTokenizer.make(vocabulary, {
        startThread: () => new Worker(program, { eval: true, workerData: port2, transferList: [port2] })
      })
      const encode = (characters: number) =>
        Effect.forkChild(tokenizer.encode(trusted(prose(characters, characters))), { startImmediately: true })
      const atWork = yield* encode(20_000)
      yield* Deferred.await(got)
      const waiting = yield* encode(21_000)
      const last = yield* encode(22_000)
      yield* Fiber.interrupt(atWork)
      yield* Fiber.interrupt(waiting)
      port1.postMessage("go")
      assert.deepEqual(Array.from(yield* Fiber.join(last)), [22_000])
      port1.close()
    }))

  it.live("end their thread with the layer's scope", () =>
    Effect.gen(function*() {
      const { startThread, threads } = countingThread(vocabulary)
      const scope = yield* Scope.make()
      const tokenizer = yield* Scope.provide(GgufTokenizer.make(vocabulary, { startThread }), scope)
      yield* tokenizer.encode(trusted(prose(20_000, 1)))
      const exited = new Promise<void>((resolve) => threads[0]?.once("exit", () => resolve()))
      yield* Scope.close(scope, Exit.void)
      yield* Effect.promise(() => exited)
    }))

  it("get their vocabulary unchanged", () => {
    const spm = goldenVocabulary("spm-llama")
    assert.isDefined(spm)
    for (const one of [vocabulary, spm]) assert.deepEqual(unpack(structuredClone(pack(one))), one)
  })
})

describe("untrusted text", () => {
  it.live("becomes no control token and no tag, even where merges or the whole-piece rule would make one", () =>
    Effect.gen(function*() {
      const found = goldenVocabulary("llama-bpe")
      assert.isDefined(found)
      const id = (text: string) => found.tokens.indexOf(text)
      const [word = "", ...merge] = found.merges.filter((one) => /^[a-z]+ [a-z]+$/.test(one)).map((one) => one.replace(" ", ""))
      const other = merge.find((one) => !one.includes(word) && !word.includes(one)) ?? ""
      const types = found.types.slice()
      types[id(word)] = 3
      types[id(other)] = 4
      const tokenizer = yield* GgufTokenizer.make({ ...found, types, addBos: false })
      const ids = yield* tokenizer.encode({
        text: `${word} ${other}`,
        untrusted: [[0, word.length], [word.length + 1, word.length + 1 + other.length]]
      })
      assert.notInclude(Array.from(ids), id(word))
      assert.notInclude(Array.from(ids), id(other))
      const decoder = tokenizer.decoder()
      assert.strictEqual(Array.from(ids, (one) => decoder.push(one)).join(""), `${word} ${other}`)
      assert.include(Array.from(yield* tokenizer.encode(trusted(word))), id(word))
    }))
})
