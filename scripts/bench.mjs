#!/usr/bin/env node
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { reportSetupErrors, setup } from "./setup/main.mjs"
import { modernNode } from "./setup/node.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const [name, ...args] = process.argv.slice(2)

await reportSetupErrors(async () => {
  await setup()
  process.exitCode = spawnSync(modernNode(root), [`bench/${name}.ts`, ...args], { cwd: root, stdio: "inherit" }).status ?? 1
})
