/**
 * The engine process: the addon in a Node of its own. Commands come in on stdin, frames go out on fd 3, and stderr is for last words; none
 * of them ever holds text of a request.
 *
 * It lives exactly as long as its parent: SIGINT, SIGHUP and SIGTERM, which a terminal or a service manager sends to the whole group,
 * are left to the parent, who lets the running requests end and then closes stdin. That also happens when the parent is killed.
 */
import { Socket } from "node:net"
import { disableMaglev } from "../Maglev.ts"
import { CommandReader } from "./Commands.ts"
import { FrameWriter } from "./Frames.ts"
import type { NativeEngine, NativeLoadOptions, NativeSubmit } from "./Native.ts"
import { loadNative, nativeFailure } from "./NativeModule.ts"

/** Frames that wait for a parent who does not read; a step's frame is some hundred bytes. */
const maxBacklogBytes = 64 * 1024 * 1024

process.title = "mashbox-engine"
disableMaglev()
for (const signal of ["SIGINT", "SIGHUP", "SIGTERM"] as const) process.on(signal, () => {})

const frames = openFrames()
const writer = new FrameWriter()
let engine: NativeEngine | undefined

function openFrames(): Socket {
  try {
    return new Socket({ fd: 3, readable: false, writable: true })
  } catch {
    return fatal("this program is started by mashbox, not by hand")
  }
}

function fatal(message: string): never {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}

function send(frame: Uint8Array): void {
  frames.write(frame)
  if (frames.writableLength > maxBacklogBytes) fatal("the server has stopped to read what the engine writes")
}

function close(): never {
  if (engine !== undefined) {
    engine.close()
    process.exit(0)
  }
  // A load cannot be called off, and leaving through exit() would wait for it or pull its memory away.
  process.kill(process.pid, "SIGKILL")
  return process.exit(1)
}

async function load(options: NativeLoadOptions): Promise<void> {
  try {
    const native = await loadNative()
    engine = await native.load(options, (fraction) => {
      writer.loading(fraction)
      send(writer.take())
    }, send)
    writer.ready(JSON.stringify(engine.model))
    send(writer.take())
  } catch (thrown) {
    writer.loadFailed(JSON.stringify(nativeFailure(thrown)))
    frames.end(writer.take(), () => process.exit(1))
  }
}

function submit(request: NativeSubmit): void {
  try {
    if (engine === undefined) throw Object.assign(new Error("the model is not loaded"), { code: "rejected" })
    engine.submit(request)
  } catch (thrown) {
    const { code, message, subject } = nativeFailure(thrown)
    writer.failed(request.id, code === "out_of_memory" ? code : "rejected", message, subject)
    send(writer.take())
  }
}

const commands = new CommandReader({ load, submit, cancel: (id) => engine?.cancel(id), close })

frames.on("error", close)
process.stdin.on("error", close)
process.stdin.on("close", close)
process.stdin.on("end", close)
process.stdin.on("data", (chunk: Buffer) => {
  try {
    commands.push(chunk)
  } catch (error) {
    fatal(nativeFailure(error).message)
  }
})
