#!/usr/bin/env node
import { spawn } from "node:child_process"
import module from "node:module"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { reportSetupErrors, setup } from "../scripts/setup/main.mjs"
import { modernNode } from "../scripts/setup/node.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const cli = new URL("../dist/cli.js", import.meta.url)

/** Compiled code is kept between starts, which saves a third of a start and some memory. */
const compileCache = process.env.NODE_COMPILE_CACHE ?? join(root, "build/compile-cache")

/** Runs the CLI on another Node as if it were this process: same streams, signals passed on, same end. */
const runOn = (/** @type {string} */ node) => {
  const child = spawn(node, [fileURLToPath(cli), ...process.argv.slice(2)], {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env: { ...process.env, NODE_COMPILE_CACHE: compileCache }
  })
  // A terminal sends Ctrl-C to the whole group; the child decides when to end, and this process ends with it.
  process.on("SIGINT", () => {})
  process.on("SIGTERM", () => child.kill("SIGTERM"))
  process.on("SIGHUP", () => child.kill("SIGHUP"))
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}

await reportSetupErrors(async () => {
  await setup()
  const node = modernNode(root)
  if (node === process.execPath) {
    module.enableCompileCache(compileCache)
    await import(cli.href)
  } else runOn(node)
})
