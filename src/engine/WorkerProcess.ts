import { Deferred, type Duration, Effect } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import type { EngineError } from "../domain/Errors.ts"
import { encodeCancel, encodeClose, encodeLoad, encodeSubmit } from "./Commands.ts"
import { Dispatcher } from "./Dispatcher.ts"
import { workerLost } from "./EngineErrors.ts"
import { workerPath } from "./EnginePaths.ts"
import { FrameReader } from "./Frames.ts"
import type { NativeLoadOptions, NativeModelInfo } from "./Native.ts"
import { nativeFailure } from "./NativeModule.ts"
import { readLoadFailure, readModelInfo } from "./WorkerRecords.ts"

export interface WorkerOptions {
  readonly load: NativeLoadOptions
  /** Path of the native addon; the default is the one that the build made, or MASHBOX_ADDON. */
  readonly addon?: string
  /** The worker's program; the default is the one beside this module. */
  readonly worker?: string
}

/** Called synchronously; `onReady` at most once. */
export interface WorkerEvents {
  readonly onLoading: (fraction: number) => void
  readonly onReady: (model: NativeModelInfo) => void
}

/** How a worker ended. `refused`: it said itself that the model cannot be loaded. */
export interface WorkerEnd {
  readonly error: EngineError
  readonly refused: boolean
}

/** One engine process, from its start to its end. */
export class WorkerProcess {
  readonly dispatcher: Dispatcher
  private readonly child: ChildProcess
  private readonly stderr = new LastWords()
  private readonly end = Deferred.makeUnsafe<WorkerEnd>()
  private loadFailure: EngineError | undefined
  private fault: string | undefined

  constructor(options: WorkerOptions, events: WorkerEvents) {
    this.child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", options.worker ?? workerPath], {
      stdio: ["pipe", "ignore", "pipe", "pipe"],
      env: workerEnvironment(options.addon)
    })
    this.dispatcher = new Dispatcher({
      submit: (request) => this.write(encodeSubmit(request)),
      cancel: (id) => this.write(encodeCancel(id))
    })
    const frames = new FrameReader(this.dispatcher, {
      loading: events.onLoading,
      ready: (json) => events.onReady(readModelInfo(json)),
      loadFailed: (json) => {
        this.loadFailure = readLoadFailure(json)
      }
    })
    this.child.on("error", (error) => {
      if (this.pid === undefined) this.finish(`could not be started: ${error.message}`)
    })
    if (this.pid === undefined) return
    // A worker that is gone says so through "close", which comes after the last byte of every pipe; errors of the pipes add nothing.
    this.child.on(
      "close",
      (code, signal) => this.finish(this.fault ?? (signal === null ? `exited with code ${code}` : `was killed by ${signal}`))
    )
    for (const pipe of this.child.stdio) pipe?.on("error", () => {})
    this.child.stderr?.on("data", (chunk: Buffer) => this.stderr.add(chunk))
    this.child.stdio[3]?.on("data", (chunk: Buffer) => this.read(frames, chunk))
    this.write(encodeLoad(options.load))
  }

  /** undefined: there was no process to begin with. */
  get pid(): number | undefined {
    return this.child.pid
  }

  /** Waits for the end of the process; its output has been read by then. */
  get ended(): Effect.Effect<WorkerEnd> {
    return Deferred.await(this.end)
  }

  /** Lets the worker close its engine, and kills it when it has not done so within `grace`. */
  stop(grace: Duration.Input): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (Deferred.isDoneUnsafe(this.end)) return Effect.void
      this.write(encodeClose())
      this.child.stdin?.end()
      return this.ended.pipe(
        Effect.timeoutOrElse({
          duration: grace,
          orElse: () => Effect.andThen(Effect.sync(() => this.child.kill("SIGKILL")), this.ended)
        }),
        Effect.asVoid
      )
    })
  }

  private read(frames: FrameReader, chunk: Buffer): void {
    if (this.fault !== undefined) return
    try {
      frames.push(chunk)
    } catch (error) {
      this.fault = `sent a corrupt frame: ${nativeFailure(error).message}`
      this.child.kill("SIGKILL")
    }
  }

  private write(bytes: Uint8Array): void {
    if (this.child.stdin?.writable === true) this.child.stdin.write(bytes)
  }

  private finish(how: string): void {
    const words = this.stderr.text
    Deferred.doneUnsafe(
      this.end,
      Effect.succeed({
        error: this.loadFailure ?? workerLost(`the engine process ${how}${words === "" ? "" : `: ${words}`}`),
        refused: this.loadFailure !== undefined
      })
    )
  }
}

/** The worker inherits the environment without the secrets of the server. */
const workerEnvironment = (addon: string | undefined): NodeJS.ProcessEnv => {
  const { MASHBOX_API_KEY: _, ...environment } = process.env
  return addon === undefined ? environment : { ...environment, MASHBOX_ADDON: addon }
}

const keptCharacters = 4096
const keptLines = 3

/** The end of what a worker wrote on stderr. */
class LastWords {
  private readonly decoder = new TextDecoder()
  private tail = ""

  add(chunk: Uint8Array): void {
    this.tail = (this.tail + this.decoder.decode(chunk, { stream: true })).slice(-keptCharacters)
  }

  /** The message of an uncaught JavaScript error where there is one, else the last lines. */
  get text(): string {
    const lines = this.tail.split("\n").map((line) => line.trimEnd()).filter((line) => line !== "" && !/^\s+at /.test(line))
    return lines.findLast((line) => /^[A-Za-z]*Error\b/.test(line)) ?? lines.slice(-keptLines).join("; ")
  }
}
