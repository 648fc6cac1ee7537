#!/usr/bin/env node
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { cmake } from "./setup/cmake.mjs"
import { reportSetupErrors, setup } from "./setup/main.mjs"
import { progressLine } from "./setup/progress.mjs"

const usage = `Usage: npm run test:native -- [--sanitize address,undefined|thread] [--fuzz SECONDS [--target gguf|grammar]] [FILTER]

Builds and runs the native tests whose names contain FILTER. --fuzz runs a fuzz target instead (gguf without --target), under ASan and UBSan.`

const root = fileURLToPath(new URL("..", import.meta.url))
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    sanitize: { type: "string" },
    fuzz: { type: "string" },
    target: { type: "string", default: "gguf" },
    help: { type: "boolean" }
  }
})
const sanitize = values.fuzz === undefined ? values.sanitize ?? "" : "address,undefined"
const target = values.fuzz === undefined ? "mashbox_tests" : `mashbox_fuzz_${values.target}`
const corpus = values.target === "gguf" ? "native/fuzz/corpus" : `native/fuzz/corpus_${values.target}`
/** The plain tests share the addon's build, and with it the compiled core. */
const build = join(root, sanitize === "" ? "build/native" : `build/native-${sanitize.replace(",", "-")}`)

const compile = async () => {
  const progress = progressLine(`Building ${target}${sanitize === "" ? "" : ` (${sanitize})`}`)
  const options = ["-DMASHBOX_TESTS=ON", ...(sanitize === "" ? [] : ["-DMASHBOX_ADDON=OFF", `-DMASHBOX_SANITIZE=${sanitize}`])]
  await cmake({ root, build, target, options, onProgress: progress.update })
  progress.done()
}

if (values.help) console.log(usage)
else {
  await reportSetupErrors(async () => {
    await setup()
    await compile()
    const args = values.fuzz === undefined ? positionals : ["--seconds", values.fuzz, join(root, corpus)]
    process.exitCode = spawnSync(join(build, target), args, { cwd: root, stdio: "inherit" }).status ?? 1
  })
}
